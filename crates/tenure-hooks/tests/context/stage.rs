//! Agents whose models hear what they are sent.

use crate::support::hearing;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::message::ToolCall;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{Effect, FnTool, Tool, ToolSpec};
use tenure_testkit::RecordedModel;

/// A tool of this name that says `tock`.
pub(crate) fn tool(name: &str) -> impl Tool {
    let spec = ToolSpec::new(name, format!("What {name} does")).effect(Effect::Idempotent);
    FnTool::new(spec, |_| Ok("tock".into()))
}

/// Calls `tick` four times in a turn, then says `done`. It goes by what it hears, so that a turn that
/// goes on in another process goes the same way.
pub(crate) fn five_steps() -> (AgentBuilder, RecordedModel) {
    let model = hearing(|request| {
        let mut results = 0;
        for message in request.messages.iter() {
            results = match message {
                tenure_core::message::Message::User { .. } => 0,
                tenure_core::message::Message::Tool(_) => results + 1,
                _ => results,
            };
        }
        match results {
            4 => ModelResponse::text("done"),
            at => ModelResponse::calls([ToolCall::new(format!("c{at}"), "tick", "{}")]),
        }
    });
    (Agent::builder("a").model(model.clone()).tool(tool("tick")), model)
}

/// The names of the tools in each request.
pub(crate) fn shown(model: &RecordedModel) -> Vec<Vec<String>> {
    let names = |it: &ModelRequest| it.tools.iter().map(|tool| tool.name.to_string()).collect();
    model.requests().iter().map(names).collect()
}
