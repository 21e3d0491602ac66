//! The contract for a type of your own: it says how to start and how to stop, and gets states,
//! limits, rollback, metrics and ownership.

use std::time::Duration;
use tenure::life::agent_lifecycle;
use tenure::prelude::*;

struct Indexer {
    life: Lifecycle,
}

#[async_trait::async_trait]
impl ManagedAgent for Indexer {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.life.resources().register("index file", || async {
            println!("  index file closed");
            Ok(())
        });
        Ok(())
    }

    async fn do_shutdown(&self, timeout: Duration) -> Result<(), HookError> {
        println!("  do_shutdown, within {:.0} s", timeout.as_secs_f64());
        Ok(())
    }
}

impl Indexer {
    /// Busy while it works; of two concurrent calls one is refused.
    async fn index(&self, text: &str) -> Result<usize, Error> {
        let busy = self.life.requires_ready()?;
        self.set_state("_last", text.into())?;
        println!("  {} while it works on {text:?}", self.state());
        busy.succeeded();
        Ok(text.len())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let ownership = Ownership::new().declare("user_history", StateOwnership::Memory);
    let indexer = Indexer { life: Lifecycle::new("indexer").with_ownership(ownership) };

    println!("before it is started:");
    if let Err(error) = indexer.index("too early").await {
        println!("  {error}");
    }

    println!("started:");
    let config = LifecycleConfig::default().timeout(Duration::from_secs(2)).retries(1);
    agent_lifecycle(&indexer, Some(config), async |indexer| {
        indexer.index("a text").await?;
        for key in ["_draft", "user_history", "trace_id"] {
            match indexer.set_state(key, 1.into()) {
                Ok(()) => println!("  {key}: written"),
                Err(error) => println!("  {key}: {error}"),
            }
        }
        Ok::<_, Error>(())
    })
    .await?;

    let metrics = indexer.metrics();
    println!("over:");
    println!("  {}, {} values left", indexer.state(), indexer.state_len());
    println!("  {} requests, {} failed", metrics.total_requests, metrics.failed_requests);
    Ok(())
}
