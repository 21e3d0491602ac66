//! Answers that are kept.

use super::support::{Act, Play, SECOND, calls, fails, says, steps, withheld};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::cache::{Cache, MemoryCache};
use tenure_core::model::{Model, ModelErrorKind, ModelResponse, StopReason, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::calls::{Fallback, ResponseCache, Retry};
use tenure_hooks::ready::{self, Bench};
use tenure_models::Scripted;
use tenure_store::{Store, StoreKeys};
use tenure_testkit::Recorder;

fn agent(model: impl Model, cache: ResponseCache) -> AgentBuilder {
    Agent::builder("oracle").model(model).without_history().with_lifecycle(cache)
}

async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("it can be built");
    agent.startup().await.expect("it starts");
    agent
}

/// An answer that costs something.
fn priced(text: &str) -> ModelResponse {
    ModelResponse::text(text).with_usage(Usage::new(20, 5))
}

#[tokio::test]
async fn the_same_request_is_asked_once_and_costs_nothing_afterwards() {
    let (bus, recorder) = Recorder::with_bus();
    let model = Scripted::new([priced("first"), priced("second")]);
    let oracle = started(agent(model, ResponseCache::new()).events(&bus)).await;
    let first = oracle.run("why?").await.unwrap();
    assert_eq!((first.output(), first.usage), ("first", Usage::new(20, 5)));
    let again = oracle.run("why?").await.unwrap();
    assert_eq!((again.output(), again.usage), ("first", Usage::default()));
    assert_eq!(oracle.usage(), Usage::new(20, 5));
    let other = oracle.run("how?").await.unwrap();
    assert_eq!(other.output(), "second");
    let hits = recorder.announced("cache.hit");
    assert_eq!(hits.len(), 1);
    assert_eq!((&hits[0]["cached"], &hits[0]["saved"]["input"]), (&json!(true), &json!(20)));
    oracle.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_over_when_its_time_is() {
    let model = Scripted::new(["first", "second"]);
    let oracle = started(agent(model, ResponseCache::new().expires(10 * SECOND))).await;
    assert_eq!(oracle.run("why?").await.unwrap().output(), "first");
    tokio::time::sleep(9 * SECOND).await;
    assert_eq!(oracle.run("why?").await.unwrap().output(), "first");
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(oracle.run("why?").await.unwrap().output(), "second");
    oracle.shutdown().await;
}

#[tokio::test]
async fn only_whole_answers_are_kept() {
    let cut = ModelResponse { stop: StopReason::MaxTokens, ..ModelResponse::text("half an ans") };
    let model = Scripted::empty()
        .error(ModelErrorKind::BadRequest, "no")
        .reply(cut)
        .reply(ModelResponse { stop: StopReason::Refused, ..ModelResponse::text("") })
        .reply(ModelResponse::text(""))
        .text("whole");
    let oracle = started(agent(model, ResponseCache::new())).await;
    assert!(oracle.run("why?").await.is_err());
    assert_eq!(oracle.run("why?").await.unwrap().output(), "half an ans");
    // Whatever a turn makes of a refusal or of nothing, neither is an answer to keep.
    let _ = oracle.run("why?").await;
    let _ = oracle.run("why?").await;
    assert_eq!(oracle.run("why?").await.unwrap().output(), "whole");
    assert_eq!(oracle.run("why?").await.unwrap().output(), "whole");
    oracle.shutdown().await;
}

#[tokio::test]
async fn what_a_hook_says_for_a_model_that_failed_is_not_kept() {
    let model = Scripted::empty().error(ModelErrorKind::Overloaded, "full").text("back");
    let stands_in = Retry::new().attempts(1).answer("try later");
    let oracle = agent(model, ResponseCache::new()).with_lifecycle(stands_in);
    let oracle = started(oracle).await;
    assert_eq!(oracle.run("why?").await.unwrap().output(), "try later");
    assert_eq!(oracle.run("why?").await.unwrap().output(), "back");
    oracle.shutdown().await;
}

#[tokio::test]
async fn what_another_model_says_in_its_stead_is_not_kept() {
    let model = Scripted::empty().error(ModelErrorKind::Overloaded, "full").text("back");
    let fallback = Fallback::to(Scripted::empty().text("from another"));
    let oracle = started(agent(model, ResponseCache::new()).with_lifecycle(fallback)).await;
    for expected in ["from another", "back", "back"] {
        assert_eq!(oracle.run("why?").await.unwrap().output(), expected);
    }
    oracle.shutdown().await;
}

#[tokio::test]
async fn calls_of_tools_are_kept_only_if_that_is_wanted() {
    for (cache, answers) in
        [(ResponseCache::new(), ["a", "b"]), (ResponseCache::new().tool_calls(), ["a", "a"])]
    {
        let clock = FnTool::new(ToolSpec::new("clock", "The time"), |_| Ok("12:00".into()));
        let model = Play::new([
            calls(&["clock"]),
            says(&["a"]),
            // Ids that differ make no difference: the second answer is found all the same.
            says(&["b"]),
        ]);
        let oracle = started(agent(model.clone(), cache).tool(clock)).await;
        for answer in answers {
            assert_eq!(oracle.run("when?").await.unwrap().output(), answer);
        }
        oracle.shutdown().await;
    }
}

#[tokio::test]
async fn a_stream_gets_a_hit_as_one_piece_and_a_miss_as_it_comes() {
    let model = Play::new([says(&["one ", "two ", "three"])]);
    let oracle = started(agent(model.clone(), ResponseCache::new())).await;
    for pieces in [&["one ", "two ", "three"][..], &["one two three"]] {
        let mut stream = oracle.stream("count");
        let mut read = Vec::new();
        while let Some(piece) = stream.next().await {
            read.push(piece);
        }
        assert_eq!(read, pieces);
        stream.finish().await.unwrap();
    }
    assert_eq!(model.calls(), 1);
    oracle.shutdown().await;
}

#[tokio::test]
async fn agents_share_answers_only_if_that_is_wanted() {
    for (cache, calls) in [(ResponseCache::new(), 2), (ResponseCache::new().shared(), 1)] {
        let model = Play::new([says(&["a"]), says(&["a"])]);
        for name in ["one", "two"] {
            let builder = Agent::builder(name).model(model.clone()).with_lifecycle(cache.clone());
            let report = builder.build().unwrap().scoped(async |it| it.run("why?").await).await;
            assert_eq!(report.unwrap().output(), "a");
        }
        assert_eq!(model.calls(), calls);
    }
}

/// Does what is wrong with a cache.
struct Broken(Trouble);

#[derive(Clone, Copy)]
enum Trouble {
    Fails,
    Hangs,
    Panics,
    Lies,
}

impl Broken {
    async fn trouble(&self) -> Result<Option<Value>, Error> {
        match self.0 {
            Trouble::Fails => Err(Error::store("the disk is gone")),
            Trouble::Hangs => std::future::pending().await,
            Trouble::Panics => panic!("a bug"),
            Trouble::Lies => Ok(Some(json!(["no answer at all"]))),
        }
    }
}

#[async_trait]
impl Cache for Broken {
    async fn get(&self, _: &str) -> Result<Option<Value>, Error> {
        self.trouble().await
    }

    async fn put(&self, _: &str, _: Value, _: Option<Duration>) -> Result<(), Error> {
        self.trouble().await.map(drop)
    }

    async fn remove(&self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_fails_hangs_or_panics_is_passed_over() {
    let troubles = [
        (Trouble::Fails, "the disk is gone", 2),
        (Trouble::Hangs, "longer than 2s", 2),
        (Trouble::Panics, "it panicked", 2),
        (Trouble::Lies, "is no answer", 1),
    ];
    for (trouble, why, times) in troubles {
        let (bus, recorder) = Recorder::with_bus();
        let cache = ResponseCache::kept_in(Broken(trouble));
        let oracle = started(agent(Scripted::new(["yes"]), cache).events(&bus)).await;
        let report = oracle.run("why?").await.unwrap();
        assert_eq!((report.output(), report.failures.len()), ("yes", 0));
        let failed = recorder.announced("cache.failed");
        assert_eq!(failed.len(), times, "{why}: {failed:?}");
        assert!(failed[0]["why"].as_str().unwrap().contains(why), "{failed:?}");
        oracle.shutdown().await;
    }
}

/// Two agents that ask the same at the same time, the second a second later.
async fn at_once(
    model: Play,
    first_limit: Duration,
) -> (Result<String, Error>, Result<String, Error>) {
    let cache = ResponseCache::new().shared();
    let ask = async |name: &str, wait: Duration, limit: Duration| {
        tokio::time::sleep(wait).await;
        let builder = Agent::builder(name).model(model.clone()).turn_limit(limit);
        let agent = builder.with_lifecycle(cache.clone()).build().expect("it can be built");
        let ran = agent.scoped(async |agent| agent.run("why?").await).await;
        ran.map(|report| report.output().to_owned())
    };
    tokio::join!(ask("one", Duration::ZERO, first_limit), ask("two", SECOND, 600 * SECOND))
}

fn slow(act: Act) -> Act {
    act.after(10 * SECOND)
}

#[tokio::test(start_paused = true)]
async fn of_equal_requests_at_once_one_is_made() {
    let model = Play::new([slow(says(&["it"]))]);
    let start = tokio::time::Instant::now();
    let (one, two) = at_once(model.clone(), 600 * SECOND).await;
    assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), ("it", "it"));
    assert_eq!((model.calls(), start.elapsed()), (1, 10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_makes_its_own_call_if_the_first_comes_to_nothing() {
    let failing = Play::new([slow(fails(ModelErrorKind::Overloaded)), says(&["it"])]);
    let (one, two) = at_once(failing.clone(), 600 * SECOND).await;
    assert!(one.is_err());
    assert_eq!((two.unwrap().as_str(), failing.calls()), ("it", 2));

    let withheld = Play::new([slow(withheld(&["I"])), says(&["it"])]);
    let (_, two) = at_once(withheld.clone(), 600 * SECOND).await;
    assert_eq!((two.unwrap().as_str(), withheld.calls()), ("it", 2));

    let given_up = Play::new([slow(says(&["late"])), says(&["it"])]);
    let (one, two) = at_once(given_up.clone(), 3 * SECOND).await;
    assert!(one.unwrap_err().is_timeout());
    assert_eq!((two.unwrap().as_str(), given_up.calls()), ("it", 2));

    // One that takes for ever holds nobody up for ever.
    let endless = Play::new([says(&["late"]).after(500 * SECOND), says(&["it"])]);
    let start = tokio::time::Instant::now();
    let (_, two) = at_once(endless.clone(), 100 * SECOND).await;
    assert_eq!((two.unwrap().as_str(), endless.calls()), ("it", 2));
    assert_eq!(start.elapsed(), 100 * SECOND, "the second was there long before");
}

#[tokio::test]
async fn a_resumed_run_has_the_same_hit_or_miss_whatever_the_cache_has_by_then() {
    let shared = Arc::new(MemoryCache::new());
    struct Same(Arc<MemoryCache>, Arc<AtomicUsize>);
    #[async_trait]
    impl Cache for Same {
        async fn get(&self, key: &str) -> Result<Option<Value>, Error> {
            self.0.get(key).await
        }
        async fn put(&self, key: &str, it: Value, time: Option<Duration>) -> Result<(), Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.put(key, it, time).await
        }
        async fn remove(&self, key: &str) -> Result<(), Error> {
            self.0.remove(key).await
        }
    }
    let puts = Arc::new(AtomicUsize::new(0));
    let cache = |kept: &Arc<MemoryCache>| ResponseCache::kept_in(Same(kept.clone(), puts.clone()));

    // A miss stays one, though the cache has the answer by then; and it is kept once.
    let log = MemoryStepLog::new();
    let first = started(agent(Scripted::new(["it"]), cache(&shared))).await;
    first.request("why?").recorded(&steps(&log)).run().await.unwrap();
    first.shutdown().await;
    let second = started(agent(Scripted::empty(), cache(&shared))).await;
    let report = second.request("why?").recorded(&steps(&log.resumed())).run().await.unwrap();
    assert_eq!((report.output(), report.usage.calls), ("it", 1));
    assert_eq!(puts.load(Ordering::Relaxed), 1);
    second.shutdown().await;

    // A hit stays one, though the cache has lost it by then.
    let log = MemoryStepLog::new();
    let first = started(agent(Scripted::empty(), cache(&shared))).await;
    first.request("why?").recorded(&steps(&log)).run().await.unwrap();
    first.shutdown().await;
    let second = started(agent(Scripted::empty(), cache(&Arc::default()))).await;
    let report = second.request("why?").recorded(&steps(&log.resumed())).run().await.unwrap();
    assert_eq!((report.output(), report.usage.calls), ("it", 0));
    second.shutdown().await;
}

#[tokio::test]
async fn a_store_keeps_answers_for_other_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.db");
    let keys = StoreKeys::folder(folder.path().join("keys"));
    let ask = async |model: Play| {
        let cache = ResponseCache::kept_in(Store::open_with(&path, &keys).unwrap().cache());
        let agent = agent(model, cache).build().unwrap();
        agent.scoped(async |agent| agent.run("why?").await).await.unwrap().output().to_owned()
    };
    assert_eq!(ask(Play::new([says(&["it"])])).await, "it");
    let unused = Play::new([]);
    assert_eq!(ask(unused.clone()).await, "it");
    assert_eq!(unused.calls(), 0);
    assert!(Store::open_with(&path, &keys).unwrap().verify().unwrap().is_whole());
}

#[tokio::test(start_paused = true)]
async fn it_stands_around_a_retry_in_whatever_order_they_are_registered() {
    for cache_first in [true, false] {
        let model = Play::new([fails(ModelErrorKind::Overloaded), says(&["it"])]);
        let builder = Agent::builder("oracle").model(model.clone()).without_history();
        let builder = match cache_first {
            true => builder.with_lifecycle(ResponseCache::new()).with_lifecycle(Retry::new()),
            false => builder.with_lifecycle(Retry::new()).with_lifecycle(ResponseCache::new()),
        };
        let oracle = started(builder).await;
        for _ in 0..3 {
            assert_eq!(oracle.run("why?").await.unwrap().output(), "it");
        }
        assert_eq!(model.calls(), 2);
        oracle.shutdown().await;
    }
}

#[tokio::test]
async fn files_choose_where_answers_are_and_whose() {
    let hook = ready::find("cache").unwrap();
    let bench = Bench::new();
    for (bad, field) in [
        (json!({ "expires": "10" }), "expires"),
        (json!({ "entries": 0 }), "entries"),
        (json!({ "where": "disk" }), "where"),
        (json!({ "where": "store" }), "where"),
        (json!({ "expire": "1h" }), "expire"),
    ] {
        assert_eq!(hook.make(&bad, &bench).unwrap_err().field(), field, "{bad}");
    }
    let with_store = Bench::new().with_cache(MemoryCache::new());
    let refused = hook.make(&json!({ "where": "store", "entries": 5 }), &with_store).unwrap_err();
    assert_eq!(refused.field(), "entries");

    for (with, bench, calls) in [
        (json!({}), &bench, 2),
        (json!({ "scope": "shared" }), &bench, 1),
        (json!({ "where": "store", "scope": "shared" }), &with_store, 1),
        (json!({ "where": "store" }), &with_store, 2),
    ] {
        let model = Play::new([says(&["a"]), says(&["a"])]);
        for name in ["one", "two"] {
            let made = hook.make(&with, bench).unwrap();
            let builder = Agent::builder(name).model(model.clone()).with_lifecycle(made);
            builder.build().unwrap().scoped(async |it| it.run("why?").await).await.unwrap();
        }
        assert_eq!(model.calls(), calls, "{with}");
    }
    assert!(hook.make(&json!({ "scope": "shared", "entries": 7 }), &bench).is_ok());
    assert!(bench.warnings()[0].contains("1024"), "{:?}", bench.warnings());
}
