//! A call as a worker gets it: what changes from call to call, and nothing else.
//!
//! What stays the same in the life of an instance is sent to a worker once. A worker decodes what
//! it gets whether or not the function looks at it, so this is most of what a call costs.

use super::worker::Decided;
use crate::payload::{At, ConfigPart};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use tenure_core::agent::AgentConfig;
use tenure_core::context::{Cx, ExecutionContext};
use tenure_core::hook::Point;
use tenure_core::phase::{AgentState, Phase};

#[derive(Serialize)]
struct Brief<'a> {
    point: &'static str,
    agent: (Phase, AgentState),
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
    #[serde(skip_serializing_if = "is_first")]
    attempt: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
    /// Only ends are delivered again.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a ExecutionContext>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    state: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_id: Option<&'a str>,
    /// How new the variables are, and which change of the worker's was last decided on, by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<(u64, &'a Decided)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<BTreeMap<String, Value>>,
    /// Why `on_start` is called another time.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// `false` at the shutdown of an instance whose `on_start` never began.
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<bool>,
    #[serde(flatten)]
    at: &'a At<'a>,
}

/// The reason of an `on_start` in the worker that took another's place.
pub(super) const WORKER_REPLACED: &str = "worker_replaced";

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// Whether a trace is told by the run already.
fn is_run(at: &At<'_>, trace: &str) -> bool {
    let (At::Input { run_id, .. } | At::ToolHook { run_id, .. }) = at else { return false };
    let mut rest = Remaining(trace);
    write!(rest, "{run_id}").is_ok() && rest.0.is_empty()
}

/// What is left of a text, from which what is written to it is taken away.
struct Remaining<'a>(&'a str);

impl fmt::Write for Remaining<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Writes a call at a point, as JSON.
///
/// `decided` says which changes of the context variables the worker has made and the chat has decided on.
pub(super) fn encode(
    cx: &Cx<'_>,
    at: &At<'_>,
    decided: &Decided,
    started: Option<bool>,
    buffer: &mut Vec<u8>,
) {
    let brief = brief(cx, at, decided);
    // All of it is JSON already, and writing into memory does not fail.
    let _ = serde_json::to_writer(buffer, &Brief { started, ..brief });
}

/// Writes a call of `on_start` in a worker that took another's place, wherever the instance is now.
pub(super) fn encode_start_again(cx: &Cx<'_>, buffer: &mut Vec<u8>) {
    let point = Point::OnStart.as_str();
    let reason = Some(WORKER_REPLACED);
    // All of it is JSON already, and writing into memory does not fail.
    let _ = serde_json::to_writer(
        buffer,
        &Brief { point, reason, delivery_id: None, ..brief(cx, &At::Plain {}, &Decided::new()) },
    );
}

fn brief<'a>(cx: &'a Cx<'_>, at: &'a At<'_>, decided: &'a Decided) -> Brief<'a> {
    let phase = cx.agent().phase();
    let variables = cx.chat_variables();
    // Before the values: what is written in between is newer than it is taken for, and comes again.
    let version = variables.map(|variables| (variables.version(), decided));
    Brief {
        point: cx.hook_type().as_str(),
        agent: (phase, phase.state()),
        trace_id: Some(cx.trace_id()).filter(|trace| !is_run(at, trace)),
        attempt: cx.attempt(),
        resumed: cx.resumed(),
        delivery_id: cx.hook_type().is_end().then(|| cx.delivery_id()),
        context: cx.context(),
        state: cx.state_values(),
        chat_id: cx.chat_id(),
        version,
        variables: variables.map(|variables| variables.all()),
        reason: None,
        started: None,
        at,
    }
}

/// Writes what stays the same in the life of an instance, which a worker is told once for each of its threads.
pub(super) fn about(cx: &Cx<'_>) -> Value {
    json!({
        "name": cx.agent_name(),
        "instance_id": cx.instance_id(),
        "family_id": cx.family_id(),
        "config": config(cx.config()),
    })
}

/// The declaration of an agent, and over it what counts: templates are rendered, and defaults filled in.
fn config(config: &AgentConfig) -> Map<String, Value> {
    let mut fields = config.declaration.as_deref().cloned().unwrap_or_default();
    if !config.lifecycle_hooks.is_empty() {
        fields.insert("lifecycle_hooks".to_owned(), json!(config.lifecycle_hooks));
    }
    if let Value::Object(counts) = json!(ConfigPart::of(config)) {
        fields.extend(counts);
    }
    fields
}
