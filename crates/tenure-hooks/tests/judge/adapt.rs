//! Agents that are made by a setting: what is observed, decided and executed.

use crate::judge::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::ToolCx;
use tenure_core::event::EventBus;
use tenure_core::memory::{InMemory, Memory};
use tenure_core::model::{Cost, ModelError, ModelErrorKind, ModelResponse, Usage};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{BoxError, Error};
use tenure_hooks::adapt::{Adaptation, Adaptive, Bounds, Goal, Goals, Latency, Setting, replay};
use tenure_models::{Scripted, Slow};
use tenure_testkit::Recorder;

const SECOND: Duration = Duration::from_secs(1);

fn quick(goals: Goals) -> Adaptation {
    Adaptation::new(goals)
        .bounds(Bounds::new().models(["best", "fast"]).retries(0..=1))
        .window(6)
        .min_samples(3)
        .cooldown(3)
        .recover_after(6)
}

/// What a model of this name says, after so long.
fn model(setting: &Setting, slow: Duration) -> Slow<Scripted> {
    let name = setting.model.clone().unwrap_or_default();
    let wait = if name == "best" { slow } else { Duration::from_millis(10) };
    Slow::of(Scripted::from_fn(move |_, _| Ok(ModelResponse::text(name.clone())))).by(wait)
}

/// An agent whose best model takes three seconds.
fn clerk(
    adaptation: &Adaptation,
    bus: &EventBus,
    memory: &InMemory,
) -> (Adaptive, Arc<AtomicUsize>) {
    let (watched, bus, memory) = (adaptation.clone(), bus.clone(), memory.clone());
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let agents = adaptation.agent(move |setting| {
        counted.fetch_add(1, Ordering::Relaxed);
        Agent::builder("clerk")
            .model(model(setting, SECOND * 3))
            .events(&bus)
            .memory(memory.clone())
            .with_lifecycle(watched.watching(setting))
            .blueprint()
    });
    (agents, made)
}

async fn started(agents: &Adaptive) -> Agent {
    let agent = agents.instance().expect("it works here");
    agent.startup().await.expect("it works here");
    agent
}

async fn say(agent: &Agent, times: usize) -> String {
    let mut said = String::new();
    for _ in 0..times {
        said = agent.run("hello").await.expect("it works here").output().to_owned();
    }
    said
}

