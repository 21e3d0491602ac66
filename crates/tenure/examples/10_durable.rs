//! A step log: what was completed before a crash is served from the record, and does not run again.
//!
//! The log here lives in memory; one that lasts is the same trait.

use std::sync::atomic::{AtomicUsize, Ordering};
use tenure::message::ToolCall;
use tenure::prelude::*;
use tenure::step::MemoryStepLog;

static PAID: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Pays an invoice.
#[tool(effect = "keyed")]
fn pay(cx: ToolCx<'_>, invoice: String) -> String {
    PAID.fetch_add(1, Ordering::Relaxed);
    let _key = cx.idempotency_key(); // Goes to the bank with the order.
    format!("invoice {invoice} is paid")
}

/// Asks for the tool first, and answers when it has its result.
struct Clerk;

#[async_trait::async_trait]
impl Model for Clerk {
    async fn call(
        &self,
        request: &ModelRequest,
        _: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        ASKED.fetch_add(1, Ordering::Relaxed);
        Ok(match request.messages.last() {
            Some(Message::Tool(result)) => {
                ModelResponse::text(format!("Done: {}.", result.content))
            }
            _ => ModelResponse::calls([ToolCall::new("1", "pay", r#"{"invoice":"17"}"#)]),
        })
    }
}

async fn run(log: MemoryStepLog) -> Result<String, Error> {
    let agent = Agent::builder("clerk").model(Clerk).tool(pay).build()?;
    let report =
        agent.scoped(async |agent| agent.request("Pay invoice 17").steps(log).run().await).await?;
    Ok(report.output().to_owned())
}

fn count(what: &str) {
    let (asked, paid) = (ASKED.load(Ordering::Relaxed), PAID.load(Ordering::Relaxed));
    println!("{what}: {asked} model calls, {paid} payments so far");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let log = MemoryStepLog::new();
    println!("{}", run(log.clone()).await?);
    count("first run");
    for key in log.keys() {
        println!("  recorded {key}");
    }

    println!("{}", run(log.resumed()).await?);
    count("replayed");

    // As if the process had died after the payment, before the model heard of it.
    println!("{}", run(log.cut_after(2)).await?);
    count("resumed after two steps");
    Ok(())
}
