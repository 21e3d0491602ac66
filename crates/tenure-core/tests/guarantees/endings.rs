//! Memory, resources and the last moments of an agent, on every way out.

use crate::guarantees::support::{Events, Fault, Log, Saw, Says, Watch, agent};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::event::EventKind;
use tenure_core::hook::{self, AgentLifecycle, HookError};
use tenure_core::life::LifecycleConfig;
use tenure_core::memory::{InMemory, Memory};
use tenure_core::phase::{AgentState, Phase};
use tenure_core::state::StateOwnership;
use tenure_core::{BoxError, ExitReason, Outcome};
use tokio::time::{Instant, sleep, timeout};

const MOMENT: Duration = Duration::from_secs(1);

/// Counts what is asked of it.
#[derive(Clone, Default)]
struct Counting {
    memory: InMemory,
    loads: Arc<AtomicUsize>,
    stores: Arc<AtomicUsize>,
}

impl Counting {
    fn counts(&self) -> (usize, usize) {
        (self.loads.load(Ordering::Relaxed), self.stores.load(Ordering::Relaxed))
    }
}

#[async_trait]
impl Memory for Counting {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.memory.load(namespace).await
    }

    async fn store(
        &self,
        namespace: &str,
        changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        self.stores.fetch_add(1, Ordering::Relaxed);
        self.memory.store(namespace, changes).await
    }
}

#[tokio::test(start_paused = true)]
async fn memory_is_loaded_at_startup_and_flushed_if_dirty() {
    let memory = Counting::default();
    let built = || agent("agent", Says::Done).memory(memory.clone()).build().unwrap();
    let first = built();
    first.startup().await.unwrap();
    first.memory().unwrap().update("facts", json!(["water is wet"])).unwrap();
    first.set_state("scratch", 1).unwrap();
    let refused = first.memory().unwrap().update("trace_id", "x").unwrap_err();
    assert!(refused.state_violation().is_some());
    first.shutdown().await;
    assert_eq!(memory.counts(), (1, 1));

    let second = built();
    second.startup().await.unwrap();
    assert_eq!(second.memory().unwrap().get("facts"), Some(json!(["water is wet"])));
    assert_eq!(second.state_value("scratch"), None, "agent state is not kept");
    second.shutdown().await;
    assert_eq!(memory.counts(), (2, 1), "what is clean is not stored");
}

#[tokio::test(start_paused = true)]
async fn memory_is_flushed_after_on_shutdown_and_on_rollback() {
    let memory = Counting::default();
    let learns = hook::on_shutdown(|cx, _reason| {
        Box::pin(async move { Ok(cx.memory().unwrap().update("facts", 42)?) })
    });
    let log = Log::default();
    let agent = agent("agent", Says::Done)
        .memory(memory.clone())
        .with_lifecycle(learns)
        .with_lifecycle(Watch::new("broken", &log).on_start(Fault::Fails))
        .build()
        .unwrap();
    agent.startup().await.unwrap_err();
    assert_eq!(memory.memory.snapshot("agent").get("facts"), Some(&json!(42)));
}

#[tokio::test(start_paused = true)]
async fn memory_is_left_alone_where_somebody_else_persists() {
    let memory = Counting::default();
    let config = LifecycleConfig::default().state_persistence(StateOwnership::Orchestrator);
    let agent =
        agent("agent", Says::Done).memory(memory.clone()).lifecycle(config).build().unwrap();
    agent.startup().await.unwrap();
    agent.memory().unwrap().update("facts", 1).unwrap();
    agent.shutdown().await;
    assert_eq!(memory.counts(), (0, 0));
}

/// What was released, in order.
type Released = Arc<Mutex<Vec<&'static str>>>;

