//! An agent's life: what is acquired at the start is released at the end, whatever happens between.

use tenure::models::Passthrough;
use tenure::prelude::*;

/// Something that has to be opened before use and closed after it.
struct Opens {
    what: &'static str,
    works: bool,
}

#[lifecycle]
impl AgentLifecycle for Opens {
    fn name(&self) -> &str {
        self.what
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        println!("  on_start    {}", self.what);
        let what = self.what;
        cx.resources().register(what, move || async move {
            println!("  released    {what}");
            Ok(())
        });
        if self.works { Ok(()) } else { Err(HookError::new("connection refused")) }
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        println!("  on_shutdown {}: {reason}", self.what);
        Ok(())
    }
}

fn agent(index_works: bool) -> Result<Agent, Error> {
    Agent::builder("librarian")
        .model(Passthrough::new())
        .with_lifecycle(Opens { what: "database", works: true })
        .with_lifecycle(Opens { what: "index", works: index_works })
        .with_lifecycle(Opens { what: "printer", works: true })
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    println!("a life, scoped:");
    agent(true)?
        .scoped(async |agent| {
            println!("  {}, {} resources", agent.state(), agent.resource_count());
            agent.run("hello").await
        })
        .await?;

    println!("a start that fails:");
    let agent = agent(false)?;
    if let Err(error) = agent.startup().await {
        println!("  {error}");
    }
    println!("  {}, {} resources", agent.state(), agent.resource_count());

    println!("terminated is final:");
    if let Err(error) = agent.startup().await {
        println!("  {error}");
    }
    Ok(())
}
