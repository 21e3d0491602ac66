//! Time limits on calls.

use serde_json::json;
use std::time::Duration;
use tenure_core::ErrorKind;
use tenure_core::agent::Agent;
use tenure_core::model::ModelErrorKind;
use tenure_hooks::calls::Timeout;
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Hanging, Passthrough};

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
    assert_eq!(make(json!({})).unwrap_err().field(), "");
    let refused = make(json!({ "model": "2" })).unwrap_err();
    assert_eq!(refused.field(), "model");
    assert!(refused.message().contains("has no unit"), "{refused}");
}
