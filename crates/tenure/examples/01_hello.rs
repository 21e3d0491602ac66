//! An agent, a tool and a hook.
//!
//! The model here is scripted, so that the example runs without a network: it asks for the tool,
//! and then it answers.

use serde_json::json;
use tenure::models::Scripted;
use tenure::prelude::*;

/// The weather of a city.
#[tool]
fn forecast(city: String) -> String {
    format!("It will be sunny in {city}.")
}

struct Audit;

#[lifecycle]
impl AgentLifecycle for Audit {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        println!("{} calls {} {}", cx.agent_name(), request.name(), request.arguments);
        Ok(next.call(request).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let model = Scripted::empty()
        .call("forecast", json!({ "city": "Oslo" }))
        .text("Take sunglasses to Oslo.");
    let agent =
        Agent::builder("weather").model(model).tool(forecast).with_lifecycle(Audit).build()?;
    let report = agent.scoped(async |agent| agent.run("What shall I pack?").await).await?;
    println!("{} ({} model calls)", report.output(), report.steps);
    Ok(())
}
