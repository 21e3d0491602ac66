//! Where starts, stops, drops and transitions meet: each of these was broken once.

use crate::guarantees::support::{Events, Says, agent};
use async_trait::async_trait;
use serde_json::Value;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;
use tenure_core::agent::{AgentRegistry, Registry};
use tenure_core::context::{ExecutionContext, PhaseCx};
use tenure_core::hook::{self, HookError};
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
};
use tenure_core::memory::InMemory;
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::step::{MemoryStepLog, ScopeRecord, StepKey, StepLog, Steps};
use tenure_core::{BoxFuture, Error, ErrorKind, ExitReason, RunId};
use tokio::time::{Instant, sleep, timeout};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hook that takes so long, counts how often it came to its end, and may ask for a shutdown.
struct On {
    source: PhasePattern,
    target: PhasePattern,
    takes: Duration,
    done: Arc<AtomicUsize>,
    asks_to_stop: bool,
}

impl On {
    fn new(
        source: impl Into<PhasePattern>,
        target: impl Into<PhasePattern>,
        takes: Duration,
    ) -> Self {
        let (source, target) = (source.into(), target.into());
        Self { source, target, takes, done: Arc::default(), asks_to_stop: false }
    }
}

#[async_trait]
impl PhaseHook for On {
    fn source(&self) -> PhasePattern {
        self.source
    }