/// Acquires resources of these names in `on_start`.
fn acquires(names: &'static [&'static str], released: &Released) -> impl AgentLifecycle {
    let released = released.clone();
    hook::on_start(move |cx| {
        for name in names {
            let released = released.clone();
            cx.resources().register(*name, move || async move {
                released.lock().unwrap().push(name);
                match *name {
                    "broken" => Err("it is stuck".into()),
                    "hanging" => pending().await,
                    "panicking" => crate::guarantees::support::fall_over("the resource"),
                    _ => Ok(()),
                }
            });
        }
        Box::pin(async { Ok(()) })
    })
}

fn leaks(events: &mut Events) -> Vec<(String, String)> {
    let leak = |event: &Arc<tenure_core::event::Event>| match &event.kind {
        EventKind::ResourceLeaked { resource, reason } => {
            Some((resource.to_string(), reason.clone()))
        }
        _ => None,
    };
    events.all().iter().filter_map(leak).collect()
}

#[tokio::test(start_paused = true)]
async fn g1_resources_are_released_last_to_first_on_every_way_out() {
    for way in ["shutdown", "drop", "rollback", "dropped startup", "fatal", "timed out"] {
        let (log, released) = (Log::default(), Released::default());
        let last = match way {
            "rollback" => Fault::Fails,
            "dropped startup" | "timed out" => Fault::Hangs,
            _ => Fault::None,
        };
        let model = if way == "fatal" { Says::Fatal } else { Says::Done };
        let agent = agent("agent", model)
            .with_lifecycle(acquires(&["pool", "file"], &released))
            .with_lifecycle(acquires(&["task"], &released))
            .with_lifecycle(Watch::new("last", &log).on_start(last))
            .build()
            .unwrap();
        let blueprint = agent.blueprint();
        match way {
            "dropped startup" => drop(timeout(MOMENT, agent.startup()).await),
            _ => drop(agent.startup().await),
        }
        match way {
            "shutdown" => agent.shutdown().await,
            "fatal" => drop(agent.run("go").await),
            _ => {}
        }
        drop(agent);
        blueprint.settled().await;
        assert_eq!(*released.lock().unwrap(), ["task", "file", "pool"], "{way}");
    }
}

#[tokio::test(start_paused = true)]
async fn leaks_are_reported_and_stop_nothing() {
    let (mut events, released) = (Events::new(), Released::default());
    let agent = agent("agent", Says::Done)
        .events(&events.bus)
        .with_lifecycle(acquires(&["fine", "broken", "hanging", "panicking"], &released))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.resource_count(), 4);
    agent.shutdown().await;
    assert_eq!(*released.lock().unwrap(), ["panicking", "hanging", "broken", "fine"]);
    let leaked = leaks(&mut events);
    let names: Vec<_> = leaked.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["panicking", "hanging", "broken"]);
    assert!(leaked[0].1.contains("fell over"), "{leaked:?}");
    assert!(leaked[1].1.contains("longer than 5s"), "{leaked:?}");
    assert_eq!(leaked[2].1, "it is stuck");
    assert_eq!((agent.resource_count(), agent.exit_reason()), (0, Some(ExitReason::Completed)));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_over_budget_is_forced_and_reports_what_it_left() {
    let (mut events, released, log) = (Events::new(), Released::default(), Log::default());
    let agent = agent("agent", Says::Done)
        .events(&events.bus)
        .with_lifecycle(Watch::new("first", &log))
        .with_lifecycle(acquires(&["fine", "hanging"], &released))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    agent.shutdown_within(MOMENT).await;
    assert!(began.elapsed() < MOMENT * 2, "{:?}", began.elapsed());
    assert_eq!(agent.exit_reason(), Some(ExitReason::Forced));
    assert_eq!(*released.lock().unwrap(), ["hanging", "fine"]);
    let leaked = leaks(&mut events);
    assert_eq!(leaked.len(), 1, "{leaked:?}");
    assert_eq!(leaked[0].0, "hanging");
    assert_eq!(events.exits(agent.id()), [ExitReason::Forced]);
}

