//! What several tests need.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::hook::Registration;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_hooks::ready::{self, Bench, Refusal};
use tenure_models::Scripted;

/// Every request that a model got.
pub(crate) type Heard = Arc<Mutex<Vec<ModelRequest>>>;

/// A model that says `fine`, and what it hears.
pub(crate) fn listening() -> (Scripted, Heard) {
    let heard = Heard::default();
    let ears = heard.clone();
    let model = Scripted::from_fn(move |request, _| {
        ears.lock().expect("it works here").push(request.clone());
        Ok(ModelResponse::text("fine"))
    });
    (model, heard)
}

/// The hook of this name, made of these options.
pub(crate) fn made(name: &str, with: Value) -> Result<Registration, Refusal> {
    ready::find(name).expect("it works here").make(&with, &Bench::new())
}

/// The field that is refused.
pub(crate) fn refused(name: &str, with: Value) -> String {
    let refusal = made(name, with.clone()).expect_err(&with.to_string());
    assert!(!refusal.message().is_empty());
    refusal.field().to_owned()
}

/// An agent that has this hook, and what its model hears.
pub(crate) fn with_hook(hook: Registration) -> (Agent, Heard) {
    let (model, heard) = listening();
    let agent = Agent::builder("a").model(model).instruction("Be kind.").with_lifecycle(hook);
    (agent.build().expect("it works here"), heard)
}

/// What the user said last, as a model heard it.
pub(crate) fn last_said(heard: &Heard) -> String {
    let heard = heard.lock().expect("it works here");
    heard.last().expect("it works here").messages.last().expect("it works here").text().to_owned()
}
