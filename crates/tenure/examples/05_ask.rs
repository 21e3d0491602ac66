//! A hook asks a person before a tool runs. The person approves, edits, or rejects.

use serde_json::json;
use tenure::ask::PendingAsk;
use tenure::models::Scripted;
use tenure::prelude::*;

/// Pays an amount.
#[tool]
fn pay(amount: u64) -> String {
    println!("  paid {amount}");
    format!("paid {amount}")
}

/// Lets nothing be paid that nobody has agreed to.
struct Approval;

#[lifecycle]
impl AgentLifecycle for Approval {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        match cx.ask(Ask::approval("May I pay this?", request.arguments.clone())).await? {
            Answer::Approve => {}
            Answer::Edit(arguments) => request.arguments = arguments,
            Answer::Reject(reason) => return Ok(ToolOutput::denied(reason)),
            Answer::Respond(text) => return Ok(ToolOutput::text(text)),
        }
        Ok(next.call(request).await?)
    }
}

/// Stands for a person: 100 is fine, 1000 is cut to 500, anything above is refused.
fn treasurer(pending: &PendingAsk) -> Option<Answer> {
    let action = pending.ask.action.as_ref()?;
    let answer = match action["amount"].as_u64() {
        Some(0..=100) => Answer::Approve,
        Some(101..=1000) => Answer::Edit(json!({ "amount": 500 })),
        _ => Answer::Reject("that is too much".to_owned()),
    };
    println!("  {} asks: {} {action} -> {}", pending.agent, pending.ask.prompt, answer.name());
    Some(answer)
}

fn buyer(amount: u64) -> AgentBuilder {
    Agent::builder("buyer")
        .model(Scripted::empty().call("pay", json!({ "amount": amount })).text("ok"))
        .tool(pay)
        .with_lifecycle(hook(Approval).policy(Policy::Deny))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    for amount in [100, 1000, 10_000] {
        println!("the model wants to pay {amount}:");
        let agent = buyer(amount).on_ask(treasurer).build()?;
        let report = agent.scoped(async |agent| agent.run("buy it").await).await?;
        println!("  the model reads: {}", report.history().iter().nth(2).map_or("", Message::text));
    }
    println!("nobody is there to be asked:");
    let agent = buyer(1).build()?;
    let report = agent.scoped(async |agent| agent.run("buy it").await).await?;
    println!("  the model reads: {}", report.history().iter().nth(2).map_or("", Message::text));
    Ok(())
}
