//! A call as a worker gets it: what changes from call to call, and nothing else.
//!
//! What stays the same in the life of an instance is sent to a worker once. A worker decodes what
//! it gets whether or not the function looks at it, so this is most of what a call costs.

use crate::payload::{At, ConfigPart};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use tenure_core::context::{Cx, ExecutionContext};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    variables: Option<BTreeMap<String, Value>>,
    #[serde(flatten)]
    at: &'a At<'a>,
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// Whether a trace is told by the run already.
fn is_run(at: &At<'_>, trace: &str) -> bool {
    let At::Input { run_id, .. } = at else { return false };
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
pub(super) fn encode(cx: &Cx<'_>, at: &At<'_>, buffer: &mut Vec<u8>) {
    let phase = cx.agent().phase();
    let brief = Brief {
        point: cx.hook_type().as_str(),
        agent: (phase, phase.state()),
        trace_id: Some(cx.trace_id()).filter(|trace| !is_run(at, trace)),
        attempt: cx.attempt(),
        resumed: cx.resumed(),
        delivery_id: cx.hook_type().is_end().then(|| cx.delivery_id()),
        context: cx.context(),
        state: cx.state_values(),
        chat_id: cx.chat_id(),
        variables: cx.chat_variables().map(|variables| variables.all()),
        at,
    };
    // All of it is JSON already, and writing into memory does not fail.
    let _ = serde_json::to_writer(buffer, &brief);
}

/// What stays the same in the life of an instance.
pub(super) fn about(cx: &Cx<'_>) -> Value {
    json!({
        "name": cx.agent_name(),
        "instance_id": cx.instance_id(),
        "family_id": cx.family_id(),
        "config": ConfigPart::of(cx.config()),
    })
}