#[tokio::test(start_paused = true)]
async fn a_missed_latency_gives_new_instances_the_faster_model_and_leaves_the_living() {
    let (bus, recorder) = Recorder::with_bus();
    let adaptation = quick(Goals::new().latency_p95(SECOND));
    let (agents, made) = clerk(&adaptation, &bus, &InMemory::new());
    let first = started(&agents).await;
    assert_eq!(say(&first, 2).await, "best");
    assert_eq!(adaptation.setting().revision, 0, "two turns are too few");
    assert_eq!(say(&first, 1).await, "best");
    assert_eq!(adaptation.setting().model.as_deref(), Some("fast"));

    let second = started(&agents).await;
    assert_eq!(say(&second, 1).await, "fast");
    assert_eq!(say(&first, 4).await, "best", "one that lives keeps what it began with");
    assert_eq!(adaptation.setting().revision, 1, "and does not count any more");
    let third = started(&agents).await;
    assert_eq!(made.load(Ordering::Relaxed), 2, "made anew only on a change");

    let changed = recorder.announced("adaptation.changed");
    assert_eq!(changed.len(), 1);
    let change = &changed[0];
    assert_eq!(
        (&change["from"]["model"], &change["to"]["model"]),
        (&json!("best"), &json!("fast"))
    );
    assert_eq!((&change["goal"], &change["measured"]), (&json!("latency_p95"), &json!(3.0)));
    assert!(change["reason"].as_str().unwrap().contains("to be faster"), "{change}");
    for agent in [first, second, third] {
        agent.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn it_goes_back_to_the_first_choice_when_the_goals_are_met_for_a_while() {
    let (bus, recorder) = Recorder::with_bus();
    let adaptation = quick(Goals::new().latency_p95(SECOND));
    let (agents, _) = clerk(&adaptation, &bus, &InMemory::new());
    for _ in 0..12 {
        let agent = started(&agents).await;
        say(&agent, 1).await;
        agent.shutdown().await;
    }
    let changed = recorder.announced("adaptation.changed");
    let to: Vec<_> = changed.iter().map(|change| &change["to"]["model"]).collect();
    assert_eq!(to, ["fast", "best"]);
    assert_eq!(changed[1]["goal"], Value::Null);
    assert!(changed[1]["reason"].as_str().unwrap().contains("met for 6 turns"), "{changed:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_frozen_is_observed_and_not_changed() {
    let (bus, recorder) = Recorder::with_bus();
    let adaptation = quick(Goals::new().latency_p95(SECOND));
    let (agents, _) = clerk(&adaptation, &bus, &InMemory::new());
    adaptation.freeze();
    let agent = started(&agents).await;
    say(&agent, 6).await;
    assert_eq!(adaptation.setting().revision, 0);
    let considered = recorder.announced("adaptation.considered");
    assert_eq!(considered.len(), 1, "said once: {considered:?}");
    assert_eq!(considered[0]["reason"], "it is frozen");
    adaptation.thaw();
    say(&agent, 1).await;
    assert_eq!(adaptation.setting().model.as_deref(), Some("fast"), "it had been observed");
    agent.shutdown().await;

    let log = adaptation.log();
    assert_eq!(log.decisions().len(), 2);
    assert_eq!(replay(&log, adaptation.policy()), log.decisions());
}

#[tokio::test(start_paused = true)]
async fn what_the_bounds_forbid_is_considered_and_never_done() {
    let (bus, recorder) = Recorder::with_bus();
    let adaptation = quick(Goals::new().latency_p95(Duration::from_millis(1)));
    let (agents, _) = clerk(&adaptation, &bus, &InMemory::new());
    for _ in 0..12 {
        let agent = started(&agents).await;
        say(&agent, 1).await;
        agent.shutdown().await;
    }
    assert_eq!(adaptation.setting().model.as_deref(), Some("fast"));
    assert_eq!(recorder.announced("adaptation.changed").len(), 1);
    let considered = recorder.announced("adaptation.considered");
    assert_eq!(considered.len(), 1, "{considered:?}");
    let reason = considered[0]["reason"].as_str().unwrap();
    assert!(reason.contains("bounds allow nothing"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_change_too_soon_after_another_is_considered() {
    let (bus, recorder) = Recorder::with_bus();
    let adaptation = Adaptation::new(Goals::new().latency_p95(Duration::from_millis(1)))
        .bounds(Bounds::new().models(["best", "fast", "other"]))
        .min_samples(1)
        .cooldown(3);
    let (agents, _) = clerk(&adaptation, &bus, &InMemory::new());
    for _ in 0..4 {
        let agent = started(&agents).await;
        say(&agent, 1).await;
        agent.shutdown().await;
    }
    let considered = recorder.announced("adaptation.considered");
    assert!(considered[0]["reason"].as_str().unwrap().contains("1 turns ago"), "{considered:?}");
    assert_eq!(recorder.announced("adaptation.changed").len(), 2);
    assert_eq!(adaptation.setting().model.as_deref(), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_kept_in_the_agents_memory_and_recalled() {
    let (bus, _) = Recorder::with_bus();
    let memory = InMemory::new();
    let first = quick(Goals::new().latency_p95(SECOND));
    let (agents, _) = clerk(&first, &bus, &memory);
    let agent = started(&agents).await;
    say(&agent, 3).await;
    let kept = memory.snapshot("clerk")["memory/adapt"].clone();
    assert_eq!(kept["setting"]["model"], "fast", "a change is stored at once");
    agent.shutdown().await;

    // Another process, as it were.
    let second = quick(Goals::new().latency_p95(SECOND));
    let (agents, _) = clerk(&second, &bus, &memory);
    let agent = started(&agents).await;
    assert_eq!(second.setting(), first.setting());
    agent.shutdown().await;
    let agent = started(&agents).await;
    assert_eq!(say(&agent, 2).await, "fast");
    agent.shutdown().await;
    let kept = memory.snapshot("clerk")["memory/adapt"].clone();
    assert_eq!(kept["summary"]["turns"], 2);
    assert_eq!(kept["changes"][0]["goal"], "latency_p95");
    assert!(kept["changes"][0]["reason"].as_str().unwrap().contains("faster"), "{kept}");
}

/// A memory that can be read, and not be written.
struct ReadOnly(Value);

#[async_trait::async_trait]
impl Memory for ReadOnly {
    async fn load(&self, _: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        Ok(BTreeMap::from([("memory/adapt".to_owned(), self.0.clone())]))
    }

    async fn store(&self, _: &str, _: BTreeMap<String, Value>) -> Result<(), BoxError> {
        Err("the disk is full".into())
    }
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_fails_or_knows_nonsense_does_not_hurt_the_agent() {
    for known in [json!("nonsense"), json!({ "setting": 5 }), Value::Null] {
        let adaptation = quick(Goals::new().latency_p95(SECOND));
        let agent = Agent::builder("clerk")
            .model(Slow::new())
            .memory(ReadOnly(known))
            .with_lifecycle(adaptation.clone())
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        for _ in 0..4 {
            let report = agent.run("hello").await.unwrap();
            assert_eq!((report.output(), report.failures.len()), ("hello", 0));
        }
        agent.shutdown().await;
        assert_eq!(adaptation.setting().model.as_deref(), Some("fast"), "it adapts all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_is_remembered_at_every_turn_and_stored_in_the_end() {
    let (bus, _) = Recorder::with_bus();
    let memory = InMemory::new();
    let adaptation = quick(Goals::new().latency_p95(SECOND * 9));
    let (agents, _) = clerk(&adaptation, &bus, &memory);
    let agent = started(&agents).await;
    for turns in 1..=3 {
        say(&agent, 1).await;
        let known = agent.memory().and_then(|it| it.get("memory/adapt")).unwrap();
        assert_eq!(known, adaptation.knowledge());
        assert_eq!(known["summary"]["turns"], turns);
        assert_eq!(known["window"].as_array().unwrap().len(), turns);
    }
    assert!(memory.load("clerk").await.unwrap().is_empty(), "nothing is stored yet");
    agent.shutdown().await;
    let stored = memory.load("clerk").await.unwrap().remove("memory/adapt").unwrap();
    assert_eq!(stored, adaptation.knowledge());
    let next = quick(Goals::new().latency_p95(SECOND * 9));
    assert!(next.recall(&stored).unwrap());
    assert_eq!(next.knowledge(), stored);
}

#[tokio::test(start_paused = true)]
async fn what_a_recorded_turn_showed_is_remembered_by_a_later_life_of_it() {
    let run = async |log: MemoryStepLog| {
        let memory = InMemory::new();
        let adaptation = quick(Goals::new().latency_p95(SECOND * 9));
        let agent = Agent::builder("clerk")
            .model(Slow::of(Scripted::from_fn(|_, _| Ok(ModelResponse::text("done")))).by(SECOND))
            .memory(memory.clone())
            .with_lifecycle(adaptation);
        let agent = agent.build().unwrap();
        agent.scoped(async |it| it.request("go").steps(log).run().await).await.unwrap();
        memory.load("clerk").await.unwrap().remove("memory/adapt")
    };
    let log = MemoryStepLog::new();
    let first = run(log.clone()).await.unwrap();
    assert_eq!(first["window"][0]["calls_us"], json!([1_000_000]));
    let whole = log.cut_after(log.keys().len());
    assert_eq!(run(whole).await, Some(first), "it was delivered, and is on record");
}

#[tokio::test(start_paused = true)]
async fn costly_turns_give_new_instances_the_cheaper_model() {
    let priced = |nanos| {
        let cost = Cost::from_nano_usd(nanos);
        Scripted::from_fn(move |_, _| {
            Ok(ModelResponse::text("done").with_usage(Usage { cost, ..Usage::new(1, 1) }))
        })
    };
    let adaptation = quick(Goals::new().cost_per_turn(0.02));
    let watched = adaptation.clone();
    let agents = adaptation.agent(move |setting| {
        let nanos = if setting.model.as_deref() == Some("best") { 30_000_000 } else { 1_000_000 };
        let watching = watched.watching(setting);
        Agent::builder("clerk").model(priced(nanos)).with_lifecycle(watching).blueprint()
    });
    let agent = started(&agents).await;
    say(&agent, 3).await;
    agent.shutdown().await;
    assert_eq!(adaptation.setting().model.as_deref(), Some("fast"));
    let change = serde_json::to_value(&adaptation.log().decisions()[0]).unwrap();
    assert_eq!((&change["goal"], &change["measured"]), (&json!(Goal::CostPerTurn), &json!(0.03)));
}

#[tokio::test(start_paused = true)]
async fn failures_give_new_instances_an_attempt_more_and_then_another_model() {
    let adaptation = quick(Goals::new().error_rate(0.1));
    let watched = adaptation.clone();
    let agents = adaptation.agent(move |setting| {
        let failing = Scripted::from_fn(|_, _| {
            Err(ModelError::new(ModelErrorKind::Transport, "the line is dead"))
        });
        let watching = watched.watching(setting);
        Agent::builder("clerk").model(failing).with_lifecycle(watching).blueprint()
    });
    let mut seen = Vec::new();
    for _ in 0..2 {
        let agent = started(&agents).await;
        for _ in 0..3 {
            agent.run("hello").await.unwrap_err();
        }
        agent.shutdown().await;
        let Setting { model, retries, .. } = adaptation.setting();
        seen.push((model.unwrap(), retries));
    }
    assert_eq!(seen, [("best".to_owned(), 1), ("fast".to_owned(), 1)]);
}

/// A tool that takes five seconds.
struct SlowClock;

#[async_trait::async_trait]
impl Tool for SlowClock {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("clock", "The time")
    }

    async fn call(&self, _: ToolCx<'_>, _: &Value) -> Result<ToolOutput, ToolError> {
        tokio::time::sleep(SECOND * 5).await;
        Ok("noon".into())
    }
}

#[tokio::test(start_paused = true)]
async fn the_latency_of_whole_turns_can_count() {
    let adaptation = quick(Goals::new().latency_p50(SECOND)).latency_of(Latency::Turns);
    let creator = Scripted::from_fn(|request, _| {
        let asked = request.messages.last().is_some_and(|last| last.text() == "hello");
        let call = tenure_core::message::ToolCall::new("1", "clock", "{}");
        Ok(if asked { ModelResponse::calls([call]) } else { ModelResponse::text("noon") })
    });
    let agent =
        Agent::builder("clerk").model(creator).tool(SlowClock).with_lifecycle(adaptation.clone());
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    say(&agent, 3).await;
    agent.shutdown().await;
    assert_eq!(adaptation.setting().model.as_deref(), Some("fast"));
}

#[tokio::test]
async fn turns_without_a_model_call_and_cancelled_ones_say_nothing() {
    let adaptation = quick(Goals::new().latency_p95(SECOND));
    let finishes = tenure_core::hook::before_agent(|_, _| {
        Box::pin(async { Ok(tenure_core::hook::Flow::Finish("no need".into())) })
    });
    let agent = Agent::builder("clerk")
        .model(Scripted::empty())
        .with_lifecycle(finishes)
        .with_lifecycle(adaptation.clone());
    assert_eq!(ask(agent, "hello").await.unwrap().output(), "no need");
    assert_eq!(adaptation.log().entries().count(), 0);
}

#[test]
fn knowledge_that_is_none_is_refused() {
    let adaptation = quick(Goals::new().latency_p95(SECOND));
    let error: Error = adaptation.recall(&json!(5)).unwrap_err();
    assert!(error.to_string().contains("nothing that adaptation has known"), "{error}");
    assert!(adaptation.recall(&adaptation.knowledge()).unwrap());
}