    fn target(&self) -> PhasePattern {
        self.target
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        if self.asks_to_stop {
            cx.request_shutdown();
        }
        sleep(self.takes).await;
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A type of one's own that counts its starts and stops.
struct Own {
    life: Lifecycle,
    starts: Arc<AtomicUsize>,
    stops: Arc<AtomicUsize>,
}

impl Own {
    fn new(life: Lifecycle) -> Self {
        Self { life, starts: Arc::default(), stops: Arc::default() }
    }

    fn counts(&self) -> [usize; 2] {
        [&self.starts, &self.stops].map(|count| count.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl ManagedAgent for Own {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        self.stops.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_turn_cuts_no_hook_of_a_later_transition() {
    let pause = On::new(Phase::Idle, Phase::Paused, ms(5));
    let paused = pause.done.clone();
    let agent = agent("agent", Says::Done)
        .phase_hook(On::new(Phase::Paused, Phase::Idle, ms(50)))
        .phase_hook(On::new(Phase::Idle, Phase::ProcessingUserInput, ms(0)))
        .phase_hook(pause)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.pause().await.unwrap();
    let (resumed, _) = tokio::join!(agent.resume(), async {
        sleep(ms(1)).await;
        agent.request("go").limit(ms(10)).run().await
    });
    resumed.unwrap();
    agent.ready().await.unwrap();
    agent.pause().await.unwrap();
    assert_eq!(paused.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_borrowed_stop_that_is_dropped_in_the_setup_ends_all_the_same() {
    let life =
        Lifecycle::new("own").with_phase_hook(On::new(Phase::Bootstrapping, Phase::Idle, ms(50)));
    let own = Own::new(life);
    let (started, ()) = tokio::join!(AgentLifecycleProtocol::startup(&own, None), async {
        sleep(ms(10)).await;
        assert!(timeout(ms(5), AgentLifecycleProtocol::shutdown(&own, None)).await.is_err());
    });
    assert_eq!(started.unwrap_err().kind(), ErrorKind::Startup);
    AgentLifecycleProtocol::shutdown(&own, None).await;
    assert_eq!(own.life.state(), AgentState::Terminated);
}

#[tokio::test(start_paused = true)]
async fn a_borrowed_start_that_is_dropped_in_the_setup_goes_where_the_table_lets_it() {
    let mut events = Events::new();
    let life = Lifecycle::new("own").with_events(events.bus.clone()).with_phase_hook(On::new(
        Phase::Bootstrapping,
        Phase::Idle,
        ms(50),
    ));
    let own = Own::new(life);
    assert!(timeout(ms(5), AgentLifecycleProtocol::startup(&own, None)).await.is_err());
    for (from, to) in events.phases(own.life.id()) {
        assert!(from.may_go_to(to), "{from} -> {to}");
    }
    let second = AgentLifecycleProtocol::startup(&own, None).await;
    assert!(second.is_err());
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_in_an_agent_that_is_over() {
    let registry = AgentRegistry::new();
    let life = Lifecycle::new("own")
        .with_phase_hook(On::new(Phase::Uninitialized, Phase::Bootstrapping, ms(50)))
        .with_registry(Arc::new(registry.clone()));
    let own = Arc::new(Own::new(life));
    let (started, ()) = tokio::join!(own.startup(None), async {
        sleep(ms(1)).await;
        own.shutdown(Some(ms(10))).await;
    });
    assert!(started.is_err());
    assert_eq!(own.counts(), [0, 0]);
    assert!(Registry::names(&registry).is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_start_that_times_out_gets_the_cause() {
    let agent = agent("agent", Says::Done)
        .with_lifecycle(hook::on_start(|_| Box::pin(pending())))
        .with_lifecycle(hook::on_shutdown(|_, _| {
            Box::pin(async {
                sleep(ms(5)).await;
                Ok(())
            })
        }))
        .build()
        .unwrap();
    let config = LifecycleConfig::default().timeout(ms(100));
    let (one, two) = tokio::join!(agent.startup_with(config.clone()), agent.startup_with(config));
    assert_eq!(one.unwrap_err().to_string(), two.unwrap_err().to_string());
}

#[test]
fn a_shutdown_without_a_runtime_runs_what_is_ready_at_once() {
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = stopped.clone();
    let agent = agent("agent", Says::Done)
        .with_lifecycle(hook::on_shutdown(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        }))
        .build()
        .unwrap();
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(pin!(agent.startup()).poll(cx).is_ready());
    assert!(pin!(agent.shutdown()).poll(cx).is_ready());
    assert_eq!(stopped.load(Ordering::SeqCst), 1);
    assert_eq!(agent.exit_reason(), Some(ExitReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_shutdown_keeps_the_type_until_it_has_stopped() {
    let stop = On::new(PhasePattern::Any, Phase::ShuttingDown, ms(20));
    let own = Arc::new(Own::new(Lifecycle::new("own").with_phase_hook(stop)));
    let stops = own.stops.clone();
    own.startup(None).await.unwrap();
    assert!(timeout(ms(5), own.shutdown(None)).await.is_err());
    drop(own);
    sleep(ms(100)).await;
    assert_eq!(stops.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_forced_shutdown_cuts_the_setup_before_the_ends_run() {
    struct Alive(Arc<AtomicBool>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.store(false, Ordering::SeqCst);
        }
    }
    struct Setup(Arc<AtomicBool>);
    #[async_trait]
    impl PhaseHook for Setup {
        fn source(&self) -> PhasePattern {
            Phase::Bootstrapping.into()
        }
        fn target(&self) -> PhasePattern {
            Phase::Idle.into()
        }
        async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
            self.0.store(true, Ordering::SeqCst);
            let _alive = Alive(self.0.clone());
            pending().await
        }
    }
    let (is_alive, was_alive) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (setup, seen) = (is_alive.clone(), was_alive.clone());
    let agent = agent("agent", Says::Done)
        .phase_hook(Setup(is_alive))
        .with_lifecycle(hook::on_shutdown(move |_, _| {
            seen.store(setup.load(Ordering::SeqCst), Ordering::SeqCst);
            Box::pin(async { Ok(()) })
        }))
        .build()
        .unwrap();
    let (started, ()) = tokio::join!(agent.startup(), async {
        sleep(ms(1)).await;
        agent.shutdown_within(ms(100)).await;
    });
    assert!(started.is_err());
    assert!(!was_alive.load(Ordering::SeqCst), "on_shutdown ran under the setup hook");
}

#[tokio::test(start_paused = true)]
async fn the_last_transition_has_what_is_left_of_the_budget() {
    let last = On::new(Phase::ShuttingDown, Phase::Terminated, ms(5));
    let done = last.done.clone();
    let slow = Duration::from_secs(25);
    let agent = agent("agent", Says::Done)
        .phase_hook(On::new(Phase::ProcessingUserInput, Phase::AwaitingLlmResponse, slow))
        .phase_hook(On::new(PhasePattern::Any, Phase::ShuttingDown, ms(0)))
        .phase_hook(last)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    let _ = tokio::join!(agent.run("go"), async {
        sleep(ms(10)).await;
        agent.shutdown_within(Duration::from_secs(10)).await;
    });
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_type_is_a_tool_of_another_agent_and_may_be_held_anew() {
    let own = Arc::new(Own::new(Lifecycle::new("own")));
    let tool = own_agent(&own).blueprint();
    agent("parent", Says::Done).agent_tool(&tool).build().unwrap();
    let own = Arc::new(Arc::into_inner(own).unwrap());
    own.startup(None).await.unwrap();
    assert_eq!(own.counts(), [1, 0]);
    own.shutdown(None).await;
    assert_eq!(own.counts(), [1, 1]);

    let own = Arc::new(Own::new(Lifecycle::new("own")));
    let gone = own_agent(&own);
    drop(own);
    assert!(gone.startup().await.unwrap_err().to_string().contains("is gone"));
}

/// A log in which no scope begins: it refuses, or never answers.
struct NoBegin {
    steps: MemoryStepLog,
    hangs: bool,
}

impl StepLog for NoBegin {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        self.steps.step(key, effect)
    }

    fn run_id(&self) -> RunId {
        self.steps.run_id()
    }

    fn begin<'a>(&'a self, _scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        if self.hangs {
            return Box::pin(pending());
        }
        Box::pin(async { Err(Error::invalid("the disk is full")) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_never_told_its_begin_holds_up_nothing() {
    for hangs in [true, false] {
        let agent = agent("agent", Says::Done)
            .phase_hook(On::new(PhasePattern::Any, Phase::Idle, ms(1)))
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        let log = NoBegin { steps: MemoryStepLog::new(), hangs };
        let began = Instant::now();
        let run = agent.request("go").recorded(&Steps::new(Arc::new(log))).run();
        assert!(!matches!(timeout(ms(5), run).await, Ok(Ok(_))));
        agent.ready().await.unwrap();
        assert!(began.elapsed() < ms(100), "hangs: {hangs}, {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_has_the_trace_of_the_context_of_its_agent() {
    let agent = agent("agent", Says::Done).build().unwrap();
    agent.set_context(ExecutionContext::new("trace-1")).unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("go").await.unwrap().trace_id(), "trace-1");
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_life_that_was_used_takes_nothing_more() {
    let life = Lifecycle::new("own");
    assert_eq!(life.state(), AgentState::Uninitialized);
    let own = Own::new(life.with_memory(InMemory::new()));
    let error = AgentLifecycleProtocol::startup(&own, None).await.unwrap_err();
    assert!(error.to_string().contains("after it was used"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_a_type_may_ask_for_a_shutdown() {
    for (from, to) in
        [(Phase::Bootstrapping, Phase::Idle), (Phase::ProcessingUserInput, Phase::Idle)]
    {
        let hook = On { asks_to_stop: true, ..On::new(from, to, ms(1)) };
        let own = Arc::new(Own::new(Lifecycle::new("own").with_phase_hook(hook)));
        if own.startup(None).await.is_ok() {
            own.life.requires_ready().unwrap().succeeded();
            sleep(ms(50)).await;
        }
        assert_eq!((own.state(), own.counts()), (AgentState::Terminated, [1, 1]), "{from} -> {to}");
    }
}
