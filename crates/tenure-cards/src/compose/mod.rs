//! Agents made of agents: chain, parallel, evaluator and optimizer, router, orchestrator, planner
//! and MAKER.
//!
//! A composed agent is an ordinary agent. Its members are tools, each call on a detached clone, and
//! its model is a small planner that reads the messages of the turn and says whom to call next, or
//! answers. So hooks, limits, cancellation, usage, pairing, streaming and replay are those of the
//! one drive loop (G6), and the parent's guards come along into every member (G11).
//!
//! A planner keeps nothing between calls: all it knows is in the messages. A plan that a model made
//! is the text of the message that acts on it.

mod chain;
mod evaluator;
mod json;
mod llm;
mod maker;
mod model;
mod orchestrator;
mod parallel;
mod plan;
mod progress;
mod prompt;
mod router;

pub use evaluator::Rating;
pub use maker::MatchStrategy;
pub use orchestrator::{Iterations, PlanType};

use model::Composed;
use progress::Planner;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::agent::{AgentBuilder, Blueprint};
use tenure_core::clone::{ChildOptions, HistoryIn, HistoryOut};
use tenure_core::model::Model;

/// What an agent made of agents does with them. Members go by their names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Composition {
    /// One after the other: each gets what the one before it answered.
    Chain {
        /// The members, in order.
        sequence: Vec<Arc<str>>,
        /// What each of them gets to see.
        memory: ChainMemory,
    },
    /// All at once.
    Parallel {
        /// The members that work at the same time.
        fan_out: Vec<Arc<str>>,
        /// The member that makes one answer of theirs. Without it they are put side by side.
        fan_in: Option<Arc<str>>,
        /// Whether the one that makes the answer sees the request too.
        request: FanInRequest,
    },
    /// One writes, another judges, until it is good enough.
    Evaluator {
        /// The member that writes.
        generator: Arc<str>,
        /// The member that judges.
        evaluator: Arc<str>,
        /// What is good enough.
        min_rating: Rating,
        /// How often the writer may try again.
        max_refinements: usize,
        /// What the writer is told when it tries again.
        refinement_instruction: Option<Arc<str>>,
    },
    /// A model chooses one of them.
    Router {
        /// The members to choose from.
        agents: Vec<Arc<str>>,
    },
    /// A model plans, they work, and the model makes one answer of it.
    Orchestrator {
        /// The members that work.
        agents: Vec<Arc<str>>,
        /// How far a plan looks ahead.
        plan_type: PlanType,
        /// How many plans there may be.
        iterations: Iterations,
    },
    /// One is asked again and again, until one answer leads by `k` votes.
    Maker {
        /// The member that is asked.
        worker: Arc<str>,
        /// By how many votes an answer has to lead.
        k: NonZeroUsize,
        /// How often it is asked at most.
        max_samples: NonZeroUsize,
        /// When two answers count as the same.
        match_strategy: MatchStrategy,
        /// An answer with more characters than this is not counted.
        red_flag_max_length: Option<usize>,
    },
}

/// What a member of a chain gets to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainMemory {
    /// What the one before it answered; the first one, the request.
    #[default]
    Last,
    /// The request and everything that was answered so far. The chain's answer is all answers.
    Cumulative,
}

/// Whether the member that makes one answer of many sees what was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FanInRequest {
    /// It does.
    #[default]
    Included,
    /// It sees the answers alone.
    Left,
}

/// A member of a composed agent.
#[derive(Clone, Debug)]
pub struct Member {
    name: Arc<str>,
    blueprint: Blueprint,
}

