//! What comes of a call when no breaker lets it through.

use crate::calls::support::*;
use futures_util::future::join_all;
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::model::ModelErrorKind::{self as Kind, *};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::calls::{CircuitBreaker, Fallback, Jitter, RateLimit, Retry};
use tenure_hooks::ready::{self, Bench, Shared};
use tenure_testkit::Recorder;
use tokio::time::Instant;

/// Opens for three seconds after two failures.
fn breaker(shared: &Shared) -> CircuitBreaker {
    CircuitBreaker::new().failures(2).open_for(3 * SECOND).shared(shared, "all")
}

async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent
}

fn agent(model: &Play, shared: &Shared) -> AgentBuilder {
    Agent::builder("careful").model(model.clone()).with_lifecycle(breaker(shared))
}

/// Has the breaker of a model open now.
async fn open(name: &'static str, shared: &Shared) {
    let model = Play::named(name, [fails(Overloaded), fails(Overloaded)]);
    let agent = started(agent(&model, shared)).await;
    assert!(agent.run("hello").await.is_err() && agent.run("hello").await.is_err());
    agent.shutdown().await;
}

async fn kind_of(agent: &Agent) -> Option<Kind> {
    let error = agent.run("hello").await.err()?;
    Some(error.model_error().unwrap_or_else(|| panic!("{error}")).kind())
}

