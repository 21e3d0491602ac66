//! Model calls, made again.

use crate::calls::support::*;
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::{self, HookError, Policy};
use tenure_core::message::Message;
use tenure_core::model::ModelError;
use tenure_core::model::ModelErrorKind::{self, *};
use tenure_core::step::MemoryStepLog;
use tenure_core::{CancelToken, Error, Outcome};
use tenure_hooks::calls::{Jitter, Retry};
use tenure_hooks::ready::{self, Bench};
use tenure_testkit::Recorder;
use tokio::time::Instant;

fn patient(model: &Play, retry: Retry) -> AgentBuilder {
    Agent::builder("patient").model(model.clone()).with_lifecycle(retry)
}

async fn run(builder: AgentBuilder) -> Result<String, Error> {
    let agent = builder.build().expect("it works here");
    let result = agent.scoped(async |agent| agent.run("hello").await).await;
    result.map(|report| report.output().to_owned())
}

fn kind_of(error: &Error) -> Option<ModelErrorKind> {
    error.model_error().map(ModelError::kind)
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_retried_after_waits_that_grow() {
    let acts = [fails(Overloaded), fails(Transport), fails(RateLimited), says(&["yes"])];
    let model = Play::new(acts);
    let (bus, recorder) = Recorder::with_bus();
    let retry = Retry::new().attempts(4).jitter(Jitter::None);
    let output = run(patient(&model, retry).events(&bus)).await.unwrap();
    assert_eq!((output.as_str(), model.calls()), ("yes", 4));
    assert_eq!(model.gaps(), [SECOND / 2, SECOND, 2 * SECOND]);
    let retries = recorder.announced("retry");
    assert_eq!(retries.len(), 3);
    assert_eq!(
        retries[1],
        json!({
            "model": "play", "attempt": 3, "of": 4, "wait_ms": 1000, "kind": "transport",
            "error": "Transport",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn by_default_each_wait_is_drawn_from_nothing_to_its_bound() {
    let acts = (0..100).flat_map(|_| [fails(Overloaded), says(&["yes"])]);
    let model = Play::new(acts);
    let agent = patient(&model, Retry::new()).build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..100 {
        agent.run("hello").await.unwrap();
    }
    agent.shutdown().await;
    let gaps = model.gaps();
    let waits: Vec<_> = gaps.iter().step_by(2).collect();
    assert!(waits.iter().all(|wait| **wait <= SECOND / 2), "{waits:?}");
    assert!(waits.iter().any(|wait| **wait < SECOND / 8), "{waits:?}");
    assert!(waits.iter().any(|wait| **wait > 3 * SECOND / 8), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn the_last_error_goes_on_outward_and_is_not_the_hooks_own() {
    let model = Play::new([fails(Overloaded), fails(Overloaded), fails(Timeout)]);
    let error = run(patient(&model, Retry::new())).await.unwrap_err();
    assert_eq!((kind_of(&error), model.calls()), (Some(Timeout), 3));
    assert!(error.report().unwrap().failures.is_empty(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_not_retried() {
    for kind in [Auth, BadRequest, Other] {
        let model = Play::new([fails(kind)]);
        let error = run(patient(&model, Retry::new())).await.unwrap_err();
        assert_eq!((kind_of(&error), model.calls()), (Some(kind), 1));
    }
    let fatal = ModelError::new(Overloaded, "the end").fatal();
    let model = Play::new([breaks(&[], fatal)]);
    assert!(run(patient(&model, Retry::new())).await.unwrap_err().is_fatal());
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_further_in_is_never_retried() {
    let model = Play::new([]);
    let guard = hook::wrap_model_call(|_, _, _| Box::pin(async { Err(HookError::new("broken")) }));
    let guard = hook::hook(guard).named("guard").policy(Policy::Deny);
    let (bus, recorder) = Recorder::with_bus();
    let agent = patient(&model, Retry::new()).with_lifecycle(guard).events(&bus);
    let error = run(agent).await.unwrap_err();
    assert!(error.is_denied(), "{error}");
    assert_eq!(recorder.count("retry"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_says_when_is_not_asked_earlier() {
    let later = |secs| {
        let wait = Duration::from_secs(secs);
        breaks(&[], ModelError::new(RateLimited, "later").with_retry_after(wait))
    };
    // Together these waits are longer than any hook's usual time.
    let model = Play::new([later(50), later(45), says(&["yes"])]);
    assert_eq!(run(patient(&model, Retry::new())).await.unwrap(), "yes");
    assert_eq!(model.gaps(), [50 * SECOND, 45 * SECOND]);

    let model = Play::new([later(61)]);
    let start = Instant::now();
    let error = run(patient(&model, Retry::new())).await.unwrap_err();
    assert_eq!((kind_of(&error), model.calls()), (Some(RateLimited), 1));
    assert_eq!(start.elapsed(), Duration::ZERO, "it is not worth the wait");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_at_once() {
    let model = Play::new([fails(Overloaded)]);
    let retry = Retry::new().initial_delay(20 * SECOND).jitter(Jitter::None);
    let agent = patient(&model, retry).build().unwrap();
    agent.startup().await.unwrap();
    let (token, start) = (CancelToken::new(), Instant::now());
    let (result, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), async {
        tokio::time::sleep(3 * SECOND).await;
        token.cancel();
    });
    assert_eq!(result.unwrap_err().outcome(), Outcome::Cancelled);
    assert_eq!((start.elapsed(), model.calls()), (3 * SECOND, 1));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_outlast_the_turn_is_not_begun() {
    let model = Play::new([fails(Overloaded)]);
    let retry = Retry::new().initial_delay(20 * SECOND).jitter(Jitter::None);
    let start = Instant::now();
    let error = run(patient(&model, retry).turn_limit(10 * SECOND)).await.unwrap_err();
    assert_eq!((kind_of(&error), start.elapsed()), (Some(Overloaded), Duration::ZERO));
}

async fn streamed(model: &Play, retry: Retry) -> (Vec<String>, Result<String, Error>) {
    let agent = patient(model, retry).build().expect("it works here");
    agent.startup().await.expect("it works here");
    let mut stream = agent.request("hello").stream();
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    let result = stream.finish().await.map(|report| report.output().to_owned());
    agent.shutdown().await;
    (pieces, result)
}

#[tokio::test(start_paused = true)]
async fn before_the_first_word_is_read_a_stream_is_retried_and_goes_on_word_by_word() {
    let model = Play::new([fails(Overloaded), says(&["one ", "two ", "three"])]);
    let (pieces, result) = streamed(&model, Retry::new()).await;
    assert_eq!(pieces, ["one ", "two ", "three"], "text is not held back");
    assert_eq!(result.unwrap(), "one two three");
}

#[tokio::test(start_paused = true)]
async fn after_the_first_word_was_read_a_failure_is_final() {
    let broken = || breaks(&["one "], ModelError::new(Truncated, "cut"));
    for retry in [Retry::new(), Retry::new().answer("sorry")] {
        let model = Play::new([broken()]);
        let (pieces, result) = streamed(&model, retry).await;
        assert_eq!((pieces, model.calls()), (vec!["one ".to_owned()], 1));
        assert_eq!(kind_of(&result.unwrap_err()), Some(Truncated));
    }
    // Whoever does not read along gets the answer of the second attempt.
    let model = Play::new([broken(), says(&["whole"])]);
    assert_eq!(run(patient(&model, Retry::new())).await.unwrap(), "whole");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_waits_for_nothing_that_is_on_record() {
    let log = MemoryStepLog::new();
    let retry = || Retry::new().jitter(Jitter::None).initial_delay(10 * SECOND);
    let acts = [fails(Overloaded), fails(Overloaded), calls(&["none"]), says(&["yes"])];
    let first = Play::new(acts);
    let agent = patient(&first, retry()).build().unwrap();
    agent.startup().await.unwrap();
    agent.request("hello").recorded(&steps(&log)).run().await.unwrap();
    agent.shutdown().await;
    assert_eq!(first.gaps()[..2], [10 * SECOND, 20 * SECOND]);

    // It died when the third call had answered; the fourth is to be made.
    let models = |log: &MemoryStepLog| {
        log.keys()
            .iter()
            .enumerate()
            .filter(|(_, key)| &*key.kind == "model")
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    let died = log.cut_after(models(&log)[2] + 1);
    let (bus, recorder) = Recorder::with_bus();
    let second = Play::new([says(&["yes"])]);
    let agent = patient(&second, retry()).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    let start = Instant::now();
    let report = agent.request("hello").recorded(&steps(&died)).run().await.unwrap();
    agent.shutdown().await;
    assert_eq!((report.output(), second.calls()), ("yes", 1));
    assert_eq!((start.elapsed(), recorder.count("retry")), (Duration::ZERO, 0));

    // It died during the second wait: that one is waited again, and no other.
    let died = log.cut_after(models(&log)[1] + 1);
    let third = Play::new([says(&["yes"])]);
    let agent = patient(&third, retry()).build().unwrap();
    agent.startup().await.unwrap();
    let start = Instant::now();
    agent.request("hello").recorded(&steps(&died)).run().await.unwrap();
    agent.shutdown().await;
    assert_eq!((start.elapsed(), third.calls()), (20 * SECOND, 1));
}

#[tokio::test(start_paused = true)]
async fn a_budget_bounds_the_retries_of_all_calls_together() {
    let model = Play::new((0..200).map(|_| fails(Overloaded)));
    let retry = Retry::new().attempts(2).initial_delay(Duration::from_millis(1)).budget(1, 0.0);
    let agent = patient(&model, retry).build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..50 {
        agent.run("hello").await.unwrap_err();
    }
    assert_eq!(model.calls(), 50 + 10, "one retry in a second, over ten seconds");
    tokio::time::sleep(20 * SECOND).await;
    agent.run("hello").await.unwrap_err();
    assert_eq!(model.calls(), 62, "time passes, and there is some again");
    agent.shutdown().await;

    let model = Play::new((0..200).map(|_| fails(Overloaded)));
    let retry = Retry::new().attempts(2).initial_delay(Duration::from_millis(1)).budget(0, 0.2);
    let agent = patient(&model, retry).build().unwrap();
    agent.startup().await.unwrap();
    for _ in 0..50 {
        agent.run("hello").await.unwrap_err();
    }
    agent.shutdown().await;
    assert_eq!(model.calls(), 50 + 10, "every fifth call");
}

#[tokio::test(start_paused = true)]
async fn a_text_may_answer_in_place_of_the_error() {
    let model = Play::new([fails(Overloaded), fails(Transport)]);
    let retry = Retry::new().attempts(2).answer("{{ kind }} after {{ attempts }}: {{ error }}");
    assert_eq!(run(patient(&model, retry)).await.unwrap(), "transport after 2: Transport");
    let model = Play::new([fails(Auth)]);
    let retry = Retry::new().answer("{{ kind }} after {{ attempts }}");
    assert_eq!(run(patient(&model, retry)).await.unwrap(), "auth after 1");
    let model = Play::new([fails(Auth)]);
    let error = run(patient(&model, Retry::new().answer("{{ nothing }}"))).await.unwrap_err();
    assert!(error.to_string().contains("undefined"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_gets_the_request_as_it_came() {
    let model = Play::new([fails(Overloaded), fails(Overloaded), says(&["yes"])]);
    let adds = hook::wrap_model_call(|_, request, next| {
        Box::pin(async move {
            request.messages.edit().push(Message::user("and now"));
            Ok(next.call(request).await?)
        })
    });
    let adds = hook::hook(adds).named("adds").inside("retry");
    run(patient(&model, Retry::new()).with_lifecycle(adds)).await.unwrap();
    let messages: Vec<_> = model.asked().iter().map(|asked| asked.messages).collect();
    assert_eq!(messages, [2, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_panics_is_not_asked_again() {
    let model = tenure_models::Scripted::empty().panics("boom").text("never");
    let agent = Agent::builder("a").model(model).with_lifecycle(Retry::new()).build().unwrap();
    let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::Panicked, "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_agents_own_limit_on_a_model_call_is_a_failure_like_others() {
    let late = says(&["late"]).after(60 * SECOND);
    let model = Play::new([late, says(&["yes"])]);
    let agent = patient(&model, Retry::new()).model_limit(5 * SECOND);
    assert_eq!(run(agent).await.unwrap(), "yes");
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("retry").unwrap().make(&with, &Bench::new());
    for good in [
        json!({}),
        json!({ "attempts": 5, "initial_delay": "1s", "max_delay": "1m", "factor": 3, "jitter": "none" }),
        json!({ "max_retry_after": "5m", "on": ["overloaded", "auth"], "budget": { "per_second": 2 } }),
        json!({ "on_failure": "answer", "answer": "{{ error }}" }),
        json!({ "on_failure": "answer" }),
    ] {
        assert!(make(good.clone()).is_ok(), "{good}: {:?}", make(good.clone()));
    }
    for (bad, field) in [
        (json!({ "attempts": 0 }), "attempts"),
        (json!({ "attempts": 1000 }), "attempts"),
        (json!({ "initial_delay": "2m" }), "initial_delay"),
        (json!({ "initial_delay": "2" }), "initial_delay"),
        (json!({ "factor": 0.5 }), "factor"),
        (json!({ "jitter": "some" }), "jitter"),
        (json!({ "on": [] }), "on"),
        (json!({ "on": ["never"] }), "on[0]"),
        (json!({ "budget": { "ratio": -1.0 } }), "budget.ratio"),
        (json!({ "budget": { "per_second": 0, "ratio": 0 } }), "budget"),
        (json!({ "answer": "sorry" }), "answer"),
        (json!({ "on_failure": "answer", "answer": "{{ eror }}" }), "answer"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
    let schema = ready::find("retry").unwrap().schema();
    assert_eq!(schema["properties"]["attempts"]["default"], 3);
    assert_eq!(schema["properties"]["initial_delay"]["default"], "500ms");
    assert_eq!(schema["properties"]["jitter"]["default"], "full");
}

#[test]
fn it_takes_only_the_point_that_it_needs() {
    let points = ready::find("retry").unwrap().make(&json!({}), &Bench::new()).unwrap().points();
    assert_eq!(points.iter().map(|point| point.as_str()).collect::<Vec<_>>(), ["wrap_model_call"]);
}
