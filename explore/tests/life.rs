//! The start, stop and drop protocol under randomised schedules.
//!
//! Every test runs the real agent: the sources of tenure-core on primitives that yield to a
//! scheduler wherever threads could interleave. Timers never fire, so a lost wake-up is a deadlock,
//! and the scheduler reports it with the schedule that led there.

use async_trait::async_trait;
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use tenure_core::agent::{Agent, AgentRegistry, Registry};
use tenure_core::context::{InstanceCx, ModelCx, PhaseCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError};
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::{ErrorKind, ExitReason};

/// Explores `test` under as many schedules as `EXPLORE_ITERATIONS` says: half of them random, half
/// of them with few but badly placed switches.
fn explore(test: impl Fn() + Send + Sync + 'static) {
    let iterations = std::env::var("EXPLORE_ITERATIONS")
        .map(|text| text.parse().expect("EXPLORE_ITERATIONS is a number"))
        .unwrap_or(1_000);
    let mut config = Config::new();
    // The futures of a turn nest deeply without optimisation.
    config.stack_size = 1 << 20;
    let test = Arc::new(test);
    let random = test.clone();
    Runner::new(RandomScheduler::new(iterations), config.clone()).run(move || random());
    Runner::new(PctScheduler::new(3, iterations), config).run(move || test());
}

/// Answers after yielding once, so that others get their chance.
struct Yielding;

#[async_trait]
impl Model for Yielding {
    async fn call(
        &self,
        _request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        yield_now().await;
        Ok(ModelResponse::text("done"))
    }
}

/// Notes whether the agent is ever paused while its model is asked.
struct NotPaused(Arc<Counts>);

#[async_trait]
impl Model for NotPaused {
    async fn call(
        &self,
        _request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        for _ in 0..3 {
            if cx.agent().state() == AgentState::Paused {
                self.0.violations.fetch_add(1, Ordering::SeqCst);
            }
            yield_now().await;
        }
        Ok(ModelResponse::text("done"))
    }
}

#[derive(Default)]
struct Counts {
    started: AtomicUsize,
    stopped: AtomicUsize,
    began: AtomicUsize,
    ended: AtomicUsize,
    /// What must not be seen; a panic in a hook or a model would be caught.
    violations: AtomicUsize,
}

impl Counts {
    fn all(&self) -> [usize; 4] {
        [&self.started, &self.stopped, &self.began, &self.ended]
            .map(|count| count.load(Ordering::SeqCst))
    }

    fn violations(&self) -> usize {
        self.violations.load(Ordering::SeqCst)
    }
}

/// Counts every begin and every end, and yields in each.
struct Counting(Arc<Counts>);

#[async_trait]
impl AgentLifecycle for Counting {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.0.started.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        Ok(())
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, _reason: ExitReason) -> Result<(), HookError> {
        // Turns end before their instance does, and none begins in one that is being stopped.
        let [_, _, began, ended] = self.0.all();
        if began != ended {
            self.0.violations.fetch_add(1, Ordering::SeqCst);
        }
        self.0.stopped.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        Ok(())
    }

    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        if self.0.stopped.load(Ordering::SeqCst) > 0 {
            self.0.violations.fetch_add(1, Ordering::SeqCst);
        }
        self.0.began.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        Ok(Flow::Continue)
    }

    async fn after_agent(
        &self,
        _cx: TurnCx<'_>,
        _end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        Ok(After::Done)
    }
}

fn counted() -> (Agent, Arc<Counts>) {
    let counts = Arc::new(Counts::default());
    let agent = Agent::builder("explored")
        .model(Yielding)
        .with_lifecycle(Counting(counts.clone()))
        .build()
        .expect("the agent is well formed");
    (agent, counts)
}

fn plain() -> Agent {
    Agent::builder("plain").model(Yielding).build().expect("the agent is well formed")
}

fn poll_once(future: impl Future) {
    let _ = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
}

#[test]
fn a_start_and_a_stop_that_race_leave_it_terminated_and_paired() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            let starter = agent.clone();
            let start = spawn(async move { starter.startup().await });
            agent.shutdown().await;
            let started = start.await.expect("the task ran");
            agent.shutdown().await;
            assert_eq!(agent.state(), AgentState::Terminated);
            if let Err(error) = started {
                assert!(matches!(error.kind(), ErrorKind::Startup | ErrorKind::NotReady));
            }
            let [started, stopped, ..] = counts.all();
            assert_eq!(started, stopped);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn of_two_starts_one_starts_and_both_are_told() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            let other = agent.clone();
            let start = spawn(async move { other.startup().await.is_ok() });
            assert!(agent.startup().await.is_ok());
            assert!(start.await.expect("the task ran"));
            assert_eq!(agent.state(), AgentState::Ready);
            agent.shutdown().await;
            assert_eq!(counts.all(), [1, 1, 0, 0]);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_stop_in_the_middle_of_a_turn_lets_its_end_run_once() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            agent.startup().await.expect("it starts");
            let runner = agent.clone();
            let run = spawn(async move { runner.run("hello").await.is_ok() });
            agent.shutdown().await;
            let _ = run.await;
            assert_eq!(agent.state(), AgentState::Terminated);
            let [started, stopped, began, ended] = counts.all();
            assert_eq!((started, stopped), (1, 1));
            assert_eq!(began, ended);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_turn_never_begins_in_an_agent_that_is_being_stopped() {
    explore(|| {
        block_on(async {
            let agent = plain();
            agent.startup().await.expect("it starts");
            let runner = agent.clone();
            let run = spawn(async move { runner.run("hello").await.map(|_| ()) });
            agent.shutdown().await;
            if let Err(error) = run.await.expect("the task ran") {
                assert!(matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::NotReady));
            }
            assert_eq!(agent.phase(), Phase::Terminated);
        });
    });
}

