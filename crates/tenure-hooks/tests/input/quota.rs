//! So much in so much time.

use crate::support::{made, refused};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::BoxError;
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::hook::{self, Flow, IntoRegistration, Registration};
use tenure_core::memory::{InMemory, Memory};
use tenure_core::model::{ModelResponse, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::input::{Keep, Per, Quota};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Passthrough, Scripted};
use tenure_testkit::Recorder;

const HOUR: Duration = Duration::from_secs(3600);

fn agent(name: &str, quota: impl IntoRegistration) -> Agent {
    Agent::builder(name)
        .model(Passthrough::new())
        .with_lifecycle(quota)
        .build()
        .expect("it works here")
}

async fn started(name: &str, quota: impl IntoRegistration) -> Agent {
    let agent = agent(name, quota);
    agent.startup().await.expect("it works here");
    agent
}

/// Runs a request of this user, and says whether it passed.
async fn asks(agent: &Agent, user: &str) -> bool {
    let context = ExecutionContext::unique().with_user_id(user);
    match agent.request("hello").context(context).run().await {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_denied(), "{error:?}");
            let said = error.to_string();
            assert!(said.starts_with("Rate limit exceeded"), "{said}");
            assert!(said.contains("come back in"), "{said}");
            false
        }
    }
}

#[tokio::test]
async fn each_user_has_requests_of_their_own() {
    let agent = started("a", Quota::within(HOUR).requests(2)).await;
    assert!(asks(&agent, "ada").await && asks(&agent, "ada").await);
    assert!(!asks(&agent, "ada").await);
    assert!(asks(&agent, "bob").await);
    agent.shutdown().await;
}

#[tokio::test]
async fn an_expression_may_say_whose_requests_they_are() {
    let with = json!({ "requests": 1, "window": "1h", "key": "input | length > 5" });
    let agent = started("a", made("quota", with).unwrap()).await;
    assert!(agent.run("short").await.is_ok());
    assert!(agent.run("longer than that").await.is_ok());
    assert!(agent.run("tiny").await.unwrap_err().is_denied());
    agent.shutdown().await;
}

