//! Types of one's own are agents: found, asked and stopped like any other.

use crate::guarantees::support::Events;
use async_trait::async_trait;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;
use tenure_core::agent::{AgentRegistry, Registry};
use tenure_core::context::{ExecutionContext, PhaseCx};
use tenure_core::hook::HookError;
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
};
use tenure_core::memory::{InMemory, Memory};
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::state::StateOwnership;
use tenure_core::{Error, ErrorKind, ExitReason};
use tokio::time::{Instant, sleep, timeout};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Worker {
    life: Lifecycle,
    stop_takes: Duration,
    starts: AtomicUsize,
    stops: AtomicUsize,
}

impl Worker {
    fn new(life: Lifecycle) -> Self {
        Self { life, stop_takes: ms(0), starts: AtomicUsize::new(0), stops: AtomicUsize::new(0) }
    }

    fn counts(&self) -> [usize; 2] {
        [&self.starts, &self.stops].map(|count| count.load(Ordering::SeqCst))
    }

    /// A request that takes so long.
    async fn work(&self, time: Duration) -> Result<(), Error> {
        let busy = self.life.requires_ready()?;
        sleep(time).await;
        busy.succeeded();
        Ok(())
    }
}

#[async_trait]
impl ManagedAgent for Worker {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        sleep(self.stop_takes).await;
        self.stops.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn process(&self, request: &str) -> Result<String, HookError> {
        match request {
            "fail" => Err(HookError::new("cannot")),
            other => Ok(other.to_uppercase()),
        }
    }

