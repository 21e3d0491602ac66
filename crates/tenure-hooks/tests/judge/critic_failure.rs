//! What happens if a critic cannot do its work.

use crate::judge::support::*;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::{CancelToken, ErrorKind, Outcome};

use tenure_core::hook::IntoRegistration;
use tenure_core::model::{ModelError, ModelErrorKind};

use tenure_core::step::MemoryStepLog;
use tenure_hooks::critic::{Critic, Judge, OnFailure};
use tenure_models::{Failing, Hanging, Scripted, Slow};
use tenure_testkit::RecordedModel;

#[tokio::test]
async fn a_verdict_that_cannot_be_read_is_asked_for_once_more() {
    let critic = says(["I like it.", APPROVE]);
    let agent = Agent::builder("a")
        .model(Scripted::new(["fine"]))
        .with_lifecycle(Critic::new(critic.clone()));
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "fine");
    let (_, messages) = asked(&critic, 1);
    assert_eq!(messages[1], "I like it.");
    assert!(messages[2].contains("cannot be read"), "{messages:?}");
}

#[tokio::test]
async fn one_that_still_cannot_be_read_denies_or_lets_pass() {
    let run = async |then| {
        let critic = says(["I like it.", "Really!", APPROVE]);
        let hook = Critic::new(critic.clone()).on_failure(then);
        let agent = Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(hook);
        let result = ask(agent, "hello").await;
        assert_eq!(critic.requests().len(), 2, "once more, and no more");
        result
    };
    let error = run(OnFailure::Deny).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.to_string().contains("its verdict cannot be read"), "{error}");
    assert_eq!(run(OnFailure::Continue).await.unwrap().output(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_critic_that_fails_hangs_or_panics_denies() {
    let run = async |critic: Critic| {
        let agent = Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(critic);
        ask(agent, "hello").await
    };
    let error = run(Critic::new(Failing::new(ModelErrorKind::Overloaded))).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("could not be judged"), "{error}");
    let error = run(Critic::new(Hanging::new()).timeout(Duration::from_secs(7))).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("within 7s"), "{error}");
    let error = run(Critic::new(Scripted::empty().panics("boom"))).await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("boom"), "{error}");
    let passing = Critic::new(Hanging::new()).on_failure(OnFailure::Continue);
    assert_eq!(run(passing).await.unwrap().output(), "fine");
}

#[tokio::test(start_paused = true)]
async fn a_critic_that_took_too_long_is_not_asked_again_by_a_later_life() {
    let panel = |first: &RecordedModel, second: Judge| {
        let judges = [Judge::new("quick", first.clone()), second];
        Critic::panel(judges).quorum(1).timeout(Duration::from_secs(7))
    };
    let run = async |critic: Critic, log: MemoryStepLog| {
        let agent = Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(critic);
        let agent = agent.build().unwrap();
        agent.startup().await.unwrap();
        let result = agent.request("hello").steps(log).run().await;
        agent.shutdown().await;
        result.map(|report| report.output().to_owned()).map_err(|error| error.to_string())
    };
    let log = MemoryStepLog::new();
    let hangs = Judge::new("slow", Hanging::new());
    let first = run(panel(&says([APPROVE]), hangs), log.clone()).await;
    assert_eq!(first, Ok("fine".to_owned()));
    let begun = tokio::time::Instant::now();
    let both = (says([APPROVE]), says([APPROVE]).named("hanging"));
    let again = run(panel(&both.0, Judge::new("slow", both.1.clone())), log.resumed()).await;
    assert_eq!(again, first);
    assert_eq!((both.0.requests().len(), both.1.requests().len()), (0, 0), "both are on record");
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_critic_that_is_asked_once_more_has_only_the_time_that_is_left() {
    let slow = Slow::of(Scripted::new(["I like it.", APPROVE])).by(Duration::from_secs(4));
    let hook = Critic::new(slow).timeout(Duration::from_secs(7));
    let agent = Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(hook);
    let begun = tokio::time::Instant::now();
    let error = ask(agent, "hello").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("within 3s"), "{error}");
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test]
async fn a_panel_without_critics_lets_nothing_pass() {
    let agent =
        Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(Critic::panel([]));
    assert!(ask(agent, "hello").await.unwrap_err().is_denied());
}

#[tokio::test]
async fn a_creator_that_fails_is_not_judged_and_its_error_is_its_own() {
    let critic = says([APPROVE]);
    let agent = Agent::builder("a")
        .model(Scripted::empty().error(ModelErrorKind::Overloaded, "too busy"))
        .with_lifecycle(Critic::new(critic.clone()));
    let error = ask(agent, "hello").await.unwrap_err();
    assert_eq!(error.model_error().map(ModelError::kind), Some(ModelErrorKind::Overloaded));
    assert_eq!(critic.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_is_cancelled_and_not_denied() {
    let hook = Critic::new(Hanging::new()).on_failure(OnFailure::Continue);
    let agent = Agent::builder("a").model(Scripted::new(["fine"])).with_lifecycle(hook);
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let token = CancelToken::new();
    let turn = agent.request("hello").cancel_on(&token).run();
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(turn, cancel);
    assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
    agent.shutdown().await;
}

#[test]
fn a_critic_is_no_guard_that_children_would_have_too() {
    assert!(!Critic::new(Hanging::new()).into_registration().is_guard());
}