#[tokio::test(start_paused = true)]
async fn g1_every_shutdown_hook_is_called_however_little_time_is_left() {
    let log = Log::default();
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("first", &log))
        .with_lifecycle(Watch::new("middle", &log).on_shutdown(Fault::Hangs))
        .with_lifecycle(Watch::new("last", &log).on_shutdown(Fault::Hangs))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    agent.shutdown_within(MOMENT).await;
    assert!(began.elapsed() < MOMENT * 2, "{:?}", began.elapsed());
    for hook in ["first", "middle", "last"] {
        assert_eq!(log.of(hook), [Saw::Start, Saw::Shutdown(ExitReason::Completed)], "{hook}");
    }
    assert_eq!(agent.exit_reason(), Some(ExitReason::Forced));
}

#[tokio::test(start_paused = true)]
async fn g4_a_turn_that_nobody_polls_does_not_hold_up_a_shutdown() {
    let (mut events, log) = (Events::new(), Log::default());
    let agent = agent("agent", Says::Hangs)
        .events(&events.bus)
        .with_lifecycle(Watch::new("watch", &log))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let mut turn = Box::pin(agent.run("go"));
    assert!(timeout(MOMENT, &mut turn).await.is_err());
    let began = Instant::now();
    agent.shutdown_within(MOMENT).await;
    assert!(began.elapsed() < MOMENT * 2, "{:?}", began.elapsed());
    assert_eq!(agent.exit_reason(), Some(ExitReason::Forced));
    drop(turn);
    agent.blueprint().settled().await;
    assert_eq!(events.turn_ends(agent.id()), [Outcome::Cancelled]);
    let ends = log.of("watch").into_iter().filter(|saw| matches!(saw, Saw::After(_))).count();
    assert_eq!(ends, 1);
    assert_eq!(events.exits(agent.id()), [ExitReason::Forced]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_shutdown_goes_on() {
    let log = Log::default();
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("watch", &log).on_shutdown(Fault::After(MOMENT * 2)))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert!(timeout(MOMENT, agent.shutdown()).await.is_err());
    assert_eq!(agent.state(), AgentState::ShuttingDown);
    agent.terminated().await;
    assert_eq!(agent.exit_reason(), Some(ExitReason::Completed));
    assert_eq!(log.of("watch").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_enters_error_runs_the_ends_and_shuts_down() {
    let (mut events, log) = (Events::new(), Log::default());
    let agent = agent("agent", Says::Fatal)
        .events(&events.bus)
        .with_lifecycle(Watch::new("watch", &log))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert!(error.is_fatal());
    assert_eq!(
        (agent.state(), agent.exit_reason()),
        (AgentState::Terminated, Some(ExitReason::Fatal))
    );
    let whole =
        [Saw::Start, Saw::Before, Saw::After(Outcome::Failed), Saw::Shutdown(ExitReason::Fatal)];
    assert_eq!(log.of("watch"), whole);
    let last = [
        (Phase::AwaitingLlmResponse, Phase::Error),
        (Phase::Error, Phase::ShuttingDown),
        (Phase::ShuttingDown, Phase::Terminated),
    ];
    assert!(events.phases(agent.id()).ends_with(&last));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_shuts_down() {
    let (mut events, log) = (Events::new(), Log::default());
    let agent = agent("agent", Says::Done)
        .events(&events.bus)
        .with_lifecycle(Watch::new("watch", &log).on_shutdown(Fault::After(MOMENT)))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let (id, blueprint, other) = (agent.id(), agent.blueprint(), agent.clone());
    drop(agent);
    sleep(MOMENT).await;
    assert_eq!(other.state(), AgentState::Ready, "somebody still holds it");
    drop(other);
    blueprint.settled().await;
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::Completed)]);
    assert_eq!(events.exits(id), [ExitReason::Completed]);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

fn watched(events: &Events, log: &Log, released: &Released, model: Says) -> Agent {
    agent("agent", model)
        .events(&events.bus)
        .with_lifecycle(Watch::new("watch", log))
        .with_lifecycle(acquires(&["pool"], released))
        .build()
        .unwrap()
}

#[test]
fn an_agent_dropped_outside_of_its_runtime_is_shut_down_in_it() {
    let (mut events, log, released) = (Events::new(), Log::default(), Released::default());
    let runtime = runtime();
    let agent = watched(&events, &log, &released, Says::Done);
    runtime.block_on(agent.startup()).unwrap();
    let (id, blueprint) = (agent.id(), agent.blueprint());
    drop(agent);
    runtime.block_on(blueprint.settled());
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::Completed)]);
    assert_eq!(events.exits(id), [ExitReason::Completed]);
    assert_eq!(*released.lock().unwrap(), ["pool"]);
}