#[tokio::test(start_paused = true)]
async fn if_no_model_may_be_asked_a_fallback_waits_for_the_first_that_may() {
    let (shared, (bus, recorder)) = (Shared::new(), Recorder::with_bus());
    open("other", &shared).await;
    tokio::time::sleep(SECOND).await;
    open("own", &shared).await;
    let own = Play::named("own", [says(&["own"])]);
    let other = Play::named("other", [says(&["other"])]);
    let agent = agent(&own, &shared).with_lifecycle(Fallback::to(other.clone()));
    let agent = started(agent.events(&bus)).await;
    let start = Instant::now();
    assert_eq!(agent.run("hello").await.unwrap().output(), "other");
    assert_eq!((start.elapsed(), own.calls(), other.calls()), (2 * SECOND, 0, 1));
    let waits = recorder.announced("fallback.waits");
    assert_eq!(waits, [json!({ "model": "other", "wait_ms": 2000 })]);
    assert_eq!(recorder.announced("fallback.answered"), [json!({ "model": "other" })]);
    agent.shutdown().await;

    // The agent's own is one of them.
    let shared = Shared::new();
    open("own", &shared).await;
    tokio::time::sleep(SECOND).await;
    open("other", &shared).await;
    let own = Play::named("own", [says(&["own"])]);
    let agent = Agent::builder("a").model(own).with_lifecycle(breaker(&shared));
    let agent = started(agent.with_lifecycle(Fallback::to(Play::named("other", [])))).await;
    assert_eq!(agent.run("hello").await.unwrap().output(), "own");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_was_passed_over_is_asked_when_the_others_have_failed() {
    let shared = Shared::new();
    open("own", &shared).await;
    let own = Play::named("own", [says(&["own"])]);
    let other = Play::named("other", [fails(Auth)]);
    let agent = agent(&own, &shared).with_lifecycle(Fallback::to(other.clone()));
    let agent = started(agent).await;
    let start = Instant::now();
    assert_eq!(agent.run("hello").await.unwrap().output(), "own");
    assert_eq!((start.elapsed(), other.calls()), (3 * SECOND, 1));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_would_take_too_long_is_not_waited_for() {
    let cases = [
        (2 * SECOND, None, false),
        (3 * SECOND, None, true),
        (Duration::ZERO, None, false),
        (5 * SECOND, Some(2 * SECOND), false),
        (5 * SECOND, Some(4 * SECOND), true),
    ];
    for (max_wait, turn, answers) in cases {
        let shared = Shared::new();
        open("other", &shared).await;
        open("own", &shared).await;
        let fallback = Fallback::to(Play::named("other", [says(&["yes"])])).max_wait(max_wait);
        let own = Play::named("own", [says(&["yes"])]);
        let agent = agent(&own, &shared).with_lifecycle(fallback);
        let agent = match turn {
            Some(turn) => agent.turn_limit(turn),
            None => agent,
        };
        let agent = started(agent).await;
        let start = Instant::now();
        let result = agent.run("hello").await;
        let waited = if answers { 3 * SECOND } else { Duration::ZERO };
        assert_eq!((result.is_ok(), start.elapsed()), (answers, waited), "{max_wait:?} {turn:?}");
        if let Err(error) = result {
            assert!(error.to_string().contains("(breaker)"), "{error}");
        }
        agent.shutdown().await;
    }
}

/// A limit has a wait of its own, which the call has had.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_reached_is_not_waited_for() {
    let rate = RateLimit::new(1, 2 * SECOND).max_wait(Duration::from_millis(1));
    let own = Play::named("own", [says(&["yes"])]);
    let agent = Agent::builder("a").model(own).with_lifecycle(rate);
    let agent = started(agent.with_lifecycle(Fallback::to(Play::named("other", [])))).await;
    assert_eq!(kind_of(&agent).await, None);
    let start = Instant::now();
    assert_eq!((kind_of(&agent).await, start.elapsed()), (Some(RateLimited), Duration::ZERO));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_model_is_not_asked_more_often_than_its_retries_allow_however_many_turns_it_has() {
    let (shared, (bus, recorder)) = (Shared::new(), Recorder::with_bus());
    open("other", &shared).await;
    tokio::time::sleep(SECOND).await;
    let own = Play::named("own", [fails(Overloaded), fails(Overloaded), fails(Overloaded)]);
    let other = Play::named("other", [fails(Overloaded), says(&["other"])]);
    let retry = Retry::new().attempts(3).jitter(Jitter::None);
    let retry = retry.initial_delay(Duration::from_millis(100));
    let agent = agent(&own, &shared).with_lifecycle(retry).events(&bus);
    let agent = started(agent.with_lifecycle(Fallback::to(other.clone()))).await;
    let start = Instant::now();
    // At 0 and 0.1 s its own fails, so its breaker opens. At 2 s the other one fails, which opens its
    // breaker anew. At 3.1 s its own fails for the last time, and at 5 s the other answers.
    assert_eq!(agent.run("hello").await.unwrap().output(), "other");
    assert_eq!((start.elapsed(), own.calls(), other.calls()), (5 * SECOND, 3, 2));
    let waits = recorder.announced("fallback.waits");
    let models: Vec<_> = waits.iter().map(|wait| wait["model"].as_str()).collect();
    assert_eq!(models, [Some("other"), Some("own"), Some("other")]);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_for_one_probe_all_get_their_answer() {
    let shared = Shared::new();
    open("own", &shared).await;
    open("other", &shared).await;
    let slow = says(&["yes"]).after(SECOND / 2);
    let own = Play::named("own", [slow].into_iter().chain((0..7).map(|_| says(&["yes"]))));
    let callers = (0..8).map(async |_| {
        let fallback = Fallback::to(Play::named("other", [fails(Auth)]));
        let agent = started(agent(&own, &shared).with_lifecycle(fallback)).await;
        let answer = agent.run("hello").await.map(|report| report.output().to_owned());
        agent.shutdown().await;
        answer.unwrap_or_else(|error| error.to_string())
    });
    let answers = join_all(callers).await;
    assert!(answers.iter().all(|answer| answer == "yes"), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_does_not_wait_again_and_asks_whom_it_asked() {
    let (shared, log) = (Shared::new(), MemoryStepLog::new());
    open("other", &shared).await;
    open("own", &shared).await;
    let build = |own: &Play, other: &Play, shared: &Shared| {
        agent(own, shared).with_lifecycle(Fallback::to(other.clone()))
    };
    let own = Play::named("own", [says(&["done"])]);
    let other = Play::named("other", [calls(&["none"])]);
    let agent = started(build(&own, &other, &shared)).await;
    agent.request("hello").recorded(&steps(&log)).run().await.unwrap();
    agent.shutdown().await;

    // Its breakers know of nothing, and the next call is made to its own at once.
    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let (own, other) = (Play::named("own", [says(&["done"])]), Play::named("other", []));
    let (bus, recorder) = Recorder::with_bus();
    let agent = started(build(&own, &other, &Shared::new()).events(&bus)).await;
    let start = Instant::now();
    let report = agent.request("hello").recorded(&steps(&log.cut_after(last))).run().await.unwrap();
    assert_eq!((report.output(), own.calls(), other.calls()), ("done", 1, 0));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(recorder.announced("fallback.waits").is_empty());
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_model_that_is_not_there_any_more_harms_nobody() {
    let (shared, log) = (Shared::new(), MemoryStepLog::new());
    for name in ["third", "other", "own"] {
        open(name, &shared).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let play = |name| Play::named(name, [says(&["done"])]);
    let first = agent(&play("own"), &shared)
        .with_lifecycle(Fallback::to(play("other")).then(play("third")));
    let first = started(first).await;
    first.request("hello").recorded(&steps(&log)).run().await.unwrap();
    first.shutdown().await;

    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let next = agent(&play("own"), &shared).with_lifecycle(Fallback::to(play("other")));
    let next = started(next).await;
    let run = next.request("hello").recorded(&steps(&log.cut_after(last))).run().await;
    let error = run.unwrap_err().to_string();
    assert!(!error.contains("panicked"), "{error}");
    next.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_alone_waits_for_a_breaker_no_longer_than_for_any_failure() {
    let retry = |delay| Retry::new().attempts(2).initial_delay(delay).max_delay(60 * SECOND);
    for (delay, answers) in [(3 * SECOND, true), (2 * SECOND, false)] {
        let shared = Shared::new();
        open("own", &shared).await;
        let own = Play::named("own", [says(&["yes"])]);
        let agent = started(agent(&own, &shared).with_lifecycle(retry(delay))).await;
        let start = Instant::now();
        assert_eq!(kind_of(&agent).await.is_none(), answers, "{delay:?}");
        let waited = if answers { 3 * SECOND } else { Duration::ZERO };
        assert_eq!((start.elapsed(), own.calls()), (waited, usize::from(answers)));
        agent.shutdown().await;
    }
    // With a fallback around, it does not wait at all.
    let shared = Shared::new();
    open("own", &shared).await;
    let other = Play::named("other", [says(&["other"])]);
    let agent = agent(&Play::named("own", []), &shared).with_lifecycle(retry(3 * SECOND));
    let agent = started(agent.with_lifecycle(Fallback::to(other))).await;
    let start = Instant::now();
    assert_eq!(agent.run("hello").await.unwrap().output(), "other");
    assert_eq!(start.elapsed(), Duration::ZERO);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_does_not_keep_the_model_away_for_ever() {
    let shared = Shared::new();
    open("own", &shared).await;
    tokio::time::sleep(3 * SECOND).await;
    let hangs = says(&["late"]).after(20 * SECOND);
    let own = Play::named("own", [hangs, says(&["yes"]), says(&["yes"])]);
    let (first, second) = (agent(&own, &shared), agent(&own, &shared));
    let (first, second) = (started(first).await, started(second).await);
    let (late, ()) = tokio::join!(first.run("hello"), async {
        tokio::time::sleep(SECOND).await;
        assert_eq!(kind_of(&second).await, Some(Overloaded), "one probe is under way");
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(kind_of(&second).await, None, "it is not waited for any longer");
        assert_eq!(kind_of(&second).await, None, "and the circuit is closed");
    });
    assert_eq!(late.unwrap().output(), "late");
    first.shutdown().await;
    second.shutdown().await;
}

#[test]
fn the_wait_is_checked() {
    let bench = Bench::new().with_model("other", tenure_models::Passthrough::new());
    let make = |with| ready::find("fallback").unwrap().make(&with, &bench);
    assert!(make(json!({ "models": ["other"], "max_wait": "10s" })).is_ok());
    let bad = make(json!({ "models": ["other"], "max_wait": "soon" }));
    assert_eq!(bad.unwrap_err().field(), "max_wait");
}
