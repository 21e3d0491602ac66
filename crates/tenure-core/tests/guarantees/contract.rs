//! The same contract for types of one's own.

use crate::guarantees::support::{Events, fall_over};
use async_trait::async_trait;
use std::future::pending;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure_core::hook::HookError;
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, agent_lifecycle,
};
use tenure_core::phase::{AgentState, Phase};
use tenure_core::state::{Ownership, StateOwnership};
use tenure_core::{Error, ErrorKind, ExitReason};
use tokio::time::{Instant, sleep, timeout};

/// What a worker does when it is started or stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Works,
    Fails,
    /// So many times, then it works.
    FailsFirst(u32),
    Panics,
    Hangs,
    Takes(Duration),
}

struct Worker {
    life: Lifecycle,
    start: Act,
    stop: Act,
    starts: AtomicU32,
    stops: AtomicU32,
    told: Mutex<Vec<Duration>>,
}

impl Worker {
    fn new(life: Lifecycle, start: Act, stop: Act) -> Self {
        let (starts, stops) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { life, start, stop, starts, stops, told: Mutex::default() }
    }

    fn plain() -> Self {
        Self::new(Lifecycle::new("worker"), Act::Works, Act::Works)
    }

    /// How often it was started and stopped.
    fn counts(&self) -> (u32, u32) {
        (self.starts.load(Ordering::Relaxed), self.stops.load(Ordering::Relaxed))
    }

    async fn process(&self) -> Result<(), Error> {
        let busy = self.life.requires_ready()?;
        assert_eq!(self.state(), AgentState::Busy);
        sleep(Duration::from_secs(1)).await;
        busy.succeeded();
        Ok(())
    }
}

impl Act {
    async fn act(self, attempt: u32) -> Result<(), HookError> {
        match self {
            Self::Works => Ok(()),
            Self::FailsFirst(failing) if attempt > failing => Ok(()),
            Self::Fails | Self::FailsFirst(_) => Err(HookError::new("no database")),
            Self::Panics => fall_over("the worker"),
            Self::Hangs => pending().await,
            Self::Takes(time) => {
                sleep(time).await;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl ManagedAgent for Worker {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        let attempt = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        self.start.act(attempt).await
    }

    async fn do_shutdown(&self, timeout: Duration) -> Result<(), HookError> {
        self.stops.fetch_add(1, Ordering::Relaxed);
        self.told.lock().unwrap().push(timeout);
        self.stop.act(1).await
    }
}

#[tokio::test(start_paused = true)]
async fn contract_a_life_from_start_to_stop_with_real_metrics() {
    let mut events = Events::new();
    let life = Lifecycle::new("worker").with_events(events.bus.clone());
    let start = Act::Takes(Duration::from_secs(1));
    let worker = Worker::new(life, start, Act::Works);
    assert_eq!(worker.state(), AgentState::Uninitialized);
    worker.startup(None).await.unwrap();
    worker.startup(None).await.unwrap();
    assert_eq!(worker.state(), AgentState::Ready);
    worker.process().await.unwrap();
    let (one, two) = tokio::join!(worker.process(), worker.process());
    assert!(one.is_ok());
    assert!(two.unwrap_err().to_string().contains("must be in ready state, but it is busy"));
    worker.set_state("_scratch", 1.into()).unwrap();
    worker.shutdown(None).await;
    worker.shutdown(None).await;
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (1, 1)));
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::Completed));
    assert_eq!(worker.state_len(), 0, "agent state does not outlive the agent");
    assert!(worker.set_state("_scratch", 1.into()).is_err());
    let metrics = worker.metrics();
    assert!((metrics.startup_time_ms - 1e3).abs() < 5.0, "{metrics:?}");
    assert!(metrics.shutdown_time_ms > 0.0);
    assert_eq!((metrics.total_requests, metrics.failed_requests), (2, 0));
    assert_eq!(metrics.state_transitions, 8);
    let arrows = events.phases(worker.life.id());
    assert_eq!(arrows.len(), 8, "{arrows:?}");
    assert!(arrows.iter().all(|(from, to)| from.may_go_to(*to)), "{arrows:?}");
}

#[tokio::test(start_paused = true)]
async fn contract_a_failed_startup_is_a_startup_error_and_cleaned_up_once() {
    for start in [Act::Fails, Act::Panics, Act::Hangs] {
        let worker = Worker::new(Lifecycle::new("worker"), start, Act::Works);
        let error = worker.startup(None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Startup, "{start:?}");
        assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (1, 1)));
        assert_eq!(worker.life.exit_reason(), Some(ExitReason::StartupFailed));
        let again = worker.startup(None).await.unwrap_err();
        assert_eq!(again.state(), Some(AgentState::Terminated));
    }
    let worker = Worker::new(Lifecycle::new("worker"), Act::Fails, Act::Works);
    let error = worker.startup(None).await.unwrap_err();
    assert!(error.to_string().contains("no database"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn contract_the_passed_config_counts() {
    let worker = Worker::new(Lifecycle::new("worker"), Act::Fails, Act::Works);
    let kept = LifecycleConfig::default().keep_on_error();
    worker.startup(Some(kept)).await.unwrap_err();
    assert_eq!((worker.life.phase(), worker.counts()), (Phase::Error, (1, 0)));
    worker.shutdown(None).await;
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (1, 1)));
    assert_eq!(worker.life.exit_reason(), Some(ExitReason::StartupFailed));

    let worker = Worker::new(Lifecycle::new("worker"), Act::FailsFirst(2), Act::Works);
    worker.startup(Some(LifecycleConfig::default().retries(2))).await.unwrap();
    assert_eq!(worker.counts(), (3, 2), "each failed attempt was undone");

    let slow = Act::Takes(Duration::from_millis(200));
    let worker = Worker::new(Lifecycle::new("worker"), slow, Act::Works);
    let strict = LifecycleConfig::default().timeout(Duration::from_millis(1));
    assert_eq!(worker.startup(Some(strict)).await.unwrap_err().kind(), ErrorKind::Startup);
    assert_eq!(worker.state(), AgentState::Terminated);
}

