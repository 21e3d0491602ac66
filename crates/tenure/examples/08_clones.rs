//! Clones: an agent as a tool of another, detached instances, and concurrent requests.
//!
//! Each clone has its own id, state, history, start and shutdown. The parent's guards come along.

use serde_json::json;
use std::time::Duration;
use tenure::models::{Scripted, Slow};
use tenure::prelude::*;

/// Prints every start and every end.
struct Life;

#[lifecycle]
impl AgentLifecycle for Life {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        println!("  start {}", cx.agent_name());
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        println!("  end   {}", cx.agent_name());
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let echo = Agent::builder("echo")
        .description("Repeats what it is told.")
        .model(Slow::new().by(Duration::from_millis(20)))
        .with_lifecycle(Life)
        .blueprint()?;

    println!("an agent as a tool, asked twice at once:");
    let ask = |message| ("agent__echo", json!({ "message": message }));
    let parent = Agent::builder("parent")
        .model(Scripted::empty().calls([ask("one"), ask("two")]).text("done"))
        .agent_tool_with(&echo, ChildOptions::default().max_parallel(2))
        .with_lifecycle(Life)
        .build()?;
    let report = parent.scoped(async |agent| agent.run("ask echo").await).await?;
    for message in report.history().iter().skip(2).take(2) {
        println!("  result: {}", message.text());
    }

    println!("a detached instance:");
    let agent = echo.instance();
    agent.startup().await?;
    agent.run("remember this").await?;
    let clone = agent.spawn_detached_instance(Some("echo-two")).await?;
    println!(
        "  {} knows {} messages, {} {}",
        agent.name(),
        agent.history().len(),
        clone.name(),
        clone.history().len()
    );
    clone.shutdown().await;

    println!("two requests at once, through handle:");
    let (one, two) = tokio::join!(agent.handle("first"), agent.handle("second"));
    let (one, two) = (one?, two?);
    println!(
        "  {} and {}, on {} instance(s)",
        one.output(),
        two.output(),
        if one.instance == two.instance { 1 } else { 2 }
    );
    agent.shutdown().await;
    Ok(())
}
