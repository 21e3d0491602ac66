use crate::offline::support::{answer, says, streamed};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::message::Message;
use tenure_core::model::{Model, ModelError, ModelErrorKind, Usage};
use tenure_core::phase::AgentState;
use tenure_core::{CancelToken, Outcome};
use tenure_models::{Failing, Hanging, Scripted, Silent, Slow};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn slow_waits_three_seconds_and_then_passes_through() {
    let model = Arc::new(Slow::new());
    let started = Instant::now();
    let response = answer(&model, [Message::user("hello")]).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    assert_eq!((response.content.text(), response.usage), ("hello", Usage::new(1, 1)));
    assert_eq!(Slow::default().name(), "slow");
}

#[tokio::test(start_paused = true)]
async fn slow_waits_as_long_as_it_is_told_for_any_model() {
    let model = Arc::new(Slow::of(Scripted::new(["scripted"])).by(Duration::from_millis(50)));
    let started = Instant::now();
    assert_eq!(says(&model, "hello").await, "scripted");
    assert_eq!(started.elapsed(), Duration::from_millis(50));
}

#[tokio::test]
async fn silent_passes_through_and_costs_nothing() {
    let model = Arc::new(Silent::new());
    let response = answer(&model, [Message::user("***CALL_TOOL x")]).await.unwrap();
    assert_eq!(response.calls.len(), 1);
    assert_eq!(response.usage, Usage::default());
    assert_eq!(says(&model, "hello").await, "hello");
    assert_eq!(model.name(), "silent");
    assert_eq!(streamed(Silent::new()).await.concat(), "to be or not");
}

#[tokio::test]
async fn failing_fails_every_time_in_the_way_it_was_told() {
    let wait = Duration::from_secs(7);
    let model = Arc::new(Failing::new(ModelErrorKind::RateLimited).retry_after(wait));
    for _ in 0..2 {
        let error = answer(&model, [Message::user("x")]).await.unwrap_err();
        let error = error.model_error().expect("a model's error");
        assert_eq!(error.kind(), ModelErrorKind::RateLimited);
        assert_eq!(error.retry_after(), Some(wait));
        assert_eq!(error.to_string(), "the model always fails");
    }
    assert_eq!(model.name(), "failing");
}

#[tokio::test]
async fn a_fatal_failure_ends_the_agent() {
    let agent = Agent::builder("doomed")
        .model(Failing::new(ModelErrorKind::Auth).saying("no key").fatal())
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("hello").await.unwrap_err();
    assert!(error.is_fatal());
    assert!(error.model_error().is_some_and(ModelError::is_fatal));
    agent.terminated().await;
    assert_eq!(agent.state(), AgentState::Terminated);
}

#[tokio::test(start_paused = true)]
async fn hanging_ends_only_by_a_limit_or_a_cancel() {
    let agent = Agent::builder("stuck").model(Hanging::new()).build().unwrap();
    agent.startup().await.unwrap();
    let limited = agent.request("x").limit(Duration::from_secs(3600));
    assert_eq!(limited.run().await.unwrap_err().outcome(), Outcome::TimedOut);

    let token = CancelToken::new();
    let cancelled = agent.request("x").cancel_on(&token).run();
    let (result, ()) = tokio::join!(cancelled, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    });
    assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
    agent.shutdown().await;
    assert_eq!(Hanging.name(), "hanging");
}
