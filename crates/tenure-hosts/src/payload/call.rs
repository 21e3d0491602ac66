//! What goes out at every point.

use super::At;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use tenure_core::InstanceId;
use tenure_core::agent::AgentConfig;
use tenure_core::ask::Answer;
use tenure_core::context::{Cx, ExecutionContext};
use tenure_core::phase::{AgentState, Phase};

/// Which half of a wrap a command is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Before `next`.
    Before,
    /// After `next` ran.
    After,
}

/// The call of `hook` as JSON: at which half of a wrap, and with what a person answered.
pub(crate) fn encode(
    cx: &Cx<'_>,
    hook: &str,
    at: &At<'_>,
    stage: Option<Stage>,
    answer: Option<&Answer>,
) -> Vec<u8> {
    let agent = cx.agent();
    let phase = agent.phase();
    let payload = Payload {
        point: cx.hook_type().as_str(),
        hook,
        agent: AgentPart { name: agent.name(), phase, state: phase.state() },
        instance_id: cx.instance_id(),
        family_id: cx.family_id(),
        trace_id: cx.trace_id(),
        attempt: cx.attempt(),
        resumed: cx.resumed(),
        delivery_id: cx.hook_type().is_end().then(|| cx.delivery_id()),
        config: ConfigPart::of(cx.config()),
        context: cx.context(),
        state: cx.state_values(),
        chat_id: cx.chat_id(),
        variables: cx.chat_variables().map(|variables| variables.all()).unwrap_or_default(),
        at,
        stage,
        answer,
    };
    let mut out = Vec::with_capacity(1024);
    // Keys are texts and values are JSON already, so there is nothing that could not be written.
    if serde_json::to_writer(&mut out, &payload).is_err() {
        out.clear();
    }
    out
}

#[derive(Serialize)]
struct Payload<'a> {
    point: &'static str,
    hook: &'a str,
    agent: AgentPart<'a>,
    #[serde(serialize_with = "id")]
    instance_id: InstanceId,
    #[serde(serialize_with = "id")]
    family_id: InstanceId,
    trace_id: String,
    attempt: u32,
    resumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_id: Option<String>,
    config: ConfigPart<'a>,
    context: Option<&'a ExecutionContext>,
    state: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_id: Option<&'a str>,
    variables: BTreeMap<String, Value>,
    #[serde(flatten)]
    at: &'a At<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<Stage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a Answer>,
}

fn id<S: Serializer>(id: &InstanceId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

#[derive(Serialize)]
struct AgentPart<'a> {
    name: &'a str,
    phase: Phase,
    state: AgentState,
}

/// What hooks may read of the configuration.
#[derive(Serialize)]
pub(crate) struct ConfigPart<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    max_steps: usize,
    max_parallel_tools: usize,
    use_history: bool,
}

impl<'a> ConfigPart<'a> {
    pub(crate) fn of(config: &'a AgentConfig) -> Self {
        Self {
            name: &config.name,
            description: &config.description,
            model: config.params.model.as_deref(),
            instruction: config.instruction.as_deref(),
            // As it was written: the nearest f64 has more digits.
            temperature: config.params.temperature.and_then(|it| it.to_string().parse().ok()),
            max_tokens: config.params.max_tokens,
            max_steps: config.max_steps,
            max_parallel_tools: config.max_parallel_tools,
            use_history: config.use_history,
        }
    }
}
