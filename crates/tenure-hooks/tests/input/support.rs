//! What several tests need.

use crate::support::hearing;
use tenure_core::agent::Agent;
use tenure_core::hook::Registration;
use tenure_core::model::ModelResponse;
use tenure_testkit::RecordedModel;

/// A model that says `fine`, and keeps what it hears.
pub(crate) fn listening() -> RecordedModel {
    hearing(|_| ModelResponse::text("fine"))
}

/// An agent that has this hook, and its model.
pub(crate) fn with_hook(hook: Registration) -> (Agent, RecordedModel) {
    let model = listening();
    let agent = Agent::builder("a").model(model.clone()).instruction("Be kind.");
    (agent.with_lifecycle(hook).build().expect("it works here"), model)
}
