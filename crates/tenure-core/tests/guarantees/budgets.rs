//! Budgets that several share, and the chance in the pauses of a startup.

use crate::guarantees::support::{Fault, Log, Says, Watch, agent, fall_over};
use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::AgentBuilder;
use tenure_core::context::PhaseCx;
use tenure_core::hook::{self, FaultKind, HookError};
use tenure_core::life::LifecycleConfig;
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tokio::time::{Instant, sleep};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hook on one transition that does something and counts its calls.
struct On {
    source: Phase,
    target: Phase,
    does: Does,
    calls: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Does {
    Takes(Duration),
    PanicsAfter(Duration),
    Hangs,
}

#[async_trait]
impl PhaseHook for On {
    fn source(&self) -> PhasePattern {
        self.source.into()
    }

    fn target(&self) -> PhasePattern {
        self.target.into()
    }

    async fn execute(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.does {
            Does::Takes(time) => sleep(time).await,
            Does::PanicsAfter(time) => {
                sleep(time).await;
                fall_over("the hook");
            }
            Does::Hangs => std::future::pending().await,
        }
        Ok(())
    }
}

/// An agent with these hooks on `source -> target`, and how often one of them is called.
fn hooked(source: Phase, target: Phase, does: &[Does]) -> (AgentBuilder, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let builder = does.iter().fold(agent("agent", Says::Done), |builder, does| {
        builder.phase_hook(On { source, target, does: *does, calls: calls.clone() })
    });
    (builder, calls)
}

#[tokio::test(start_paused = true)]
async fn g4_the_hooks_of_one_transition_share_one_budget() {
    let table: [&[Does]; 3] = [
        &[Does::Hangs, Does::Hangs, Does::Hangs],
        &[Does::Takes(ms(40)), Does::Hangs, Does::Takes(ms(1))],
        &[Does::PanicsAfter(ms(40)), Does::Takes(ms(40)), Does::Hangs],
    ];
    for (at, does) in table.into_iter().enumerate() {
        let (builder, calls) = hooked(Phase::Bootstrapping, Phase::Idle, does);
        let agent = builder.build().unwrap();
        let began = Instant::now();
        agent.startup_with(LifecycleConfig::default().timeout(ms(100))).await.unwrap();
        assert_eq!(began.elapsed(), ms(100), "{at}: together they have what one has");
        assert_eq!(calls.load(Ordering::SeqCst), 3, "{at}: each is called, also with no time left");
        assert_eq!(agent.state(), AgentState::Ready);
        let last = agent.failures().pop().unwrap();
        assert_eq!(last.kind, FaultKind::TimedOut, "{at}: {last}");
        agent.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn g4_waiting_for_a_transition_that_is_ahead_counts_towards_the_budget() {
    let ahead = On {
        source: Phase::Idle,
        target: Phase::Paused,
        does: Does::Takes(ms(30)),
        calls: Arc::default(),
    };
    let (builder, _) = hooked(Phase::Paused, Phase::ShuttingDown, &[Does::Hangs]);
    let agent = builder.phase_hook(ahead).build().unwrap();
    agent.startup().await.unwrap();
    let (paused, ()) = tokio::join!(agent.pause(), async {
        // The first transition of a stop has half of its budget.
        let began = Instant::now();
        agent.shutdown_within(ms(100)).await;
        assert_eq!(began.elapsed(), ms(50));
    });
    paused.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_second_half_of_a_pause_between_two_starts_is_left_to_chance() {
    let starts = Arc::<Mutex<Vec<Instant>>>::default();
    let seen = starts.clone();
    let failing = hook::on_start(move |_| {
        seen.lock().unwrap().push(Instant::now());
        Box::pin(async { Err(HookError::new("not yet")) })
    });
    let blueprint =
        agent("agent", Says::Done).with_lifecycle(failing).blueprint().expect("it is valid");
    let config = LifecycleConfig::default().retries(1).retry_delay(Duration::from_secs(1));
    let mut pauses = Vec::new();
    for _ in 0..32 {
        blueprint.instance().startup_with(config.clone()).await.unwrap_err();
        let starts = std::mem::take(&mut *starts.lock().unwrap());
        pauses.push(starts[1] - starts[0]);
    }
    let (least, most) = (*pauses.iter().min().unwrap(), *pauses.iter().max().unwrap());
    assert!(least >= ms(500) && most <= ms(1001), "{pauses:?}");
    // Of 32 chances all are in the same half of the range once in two thousand million times.
    assert!(least < ms(750) && most > ms(750), "agents that failed together come back together");
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_pause_tries_again_at_once() {
    let failing = Watch::new("watch", &Log::default()).on_start(Fault::Fails);
    let agent = agent("agent", Says::Done).with_lifecycle(failing).build().unwrap();
    let began = Instant::now();
    let config = LifecycleConfig::default().retries(3).retry_delay(Duration::ZERO);
    agent.startup_with(config).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::ZERO);
}
