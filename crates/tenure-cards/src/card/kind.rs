//! The types of a card.

use super::{
    A2aCard, AgentCard, AgentRef, ChainCard, EvaluatorOptimizerCard, IterativePlannerCard,
    MakerCard, McpFields, ModelFields, OrchestratorCard, ParallelCard, RouterCard,
};
use std::fmt;

/// What the field `type` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CardType {
    /// One model with its tools. The default.
    Agent,
    /// Agents one after another.
    Chain,
    /// Agents at the same time.
    Parallel,
    /// One agent writes, another judges, until it is good enough.
    EvaluatorOptimizer,
    /// A model picks the agent.
    Router,
    /// A model plans, agents carry out.
    Orchestrator,
    /// A model plans one step at a time.
    IterativePlanner,
    /// A worker is sampled until one answer leads.
    Maker,
    /// An agent elsewhere.
    A2a,
}

impl CardType {
    /// Every type.
    pub const ALL: [CardType; 9] = [
        CardType::Agent,
        CardType::Chain,
        CardType::Parallel,
        CardType::EvaluatorOptimizer,
        CardType::Router,
        CardType::Orchestrator,
        CardType::IterativePlanner,
        CardType::Maker,
        CardType::A2a,
    ];

    /// The type as cards spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Chain => "chain",
            Self::Parallel => "parallel",
            Self::EvaluatorOptimizer => "evaluator_optimizer",
            Self::Router => "router",
            Self::Orchestrator => "orchestrator",
            Self::IterativePlanner => "iterative_planner",
            Self::Maker => "MAKER",
            Self::A2a => "a2a",
        }
    }
}

impl fmt::Display for CardType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A card's type with the fields that only this type has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CardKind {
    /// `type: agent`, and the older spelling `smart`.
    Agent(Box<AgentCard>),
    /// `type: chain`.
    Chain(ChainCard),
    /// `type: parallel`.
    Parallel(ParallelCard),
    /// `type: evaluator_optimizer`.
    EvaluatorOptimizer(EvaluatorOptimizerCard),
    /// `type: router`.
    Router(Box<RouterCard>),
    /// `type: orchestrator`.
    Orchestrator(Box<OrchestratorCard>),
    /// `type: iterative_planner`.
    IterativePlanner(Box<IterativePlannerCard>),
    /// `type: MAKER`.
    Maker(MakerCard),
    /// `type: a2a`.
    A2a(A2aCard),
}

impl CardKind {
    /// The type.
    pub const fn card_type(&self) -> CardType {
        match self {
            Self::Agent(_) => CardType::Agent,
            Self::Chain(_) => CardType::Chain,
            Self::Parallel(_) => CardType::Parallel,
            Self::EvaluatorOptimizer(_) => CardType::EvaluatorOptimizer,
            Self::Router(_) => CardType::Router,
            Self::Orchestrator(_) => CardType::Orchestrator,
            Self::IterativePlanner(_) => CardType::IterativePlanner,
            Self::Maker(_) => CardType::Maker,
            Self::A2a(_) => CardType::A2a,
        }
    }

    /// The fields about its own model, of the types that have one.
    pub fn model_fields(&self) -> Option<&ModelFields> {
        match self {
            Self::Agent(card) => Some(&card.model),
            Self::Router(card) => Some(&card.model),
            Self::Orchestrator(card) => Some(&card.model),
            Self::IterativePlanner(card) => Some(&card.model),
            _ => None,
        }
    }

    /// What it says about tool servers, of the types that may.
    pub fn mcp(&self) -> Option<&McpFields> {
        match self {
            Self::Agent(card) => Some(&card.mcp),
            Self::Router(card) => Some(&card.mcp),
            _ => None,
        }
    }

    /// Every other agent that the card names.
    pub fn references(&self) -> Vec<&AgentRef> {
        match self {
            Self::Agent(card) => card.agents.iter().collect(),
            Self::Chain(card) => card.sequence.iter().collect(),
            Self::Parallel(card) => card.fan_out.iter().chain(&card.fan_in).collect(),
            Self::EvaluatorOptimizer(card) => vec![&card.generator, &card.evaluator],
            Self::Router(card) => card.agents.iter().collect(),
            Self::Orchestrator(card) => card.agents.iter().collect(),
            Self::IterativePlanner(card) => card.agents.iter().collect(),
            Self::Maker(card) => vec![&card.worker],
            Self::A2a(_) => Vec::new(),
        }
    }
}