#[test]
fn a_dropped_turn_ends_once_and_the_agent_is_ready_again() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            agent.startup().await.expect("it starts");
            poll_once(agent.run("dropped"));
            agent.ready().await.expect("it is ready again");
            agent.run("hello").await.expect("it runs");
            agent.shutdown().await;
            assert_eq!(counts.all(), [1, 1, 2, 2]);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_dropped_turn_and_a_dropped_handle_end_everything_once() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            let blueprint = agent.blueprint();
            agent.startup().await.expect("it starts");
            poll_once(agent.run("dropped"));
            drop(agent);
            blueprint.settled().await;
            assert_eq!(counts.all(), [1, 1, 1, 1]);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_dropped_start_is_rolled_back() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            poll_once(agent.startup());
            agent.terminated().await;
            let [started, stopped, ..] = counts.all();
            assert_eq!(started, stopped);
            assert_eq!(counts.violations(), 0);
            assert_eq!(agent.exit_reason(), Some(ExitReason::StartupFailed));
        });
    });
}

#[test]
fn of_two_handles_the_last_one_dropped_stops_it() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            let blueprint = agent.blueprint();
            agent.startup().await.expect("it starts");
            let other = agent.clone();
            let dropping = spawn(async move { drop(other) });
            drop(agent);
            dropping.await.expect("the task ran");
            blueprint.settled().await;
            assert_eq!(counts.all(), [1, 1, 0, 0]);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_registry_never_hands_out_an_agent_that_nobody_holds() {
    explore(|| {
        block_on(async {
            let registry = AgentRegistry::new();
            let agent = Agent::builder("found")
                .model(Yielding)
                .registry(Arc::new(registry.clone()))
                .build()
                .expect("the agent is well formed");
            let blueprint = agent.blueprint();
            agent.startup().await.expect("it starts");
            let dropping = spawn(async move { drop(agent) });
            if let Some(found) = registry.find("found") {
                let _ = found.run("hello").await;
                drop(found);
            }
            dropping.await.expect("the task ran");
            blueprint.settled().await;
            assert!(registry.find("found").is_none());
        });
    });
}

#[test]
fn pause_and_a_turn_exclude_each_other() {
    explore(|| {
        block_on(async {
            let counts = Arc::new(Counts::default());
            let agent = Agent::builder("paused")
                .model(NotPaused(counts.clone()))
                .build()
                .expect("the agent is well formed");
            agent.startup().await.expect("it starts");
            let runner = agent.clone();
            let run = spawn(async move { runner.run("hello").await.map(|_| ()) });
            let paused = agent.pause().await;
            if paused.is_ok() {
                assert_eq!(agent.state(), AgentState::Paused);
                agent.resume().await.expect("a paused agent resumes");
            }
            if let Err(error) = run.await.expect("the task ran") {
                assert_eq!(error.kind(), ErrorKind::NotReady);
            }
            agent.ready().await.expect("it is ready");
            agent.shutdown().await;
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn a_cancel_reaches_the_turn_or_comes_too_late_but_never_hangs() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            agent.startup().await.expect("it starts");
            let canceller = agent.clone();
            let cancel = spawn(async move { canceller.cancel() });
            let _ = agent.run("hello").await;
            cancel.await.expect("the task ran");
            agent.shutdown().await;
            let [_, _, began, ended] = counts.all();
            assert_eq!(began, ended);
            assert_eq!(counts.violations(), 0);
        });
    });
}

#[test]
fn two_requests_through_handle_both_end() {
    explore(|| {
        block_on(async {
            let (agent, counts) = counted();
            agent.startup().await.expect("it starts");
            let other = agent.clone();
            let second = spawn(async move { other.handle("two").await.is_ok() });
            assert!(agent.handle("one").await.is_ok());
            assert!(second.await.expect("the task ran"));
            agent.shutdown().await;
            let [started, stopped, began, ended] = counts.all();
            assert_eq!(started, stopped);
            assert_eq!((began, ended), (2, 2));
            assert_eq!(counts.violations(), 0);
        });
    });
}

