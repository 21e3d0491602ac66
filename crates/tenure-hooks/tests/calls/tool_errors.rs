//! What a tool's failure means.

use crate::calls::support::*;
use serde_json::json;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::tool::{Effect, ToolOutput};
use tenure_hooks::calls::{Jitter, ToolErrors, ToolRetry};
use tenure_hooks::ready::{self, Bench};

fn agent(output: ToolOutput, errors: ToolErrors) -> AgentBuilder {
    let model = Play::new([calls(&["clerk"]), says(&["ok"])]);
    let clerk = Clerk::new(Effect::Idempotent, [output.clone(), output]);
    Agent::builder("calm").model(model).tool(clerk).with_lifecycle(errors)
}

async fn result(builder: AgentBuilder) -> Result<(ToolStatus, String), Error> {
    let agent = builder.build().expect("it works here");
    let report = agent.scoped(async |agent| agent.run("go").await).await?;
    let result = report.history().iter().find_map(|message| match message {
        Message::Tool(result) => Some((result.status, result.content.text().to_owned())),
        _ => None,
    });
    Ok(result.expect("the tool was called"))
}

#[tokio::test]
async fn the_model_reads_what_the_text_says() {
    let says = ToolErrors::saying("{{ tool }}/{{ call }}: {{ error }}; do without it");
    let got = result(agent(ToolOutput::error("broken"), says)).await.unwrap();
    assert_eq!(got, (ToolStatus::Error, "clerk/call_0: broken; do without it".to_owned()));
}

#[tokio::test]
async fn what_did_not_fail_and_what_was_denied_stays_as_it_is() {
    for output in [ToolOutput::text("fine"), ToolOutput::denied("no")] {
        let got = result(agent(output.clone(), ToolErrors::saying("changed"))).await.unwrap();
        assert_eq!(got, (output.status, output.content.into_text()));
    }
    let others = ToolErrors::saying("changed").tools(["search*"]);
    assert_eq!(result(agent(ToolOutput::error("broken"), others)).await.unwrap().1, "broken");
}

#[tokio::test]
async fn a_failure_may_end_the_turn() {
    let errors = ToolErrors::ending_the_turn().tools(["clerk"]);
    let error = result(agent(ToolOutput::error("broken"), errors)).await.unwrap_err();
    assert!(error.to_string().contains("the tool `clerk` failed: broken"), "{error}");
    assert!(result(agent(ToolOutput::text("fine"), ToolErrors::ending_the_turn())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn it_speaks_after_the_last_attempt() {
    let retry = ToolRetry::new().attempts(3).jitter(Jitter::None);
    let agent = agent(ToolOutput::error("broken"), ToolErrors::ending_the_turn());
    assert_eq!(result(agent.with_lifecycle(retry)).await.unwrap().1, "done");
}

#[tokio::test]
async fn a_text_that_cannot_be_filled_fails_the_turn() {
    let errors = ToolErrors::saying("{{ nothing }}");
    let error = result(agent(ToolOutput::error("broken"), errors)).await.unwrap_err();
    assert!(error.to_string().contains("undefined"), "{error}");
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("tool_errors").unwrap().make(&with, &Bench::new());
    assert!(make(json!({ "message": "{{ tool }}: {{ error }} {{ call }}" })).is_ok());
    assert!(make(json!({ "on_error": "end", "tools": ["a"] })).is_ok());
    for (bad, field) in [
        (json!({}), "message"),
        (json!({ "message": "{{ who }}" }), "message"),
        (json!({ "message": "x", "on_error": "end" }), "message"),
        (json!({ "on_error": "never" }), "on_error"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
}
