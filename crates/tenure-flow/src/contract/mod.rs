//! The orchestrator contract: stages in order, routing with a reason, what a failure means.
//!
//! An [`Orchestrator`] reaches a goal with agents: a [`Planner`] says what has to be done, a
//! [`TaskRouter`] who does it, the [`ErrorStrategy`] what the failure of a step means. Chats go
//! through the same [`Stages`] and follow the same strategies.
//!
//! What holds of every orchestration: the stages follow the table of [`Stage::next`]; there is
//! exactly one terminal stage and nothing after it; the agents that the orchestrator started are
//! shut down in reverse order, also if the planner panics, nobody is there to route to, an agent
//! does not start, a step hangs, somebody cancels it, or its future is dropped.

mod error;
mod metrics;
mod orchestration;
mod orchestrator;
mod reaction;
mod report;
mod routing;
mod run;
mod stage;
mod step;
mod strategy;
mod task;
mod worker;

pub use error::OrchestrationError;
pub use metrics::OrchestratorMetrics;
pub use orchestration::{Orchestration, OrchestrationStream};
pub use orchestrator::{Orchestrator, OrchestratorBuilder, Start};
pub use reaction::{ExponentialBackoff, Reaction};
pub use report::{
    OrchestrationReport, PartialResult, Recovery, RoutedTask, StageEvent, StepReport, StepStatus,
};
pub use routing::{Candidate, FirstFit, Manual, SHORTEST_REASON, TaskCx, TaskRouter};
pub use stage::{IllegalStage, Stage, Stages};
pub use strategy::ErrorStrategy;
pub use task::{OneTask, Planner, Task};
pub use worker::Worker;

/// A page of the guide: its code is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/orchestrator.md")]
mod guide {}
