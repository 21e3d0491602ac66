//! Announcing transitions: a log is told in order, and under no lock of the agent.

use crate::guarantees::support::{Says, agent};
use async_trait::async_trait;
use serde_json::Value;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::PhaseCx;
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::HookError;
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::step::{MemoryStepLog, StepKey, StepLog, Steps};
use tenure_core::{BoxFuture, Error, RunId};
use tokio::time::sleep;

type Arrows = Vec<(Phase, Phase)>;

/// A log that keeps the transitions that it is told of, and does something at each.
struct Told<F> {
    steps: MemoryStepLog,
    arrows: Arc<Mutex<Arrows>>,
    does: F,
}

impl<F: Fn(Phase) + Send + Sync + 'static> StepLog for Told<F> {
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

    fn event(&self, event: Event) {
        if let EventKind::PhaseEntered { from, to, .. } = event.kind {
            (self.does)(to);
            self.arrows.lock().unwrap().push((from, to));
        }
    }

    fn takes_events(&self) -> bool {
        true
    }
}

/// An agent whose life is recorded in a log that does this at each transition.
fn recorded(does: impl Fn(Phase) + Send + Sync + 'static) -> (Agent, Arc<Mutex<Arrows>>) {
    let agent = agent("agent", Says::Done).build().unwrap();
    let arrows = Arc::<Mutex<Arrows>>::default();
    let log = Told { steps: MemoryStepLog::new(), arrows: Arc::clone(&arrows), does };
    agent.record(&Steps::new(Arc::new(log))).unwrap();
    (agent, arrows)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Waits for another thread of the test, which is stuck if it takes this long.
fn wait<T>(receiver: &Receiver<T>, what: &str) -> T {
    match receiver.recv_timeout(Duration::from_secs(10)) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("{what}: it is stuck"),
        Err(RecvTimeoutError::Disconnected) => panic!("{what}: it is gone"),
    }
}

fn spawn(agent: &Agent, work: impl AsyncFnOnce(&Agent) + Send + 'static) -> Receiver<()> {
    let (agent, (done, is_done)) = (agent.clone(), channel());
    thread::spawn(move || {
        block_on(work(&agent));
        let _ = done.send(());
    });
    is_done
}

const START: [(Phase, Phase); 2] =
    [(Phase::Uninitialized, Phase::Bootstrapping), (Phase::Bootstrapping, Phase::Idle)];
const PAUSE: (Phase, Phase) = (Phase::Idle, Phase::Paused);
const RESUME: (Phase, Phase) = (Phase::Paused, Phase::Idle);

#[test]
fn a_slow_log_keeps_no_mover_of_the_agent_waiting_and_is_told_in_order() {
    let (entered, is_entered) = channel::<()>();
    let (open, is_open) = channel::<()>();
    let gate = Mutex::new(is_open);
    let (agent, arrows) = recorded(move |to| {
        if to == Phase::Paused {
            let _ = entered.send(());
            let _ = gate.lock().unwrap().recv();
        }
    });
    block_on(agent.startup()).unwrap();
    let paused = spawn(&agent, async |agent| agent.pause().await.unwrap());
    wait(&is_entered, "the log");
    // One thread is in the log, and another one moves the agent on.
    let (moved, is_moved) = channel();
    let known = Arc::clone(&arrows);
    let resumed = spawn(&agent, async move |agent| {
        let mut resuming = pin!(agent.resume());
        let polled = poll_fn(|cx| Poll::Ready(resuming.as_mut().poll(cx))).await;
        let _ = moved.send((agent.state(), polled.is_pending()));
        resuming.await.unwrap();
        assert_eq!(known.lock().unwrap()[2..], [PAUSE, RESUME], "it is over when it was told");
    });
    let (state, is_waiting) = wait(&is_moved, "a mover of the agent");
    assert_eq!((state, is_waiting), (AgentState::Ready, true));
    assert_eq!(*arrows.lock().unwrap(), START, "nothing overtakes what is being told");
    drop(open);
    wait(&paused, "the pause");
    wait(&resumed, "the resume");
    assert_eq!(*arrows.lock().unwrap(), [START[0], START[1], PAUSE, RESUME]);
}

/// Counts its calls that come before the transition ahead was announced.
struct Behind {
    announced: Arc<Mutex<Arrows>>,
    early: Arc<AtomicUsize>,
}

#[async_trait]
impl PhaseHook for Behind {
    fn source(&self) -> PhasePattern {
        PhasePattern::Any
    }

    fn target(&self) -> PhasePattern {
        PhasePattern::Any
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let at = self.announced.lock().unwrap().last().map_or(Phase::Uninitialized, |it| it.1);
        self.early.fetch_add(usize::from(at != cx.from()), Ordering::SeqCst);
        sleep(Duration::from_millis(20)).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_hooks_of_a_transition_begin_when_the_one_ahead_was_announced() {
    let (announced, early) = (Arc::<Mutex<Arrows>>::default(), Arc::new(AtomicUsize::new(0)));
    let behind = Behind { announced: Arc::clone(&announced), early: early.clone() };
    let agent = agent("agent", Says::Done).phase_hook(behind).build().unwrap();
    let log = Told { steps: MemoryStepLog::new(), arrows: Arc::clone(&announced), does: |_| {} };
    agent.record(&Steps::new(Arc::new(log))).unwrap();
    agent.startup().await.unwrap();
    let after = |millis| sleep(Duration::from_millis(millis));
    let (paused, resumed, ()) = tokio::join!(
        agent.pause(),
        async {
            after(5).await;
            agent.resume().await
        },
        async {
            after(10).await;
            agent.shutdown().await;
        },
    );
    paused.unwrap();
    resumed.unwrap();
    assert_eq!(early.load(Ordering::SeqCst), 0);
    let announced = announced.lock().unwrap();
    assert_eq!(announced[2..4], [PAUSE, RESUME]);
    assert_eq!(announced.len(), 6, "{announced:?}");
}

#[test]
fn a_log_may_move_the_agent_that_it_is_told_of() {
    let slot = Arc::<Mutex<Option<Agent>>>::default();
    let of_log = Arc::clone(&slot);
    let (agent, arrows) = recorded(move |to| {
        let agent = of_log.lock().unwrap().clone();
        if let Some(agent) = agent.filter(|_| to == Phase::Paused) {
            let cx = &mut Context::from_waker(Waker::noop());
            let _ = pin!(agent.resume()).poll(cx);
        }
    });
    *slot.lock().unwrap() = Some(agent.clone());
    let over = spawn(&agent, async |agent| {
        agent.startup().await.unwrap();
        agent.pause().await.unwrap();
        assert_eq!(agent.state(), AgentState::Ready);
    });
    wait(&over, "the agent");
    assert_eq!(*arrows.lock().unwrap(), [START[0], START[1], PAUSE, RESUME]);
    slot.lock().unwrap().take();
}

#[test]
fn a_log_that_panics_holds_up_no_later_transition() {
    let (agent, arrows) = recorded(|to| {
        if to == Phase::Paused {
            crate::guarantees::support::fall_over("the log");
        }
    });
    block_on(agent.startup()).unwrap();
    catch_unwind(AssertUnwindSafe(|| block_on(agent.pause()))).unwrap_err();
    block_on(agent.resume()).unwrap();
    block_on(agent.shutdown());
    let told = arrows.lock().unwrap().clone();
    assert_eq!(told[..3], [START[0], START[1], RESUME]);
    assert_eq!(told.len(), 5, "{told:?}");
}
