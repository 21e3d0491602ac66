//! No calls to a model that fails all the time.

use crate::calls::support::*;
use serde_json::json;
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::model::ModelErrorKind::{self as Kind, *};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::calls::{CircuitBreaker, Concurrency, Fallback, Per, RateLimit, Retry};
use tenure_hooks::ready::{self, Bench, Shared};
use tenure_testkit::Recorder;
use tokio::time::Instant;

fn breaker() -> CircuitBreaker {
    CircuitBreaker::new().failures(2).window(60 * SECOND).open_for(10 * SECOND)
}

fn agent(model: &Play, breaker: CircuitBreaker) -> AgentBuilder {
    Agent::builder("careful").model(model.clone()).with_lifecycle(breaker)
}

async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent
}

async fn kind_of(agent: &Agent) -> Option<Kind> {
    let error = agent.run("hello").await.err()?;
    Some(error.model_error().unwrap_or_else(|| panic!("{error}")).kind())
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_asks_nobody_and_says_for_how_long() {
    let model = Play::new([fails(Transport), fails(Timeout), says(&["yes"])]);
    let (bus, recorder) = Recorder::with_bus();
    let agent = started(agent(&model, breaker()).events(&bus)).await;
    assert_eq!((kind_of(&agent).await, kind_of(&agent).await), (Some(Transport), Some(Timeout)));
    tokio::time::sleep(4 * SECOND).await;
    let error = agent.run("hello").await.unwrap_err();
    let failure = error.model_error().unwrap();
    assert_eq!((failure.kind(), failure.retry_after()), (Overloaded, Some(6 * SECOND)));
    assert!(error.to_string().contains("`play` failed too often"), "{error}");
    assert_eq!(model.calls(), 2);

    tokio::time::sleep(6 * SECOND).await;
    assert_eq!(agent.run("hello").await.unwrap().output(), "yes");
    let states: Vec<_> = recorder.announced("breaker");
    assert_eq!(
        states,
        [
            json!({ "of": "play", "state": "open" }),
            json!({ "of": "play", "state": "half_open" }),
            json!({ "of": "play", "state": "closed" }),
        ]
    );
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn only_failures_of_the_model_count() {
    let acts = [RateLimited, BadRequest, Auth, RateLimited, BadRequest].map(fails);
    let model = Play::new(acts.into_iter().chain([says(&["yes"])]));
    let agent = started(agent(&model, breaker())).await;
    for _ in 0..5 {
        assert!(kind_of(&agent).await.is_some());
    }
    assert_eq!(kind_of(&agent).await, None, "it never opened");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn limits_of_our_own_further_in_are_no_failures_of_the_model() {
    let rate = RateLimit::new(1, 100 * SECOND).max_wait(Duration::from_millis(1));
    let model = Play::new([says(&["yes"]), says(&["again"])]);
    let all = breaker().on([RateLimited, Overloaded]);
    let agent = started(agent(&model, all).with_lifecycle(rate)).await;
    assert_eq!(kind_of(&agent).await, None);
    for _ in 0..5 {
        assert_eq!(kind_of(&agent).await, Some(RateLimited), "and not an open breaker");
    }
    tokio::time::sleep(100 * SECOND).await;
    assert_eq!(kind_of(&agent).await, None);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_answers_while_it_is_open() {
    let own = Play::named("own", [fails(Overloaded), fails(Overloaded)]);
    let other = Play::named("other", (0..5).map(|_| says(&["yes"])));
    let agent = agent(&own, breaker()).with_lifecycle(Fallback::to(other.clone()));
    let agent = started(agent).await;
    for _ in 0..5 {
        assert_eq!(agent.run("hello").await.unwrap().output(), "yes");
    }
    assert_eq!((own.calls(), other.calls()), (2, 5), "each model has a circuit of its own");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_does_not_wait_for_it() {
    let model = Play::new([fails(Overloaded), fails(Overloaded)]);
    let (bus, recorder) = Recorder::with_bus();
    let agent = agent(&model, breaker()).events(&bus);
    let agent = started(agent.with_lifecycle(Retry::new().attempts(4))).await;
    // The circuit opens on the way.
    let start = Instant::now();
    assert_eq!(kind_of(&agent).await, Some(Overloaded));
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
    assert_eq!((model.calls(), recorder.announced("retry").len()), (2, 2));
    // Then it is open.
    let start = Instant::now();
    assert_eq!(kind_of(&agent).await, Some(Overloaded));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!((model.calls(), recorder.announced("retry").len()), (2, 2));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_fallback_around_a_retry_answers_at_once_while_it_is_open() {
    let own = Play::named("own", [fails(Overloaded), fails(Overloaded), says(&["own"])]);
    let other = Play::named("other", (0..4).map(|_| says(&["other"])));
    let agent = agent(&own, breaker()).with_lifecycle(Retry::new().attempts(4));
    let agent = started(agent.with_lifecycle(Fallback::to(other.clone()))).await;
    assert_eq!(agent.run("hello").await.unwrap().output(), "other");
    for _ in 0..3 {
        let start = Instant::now();
        assert_eq!(agent.run("hello").await.unwrap().output(), "other");
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
    assert_eq!((own.calls(), other.calls()), (2, 4));
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(agent.run("hello").await.unwrap().output(), "own");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_is_given_back() {
    let hangs = says(&["late"]).after(1000 * SECOND);
    let model = Play::new([fails(Overloaded), fails(Overloaded), hangs, says(&["yes"])]);
    let agent = started(agent(&model, breaker())).await;
    kind_of(&agent).await;
    kind_of(&agent).await;
    tokio::time::sleep(10 * SECOND).await;
    let token = CancelToken::new();
    let (ended, ()) = tokio::join!(agent.request("hello").cancel_on(&token).run(), async {
        tokio::time::sleep(SECOND).await;
        token.cancel();
    });
    assert!(ended.unwrap_err().is_cancelled());
    assert_eq!(kind_of(&agent).await, None, "the next probe is let through");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn while_a_probe_is_under_way_others_are_told_to_come_back() {
    let slow = says(&["yes"]).after(5 * SECOND);
    let model = Play::new([fails(Overloaded), fails(Overloaded), slow]);
    let blueprint = agent(&model, breaker());
    let agent = started(blueprint).await;
    kind_of(&agent).await;
    kind_of(&agent).await;
    tokio::time::sleep(10 * SECOND).await;
    let (probe, other) = tokio::join!(agent.request("hello").handle(), async {
        tokio::time::sleep(SECOND).await;
        agent.request("hello").handle().await
    });
    assert_eq!(probe.unwrap().output(), "yes");
    let failure = other.unwrap_err();
    assert_eq!(failure.model_error().unwrap().retry_after(), Some(SECOND));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn agents_that_share_a_name_share_their_circuits() {
    let shared = Shared::new();
    let one = Play::named("gpt", [fails(Overloaded), fails(Overloaded)]);
    let two = Play::named("gpt", []);
    let three = Play::named("other", [says(&["yes"])]);
    let agent = async |model: &Play, name: &str| {
        started(agent(model, breaker().shared(&shared, name.to_owned()))).await
    };
    let (first, second, third) =
        (agent(&one, "all").await, agent(&two, "all").await, agent(&three, "all").await);
    kind_of(&first).await;
    kind_of(&first).await;
    assert_eq!(kind_of(&second).await, Some(Overloaded), "the model is the same");
    assert_eq!(kind_of(&third).await, None, "the model is another one");
    let fourth = agent(&Play::named("gpt", [says(&["yes"])]), "mine").await;
    assert_eq!(kind_of(&fourth).await, None, "the name is another one");
    for agent in [first, second, third, fourth] {
        agent.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_models_of_a_provider_may_have_one_circuit() {
    let own = Play::named("openai.large", [fails(Overloaded), fails(Overloaded)]);
    let small = Play::named("openai.small", [fails(Overloaded)]);
    let other = Play::named("anthropic.small", [says(&["yes"]), says(&["yes"])]);
    let fallback = Fallback::to(small.clone()).then(other);
    let agent = agent(&own, breaker().per(Per::Provider)).with_lifecycle(fallback);
    let agent = started(agent).await;
    assert_eq!((kind_of(&agent).await, kind_of(&agent).await), (None, None));
    assert_eq!((own.calls(), small.calls()), (1, 1));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn text_is_not_held_back() {
    let model = Play::new([says(&["one ", "two ", "three"])]);
    let limits = Concurrency::new(1);
    let agent = agent(&model, breaker()).with_lifecycle(limits);
    let agent = started(agent.with_lifecycle(RateLimit::new(9, SECOND))).await;
    let mut stream = agent.request("hello").stream();
    assert_eq!(stream.next().await.as_deref(), Some("one "));
    stream.finish().await.unwrap();
    agent.shutdown().await;
}

/// In the first life the breaker opened within the turn, so that the fallback answered. Another life
/// has a breaker that knows nothing of this, and does the same.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_does_what_the_record_says_whatever_its_own_breaker_knows() {
    let log = MemoryStepLog::new();
    let build = |own: &Play, other: &Play| {
        let retry = Retry::new().attempts(3).max_retry_after(SECOND);
        agent(own, breaker()).with_lifecycle(retry).with_lifecycle(Fallback::to(other.clone()))
    };
    let own = Play::named("own", [fails(Overloaded), fails(Overloaded)]);
    let other = Play::named("other", [calls(&["none"]), says(&["done"])]);
    let agent = started(build(&own, &other)).await;
    agent.request("hello").recorded(&steps(&log)).run().await.unwrap();
    agent.shutdown().await;
    assert_eq!((own.calls(), other.calls()), (2, 2));

    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    // Its last call was refused by the breaker, too. That is on record as well.
    let (own, other) = (Play::named("own", []), Play::named("other", [says(&["done"])]));
    let agent = started(build(&own, &other)).await;
    let start = Instant::now();
    let report = agent.request("hello").recorded(&steps(&log.cut_after(last))).run().await.unwrap();
    assert_eq!((report.output(), own.calls(), other.calls()), ("done", 0, 1));
    assert_eq!(start.elapsed(), Duration::ZERO);
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_resumed_run_is_served_says_nothing_of_the_model_now() {
    let log = MemoryStepLog::new();
    let own = Play::new([fails(Overloaded), fails(Overloaded)]);
    let first = agent(&own, breaker()).with_lifecycle(Retry::new().attempts(2));
    let first = started(first).await;
    first.request("hello").recorded(&steps(&log)).run().await.unwrap_err();
    first.shutdown().await;

    let models = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let now = Play::new([says(&["yes"])]);
    let second = agent(&now, breaker()).with_lifecycle(Retry::new().attempts(2));
    let second = started(second).await;
    let replayed = second.request("hello").recorded(&steps(&log.cut_after(models + 1))).run().await;
    assert!(replayed.is_err());
    assert_eq!(second.run("hello").await.unwrap().output(), "yes", "its circuit is closed");
    second.shutdown().await;
}

#[test]
fn options_are_checked() {
    let bench = Bench::new();
    let make = |with| ready::find("breaker").unwrap().make(&with, &bench);
    assert!(make(json!({ "failures": 2, "per": "agent", "shared": "all" })).is_ok());
    assert!(make(json!({ "failures": 2, "shared": "all" })).is_ok());
    assert!(bench.warnings().is_empty());
    assert!(make(json!({ "failures": 3, "shared": "all" })).is_ok());
    assert!(bench.warnings()[0].contains("other numbers"), "{:?}", bench.warnings());
    for (bad, field) in [
        (json!({ "failures": 0 }), "failures"),
        (json!({ "probes": 0 }), "probes"),
        (json!({ "open_for": "0s" }), "open_for"),
        (json!({ "on": [] }), "on"),
        (json!({ "per": "country" }), "per"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
}
