//! So many calls in a time, and so many at once.

use crate::calls::support::*;
use futures_util::future::join_all;
use serde_json::json;
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::IntoRegistration;
use tenure_core::message::{Message, ToolStatus};
use tenure_core::model::ModelErrorKind::{Overloaded, RateLimited};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::Effect;
use tenure_hooks::calls::{Concurrency, Fallback, Per, RateLimit, Retry};
use tenure_hooks::ready::{self, Bench, Shared};
use tenure_testkit::Recorder;
use tokio::time::Instant;

fn agent(model: &Play, limit: impl IntoRegistration) -> AgentBuilder {
    Agent::builder("modest").model(model.clone()).with_lifecycle(limit)
}

async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent
}

fn yes(times: usize) -> Vec<Act> {
    (0..times).map(|_| says(&["yes"])).collect()
}

/// Several requests at once; how long each of them took, or how it failed.
async fn at_once(agent: &Agent, requests: usize) -> Vec<Result<Duration, String>> {
    let start = Instant::now();
    join_all((0..requests).map(async |_| match agent.request("hello").handle().await {
        Ok(_) => Ok(start.elapsed()),
        Err(error) => Err(error.to_string()),
    }))
    .await
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_rate_wait_their_turn() {
    let model = Play::new(yes(5));
    let agent = started(agent(&model, RateLimit::new(2, 10 * SECOND))).await;
    let took: Vec<_> = at_once(&agent, 5).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(took, [0, 0, 10, 10, 20].map(Duration::from_secs));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_wait_too_long_fails_at_once_and_says_when() {
    let model = Play::new(yes(2));
    let limit = || RateLimit::new(1, 40 * SECOND).max_wait(5 * SECOND);
    let alone = started(agent(&model, limit())).await;
    alone.run("hello").await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    let start = Instant::now();
    let error = alone.run("hello").await.unwrap_err();
    let failure = error.model_error().unwrap();
    assert_eq!((failure.kind(), failure.retry_after()), (RateLimited, Some(30 * SECOND)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(error.to_string().contains("no more than 1 in 40s"), "{error}");
    alone.shutdown().await;

    // `max_wait` says how long a call waits, and a retry does not wait beyond it.
    let model = Play::new(yes(1));
    let patient = started(agent(&model, limit()).with_lifecycle(Retry::new())).await;
    patient.run("hello").await.unwrap();
    let start = Instant::now();
    let error = patient.run("hello").await.unwrap_err();
    assert_eq!(error.model_error().unwrap().kind(), RateLimited);
    assert_eq!((start.elapsed(), model.calls()), (Duration::ZERO, 1));
    patient.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_and_frees_its_turn() {
    let model = Play::new(yes(2));
    let agent = started(agent(&model, RateLimit::new(1, 10 * SECOND))).await;
    agent.run("hello").await.unwrap();
    let (token, start) = (CancelToken::new(), Instant::now());
    let (ended, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), async {
        tokio::time::sleep(SECOND).await;
        token.cancel();
    });
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(start.elapsed(), SECOND);
    agent.run("hello").await.unwrap();
    assert_eq!(model.gaps(), [10 * SECOND], "and not twenty");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_be_longer_than_a_hooks_usual_time() {
    let model = Play::new(yes(2));
    let limit = RateLimit::new(1, 100 * SECOND).max_wait(200 * SECOND);
    let agent = started(agent(&model, limit)).await;
    agent.run("hello").await.unwrap();
    agent.run("hello").await.unwrap();
    assert_eq!(model.gaps(), [100 * SECOND]);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn limits_are_per_agent_per_provider_per_model_or_shared() {
    let limit = |per| RateLimit::new(1, 10 * SECOND).per(per).max_wait(Duration::from_millis(1));
    let large = || Play::named("openai.large", [fails(Overloaded)]);
    let agent = |per| {
        let others = Fallback::to(Play::named("openai.small", yes(1)));
        let others = others.then(Play::named("anthropic.small", yes(1)));
        agent(&large(), limit(per)).with_lifecycle(others)
    };
    for (per, expected) in [
        (Per::Agent, Err("no more than 1 in 10s")),
        (Per::Provider, Ok("anthropic.small")),
        (Per::Model, Ok("openai.small")),
    ] {
        let (bus, recorder) = Recorder::with_bus();
        let agent = started(agent(per).events(&bus)).await;
        let answered = agent.run("hello").await.map_err(|error| error.to_string());
        let who = recorder.announced("fallback.answered");
        match (expected, answered) {
            (Ok(name), Ok(_)) => assert_eq!(who[0]["model"], name, "{per:?}"),
            (Err(part), Err(error)) => assert!(error.contains(part), "{per:?}: {error}"),
            (_, got) => panic!("{per:?}: {got:?}"),
        }
        agent.shutdown().await;
    }

    let shared = Shared::new();
    let sharing = |name: &str| limit(Per::Agent).shared(&shared, name.to_owned());
    let (one, two) = (Play::new(yes(1)), Play::new(yes(1)));
    let first = started(self::agent(&one, sharing("all"))).await;
    let second = started(self::agent(&two, sharing("all"))).await;
    first.run("hello").await.unwrap();
    assert!(second.run("hello").await.is_err());
    tokio::time::sleep(10 * SECOND).await;
    second.run("hello").await.unwrap();
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_neither_waits_nor_counts_for_what_it_is_served() {
    for concurrency in [false, true] {
        let log = MemoryStepLog::new();
        let build = |model: &Play| match concurrency {
            false => agent(model, RateLimit::new(1, 10 * SECOND)),
            true => agent(model, Concurrency::new(1)),
        };
        let first = started(build(&Play::new([calls(&["none"]), says(&["yes"])]))).await;
        first.request("hello").recorded(&steps(&log)).run().await.unwrap();
        first.shutdown().await;
        let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
        let model = Play::new(yes(2));
        let second = started(build(&model)).await;
        let start = Instant::now();
        let log = log.cut_after(last - 1);
        second.request("hello").recorded(&steps(&log)).run().await.unwrap();
        assert_eq!((start.elapsed(), model.calls()), (Duration::ZERO, 1));
        second.shutdown().await;
    }
}

/// What became of the calls of a batch of tools.
async fn batch(builder: AgentBuilder) -> Vec<(ToolStatus, String)> {
    let agent = started(builder).await;
    let report = agent.run("go").await.expect("it works here");
    agent.shutdown().await;
    let result = |message: &Message| match message {
        Message::Tool(result) => Some((result.status, result.content.text().to_owned())),
        _ => None,
    };
    report.history().iter().filter_map(result).collect()
}

#[tokio::test(start_paused = true)]
async fn tools_are_limited_by_name() {
    let twice = || Play::new([calls(&["clerk", "clerk"]), says(&["ok"])]);
    let limit = || RateLimit::new(1, 10 * SECOND).tools_only();
    let clerk = Clerk::new(Effect::Idempotent, []);
    batch(agent(&twice(), limit().tools(["cl*"])).tool(clerk.clone())).await;
    assert_eq!(clerk.gaps(), [10 * SECOND]);

    let clerk = Clerk::new(Effect::Idempotent, []);
    batch(agent(&twice(), limit().tools(["other"])).tool(clerk.clone())).await;
    assert_eq!(clerk.gaps(), [Duration::ZERO]);

    let clerk = Clerk::new(Effect::Idempotent, []);
    let hasty = limit().tools(["*"]).max_wait(SECOND);
    let results = batch(agent(&twice(), hasty).tool(clerk.clone())).await;
    assert_eq!((results[0].0, results[1].0, clerk.calls()), (ToolStatus::Ok, ToolStatus::Error, 1));
    assert!(results[1].1.contains("call it again in 10s"), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_are_under_way_than_there_are_places() {
    let slow = (0..5).map(|_| says(&["yes"]).after(10 * SECOND));
    let model = Play::new(slow);
    let agent = started(agent(&model, Concurrency::new(2))).await;
    let mut took: Vec<_> = at_once(&agent, 5).await.into_iter().map(Result::unwrap).collect();
    took.sort();
    assert_eq!(took, [10, 10, 20, 20, 30].map(Duration::from_secs));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_place_in_time_fails_as_overloaded() {
    let model = Play::new([says(&["yes"]).after(10 * SECOND)]);
    let agent = started(agent(&model, Concurrency::new(1).max_wait(2 * SECOND))).await;
    let (first, second) = tokio::join!(agent.request("a").handle(), async {
        tokio::time::sleep(SECOND).await;
        agent.request("b").handle().await
    });
    first.unwrap();
    let error = second.unwrap_err();
    assert_eq!(error.model_error().unwrap().kind(), Overloaded);
    assert!(error.to_string().contains("no more than 1 at once"), "{error}");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_again_however_its_call_ends() {
    let hangs = says(&["late"]).after(1000 * SECOND);
    let model = Play::new([fails(Overloaded), hangs, says(&["yes"])]);
    let limit = Concurrency::new(1).max_wait(Duration::from_millis(1));
    let agent = started(agent(&model, limit)).await;
    agent.run("hello").await.unwrap_err();
    let token = CancelToken::new();
    let (ended, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), async {
        tokio::time::sleep(SECOND).await;
        token.cancel();
    });
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(agent.run("hello").await.unwrap().output(), "yes");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn places_for_tools_and_shared_places() {
    let clerk = Clerk::new(Effect::Idempotent, []).slow(5 * SECOND);
    let three = Play::new([calls(&["clerk", "clerk", "clerk"]), says(&["ok"])]);
    let limit = Concurrency::new(1).tools_only().tools(["clerk"]).max_wait(6 * SECOND);
    let results = batch(agent(&three, limit).tool(clerk.clone())).await;
    let errors = results.iter().filter(|(status, _)| *status == ToolStatus::Error).count();
    assert_eq!((errors, clerk.gaps()), (1, vec![5 * SECOND]));

    let shared = Shared::new();
    let sharing = || Concurrency::new(1).shared(&shared, "gpu");
    let slow = || Play::new([says(&["yes"]).after(10 * SECOND)]);
    let (one, two) =
        (started(agent(&slow(), sharing())).await, started(agent(&slow(), sharing())).await);
    let start = Instant::now();
    let (first, second) = tokio::join!(one.run("a"), two.run("b"));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(start.elapsed(), 20 * SECOND);
    one.shutdown().await;
    two.shutdown().await;
}

#[test]
fn options_are_checked_and_take_only_the_points_that_they_need() {
    let bench = Bench::new();
    for name in ["rate_limit", "concurrency"] {
        let make = |with| ready::find(name).unwrap().make(&with, &bench);
        let points = |with| {
            let points = make(with).unwrap().points();
            points.iter().map(|point| point.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(points(json!({})), ["wrap_model_call"]);
        assert_eq!(points(json!({ "model": false, "tools": ["a"] })), ["wrap_tool_call"]);
        assert_eq!(points(json!({ "tools": ["a"] })).len(), 2);
        assert!(make(json!({ "calls": 3, "shared": "all" })).is_ok());
        for (bad, field) in [
            (json!({ "calls": 0 }), "calls"),
            (json!({ "model": false }), "tools"),
            (json!({ "max_wait": "0s" }), "max_wait"),
            (json!({ "per": "world" }), "per"),
        ] {
            assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{name} {bad}");
        }
        assert!(make(json!({ "calls": 4, "shared": "all" })).is_ok());
    }
    assert_eq!(bench.warnings().len(), 2, "{:?}", bench.warnings());
}
