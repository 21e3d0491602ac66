//! Workflows: several agents in one chat.
//!
//! A [`Flow`] says who takes part, who speaks when, and what happens when somebody fails; a chat is
//! one run of it. Its agents are started before `before_chat` and shut down after `after_chat`,
//! whatever happens in between, and an agent's turn in a chat is one run of that agent.
//!
//! ```
//! use tenure_core::agent::Agent;
//! use tenure_flow::{ChatStatus, Flow, route::RoundRobin};
//! use tenure_models::Passthrough;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let agent = |name: &str| Agent::builder(name).model(Passthrough::new()).blueprint();
//! let flow = Flow::builder("echo")
//!     .agent(agent("first")?)
//!     .agent(agent("second")?)
//!     .router(RoundRobin)
//!     .max_turns(2)
//!     .build()?;
//! let report = flow.run("hello").await;
//! assert_eq!(report.status, ChatStatus::MaxTurns);
//! assert_eq!(report.turns, 2);
//! # Ok::<_, tenure_core::Error>(()) }).unwrap();
//! ```

mod build;
pub mod chat;
pub mod contract;
pub mod file;
mod flow;
pub mod journey;
pub mod lifecycle;
pub mod message_hook;
pub mod nested;
pub mod output;
pub mod people;
pub mod route;
pub mod variables;
mod wait;

pub use build::{
    HandoffExplanation, JourneyExplanation, SpeakerExplanation, VariableExplanation, Workflow,
    WorkflowBuilder, WorkflowExplanation, WorkflowInspection, sources, trust_items,
    unset_variables,
};
pub use chat::{ChatReport, ChatRequest, ChatStatus};
pub use file::{LoadedWorkflow, is_workflow, load, workflows_of};
pub use flow::{Flow, FlowBuilder, StartupMode};

/// The guide: every block of Rust in it is compiled and run with the doc tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/context-variables.md")]
    mod context_variables {}
    #[doc = include_str!("../../../docs/handoffs.md")]
    mod handoffs {}
    #[doc = include_str!("../../../docs/lifecycle-tools.md")]
    mod lifecycle_tools {}
    #[doc = include_str!("../../../docs/orchestrator.md")]
    mod orchestrator {}
    #[doc = include_str!("../../../docs/workflow-files.md")]
    mod workflow_files {}
    #[doc = include_str!("../../../docs/workflows.md")]
    mod workflows {}
}