impl Member {
    /// A member that goes by the name of its agent.
    pub fn new(blueprint: &Blueprint) -> Self {
        Self { name: blueprint.config().name.clone(), blueprint: blueprint.clone() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for, as a model that chooses among members reads it.
    fn description(&self) -> &str {
        &self.blueprint.config().description
    }
}

/// The name under which a member is a tool.
pub(crate) fn tool_name(agent: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    format!("agent__{}", agent.replace(odd, "_"))
}

/// The steps that a planner without a bound of its own may take.
const UNBOUNDED: usize = 100;

impl Composition {
    /// Makes `builder` the composed agent: adds the members as tools and sets the model, the number
    /// of steps and how many members may work at the same time. `llm` is asked where a composition
    /// needs a model of its own.
    ///
    /// The number of steps is derived so that it never cuts legal work short; a planner whose
    /// iterations have no bound keeps what the builder says, 100 by default.
    pub fn apply(
        self,
        mut builder: AgentBuilder,
        members: &[Member],
        llm: Option<Arc<dyn Model>>,
    ) -> AgentBuilder {
        let wanted: BTreeSet<Arc<str>> = self.agents().into_iter().cloned().collect();
        let independent = matches!(self, Self::Maker { .. });
        for member in members.iter().filter(|member| wanted.contains(&member.name)) {
            let mut options = ChildOptions::default().named(tool_name(&member.name));
            if member.blueprint.config().use_history && !independent {
                options = options.history_in(HistoryIn::Child).history_out(HistoryOut::Child);
            }
            builder = builder.agent_tool_with(&member.blueprint, options);
        }
        let (steps, parallel) = (self.steps(), self.width());
        let config = builder.config_mut();
        config.max_parallel_tools = config.max_parallel_tools.max(parallel);
        match steps {
            // A hook may have the model asked again, and may go on with another message.
            Some(steps) => config.max_steps = steps.saturating_mul(2).saturating_add(1),
            None => config.max_steps = config.max_steps.max(UNBOUNDED),
        }
        let described = members
            .iter()
            .map(|member| (member.name.clone(), Arc::from(member.description())))
            .collect();
        builder.model(Composed::new(self.planner(described), llm))
    }

    /// Every member it names, as often as it names it.
    pub fn agents(&self) -> Vec<&Arc<str>> {
        match self {
            Self::Chain { sequence, .. } => sequence.iter().collect(),
            Self::Parallel { fan_out, fan_in, .. } => fan_out.iter().chain(fan_in).collect(),
            Self::Evaluator { generator, evaluator, .. } => vec![generator, evaluator],
            Self::Router { agents } | Self::Orchestrator { agents, .. } => agents.iter().collect(),
            Self::Maker { worker, .. } => vec![worker],
        }
    }

    /// Whether it asks a model of its own.
    pub fn needs_model(&self) -> bool {
        matches!(self, Self::Router { .. } | Self::Orchestrator { .. })
    }

    /// The most model calls that one request can take; `None` if nothing bounds them.
    fn steps(&self) -> Option<usize> {
        Some(match self {
            Self::Chain { sequence, .. } => sequence.len() + 1,
            Self::Parallel { .. } => 3,
            // Each judgement may be asked for twice.
            Self::Evaluator { max_refinements, .. } => {
                max_refinements.saturating_add(1).saturating_mul(3).saturating_add(1)
            }
            Self::Router { .. } => 2,
            Self::Orchestrator { plan_type, iterations, .. } => match (iterations, plan_type) {
                (Iterations::UntilComplete, _) => return None,
                (Iterations::AtMost(plans), PlanType::Iterative) => plans.get().saturating_add(1),
                (Iterations::AtMost(plans), PlanType::Full) => {
                    plans.get().saturating_mul(plan::MAX_STEPS).saturating_add(1)
                }
            },
            Self::Maker { max_samples, .. } => max_samples.get().saturating_add(1),
        })
    }

    /// How many members may be at work at the same time.
    fn width(&self) -> usize {
        match self {
            Self::Parallel { fan_out, .. } => fan_out.len(),
            Self::Orchestrator { .. } => plan::MAX_TASKS,
            Self::Maker { k, .. } => k.get(),
            _ => 1,
        }
    }

    fn planner(self, described: Vec<(Arc<str>, Arc<str>)>) -> Box<dyn Planner> {
        match self {
            Self::Chain { sequence, memory } => Box::new(chain::Chain { sequence, memory }),
            Self::Parallel { fan_out, fan_in, request } => {
                Box::new(parallel::Parallel { fan_out, fan_in, request })
            }
            Self::Evaluator {
                generator,
                evaluator,
                min_rating,
                max_refinements,
                refinement_instruction,
            } => Box::new(evaluator::Evaluator {
                generator,
                evaluator,
                min_rating,
                max_refinements,
                refinement_instruction,
            }),
            Self::Router { agents } => {
                Box::new(router::Router { choices: prompt::choices(&agents, &described), agents })
            }
            Self::Orchestrator { agents, plan_type, iterations } => {
                Box::new(orchestrator::Orchestrator {
                    choices: prompt::choices(&agents, &described),
                    agents,
                    plan_type,
                    iterations,
                })
            }
            Self::Maker { worker, k, max_samples, match_strategy, red_flag_max_length } => {
                Box::new(maker::Maker {
                    worker,
                    k,
                    max_samples,
                    match_strategy,
                    red_flag_max_length,
                })
            }
        }
    }
}
