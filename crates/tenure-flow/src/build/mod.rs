//! From a workflow's files to its chats.
//!
//! A [`Workflow`] is what [`load`](crate::load) read, checked as a whole and ready to be opened. Its
//! agents are built by the same workshop that builds those of cards, with what the workflow adds to
//! them, so their hooks are entries of one chain and one explanation shows all of them. Opening it
//! looks for Python and gives a [`Flow`](crate::Flow); chats start agents, and nothing else does.

mod asker;
mod attach;
mod builder;
mod explain;
mod needs;
mod open;
mod sources;
mod tools;
mod trust;
mod workflow;

pub use builder::WorkflowBuilder;
pub use explain::{
    HandoffExplanation, JourneyExplanation, SpeakerExplanation, VariableExplanation,
    WorkflowExplanation, WorkflowInspection,
};
pub use needs::unset_variables;
pub use sources::sources;
pub use trust::trust_items;
pub use workflow::Workflow;
