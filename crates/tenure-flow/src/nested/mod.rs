//! A workflow inside a workflow: an agent whose turn is one chat of another flow.
//!
//! It is an ordinary agent, so its hooks, limits and events are those of every turn. Its model asks
//! for one tool and answers with what that gave; the tool runs the chat. A tool may take its time to
//! end after a cancel, so the inner chat is over before the turn is.

mod depth;
mod failed;
mod model;
mod tool;

pub use depth::MOST_DEPTH;
pub(crate) use depth::{check_depth, child_context};
pub(crate) use failed::cause;

use crate::flow::Flow;
use model::OneChat;
use std::sync::Arc;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::model::Model;
use tenure_core::tool::Tool;
use tool::FlowTool;

/// Says which flow an agent's turns are chats of, and what goes in and out beside the words.
#[derive(Clone, Debug)]
#[must_use]
pub struct NestedFlow {
    flow: Flow,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl NestedFlow {
    /// Turns that are chats of `flow`. What the agent hears is what the user says first in it, and
    /// its output is what the agent answers.
    pub fn new(flow: Flow) -> Self {
        Self { flow, inputs: Vec::new(), outputs: Vec::new() }
    }

    /// Context variables that the inner chat begins with, as they are in the outer one. One that is
    /// not set there is not set here.
    pub fn inputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.inputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Context variables of the inner chat that the outer one has afterwards. They are written as
    /// the agent's own, so the rules for writing hold.
    pub fn outputs<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.outputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// What an agent is made of whose turns are chats of the flow: the model that asks for one, and
    /// the tool that runs it.
    pub fn parts(self) -> (Arc<dyn Model>, Arc<dyn Tool>) {
        let tool = FlowTool::new(self.flow, self.inputs, self.outputs);
        let model = OneChat::new(&tool);
        (Arc::new(model), Arc::new(tool))
    }

    /// An agent of this name, to be given hooks and the rest.
    pub fn agent(self, name: impl Into<Arc<str>>) -> AgentBuilder {
        let tool = FlowTool::new(self.flow, self.inputs, self.outputs);
        Agent::builder(name).model(OneChat::new(&tool)).tool(tool)
    }
}
