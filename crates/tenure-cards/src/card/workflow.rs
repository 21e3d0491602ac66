//! The fields of the types that put agents together.

use super::{AgentRef, McpFields, ModelFields, Secret};
use std::collections::BTreeMap;
use std::time::Duration;

/// `type: chain`: agents one after another.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChainCard {
    /// The agents, in order; never empty.
    pub sequence: Vec<AgentRef>,
    /// Whether each agent sees everything said before it, and not only the last answer.
    pub cumulative: bool,
}

/// `type: parallel`: agents at the same time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParallelCard {
    /// The agents that answer; never empty.
    pub fan_out: Vec<AgentRef>,
    /// The agent that puts the answers together; without it they are joined.
    pub fan_in: Option<AgentRef>,
    /// Whether `fan_in` also gets to see the request.
    pub include_request: bool,
}

/// How good an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rating {
    /// Must be written again.
    Poor,
    /// Needs work.
    Fair,
    /// Good enough. The default.
    Good,
    /// Nothing to add.
    Excellent,
}

impl Rating {
    /// The rating as cards and evaluators spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Poor => "POOR",
            Self::Fair => "FAIR",
            Self::Good => "GOOD",
            Self::Excellent => "EXCELLENT",
        }
    }
}

/// `type: evaluator_optimizer`: one agent writes, another judges.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EvaluatorOptimizerCard {
    /// The agent that writes.
    pub generator: AgentRef,
    /// The agent that judges.
    pub evaluator: AgentRef,
    /// The rating that is good enough.
    pub min_rating: Rating,
    /// The most times that the generator is asked to do better; at least 1.
    pub max_refinements: u32,
    /// What the generator is told beside the feedback.
    pub refinement_instruction: Option<String>,
}

/// `type: router`: a model picks the agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouterCard {
    /// The agents to pick from; never empty.
    pub agents: Vec<AgentRef>,
    /// The model that picks.
    pub model: ModelFields,
    /// Tool servers and what is taken of them.
    pub mcp: McpFields,
}

/// How an orchestrator plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanType {
    /// The whole plan first. The default.
    Full,
    /// One step at a time.
    Iterative,
}

/// `type: orchestrator`: a model plans, agents carry out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrchestratorCard {
    /// The agents that carry out; never empty.
    pub agents: Vec<AgentRef>,
    /// The model that plans.
    pub model: ModelFields,
    /// How it plans.
    pub plan_type: PlanType,
    /// The most times that it plans; none means no limit (`-1`). 5.
    pub plan_iterations: Option<u32>,
}

/// `type: iterative_planner`: a model plans one step at a time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IterativePlannerCard {
    /// The agents that carry out; never empty.
    pub agents: Vec<AgentRef>,
    /// The model that plans.
    pub model: ModelFields,
    /// The most times that it plans; none means no limit (`-1`), the default.
    pub plan_iterations: Option<u32>,
}

/// When two answers of a MAKER's worker count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchStrategy {
    /// Equal, character by character. The default.
    Exact,
    /// Equal but for case and white space.
    Normalized,
    /// Equal as JSON.
    Structured,
}

/// `type: MAKER`: a worker is sampled until one answer leads by `k`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MakerCard {
    /// The agent that is sampled.
    pub worker: AgentRef,
    /// How far ahead an answer must be; at least 1. 3.
    pub k: u32,
    /// The most samples; at least `k`. 50.
    pub max_samples: u32,
    /// When two answers count as the same.
    pub match_strategy: MatchStrategy,
    /// Answers longer than this many characters are thrown away.
    pub red_flag_max_length: Option<u32>,
}

/// How an agent elsewhere is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum A2aTransport {
    /// JSON-RPC. The default.
    JsonRpc,
    /// HTTP and JSON.
    HttpJson,
}

/// `type: a2a`: an agent elsewhere.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct A2aCard {
    /// Where it is.
    pub url: String,
    /// How it is reached.
    pub transport: A2aTransport,
    /// Whether answers are streamed. Yes.
    pub streaming: bool,
    /// Whether it is asked again and again for its answer. No.
    pub polling: bool,
    /// The media types that are taken.
    pub accepted_output_modes: Vec<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// How to prove who is asking; as written, with its values kept secret.
    pub auth: BTreeMap<String, Secret>,
    /// Where its card is, relative to the address.
    pub relative_card_path: Option<String>,
    /// The most time that a request may take. 120 s.
    pub request_timeout: Duration,
}
