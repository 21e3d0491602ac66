//! What the tests here share.

use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::drive::TurnReport;
use tenure_models::Scripted;
use tenure_testkit::RecordedModel;

/// A model that gives these answers, and keeps what it was asked.
pub(crate) fn says<const N: usize>(replies: [&str; N]) -> RecordedModel {
    RecordedModel::new(Scripted::new(replies))
}

/// What a model was asked in one call: the instruction and the texts of the messages.
pub(crate) fn asked(model: &RecordedModel, call: usize) -> (String, Vec<String>) {
    let request = model.requests().swap_remove(call);
    let instruction = request.instruction.as_deref().unwrap_or_default().to_owned();
    (instruction, request.messages.iter().map(|message| message.text().to_owned()).collect())
}

pub(crate) const APPROVE: &str = r#"{"verdict": "approve"}"#;

pub(crate) fn reject(critique: &str) -> String {
    format!(r#"{{"verdict": "reject", "critique": "{critique}"}}"#)
}

pub(crate) fn scored(critique: &str, score: u32) -> String {
    format!(r#"{{"verdict": "reject", "critique": "{critique}", "score": {score}}}"#)
}

pub(crate) fn modify(text: &str) -> String {
    format!(r#"{{"verdict": "modify", "text": "{text}"}}"#)
}

/// Builds, starts, asks, and shuts down.
pub(crate) async fn ask(builder: AgentBuilder, input: &str) -> Result<TurnReport, Error> {
    builder.build()?.scoped(async |agent: &Agent| agent.run(input).await).await
}
