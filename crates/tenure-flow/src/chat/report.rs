//! What became of a chat.

use super::{ChatMessage, ChatStatus};
use crate::contract::{OrchestratorMetrics, Stage};
use crate::route::RoutingDecision;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::hook::HookFailure;
use tenure_core::model::Usage;
use tenure_core::{Error, Outcome};

/// What became of a chat. What was done before it failed is all in here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChatReport {
    /// The flow's name.
    pub flow: Arc<str>,
    /// The chat's id.
    pub chat_id: Arc<str>,
    /// What state it is in.
    pub status: ChatStatus,
    /// How its scope ended.
    pub outcome: Outcome,
    /// Why, if it did not end well.
    pub error: Option<Error>,
    /// The last thing that an agent said for people to see, or what a hook said that finished the
    /// chat before it began.
    pub output: String,
    /// Everything that was said.
    pub messages: Vec<ChatMessage>,
    /// How many turns agents had; the person's are not counted.
    pub turns: usize,
    /// How each of them went.
    pub turn_summaries: Vec<TurnSummary>,
    /// Who was chosen, and why.
    pub routing: Vec<RoutingDecision>,
    /// The context variables at the end.
    pub variables: BTreeMap<String, Value>,
    /// What it cost.
    pub usage: Usage,
    /// Hooks that failed without changing the outcome.
    pub failures: Vec<HookFailure>,
    /// The numbers.
    pub metrics: OrchestratorMetrics,
    /// The last stage.
    pub stage: Stage,
    /// How long it took, from the start of its agents to the last of their ends.
    pub duration: Duration,
}

impl ChatReport {
    /// The report as JSON: the names of its fields, durations in milliseconds, errors in words.
    pub fn to_json(&self) -> Value {
        let turns = self.turn_summaries.iter().map(TurnSummary::to_json);
        json!({
            "workflow": self.flow,
            "chat_id": self.chat_id,
            "status": self.status,
            "outcome": self.outcome,
            "error": self.error.as_ref().map(ToString::to_string),
            "output": self.output,
            "messages": self.messages,
            "turns": self.turns,
            "turn_summaries": turns.collect::<Vec<_>>(),
            "routing": self.routing,
            "variables": self.variables,
            "usage": self.usage,
            "failures": self.failures.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "metrics": self.metrics,
            "stage": self.stage,
            "duration_ms": milliseconds(self.duration),
        })
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// How a turn went.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnSummary {
    /// Who had it.
    pub agent: Arc<str>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
    /// Why it did not end well.
    pub error: Option<Error>,
}

impl TurnSummary {
    fn to_json(&self) -> Value {
        json!({
            "agent": self.agent,
            "outcome": self.outcome,
            "duration_ms": milliseconds(self.duration),
            "error": self.error.as_ref().map(ToString::to_string),
        })
    }
}