#[tokio::test]
async fn a_key_that_cannot_be_decided_denies() {
    let with = json!({ "requests": 9, "key": "variables.team" });
    let agent = started("a", made("quota", with).unwrap()).await;
    let error = agent.run("hello").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("variables.team"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_window_ends_and_a_denied_request_is_not_counted() {
    let (bus, recorder) = Recorder::with_bus();
    let window = Duration::from_millis(400);
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .events(&bus)
        .with_lifecycle(Quota::within(window).requests(1).per(Per::Agent))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert!(agent.run("one").await.is_ok());
    for _ in 0..5 {
        assert!(agent.run("again").await.is_err());
    }
    assert_eq!(recorder.count("quota.exceeded"), 5);
    // The window and a part of it; those that were denied do not make it longer.
    tokio::time::sleep(window + window / 32).await;
    assert!(agent.run("two").await.is_ok());
    agent.shutdown().await;
}

#[tokio::test]
async fn tokens_and_money_count_once_a_turn_has_spent_them() {
    let spends =
        || Scripted::from_fn(|_, _| Ok(ModelResponse::text("x").with_usage(Usage::new(60, 40))));
    let quota = Quota::within(HOUR).tokens(150).per(Per::Agent);
    let agent = Agent::builder("a").model(spends()).with_lifecycle(quota).build().unwrap();
    agent.startup().await.unwrap();
    assert!(agent.run("one").await.is_ok());
    assert!(agent.run("two").await.is_ok());
    let error = agent.run("three").await.unwrap_err();
    assert!(error.to_string().contains("150 tokens in 1 h"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn text_is_streamed_all_the_same() {
    let quota = Quota::within(HOUR).requests(5).tokens(1000);
    let registration: Registration = quota.into_registration();
    let agent = started("a", registration).await;
    let mut stream = agent.stream("one two three");
    let mut pieces = 0;
    while stream.next().await.is_some() {
        pieces += 1;
    }
    assert!(pieces > 1, "{pieces}");
    drop(stream);
    agent.shutdown().await;
}

#[tokio::test]
async fn clones_of_a_quota_and_pools_count_together() {
    let quota = Quota::within(HOUR).requests(2).per(Per::Shared);
    let (a, b) = (started("a", quota.clone()).await, started("b", quota).await);
    assert!(asks(&a, "ada").await && asks(&b, "bob").await);
    assert!(!asks(&a, "cy").await && !asks(&b, "cy").await);

    let bench = Bench::new();
    let make = |with: Value| ready::find("quota").unwrap().make(&with, &bench).unwrap();
    let with = json!({ "requests": 1, "window": "1h", "pool": "staff" });
    let (c, d) = (started("c", make(with.clone())).await, started("d", make(with)).await);
    assert!(asks(&c, "ada").await);
    assert!(!asks(&d, "ada").await);
    assert!(asks(&d, "bob").await);
    for agent in [a, b, c, d] {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn what_is_kept_in_memory_survives_the_agent() {
    let memory = InMemory::new();
    for expected in [true, false] {
        let agent = Agent::builder("a")
            .model(Passthrough::new())
            .memory(memory.clone())
            .with_lifecycle(Quota::within(HOUR).requests(1).keep(Keep::Memory))
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        assert_eq!(asks(&agent, "ada").await, expected);
        agent.shutdown().await;
    }
}

/// A memory that is gone once it is broken.
#[derive(Clone, Default)]
struct Breaking(InMemory, Arc<AtomicBool>);

#[async_trait::async_trait]
impl Memory for Breaking {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        match self.1.load(Ordering::Relaxed) {
            true => Err("the disk is gone".into()),
            false => self.0.load(namespace).await,
        }
    }

    async fn store(&self, name: &str, changes: BTreeMap<String, Value>) -> Result<(), BoxError> {
        self.0.store(name, changes).await
    }
}

#[tokio::test]
async fn a_memory_that_fails_or_is_not_there_denies() {
    let quota = || Quota::within(HOUR).requests(9).keep(Keep::Memory);
    let none = started("a", quota()).await;
    let error = none.run("hello").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("the agent has none"), "{error}");
    none.shutdown().await;

    let memory = Breaking::default();
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .memory(memory.clone())
        .with_lifecycle(quota())
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert!(agent.run("hello").await.is_ok());
    memory.1.store(true, Ordering::Relaxed);
    let error = agent.run("hello").await.unwrap_err();
    assert!(error.is_denied() && error.to_string().contains("the disk is gone"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_run_that_goes_on_is_counted_once() {
    let quota = Quota::within(HOUR).requests(2).tokens(1000).per(Per::Agent);
    let build = || {
        let done = hook::hook(hook::before_agent(|_, _| Box::pin(async { Ok(Flow::Continue) })));
        Agent::builder("a")
            .model(Passthrough::new())
            .with_lifecycle(quota.clone())
            .with_lifecycle(done.named("other"))
            .build()
            .unwrap()
    };
    let log = MemoryStepLog::new();
    let agent = build();
    agent.startup().await.unwrap();
    agent.request("hello").steps(log.clone()).run().await.unwrap();
    agent.shutdown().await;
    let count = log.keys().len();
    assert!(count >= 3, "{count}");
    for cut in 1..=count {
        let agent = build();
        agent.startup().await.unwrap();
        agent.request("hello").steps(log.cut_after(cut)).run().await.unwrap();
        agent.shutdown().await;
    }
    // One of two is used.
    let agent = build();
    agent.startup().await.unwrap();
    assert!(agent.run("second").await.is_ok());
    assert!(agent.run("third").await.unwrap_err().is_denied());
    agent.shutdown().await;
}

#[test]
fn options_are_checked() {
    assert_eq!(refused("quota", json!({})), "");
    assert_eq!(refused("quota", json!({ "requests": 0 })), "requests");
    assert_eq!(refused("quota", json!({ "tokens": 0 })), "tokens");
    assert_eq!(refused("quota", json!({ "cost": -1.0 })), "cost");
    assert_eq!(refused("quota", json!({ "requests": 1, "window": "1" })), "window");
    assert_eq!(refused("quota", json!({ "requests": 1, "key": "user ==" })), "key");
    assert_eq!(refused("quota", json!({ "requests": 1, "key": "nobody" })), "key");
    for per in ["user", "agent", "shared"] {
        let both = json!({ "requests": 1, "key": "variables.team", "per": per });
        assert_eq!(refused("quota", both), "per");
    }
    assert_eq!(refused("quota", json!({ "requests": 1, "per": "team" })), "per");
    let both = json!({ "requests": 1, "keep": "memory", "pool": "x" });
    assert_eq!(refused("quota", both), "pool");
    assert!(made("quota", json!({ "requests": 1 })).unwrap().is_guard());
}

#[tokio::test]
async fn a_call_without_a_known_price_is_denied_where_money_is_limited() {
    let unpriced = || {
        Scripted::from_fn(|_, _| {
            let usage = Usage { unpriced: 1, ..Usage::new(60, 40) };
            Ok(ModelResponse::text("x").with_usage(usage))
        })
    };
    for (with, passes) in [
        (json!({ "cost": 5, "window": "1h" }), false),
        (json!({ "cost": 5, "window": "1h", "unpriced": "ignore" }), true),
    ] {
        let hook = made("quota", with.clone()).unwrap();
        let agent = Agent::builder("a").model(unpriced()).with_lifecycle(hook).build().unwrap();
        agent.startup().await.unwrap();
        assert!(agent.run("one").await.is_ok());
        let second = agent.run("two").await;
        assert_eq!(second.is_ok(), passes, "{with}");
        if let Err(error) = second {
            assert!(error.is_denied() && error.to_string().contains("`unpriced`"), "{error}");
        }
        agent.shutdown().await;
    }
    assert_eq!(refused("quota", json!({ "requests": 1, "unpriced": "ignore" })), "unpriced");
}

/// A memory that takes its time.
#[derive(Clone, Default)]
struct Slow(InMemory);

#[async_trait::async_trait]
impl Memory for Slow {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        let loaded = self.0.load(namespace).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        loaded
    }

    async fn store(&self, name: &str, changes: BTreeMap<String, Value>) -> Result<(), BoxError> {
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.0.store(name, changes).await
    }
}

#[tokio::test]
async fn requests_at_the_same_moment_are_all_counted_in_memory() {
    let memory = Slow::default();
    let mut agents = Vec::new();
    for _ in 0..6 {
        let agent = Agent::builder("same")
            .model(Passthrough::new())
            .memory(memory.clone())
            .with_lifecycle(Quota::within(HOUR).requests(2).keep(Keep::Memory))
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        agents.push(agent);
    }
    let passed = futures_util::future::join_all(agents.iter().map(|it| asks(it, "ada"))).await;
    assert_eq!(passed.into_iter().filter(|it| *it).count(), 2);
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn two_quotas_of_an_agent_keep_accounts_of_their_own_in_memory() {
    let quota = |most| Quota::within(HOUR).requests(most).keep(Keep::Memory).into_registration();
    let agent = Agent::builder("a")
        .model(Passthrough::new())
        .memory(InMemory::new())
        .with_lifecycle(quota(3))
        .with_lifecycle(quota(2).named("second"))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert!(asks(&agent, "ada").await && asks(&agent, "ada").await);
    assert!(!asks(&agent, "ada").await);
    agent.shutdown().await;
}
