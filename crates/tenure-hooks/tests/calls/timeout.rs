//! Time limits on calls.

use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::ErrorKind;
use tenure_core::agent::Agent;
use tenure_core::context::ToolCx;
use tenure_core::message::Message;
use tenure_core::model::ModelErrorKind;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_hooks::calls::Timeout;
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Hanging, Passthrough, Scripted};

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_as_a_timeout() {
    let hook = Timeout::new().model(Duration::from_secs(2));
    let agent = Agent::builder("a").model(Hanging::new()).with_lifecycle(hook).build().unwrap();
    let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    assert_eq!(error.model_error().map(|it| it.kind()), Some(ModelErrorKind::Timeout), "{error}");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("within 2s"), "{error}");
}

#[tokio::test]
async fn a_model_that_answers_in_time_is_left_alone() {
    let hook = Timeout::new().model(Duration::from_secs(2));
    let agent = Agent::builder("a").model(Passthrough::new()).with_lifecycle(hook).build().unwrap();
    let report = agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    assert_eq!(report.output(), "hello");
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("timeout").unwrap().make(&with, &Bench::new());
    assert!(make(json!({ "model": "2s" })).is_ok());
    let points = |with| {
        let points = make(with).unwrap().points();
        points.iter().map(|point| point.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(points(json!({ "model": "2s" })), ["wrap_model_call"]);
    assert_eq!(points(json!({ "tool": "2s" })), ["wrap_tool_call"]);
    assert_eq!(points(json!({ "model": "2s", "tool": "2s" })).len(), 2);
    assert_eq!(make(json!({})).unwrap_err().field(), "");
    let refused = make(json!({ "model": "2" })).unwrap_err();
    assert_eq!(refused.field(), "model");
    assert!(refused.message().contains("has no unit"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_is_given_up_with_a_result_that_says_so() {
    let hangs = Hangs;
    let model = Scripted::empty().call("hang", json!({})).text("done");
    let hook = Timeout::new().tool(Duration::from_secs(2));
    let agent = Agent::builder("a").model(model).tool(hangs).with_lifecycle(hook).build().unwrap();
    agent.startup().await.unwrap();
    agent.run("hello").await.unwrap();
    let history = agent.history();
    let result = history.iter().find(|it| matches!(it, Message::Tool(_))).unwrap();
    assert!(result.text().contains("within 2s"), "{result:?}");
    agent.shutdown().await;
}

struct Hangs;

#[async_trait::async_trait]
impl Tool for Hangs {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("hang", "Never answers").limit(Duration::from_secs(60))
    }

    async fn call(&self, _: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
        std::future::pending().await
    }
}
