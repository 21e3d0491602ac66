//! Three ways to stop a turn: cancel it, drop it, press Ctrl-C. In each of them `after_agent` runs
//! once, and the agent is ready again.

use std::time::Duration;
use tenure::models::Hanging;
use tenure::prelude::*;
use tokio::time::{sleep, timeout};

struct Ends;

#[lifecycle]
impl AgentLifecycle for Ends {
    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        println!("  after_agent: {} in {}", end.outcome(), cx.agent().phase());
        Ok(After::Done)
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        println!("  on_shutdown: {reason}");
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // The model never answers.
    let agent = Agent::builder("sleeper").model(Hanging::new()).with_lifecycle(Ends).build()?;
    agent.startup().await?;

    println!("cancelled:");
    let token = CancelToken::new();
    let later = async {
        sleep(Duration::from_millis(20)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), later);
    if let Err(error) = result {
        println!("  {error}");
    }

    println!("dropped:");
    let dropped = timeout(Duration::from_millis(20), agent.run("hello")).await;
    println!("  the caller gave up: {}", dropped.is_err());
    agent.ready().await?; // The end runs in the background; this waits for it.

    println!("Ctrl-C, or 50 ms:");
    let token = CancelToken::new();
    let interrupted = async {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => println!("  you pressed Ctrl-C"),
            () = sleep(Duration::from_millis(50)) => println!("  nobody pressed Ctrl-C"),
        }
        token.cancel();
    };
    let (result, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), interrupted);
    println!("  ok: {}, state: {}", result.is_ok(), agent.state());

    println!("shut down:");
    agent.shutdown().await;
    println!("  state: {}, requests: {}", agent.state(), agent.metrics().total_requests);
    Ok(())
}