    fn owner_of(&self, key: &str) -> StateOwnership {
        match key {
            "history" => StateOwnership::Agent,
            "mine" => StateOwnership::Memory,
            other => self.life.owner(other),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g9_an_owner_that_the_type_names_itself_counts_for_writes_too() {
    let worker = Worker::new(Lifecycle::new("worker"));
    worker.set_state("history", 1.into()).expect("the type says that it is its own");
    assert_eq!(worker.life.value("history"), Some(1.into()));
    let error = worker.set_state("mine", 1.into()).unwrap_err();
    assert_eq!(error.state_violation().unwrap().owner, StateOwnership::Memory);
    worker.set_state("trace_id", 1.into()).unwrap_err();
}

/// What an agent of the type may write, wherever the write comes from.
type Writes = Vec<(&'static str, Result<(), StateOwnership>)>;

fn owner_named(written: Result<(), Error>) -> Result<(), StateOwnership> {
    written.map_err(|error| error.state_violation().unwrap().owner)
}

/// Writes what the type says is its own, and what it says is not.
struct Writer(Arc<Mutex<Writes>>);

#[async_trait]
impl PhaseHook for Writer {
    fn source(&self) -> PhasePattern {
        Phase::Bootstrapping.into()
    }

    fn target(&self) -> PhasePattern {
        Phase::Idle.into()
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let mut writes = self.0.lock().unwrap();
        for key in ["history", "mine", "trace_id"] {
            writes.push((key, owner_named(cx.set_state(key, 1))));
            writes.push((key, owner_named(cx.keep_state(key, 2))));
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn g9_an_owner_that_the_type_names_itself_counts_wherever_the_write_comes_from() {
    let (writes, memory) = (Arc::<Mutex<Writes>>::default(), InMemory::new());
    let life = Lifecycle::new("worker")
        .with_memory(memory.clone())
        .with_phase_hook(Writer(Arc::clone(&writes)));
    let worker = Arc::new(Worker::new(life));
    let agent = own_agent(&worker);
    let expected = [
        ("history", Ok(())),
        ("mine", Err(StateOwnership::Memory)),
        ("trace_id", Err(StateOwnership::Orchestrator)),
    ];
    agent.startup().await.unwrap();
    let of_hooks: Writes = expected.iter().flat_map(|write| [*write, *write]).collect();
    assert_eq!(std::mem::take(&mut *writes.lock().unwrap()), of_hooks, "hooks");
    let clone = agent.spawn_detached_instance(None).await.unwrap();
    assert_eq!(*writes.lock().unwrap(), of_hooks, "hooks of a clone");
    for (key, expected) in expected {
        assert_eq!(owner_named(agent.set_state(key, 3)), expected, "the agent: {key}");
        assert_eq!(owner_named(clone.set_state(key, 3)), expected, "a clone: {key}");
        assert_eq!(owner_named(worker.set_state(key, 3.into())), expected, "the type: {key}");
        assert_eq!(agent.owns_state(key), expected.err().unwrap_or_default(), "{key}");
    }
    assert_eq!(worker.life.owner("history"), StateOwnership::Memory, "what the life declares");
    agent.memory().unwrap().update("mine", "kept").expect("the type says that it is memory's");
    agent.memory().unwrap().update("history", "kept").unwrap_err();
    clone.shutdown().await;
    agent.shutdown().await;
    assert_eq!(memory.load("worker").await.unwrap()["mine"], "kept");
}

#[tokio::test(start_paused = true)]
async fn g9_where_the_type_is_gone_its_life_says_who_owns_what() {
    let worker = Arc::new(Worker::new(Lifecycle::new("worker")));
    let agent = own_agent(&worker);
    drop(worker);
    assert_eq!(agent.owns_state("history"), StateOwnership::Memory);
    agent.set_state("mine", 1).unwrap();
}

/// Registers resources that note their release.
fn acquire(life: &Lifecycle, names: [&'static str; 2], released: &Arc<Mutex<Vec<&'static str>>>) {
    for name in names {
        let released = released.clone();
        life.resources().register(name, move || async move {
            released.lock().unwrap().push(name);
            Ok(())
        });
    }
}

#[tokio::test(start_paused = true)]
async fn g1_what_was_acquired_before_the_start_is_released_by_a_stop_without_one() {
    for way in ["borrowed", "arc", "agent", "drop"] {
        let (told, released, mut events) = (Arc::default(), Arc::default(), Events::new());
        let life = Lifecycle::new("worker")
            .with_events(events.bus.clone())
            .with_phase_hook(Slow(Arc::clone(&told)));
        let worker = Arc::new(Worker::new(life));
        acquire(&worker.life, ["pool", "file"], &released);
        worker.life.spawn("task", pending());
        worker.set_state("_count", 1.into()).unwrap();
        let (agent, id) = (own_agent(&worker), worker.life.id());
        let blueprint = agent.blueprint();
        match way {
            "borrowed" => AgentLifecycleProtocol::shutdown(&*worker, None).await,
            "arc" => worker.shutdown(None).await,
            "agent" => agent.shutdown().await,
            _ => {}
        }
        if way != "drop" {
            assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, [0, 0]));
            assert!(worker.life.resources().is_empty() && worker.life.values().is_empty());
        }
        drop((worker, agent));
        timeout(ms(100), blueprint.settled()).await.expect("the task is over");
        assert_eq!(*released.lock().unwrap(), ["file", "pool"], "{way}: last to first");
        assert_eq!(events.exits(id), [ExitReason::Completed], "{way}");
        assert_eq!(told.lock().unwrap().len(), 2, "{way}: only transitions have hooks here");
    }
}

#[tokio::test(start_paused = true)]
async fn g4_a_stop_without_a_start_is_bounded() {
    let worker = Worker::new(Lifecycle::new("worker"));
    let released = Arc::default();
    acquire(&worker.life, ["pool", "file"], &released);
    worker.life.resources().register("stuck", pending);
    let began = Instant::now();
    worker.shutdown(Some(ms(50))).await;
    assert_eq!(began.elapsed(), ms(50));
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::Forced));
    assert_eq!(*released.lock().unwrap(), ["file", "pool"], "what can be released at once is");
}

#[test]
fn a_stop_without_a_runtime_releases_what_is_released_at_once() {
    let worker = Worker::new(Lifecycle::new("worker"));
    let released = Arc::default();
    acquire(&worker.life, ["pool", "file"], &released);
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(worker.shutdown(None).as_mut().poll(cx).is_ready());
    assert_eq!(*released.lock().unwrap(), ["file", "pool"]);
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_fatal_error_in_a_request_shuts_the_type_down_at_once() {
    let mut events = Events::new();
    let worker = Worker::new(Lifecycle::new("worker").with_events(events.bus.clone()));
    worker.startup(None).await.unwrap();
    let began = Instant::now();
    let busy = worker.life.requires_ready().unwrap();
    sleep(ms(5)).await;
    busy.fatal();
    assert_eq!(worker.life.phase(), Phase::Error);
    assert!(worker.life.requires_ready().is_err(), "it takes no other request");
    worker.shutdown(None).await;
    assert_eq!(began.elapsed(), ms(5), "it does not wait for its own guard");
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::Fatal));
    assert_eq!(worker.counts(), [1, 1]);
    let arrows = events.phases(worker.life.id());
    assert_eq!(arrows[3], (Phase::ProcessingUserInput, Phase::Error));
    let metrics = worker.metrics();
    assert_eq!((metrics.total_requests, metrics.failed_requests), (1, 1));
    assert_eq!(metrics.state_transitions, arrows.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_a_type_are_true_on_the_clock_of_the_runtime() {
    let mut events = Events::new();
    let worker = Worker::new(Lifecycle::new("worker").with_events(events.bus.clone()));
    worker.startup(None).await.unwrap();
    worker.work(ms(40)).await.unwrap();
    assert!((worker.metrics().active_time_ms - 40.0).abs() < 1.0, "{:?}", worker.metrics());
    let (done, ()) = tokio::join!(worker.work(ms(40)), async {
        sleep(ms(1)).await;
        assert_eq!(worker.metrics().total_requests, 2, "counted when taken on");
        worker.shutdown(None).await;
    });
    done.unwrap();
    let arrows = events.phases(worker.life.id());
    assert_eq!(worker.metrics().state_transitions, arrows.len() as u64, "{arrows:?}");
    assert_eq!(arrows[5], (Phase::ProcessingUserInput, Phase::ShuttingDown));
}

/// Keeps what it is told, and takes a moment for it.
struct Slow(Arc<Mutex<Vec<(Phase, Phase)>>>);

#[async_trait]
impl PhaseHook for Slow {
    fn source(&self) -> PhasePattern {
        PhasePattern::Any
    }

    fn target(&self) -> PhasePattern {
        PhasePattern::Any
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        sleep(ms(2)).await;
        self.0.lock().unwrap().push((cx.from(), cx.to()));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_has_a_context_memory_phase_hooks_and_tasks() {
    let (mut events, told) = (Events::new(), Arc::default());
    let (memory, ran) = (InMemory::new(), Arc::new(AtomicUsize::new(0)));
    let context = ExecutionContext::new("trace-1");
    let life = Lifecycle::new("worker")
        .with_events(events.bus.clone())
        .with_context(context)
        .with_memory(memory.clone())
        .with_phase_hook(Slow(Arc::clone(&told)));
    let worker = Arc::new(Worker::new(life));
    worker.startup(None).await.unwrap();
    worker.life.memory().unwrap().update("facts", "kept").unwrap();
    let running = ran.clone();
    worker.life.spawn("ticks", async move {
        running.fetch_add(1, Ordering::SeqCst);
        pending().await
    });
    worker.work(ms(5)).await.unwrap();
    worker.life.ready().await.unwrap();
    worker.shutdown(None).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert!(worker.life.resources().is_empty(), "the task is over");
    assert_eq!(memory.load("worker").await.unwrap()["facts"], "kept");
    let arrows = events.phases(worker.life.id());
    assert_eq!(*told.lock().unwrap(), arrows, "hooks and events tell the same");
    assert_eq!(arrows.len(), 6, "{arrows:?}");
    assert!(events.all().iter().all(|event| event.trace.as_deref() == Some("trace-1")));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_dropped_goes_on_for_a_type_in_an_arc() {
    let worker = Worker { stop_takes: ms(50), ..Worker::new(Lifecycle::new("worker")) };
    let worker = Arc::new(worker);
    worker.startup(None).await.unwrap();
    assert!(timeout(ms(10), worker.shutdown(None)).await.is_err());
    assert_eq!(worker.state(), AgentState::ShuttingDown);
    own_agent(&worker).terminated().await;
    assert_eq!(worker.counts(), [1, 1]);
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_type_is_found_asked_and_stopped_as_an_agent() {
    let registry = AgentRegistry::new();
    let life = Lifecycle::new("worker").with_registry(Arc::new(registry.clone()));
    let worker = Arc::new(Worker::new(life));
    let borrowed = AgentLifecycleProtocol::startup(&*worker, None).await.unwrap_err();
    assert!(borrowed.to_string().contains("hold it in an `Arc`"), "{borrowed}");
    worker.startup(None).await.unwrap();
    let found = registry.find("worker").expect("it is registered");
    assert_eq!(found.run("hello").await.unwrap().output(), "HELLO");
    let error = found.run("fail").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Model);
    assert!(error.to_string().contains("cannot"), "{error}");
    assert_eq!(worker.metrics().total_requests, 2);
    found.shutdown().await;
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, [1, 1]));
    assert!(registry.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_errors_of_a_type_speak_of_what_it_has() {
    let worker = Worker::new(Lifecycle::new("worker"));
    worker.startup(None).await.unwrap();
    let _busy = worker.life.requires_ready().unwrap();
    let error = worker.life.requires_ready().unwrap_err().to_string();
    assert!(error.contains("wait for ready()") && !error.contains("handle()"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_life_made_of_something_impossible_does_not_start() {
    struct Never;
    #[async_trait]
    impl PhaseHook for Never {
        fn source(&self) -> PhasePattern {
            Phase::Idle.into()
        }
        fn target(&self) -> PhasePattern {
            Phase::Bootstrapping.into()
        }
        async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
            Ok(())
        }
    }
    let worker = Worker::new(Lifecycle::new("worker").with_phase_hook(Never));
    let error = worker.startup(None).await.unwrap_err();
    assert!(error.to_string().contains("no agent makes"), "{error}");
    let worker = Arc::new(worker);
    let error = own_agent(&worker).startup().await.unwrap_err();
    assert!(error.to_string().contains("no agent makes"), "{error}");
    assert_eq!((worker.state(), worker.counts()), (AgentState::Uninitialized, [0, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_type_that_is_dropped_before_its_agent_stops_is_missed() {
    let worker = Arc::new(Worker::new(Lifecycle::new("worker")));
    let agent = own_agent(&worker);
    agent.startup().await.unwrap();
    drop(worker);
    assert!(agent.run("hello").await.unwrap_err().to_string().contains("keep its `Arc`"));
    agent.shutdown().await;
    let failures = agent.failures();
    assert_eq!(failures.len(), 1);
    assert!(failures[0].message.contains("the type is gone"), "{}", failures[0]);
}
