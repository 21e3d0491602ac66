//! Agents whose tools say what they were called with.

use crate::support::results_of;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::drive::TurnReport;
use tenure_core::message::ToolStatus;
use tenure_core::step::{MemoryStepLog, Steps};
use tenure_core::tool::{Effect, FnTool, Tool, ToolSpec};
use tenure_core::{Error, Outcome};
use tenure_models::Script;

/// What reached the tools.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(String, Value)>>>);

impl Seen {
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.0.lock().expect("it works here").clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().expect("it works here").len()
    }

    pub(crate) fn of(&self, tool: &str) -> usize {
        self.all().iter().filter(|(name, _)| name == tool).count()
    }

    /// A tool that may be called again, and answers with its name and `done`.
    pub(crate) fn tool(&self, name: &'static str) -> impl Tool {
        let seen = self.0.clone();
        let spec = ToolSpec::new(name, "Does something").effect(Effect::Idempotent);
        FnTool::new(spec, move |arguments| {
            seen.lock().expect("it works here").push((name.to_owned(), arguments.clone()));
            Ok(format!("{name} done").into())
        })
    }
}

/// An agent that follows a script, with the tools `search`, `read_file` and `shell`.
pub(crate) fn scripted(seen: &Seen, replies: Value) -> AgentBuilder {
    Agent::builder("agent")
        .model(Script::from_json(&replies).expect("it works here"))
        .tool(seen.tool("search"))
        .tool(seen.tool("read_file"))
        .tool(seen.tool("shell"))
}

/// A reply that calls a tool so often.
pub(crate) fn calls(tool: &str, times: usize) -> Value {
    let call = |at| json!({ "call": tool, "with": { "at": at } });
    json!({ "calls": (0..times).map(call).collect::<Vec<_>>() })
}

pub(crate) async fn run(builder: AgentBuilder) -> Result<TurnReport, Error> {
    builder.build()?.scoped(async |agent| agent.run("go").await).await
}

/// The same with its steps recorded, or served from the record.
pub(crate) async fn recorded(
    builder: AgentBuilder,
    log: &MemoryStepLog,
) -> Result<TurnReport, Error> {
    let steps = Steps::new(Arc::new(log.clone()));
    let turn = async |agent: &Agent| agent.request("go").recorded(&steps).run().await;
    builder.build()?.scoped(turn).await
}

/// How many steps of this kind are before the end of the first one of this name.
pub(crate) fn died_after(log: &MemoryStepLog, kind: &str, name: &str) -> MemoryStepLog {
    let found = |key: &tenure_core::step::StepKey| &*key.kind == kind && key.name.contains(name);
    let at = log.keys().iter().position(found).expect("there is such a step");
    log.cut_after(at + 1)
}

/// The tool results of a turn, however it ended.
pub(crate) fn results(turn: &Result<TurnReport, Error>) -> Vec<(ToolStatus, String)> {
    let report = match turn {
        Ok(report) => report,
        Err(error) => error.report().expect("a turn that ended has a report"),
    };
    results_of(report)
}

/// The status of each tool result.
pub(crate) fn statuses(turn: &Result<TurnReport, Error>) -> Vec<ToolStatus> {
    results(turn).into_iter().map(|(status, _)| status).collect()
}

pub(crate) fn outcome(turn: &Result<TurnReport, Error>) -> Outcome {
    turn.as_ref().map_or_else(Error::outcome, |report| report.outcome)
}
