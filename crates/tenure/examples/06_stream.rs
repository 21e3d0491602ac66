//! Streaming: the same loop and the same hooks as `run`. Text that a hook may still change is held
//! back until the hook has seen it.

use tenure::models::Scripted;
use tenure::prelude::*;

/// Takes keys out of what the model says.
struct Redact;

#[lifecycle]
impl AgentLifecycle for Redact {
    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let mut redacted = response.clone();
        redacted.content.map_text(|text| text.replace("sk-12345", "[removed]"));
        Ok(HookAction::Modify(Box::new(redacted)))
    }
}

/// Only counts, and is registered as an observer: nothing is held back for it.
struct Count;

#[lifecycle]
impl AgentLifecycle for Count {
    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        println!("  (the observer sees {} characters)", response.content.text().len());
        Ok(HookAction::Continue)
    }
}

async fn show(agent: Agent) -> Result<(), Error> {
    agent
        .scoped(async |agent| {
            let mut stream = agent.stream("What is the key?");
            while let Some(piece) = stream.next().await {
                println!("  {piece:?}");
            }
            let report = stream.finish().await?;
            println!("  outcome: {}", report.outcome);
            Ok(())
        })
        .await
}

fn keeper() -> AgentBuilder {
    // Scripted models hand out their text word by word.
    Agent::builder("keeper").model(Scripted::new(["The key is sk-12345, keep it safe."]))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("an observer only:");
    show(keeper().with_lifecycle(hook(Count).observes()).build()?).await?;
    println!("a hook that redacts:");
    show(keeper().with_lifecycle(Redact).build()?).await
}