/// Yields in every transition, and keeps what it is told. Its setup is done behind the yields.
#[derive(Clone, Default)]
struct Telling {
    told: Arc<Mutex<Vec<(Phase, Phase)>>>,
    is_in_setup: Arc<AtomicBool>,
    is_set_up: Arc<AtomicBool>,
}

#[async_trait]
impl PhaseHook for Telling {
    fn source(&self) -> PhasePattern {
        PhasePattern::Any
    }

    fn target(&self) -> PhasePattern {
        PhasePattern::Any
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let arrow = (cx.from(), cx.to());
        let sets_up = arrow == (Phase::Bootstrapping, Phase::Idle);
        self.told.lock().expect("no test panics under this lock").push(arrow);
        self.is_in_setup.store(sets_up, Ordering::SeqCst);
        for _ in 0..2 {
            yield_now().await;
        }
        self.is_in_setup.store(false, Ordering::SeqCst);
        if sets_up {
            self.is_set_up.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Telling {
    /// Each transition from where the one before it ended.
    fn assert_in_order(&self) {
        let told = self.told.lock().expect("no test panics under this lock");
        let mut at = Phase::Uninitialized;
        for (from, to) in &*told {
            assert!(*from == at && from.may_go_to(*to), "{told:?}");
            at = *to;
        }
        assert_eq!(at, Phase::Terminated, "{told:?}");
    }
}

/// Notes a turn that begins before the setup is done, and an end that runs in the middle of it.
struct BehindSetup(Telling, Arc<Counts>);

#[async_trait]
impl AgentLifecycle for BehindSetup {
    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        if !self.0.is_set_up.load(Ordering::SeqCst) {
            self.1.violations.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Flow::Continue)
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, _reason: ExitReason) -> Result<(), HookError> {
        if self.0.is_in_setup.load(Ordering::SeqCst) {
            self.1.violations.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

fn told() -> (Agent, Telling, Arc<Counts>) {
    let (telling, counts) = (Telling::default(), Arc::new(Counts::default()));
    let agent = Agent::builder("told")
        .model(Yielding)
        .phase_hook(telling.clone())
        .with_lifecycle(BehindSetup(telling.clone(), counts.clone()))
        .build()
        .expect("the agent is well formed");
    (agent, telling, counts)
}

#[test]
fn setup_holds_back_turns_starts_and_stops() {
    explore(|| {
        block_on(async {
            let (agent, telling, counts) = told();
            let set_up = telling.is_set_up.clone();
            let (starter, second, runner) = (agent.clone(), agent.clone(), agent.clone());
            let start = spawn(async move { starter.startup().await });
            let again = spawn(async move {
                let started = second.startup().await.is_ok();
                !started || set_up.load(Ordering::SeqCst)
            });
            let run = spawn(async move { runner.run("hello").await.map(|_| ()) });
            agent.shutdown().await;
            let started = start.await.expect("the task ran");
            assert!(again.await.expect("the task ran"), "a second start went ahead of the setup");
            let _ = run.await;
            agent.shutdown().await;
            assert_eq!(agent.state(), AgentState::Terminated);
            if let Err(error) = started {
                assert!(matches!(error.kind(), ErrorKind::Startup | ErrorKind::NotReady));
            }
            assert_eq!(counts.violations(), 0);
            telling.assert_in_order();
        });
    });
}

#[test]
fn transitions_are_told_in_the_order_in_which_they_happened() {
    explore(|| {
        block_on(async {
            let (agent, telling, counts) = told();
            agent.startup().await.expect("it starts");
            let (operator, runner) = (agent.clone(), agent.clone());
            let operate = spawn(async move {
                let _ = operator.pause().await;
                let _ = operator.resume().await;
            });
            let resumer = agent.clone();
            let resume = spawn(async move { resumer.resume().await.is_ok() });
            let run = spawn(async move { runner.run("hello").await.map(|_| ()) });
            agent.shutdown().await;
            operate.await.expect("the task ran");
            let _ = resume.await;
            let _ = run.await;
            assert_eq!(agent.state(), AgentState::Terminated);
            assert_eq!(counts.violations(), 0);
            telling.assert_in_order();
        });
    });
}

#[test]
fn a_start_that_is_dropped_in_its_setup_is_rolled_back() {
    explore(|| {
        block_on(async {
            let (agent, telling, counts) = told();
            let runner = agent.clone();
            let run = spawn(async move {
                let _ = runner.ready().await;
                runner.run("hello").await.map(|_| ())
            });
            {
                let mut starting = pin!(agent.startup());
                for _ in 0..5 {
                    let cx = &mut Context::from_waker(Waker::noop());
                    if starting.as_mut().poll(cx).is_ready() {
                        break;
                    }
                    yield_now().await;
                }
            }
            agent.shutdown().await;
            let _ = run.await;
            assert_eq!(agent.state(), AgentState::Terminated);
            assert_eq!(counts.violations(), 0);
            telling.assert_in_order();
        });
    });
}
