//! What became of a chat.

use super::{ChatMessage, ChatStatus};
use crate::contract::{OrchestratorMetrics, Stage};
use crate::route::RoutingDecision;
use serde_json::Value;
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
