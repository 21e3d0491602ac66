//! A guard is a hook with the policy `deny`: when it says no, and also when it fails, what stands
//! behind it does not happen.

use serde_json::json;
use tenure::models::Scripted;
use tenure::prelude::*;

/// Runs a command.
#[tool]
fn shell(command: String) -> String {
    println!("  shell runs: {command}");
    "done".to_owned()
}

/// Refuses what would delete files. It can only judge what it can read.
struct NoDelete;

#[lifecycle]
impl AgentLifecycle for NoDelete {
    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let command = request.arguments["command"]
            .as_str()
            .ok_or_else(|| HookError::new("there is no command"))?;
        assert!(command.is_ascii(), "cannot judge {command:?}");
        if command.starts_with("rm ") {
            return Err(Error::denied("deleting files is not allowed").into());
        }
        Ok(next.call(request).await?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    std::panic::set_hook(Box::new(|_| {})); // The panic below is caught; do not print it.

    let requests = [
        ("allowed", json!({ "command": "ls" })),
        ("refused", json!({ "command": "rm -r /" })),
        ("the guard fails", json!({ "command": 7 })),
        ("the guard panics", json!({ "command": "rm\u{a0}-r /" })),
    ];
    for (what, arguments) in requests {
        println!("{what}: {arguments}");
        let agent = Agent::builder("operator")
            .model(Scripted::empty().call("shell", arguments).text("ok"))
            .tool(shell)
            .with_lifecycle(hook(NoDelete).policy(Policy::Deny))
            .build()?;
        let report = agent.scoped(async |agent| agent.run("clean up").await).await?;
        let seen = report.history().iter().nth(2).map_or("", Message::text);
        println!("  the model reads: {seen}");
    }

    // At any other point a guard denies the whole turn. The error carries the report.
    let closed = hook::before_agent(|_cx, _input| {
        Box::pin(async { Err(HookError::new("the shop is closed")) })
    });
    let agent = Agent::builder("clerk")
        .model(Scripted::new(["hello"]))
        .with_lifecycle(hook(closed).named("hours").policy(Policy::Deny))
        .build()?;
    agent.startup().await?;
    if let Err(error) = agent.run("hello?").await {
        let steps = error.report().map_or(0, |report| report.steps);
        println!("turn {}: {error} ({steps} model calls)", error.outcome());
    }
    agent.shutdown().await;
    Ok(())
}
