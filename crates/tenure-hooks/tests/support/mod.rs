//! What the tests of several kinds of hooks share.

use serde_json::Value;
use tenure_core::agent::Agent;
use tenure_core::drive::TurnReport;
use tenure_core::hook::Registration;
use tenure_core::message::{Message, ToolResult, ToolStatus};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_hooks::ready::{self, Bench, Refusal};
use tenure_models::Scripted;
use tenure_testkit::RecordedModel;

/// The hook of this name, made of these options.
pub(crate) fn made(name: &str, with: Value) -> Result<Registration, Refusal> {
    ready::find(name).expect("there is such a hook").make(&with, &Bench::new())
}

/// Why a hook cannot be made of these options.
pub(crate) fn refusal(name: &str, with: Value) -> Refusal {
    let refusal = made(name, with.clone()).expect_err(&with.to_string());
    assert!(!refusal.message().is_empty());
    refusal
}

/// The option because of which a hook cannot be made.
pub(crate) fn refused(name: &str, with: Value) -> String {
    refusal(name, with).field().to_owned()
}

/// A model that keeps its requests, and answers as a function of the request says.
pub(crate) fn hearing(
    answer: impl Fn(&ModelRequest) -> ModelResponse + Send + Sync + 'static,
) -> RecordedModel {
    RecordedModel::new(Scripted::from_fn(move |request, _| Ok(answer(request))))
}

/// The tool results among these messages.
pub(crate) fn tool_results<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<ToolResult> {
    let result = |message: &Message| match message {
        Message::Tool(result) => Some(result.clone()),
        _ => None,
    };
    messages.filter_map(result).collect()
}

/// How the tool calls of an agent ended, and what they said.
pub(crate) fn results(agent: &Agent) -> Vec<(ToolStatus, String)> {
    statuses_and_texts(tool_results(agent.history().iter()))
}

/// The same of one turn.
pub(crate) fn results_of(report: &TurnReport) -> Vec<(ToolStatus, String)> {
    statuses_and_texts(tool_results(report.history().iter()))
}

fn statuses_and_texts(results: Vec<ToolResult>) -> Vec<(ToolStatus, String)> {
    results.into_iter().map(|result| (result.status, result.content.into_text())).collect()
}
