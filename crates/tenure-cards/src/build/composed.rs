//! Cards that put agents together, as compositions.

use crate::card::{self, AgentRef, CardKind};
use crate::compose::{
    ChainMemory, Composition, FanInRequest, Iterations, MatchStrategy, PlanType, Rating,
};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What a card's type does with its agents; `None` for the types that are no composition.
pub(super) fn composition(kind: &CardKind) -> Option<Composition> {
    Some(match kind {
        CardKind::Agent(_) | CardKind::A2a(_) => return None,
        CardKind::Chain(chain) => Composition::Chain {
            sequence: names(&chain.sequence),
            memory: if chain.cumulative { ChainMemory::Cumulative } else { ChainMemory::Last },
        },
        CardKind::Parallel(parallel) => Composition::Parallel {
            fan_out: names(&parallel.fan_out),
            fan_in: parallel.fan_in.as_ref().map(|agent| agent.name.clone()),
            request: if parallel.include_request {
                FanInRequest::Included
            } else {
                FanInRequest::Left
            },
        },
        CardKind::EvaluatorOptimizer(card) => Composition::Evaluator {
            generator: card.generator.name.clone(),
            evaluator: card.evaluator.name.clone(),
            min_rating: match card.min_rating {
                card::Rating::Poor => Rating::Poor,
                card::Rating::Fair => Rating::Fair,
                card::Rating::Good => Rating::Good,
                card::Rating::Excellent => Rating::Excellent,
            },
            max_refinements: card.max_refinements as usize,
            refinement_instruction: card.refinement_instruction.as_deref().map(Arc::from),
        },
        CardKind::Router(router) => Composition::Router { agents: names(&router.agents) },
        CardKind::Orchestrator(card) => Composition::Orchestrator {
            agents: names(&card.agents),
            plan_type: match card.plan_type {
                card::PlanType::Full => PlanType::Full,
                card::PlanType::Iterative => PlanType::Iterative,
            },
            iterations: iterations(card.plan_iterations),
        },
        CardKind::IterativePlanner(card) => Composition::Orchestrator {
            agents: names(&card.agents),
            plan_type: PlanType::Iterative,
            iterations: iterations(card.plan_iterations),
        },
        CardKind::Maker(maker) => Composition::Maker {
            worker: maker.worker.name.clone(),
            k: at_least_one(maker.k),
            max_samples: at_least_one(maker.max_samples),
            match_strategy: match maker.match_strategy {
                card::MatchStrategy::Exact => MatchStrategy::Exact,
                card::MatchStrategy::Normalized => MatchStrategy::Normalized,
                card::MatchStrategy::Structured => MatchStrategy::Structured,
            },
            red_flag_max_length: maker.red_flag_max_length.map(|length| length as usize),
        },
    })
}

fn names(agents: &[AgentRef]) -> Vec<Arc<str>> {
    agents.iter().map(|agent| agent.name.clone()).collect()
}

fn at_least_one(number: u32) -> NonZeroUsize {
    NonZeroUsize::new(number as usize).unwrap_or(NonZeroUsize::MIN)
}

fn iterations(plans: Option<u32>) -> Iterations {
    match plans {
        Some(plans) => Iterations::AtMost(at_least_one(plans)),
        None => Iterations::UntilComplete,
    }
}
