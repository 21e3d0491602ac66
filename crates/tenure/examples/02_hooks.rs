//! The six points of a turn, in order, with two hooks at each.
//!
//! `before_*` runs first to last, the first `wrap_*` is the outermost, `after_*` runs last to
//! first.

use serde_json::json;
use tenure::models::Scripted;
use tenure::prelude::*;

struct Trace(&'static str);

#[lifecycle]
impl AgentLifecycle for Trace {
    fn name(&self) -> &str {
        self.0
    }

    async fn before_agent(&self, _cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        println!("before_agent     {}: {:?}", self.0, input.content.text());
        Ok(Flow::Continue)
    }

    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        println!("  before_model   {}: {} messages", self.0, request.messages.len());
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        println!("  wrap_model     {}: in", self.0);
        let response = next.call(request).await?;
        println!("  wrap_model     {}: out", self.0);
        Ok(response)
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        println!("  after_model    {}: {} tool calls", self.0, response.calls.len());
        Ok(HookAction::Continue)
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        println!("    wrap_tool    {}: in, {}", self.0, request.arguments);
        let output = next.call(request).await?;
        println!("    wrap_tool    {}: out, {:?}", self.0, output.content);
        Ok(output)
    }

    async fn after_agent(
        &self,
        _cx: TurnCx<'_>,
        end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        println!("after_agent      {}: {}", self.0, end.outcome());
        Ok(After::Done)
    }
}

/// Adds two numbers.
#[tool]
fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let agent = Agent::builder("calculator")
        .model(Scripted::empty().call("add", json!({ "a": 2, "b": 3 })).text("2 and 3 make 5."))
        .tool(add)
        .with_lifecycle(Trace("outer"))
        .with_lifecycle(Trace("inner"))
        .build()?;
    let report = agent.scoped(async |agent| agent.run("2 + 3?").await).await?;
    println!("{}", report.output());
    Ok(())
}
