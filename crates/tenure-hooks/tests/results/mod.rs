//! Tools that hooks bring along, and hooks at the end of a turn.

#[cfg(feature = "tools")]
mod file_search;
mod format;
mod notify;
mod save;
#[cfg(feature = "tools")]
mod shell;
#[cfg(feature = "network")]
mod webhook;

use crate::support::tool_results;
use serde_json::Value;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::message::ToolResult;
use tenure_core::{Error, hook::IntoRegistration};
use tenure_models::Scripted;

/// An agent whose model calls a tool once, and then is done.
fn calling(tool: &str, arguments: Value) -> AgentBuilder {
    Agent::builder("a").model(Scripted::empty().call(tool, arguments).text("done"))
}

/// What a tool said to the one call that an agent makes.
async fn result_of(agent: AgentBuilder, hook: impl IntoRegistration) -> ToolResult {
    let agent = agent.with_lifecycle(hook).build().expect("it works here");
    let report = agent.scoped(async |agent| agent.run("go").await).await.expect("it works here");
    tool_results(report.history().iter()).pop().expect("a tool was called")
}

/// The agent's answer, and what failed on the way without changing it.
async fn run(agent: AgentBuilder, input: &str) -> Result<(String, Vec<String>), Error> {
    let agent = agent.build().expect("it works here");
    let report = agent.scoped(async |agent| agent.run(input).await).await?;
    let failures = report.failures.iter().map(ToString::to_string).collect();
    Ok((report.output().to_owned(), failures))
}
