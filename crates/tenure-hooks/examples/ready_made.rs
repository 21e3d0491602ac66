//! Hooks that are ready made. Each says where it has to stand, so the order in which they are given
//! does not matter: the permission guard judges the call as it is really made, the retry asks the
//! model again, and what is found in the answer never reaches a reader of the stream.

use serde_json::json;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::Agent;
use tenure_core::message::Message;
use tenure_core::model::ModelErrorKind;
use tenure_hooks::calls::Retry;
use tenure_hooks::guard::{Condition, Permissions, Pii};
use tenure_hooks::see::UsageReport;
use tenure_macros::tool;
use tenure_models::Scripted;

/// Reads a file.
#[tool]
fn read(path: String) -> String {
    format!("contents of {path}")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let model = Scripted::empty()
        .error(ModelErrorKind::Overloaded, "no room")
        .call("read", json!({ "path": "/etc/passwd" }))
        .call("read", json!({ "path": "notes.txt" }))
        .text("Ask ada@example.com about it.");
    let usage = UsageReport::new();
    let agent = Agent::builder("reader")
        .model(model)
        .tool(read)
        .with_lifecycle(
            Permissions::new().allow("read").where_("path", Condition::pattern("[a-z]+[.]txt")),
        )
        .with_lifecycle(Pii::new())
        .with_lifecycle(usage.clone())
        .with_lifecycle(Retry::new().initial_delay(Duration::from_millis(1)))
        .build()?;
    agent.startup().await?;

    let mut stream = agent.stream("What do the notes say?");
    while let Some(text) = stream.next().await {
        println!("read: {text}");
    }
    let report = stream.finish().await?;
    for message in agent.history().iter() {
        if let Message::Tool(result) = message {
            println!("tool: {:?}: {}", result.status, result.content);
        }
    }
    println!("model calls that answered: {}", report.steps);
    agent.shutdown().await;
    Ok(())
}
