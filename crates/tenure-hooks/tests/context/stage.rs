//! Agents whose models hear what they are sent.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::Registration;
use tenure_core::message::ToolCall;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{Effect, FnTool, Tool, ToolSpec};
use tenure_hooks::ready::{self, Bench, Refusal};
use tenure_models::Scripted;

/// Every request that a model got.
pub(crate) type Heard = Arc<Mutex<Vec<ModelRequest>>>;

/// A tool of this name that says `tock`.
pub(crate) fn tool(name: &str) -> impl Tool {
    let spec = ToolSpec::new(name, format!("What {name} does")).effect(Effect::Idempotent);
    FnTool::new(spec, |_| Ok("tock".into()))
}

/// A model that hears, and answers as a function of the request says.
pub(crate) fn hearing(
    answer: impl Fn(&ModelRequest) -> ModelResponse + Send + Sync + 'static,
) -> (Scripted, Heard) {
    let heard = Heard::default();
    let ears = heard.clone();
    let model = Scripted::from_fn(move |request, _| {
        ears.lock().expect("nobody panics with it").push(request.clone());
        Ok(answer(request))
    });
    (model, heard)
}

/// Calls `tick` four times in a turn, then says `done`. It goes by what it hears, so that a turn that
/// goes on in another process goes the same way.
pub(crate) fn five_steps() -> (AgentBuilder, Heard) {
    let (model, heard) = hearing(|request| {
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
    (Agent::builder("a").model(model).tool(tool("tick")), heard)
}

/// The instruction of each request.
pub(crate) fn instructions(heard: &Heard) -> Vec<String> {
    let heard = heard.lock().expect("nobody panics with it");
    heard.iter().map(|it| it.instruction.as_deref().unwrap_or_default().to_owned()).collect()
}

/// The names of the tools in each request.
pub(crate) fn shown(heard: &Heard) -> Vec<Vec<String>> {
    let heard = heard.lock().expect("nobody panics with it");
    let names = |it: &ModelRequest| it.tools.iter().map(|tool| tool.name.to_string()).collect();
    heard.iter().map(names).collect()
}

/// The hook of this name, made of these options.
pub(crate) fn made(name: &str, with: Value) -> Result<Registration, Refusal> {
    ready::find(name).expect("there is one").make(&with, &Bench::new())
}

/// The field that is refused.
pub(crate) fn refused(name: &str, with: Value) -> String {
    let refusal = made(name, with.clone()).expect_err(&with.to_string());
    assert!(!refusal.message().is_empty());
    refusal.field().to_owned()
}