#[tokio::test(start_paused = true)]
async fn contract_shutdown_never_fails_and_is_bounded() {
    for (stop, reason) in [
        (Act::Fails, ExitReason::Completed),
        (Act::Panics, ExitReason::Completed),
        (Act::Hangs, ExitReason::Forced),
    ] {
        let worker = Worker::new(Lifecycle::new("worker"), Act::Works, stop);
        worker.startup(None).await.unwrap();
        let released = worker.life.resources().register("pool", || async { Ok(()) });
        let began = Instant::now();
        worker.shutdown(Some(Duration::from_secs(3))).await;
        assert!(began.elapsed() < Duration::from_secs(4), "{stop:?}");
        assert_eq!(worker.life.exit_reason(), Some(reason), "{stop:?}");
        assert_eq!(*worker.told.lock().unwrap(), [Duration::from_secs(3)], "{stop:?}");
        assert!(worker.life.resources().is_empty(), "{stop:?}");
        drop(released);
    }
}

#[tokio::test(start_paused = true)]
async fn contract_shutdown_from_uninitialized_runs_nothing() {
    let worker = Worker::plain();
    worker.shutdown(None).await;
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn contract_shutdown_lets_a_request_end() {
    let worker = Worker::plain();
    worker.startup(None).await.unwrap();
    let (done, ()) = tokio::join!(worker.process(), worker.shutdown(None));
    assert!(done.is_ok());
    assert_eq!(worker.state(), AgentState::Terminated);
    assert_eq!(worker.metrics().total_requests, 1);
}

#[tokio::test(start_paused = true)]
async fn contract_pause_and_resume() {
    let worker = Worker::plain();
    let early = worker.pause().await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::IllegalTransition);
    worker.startup(None).await.unwrap();
    worker.pause().await.unwrap();
    assert_eq!(worker.process().await.unwrap_err().state(), Some(AgentState::Paused));
    worker.resume().await.unwrap();
    let (_, paused) = tokio::join!(worker.process(), worker.pause());
    assert_eq!(paused.unwrap_err().kind(), ErrorKind::IllegalTransition);
    worker.life.requires_state(&[AgentState::Ready, AgentState::Paused]).unwrap();
    let error = worker.life.requires_state(&[AgentState::Paused]).unwrap_err();
    assert!(error.to_string().contains("must be in paused state, but it is ready"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn contract_a_dropped_start_or_stop_does_not_hang_anybody() {
    let mut events = Events::new();
    let life = || Lifecycle::new("worker").with_events(events.bus.clone());
    let starting = Worker::new(life(), Act::Hangs, Act::Works);
    let stopping = Worker::new(life(), Act::Works, Act::Hangs);
    let moment = Duration::from_secs(1);
    assert!(timeout(moment, starting.startup(None)).await.is_err());
    assert_eq!(starting.state(), AgentState::Error);
    starting.shutdown(None).await;
    assert_eq!((starting.state(), starting.counts()), (AgentState::Terminated, (1, 1)));

    stopping.startup(None).await.unwrap();
    assert!(timeout(moment, stopping.shutdown(None)).await.is_err());
    assert_eq!(stopping.state(), AgentState::Terminated);
    assert_eq!(stopping.life.exit_reason(), Some(ExitReason::Forced));
    for worker in [&starting, &stopping] {
        let mut at = Phase::Uninitialized;
        for (from, to) in events.phases(worker.life.id()) {
            assert!(from == at && from.may_go_to(to), "{from} -> {to}");
            at = to;
        }
        assert_eq!(at, Phase::Terminated);
    }
}

#[tokio::test(start_paused = true)]
async fn contract_the_scope_shuts_down_whatever_the_body_does() {
    let worker = Worker::plain();
    let result: Result<(), Error> = agent_lifecycle(&worker, None, async |worker: &Worker| {
        assert_eq!(worker.state(), AgentState::Ready);
        Err(Error::invalid("the body failed"))
    })
    .await;
    assert_eq!(result.unwrap_err().to_string(), "the body failed");
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (1, 1)));

    let worker = std::sync::Arc::new(Worker::plain());
    let scoped = worker.clone();
    let body = async |_: &Worker| -> Result<(), Error> { fall_over("the body") };
    let run = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _ = runtime.block_on(agent_lifecycle(&*scoped, None, body));
    });
    assert!(run.join().is_err(), "the panic goes on");
    assert_eq!((worker.state(), worker.counts()), (AgentState::Terminated, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn g9_keys_are_written_only_by_their_owner() {
    let ownership = Ownership::new().declare("user_history", StateOwnership::Memory);
    let life = Lifecycle::new("worker").with_ownership(ownership);
    let worker = Worker::new(life, Act::Works, Act::Works);
    for (key, owner) in [
        ("_x", StateOwnership::Agent),
        ("history", StateOwnership::Memory),
        ("user_history", StateOwnership::Memory),
        ("trace_id", StateOwnership::Orchestrator),
        ("config", StateOwnership::Shared),
        ("anything", StateOwnership::Agent),
    ] {
        assert_eq!(worker.owns_state(key), owner, "{key}");
        let written = worker.set_state(key, 1.into());
        assert_eq!(written.is_ok(), owner == StateOwnership::Agent, "{key}");
        if let Err(error) = written {
            let violation = error.state_violation().unwrap();
            assert_eq!((&*violation.key, violation.owner), (key, owner));
        }
    }
}