#[test]
fn g1_a_turn_dropped_outside_of_its_runtime_still_ends() {
    let (mut events, log, released) = (Events::new(), Log::default(), Released::default());
    let runtime = runtime();
    let agent = watched(&events, &log, &released, Says::Hangs);
    runtime.block_on(agent.startup()).unwrap();
    let mut turn = Box::pin(agent.run("go"));
    let polled = runtime.block_on(std::future::poll_fn(|cx| {
        std::task::Poll::Ready(turn.as_mut().poll(cx).is_ready())
    }));
    assert!(!polled);
    drop(turn);
    runtime.block_on(agent.blueprint().settled());
    assert_eq!(log.of("watch").last(), Some(&Saw::After(Outcome::Cancelled)));
    assert_eq!(events.turn_ends(agent.id()), [Outcome::Cancelled]);
    runtime.block_on(agent.shutdown());
}

#[test]
fn with_no_runtime_left_resources_are_released_and_the_end_is_recorded_as_crashed() {
    let (mut events, log, released) = (Events::new(), Log::default(), Released::default());
    let runtime = runtime();
    let agent = watched(&events, &log, &released, Says::Hangs);
    runtime.block_on(agent.startup()).unwrap();
    let mut turn = Box::pin(agent.run("go"));
    let polled = runtime.block_on(std::future::poll_fn(|cx| {
        std::task::Poll::Ready(turn.as_mut().poll(cx).is_ready())
    }));
    assert!(!polled);
    drop(runtime);
    drop(turn);
    assert_eq!(events.turn_ends(agent.id()), [Outcome::Abandoned]);
    let id = agent.id();
    drop(agent);
    assert_eq!(events.exits(id), [ExitReason::Crashed]);
    assert_eq!(*released.lock().unwrap(), ["pool"]);
    let mut at = Phase::Uninitialized;
    for (from, to) in events.phases(id) {
        assert!(from == at && from.may_go_to(to), "{from} -> {to}");
        at = to;
    }
    assert_eq!(at, Phase::Terminated);
}

#[tokio::test(start_paused = true)]
async fn background_tasks_end_with_their_agent() {
    let ticks = Arc::new(AtomicUsize::new(0));
    let counted = ticks.clone();
    let agent = agent("agent", Says::Done)
        .with_lifecycle(hook::on_start(move |cx| {
            let counted = counted.clone();
            cx.resources().spawn("ticker", async move {
                loop {
                    sleep(MOMENT).await;
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            });
            Box::pin(async { Ok::<_, HookError>(()) })
        }))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    sleep(MOMENT * 3 + MOMENT / 2).await;
    agent.shutdown().await;
    let seen = ticks.load(Ordering::Relaxed);
    assert_eq!(seen, 3);
    sleep(MOMENT * 3).await;
    assert_eq!(ticks.load(Ordering::Relaxed), seen);
    timeout(MOMENT, agent.blueprint().settled()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_is_left_half_way_shuts_the_agent_down_whoever_holds_it() {
    let left = agent("agent", Says::Hangs).build().unwrap();
    let held = left.clone();
    let _ = timeout(MOMENT, left.scoped(async |agent| agent.run("x").await)).await;
    timeout(MOMENT, held.terminated()).await.expect("it is shut down in the background");
    assert_eq!(held.exit_reason(), Some(ExitReason::Completed));
}
