//! Transitions and those who hear of them: setup holds the agent back, hooks are bounded by the
//! budget, and what happened is told in the order in which it happened.

use crate::guarantees::support::{Events, Fault, Log, Saw, Says, Watch, agent};
use async_trait::async_trait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::PhaseCx;
use tenure_core::hook::{FaultKind, HookError, Point};
use tenure_core::life::LifecycleConfig;
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::{ErrorKind, ExitReason};
use tokio::time::{Instant, sleep, timeout};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A hook on one kind of transition.
struct On {
    source: PhasePattern,
    target: PhasePattern,
    does: Fault,
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
    told: Arc<Mutex<Vec<(Phase, Phase)>>>,
}

impl On {
    fn new(source: impl Into<PhasePattern>, target: impl Into<PhasePattern>, does: Fault) -> Self {
        let (begun, ended, told) = Default::default();
        Self { source: source.into(), target: target.into(), does, begun, ended, told }
    }

    fn setup(does: Fault) -> Self {
        Self::new(Phase::Bootstrapping, Phase::Idle, does)
    }

    fn every(does: Fault) -> Self {
        Self::new(PhasePattern::Any, PhasePattern::Any, does)
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
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.told.lock().unwrap().push((cx.from(), cx.to()));
        let met = self.does.meet("the hook").await;
        self.ended.fetch_add(1, Ordering::SeqCst);
        met
    }
}

fn done(hook: impl PhaseHook) -> AgentBuilder {
    agent("agent", Says::Done).phase_hook(hook)
}

#[tokio::test(start_paused = true)]
async fn setup_holds_back_requests_starts_and_whoever_waits_for_ready() {
    let hook = On::setup(Fault::After(ms(50)));
    let (begun, ended) = (hook.begun.clone(), hook.ended.clone());
    let agent = done(hook).build().unwrap();
    let is_set_up = || ended.load(Ordering::SeqCst) == 1;
    let ready = async {
        sleep(ms(10)).await;
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        let early = agent.run("go").await.unwrap_err();
        assert_eq!(early.state(), Some(AgentState::Initializing), "{early}");
        let paused = agent.pause().await.unwrap_err();
        assert_eq!(paused.kind(), ErrorKind::IllegalTransition);
        let (ready, second) =
            tokio::join!(async { (agent.ready().await.is_ok(), is_set_up()) }, async {
                (agent.startup().await.is_ok(), is_set_up())
            },);
        assert_eq!((ready, second), ((true, true), (true, true)));
        agent.run("go").await.unwrap();
    };
    let (started, ()) = tokio::join!(agent.startup(), ready);
    started.unwrap();
    assert!((agent.metrics().startup_time_ms - 50.0).abs() < 2.0, "{:?}", agent.metrics());
    agent.shutdown().await;
    assert_eq!(begun.load(Ordering::SeqCst), 1, "once in a life");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_the_setup_and_the_start_fails() {
    let (log, hook) = (Log::default(), On::setup(Fault::After(ms(50))));
    let ended = hook.ended.clone();
    let agent = done(hook).with_lifecycle(Watch::new("watch", &log)).build().unwrap();
    let stop = async {
        sleep(ms(10)).await;
        agent.shutdown().await;
        assert_eq!(ended.load(Ordering::SeqCst), 1, "nothing is closed under a working hook");
    };
    let (started, ()) = tokio::join!(agent.startup(), stop);
    assert_eq!(started.unwrap_err().kind(), ErrorKind::Startup);
    assert_eq!(agent.state(), AgentState::Terminated);
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::Completed)]);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_dropped_in_its_setup_is_rolled_back() {
    let (log, mut events) = (Log::default(), Events::new());
    let agent = done(On::setup(Fault::Hangs))
        .events(&events.bus)
        .with_lifecycle(Watch::new("watch", &log))
        .build()
        .unwrap();
    assert!(timeout(ms(10), agent.startup()).await.is_err());
    agent.terminated().await;
    assert_eq!(agent.exit_reason(), Some(ExitReason::StartupFailed));
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)]);
    let arrows = events.phases(agent.id());
    assert_eq!(arrows[1], (Phase::Bootstrapping, Phase::Idle));
    assert_eq!(arrows[2], (Phase::Idle, Phase::ShuttingDown));
    assert_eq!(agent.metrics().state_transitions, 4, "{arrows:?}");
}

#[tokio::test(start_paused = true)]
async fn g4_a_startup_is_bounded_with_a_hook_that_hangs_at_every_transition() {
    for hook in [On::setup(Fault::Hangs), On::every(Fault::Hangs)] {
        let agent = done(hook).build().unwrap();
        let began = Instant::now();
        let config = LifecycleConfig::default().timeout(ms(100));
        agent.startup_with(config).await.expect("transitions continue, always");
        assert!(began.elapsed() <= ms(101), "{:?}", began.elapsed());
        assert_eq!(agent.state(), AgentState::Ready);
        let failures = agent.failures();
        assert!(!failures.is_empty());
        for failure in failures {
            assert_eq!(failure.kind, FaultKind::TimedOut, "{failure}");
            assert_eq!(&*failure.point, Point::OnTransition.as_str());
        }
        let began = Instant::now();
        agent.shutdown_within(ms(100)).await;
        assert!(began.elapsed() <= ms(101), "{:?}", began.elapsed());
        assert_eq!(agent.state(), AgentState::Terminated);
    }
}

#[tokio::test(start_paused = true)]
async fn g4_ends_still_have_time_behind_a_transition_that_hangs() {
    let log = Log::default();
    let agent = done(On::new(PhasePattern::Any, Phase::ShuttingDown, Fault::Hangs))
        .with_lifecycle(Watch::new("watch", &log).on_shutdown(Fault::After(ms(30))))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.shutdown_within(ms(100)).await;
    assert_eq!(agent.exit_reason(), Some(ExitReason::Completed));
    let failed: Vec<_> = agent.failures().into_iter().map(|it| it.point).collect();
    assert_eq!(failed, [Point::OnTransition.as_str().into()], "the end was not cut off");
}

#[tokio::test(start_paused = true)]
async fn g4_a_hook_of_a_transition_has_its_own_limit_where_no_budget_is() {
    let agent = done(On::new(Phase::Idle, Phase::Paused, Fault::Hangs)).build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    agent.pause().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn g4_a_shutdown_cuts_the_hook_of_a_transition_that_a_turn_waits_for() {
    let hangs = On::new(Phase::ProcessingUserInput, Phase::AwaitingLlmResponse, Fault::Hangs);
    let mut events = Events::new();
    let agent = done(hangs).events(&events.bus).build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    let (run, ()) = tokio::join!(agent.run("go"), async {
        sleep(ms(10)).await;
        agent.shutdown_within(ms(100)).await;
        assert!(began.elapsed() <= ms(115), "{:?}", began.elapsed());
    });
    assert!(run.is_err());
    check_in_order(&events.phases(agent.id()));
}

#[tokio::test(start_paused = true)]
async fn g4_a_turn_leaves_within_the_time_of_its_ends() {
    let hangs = On::new(PhasePattern::Any, Phase::Idle, Fault::Hangs);
    let agent = done(hangs).build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    agent.request("go").limit(ms(100)).run().await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(15));
    agent.shutdown().await;
}

/// Has a limit of its own.
struct Brief(On);

#[async_trait]
impl PhaseHook for Brief {
    fn source(&self) -> PhasePattern {
        self.0.source
    }
    fn target(&self) -> PhasePattern {
        self.0.target
    }
    fn limit(&self) -> Option<Duration> {
        Some(ms(20))
    }
    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.0.execute(cx).await
    }
}

#[tokio::test(start_paused = true)]
async fn g4_a_phase_hook_may_have_a_limit_of_its_own() {
    let agent = done(Brief(On::new(Phase::Idle, Phase::Paused, Fault::Hangs))).build().unwrap();
    agent.startup().await.unwrap();
    let began = Instant::now();
    agent.pause().await.unwrap();
    assert_eq!(began.elapsed(), ms(20));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_server_waits_for_the_setup_and_does_not_fork() {
    let hook = On::setup(Fault::After(ms(50)));
    let begun = hook.begun.clone();
    let agent = done(hook).build().unwrap();
    let (started, handled) = tokio::join!(agent.startup(), async {
        sleep(ms(10)).await;
        agent.handle("go").await
    });
    started.unwrap();
    handled.unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_the_middle_of_a_slow_hook_is_told_behind_it() {
    let slow = On::every(Fault::After(ms(20)));
    let (told, mut events) = (slow.told.clone(), Events::new());
    let agent = agent("agent", Says::Hangs).phase_hook(slow).events(&events.bus).build().unwrap();
    agent.startup().await.unwrap();
    // In the middle of the hook of `idle -> processing_user_input`.
    let _ = tokio::join!(agent.run("go"), async {
        sleep(ms(10)).await;
        agent.shutdown().await;
    });
    let arrows = events.phases(agent.id());
    check_in_order(&arrows);
    assert_eq!(*told.lock().unwrap(), arrows, "hooks and events tell the same");
    assert_eq!(arrows[2], (Phase::Idle, Phase::ProcessingUserInput));
    assert_eq!(arrows[3], (Phase::ProcessingUserInput, Phase::ShuttingDown));
}

#[tokio::test(start_paused = true)]
async fn a_resume_in_the_middle_of_a_slow_pause_is_told_behind_it() {
    let slow = On::new(Phase::Idle, Phase::Paused, Fault::After(ms(20)));
    let mut events = Events::new();
    let agent = done(slow).events(&events.bus).build().unwrap();
    agent.startup().await.unwrap();
    let (paused, resumed) = tokio::join!(agent.pause(), async {
        sleep(ms(10)).await;
        agent.resume().await
    });
    paused.unwrap();
    resumed.unwrap();
    assert_eq!(agent.state(), AgentState::Ready);
    let arrows = events.phases(agent.id());
    let end = &arrows[arrows.len() - 2..];
    assert_eq!(end, [(Phase::Idle, Phase::Paused), (Phase::Paused, Phase::Idle)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_ahead_and_not_polled_any_more_is_not_waited_for_for_ever() {
    let slow = On::new(Phase::Idle, Phase::Paused, Fault::After(ms(20)));
    let mut events = Events::new();
    let agent = done(slow)
        .phase_hook(On::new(Phase::Paused, Phase::Idle, Fault::None))
        .events(&events.bus)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let mut pausing = Box::pin(agent.pause());
    assert!(timeout(ms(1), &mut pausing).await.is_err());
    agent.resume().await.unwrap();
    pausing.await.unwrap();
    let arrows = events.phases(agent.id());
    check_in_order(&arrows);
    assert_eq!(arrows.len(), 4, "each is told once: {arrows:?}");
}

#[test]
fn a_hook_on_a_pair_that_no_agent_makes_is_an_error_of_the_build() {
    for (hook, instead) in [
        (
            On::new(Phase::Idle, Phase::Bootstrapping, Fault::None),
            "goes to: paused, processing_user_input",
        ),
        (On::new(Phase::Terminated, PhasePattern::Any, Fault::None), "goes to: none"),
        (On::new(PhasePattern::Any, Phase::Uninitialized, Fault::None), "reached from: none"),
    ] {
        let error = done(hook).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("a transition that no agent makes"), "{error}");
        assert!(error.to_string().contains(instead), "{error}");
    }
    done(On::new(PhasePattern::Any, Phase::Error, Fault::None)).build().unwrap();
}

fn check_in_order(arrows: &[(Phase, Phase)]) {
    let mut at = Phase::Uninitialized;
    for (from, to) in arrows {
        assert!(*from == at && from.may_go_to(*to), "{from} -> {to} in {arrows:?}");
        at = *to;
    }
}

/// The agents of a test that are only looked at.
fn numbers(agent: &Agent) -> (u64, u64, u64) {
    let metrics = agent.metrics();
    (metrics.total_requests, metrics.failed_requests, metrics.state_transitions)
}

#[tokio::test(start_paused = true)]
async fn the_count_of_transitions_is_that_of_the_events() {
    for model in [Says::Done, Says::Fails, Says::Fatal, Says::Hangs, Says::Panics] {
        for hooked in [true, false] {
            let mut events = Events::new();
            let mut builder = agent("agent", model).events(&events.bus);
            if hooked {
                builder = builder.phase_hook(On::every(Fault::After(ms(1))));
            }
            let agent = builder.build().unwrap();
            agent.startup().await.unwrap();
            let _ = tokio::join!(agent.run("go"), async {
                sleep(ms(50)).await;
                agent.shutdown().await;
            });
            let arrows = events.phases(agent.id());
            check_in_order(&arrows);
            let (total, failed, moves) = numbers(&agent);
            assert_eq!(moves, arrows.len() as u64, "{model:?}, {hooked}: {arrows:?}");
            assert_eq!((total, failed), (1, u64::from(model != Says::Done)), "{model:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_counted_when_it_is_taken_on() {
    let agent = agent("agent", Says::Hangs).build().unwrap();
    agent.startup().await.unwrap();
    let _ = tokio::join!(agent.run("go"), async {
        sleep(ms(1)).await;
        assert_eq!(numbers(&agent), (1, 0, 2));
        agent.cancel();
    });
    assert_eq!(numbers(&agent).0, 1);
}

#[tokio::test(start_paused = true)]
async fn a_startup_that_is_dropped_or_rolled_back_is_counted_and_timed() {
    let mut events = Events::new();
    for (start, patience) in [(Fault::Hangs, ms(5)), (Fault::Fails, ms(100))] {
        let log = Log::default();
        let watch = Watch::new("watch", &log).on_start(start).on_shutdown(Fault::After(ms(20)));
        let agent =
            agent("agent", Says::Done).events(&events.bus).with_lifecycle(watch).build().unwrap();
        assert!(!matches!(timeout(patience, agent.startup()).await, Ok(Ok(()))));
        agent.terminated().await;
        let arrows = events.phases(agent.id());
        assert_eq!(agent.metrics().state_transitions, arrows.len() as u64, "{arrows:?}");
        let took = agent.metrics().shutdown_time_ms;
        assert!((took - 20.0).abs() < 2.0, "{start:?}: {took}");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_pause_longer_each_time_and_within_the_budget() {
    let starts: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = starts.clone();
    let failing = tenure_core::hook::on_start(move |_| {
        seen.lock().unwrap().push(Instant::now());
        Box::pin(async { Err(HookError::new("not yet")) })
    });
    let retrying = agent("agent", Says::Done).with_lifecycle(failing).build().unwrap();
    let config = LifecycleConfig::default().retries(3);
    let error = retrying.startup_with(config).await.unwrap_err();
    assert!(error.to_string().contains("not yet"), "{error}");
    let starts = starts.lock().unwrap().clone();
    let pauses: Vec<_> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(pauses.len(), 3);
    for (at, pause) in pauses.iter().enumerate() {
        let most = ms(100 << at);
        assert!(*pause >= most / 2 && *pause <= most + ms(2), "{at}: {pause:?}");
    }

    let failing = Watch::new("watch", &Log::default()).on_start(Fault::Fails);
    let agent = agent("agent", Says::Done).with_lifecycle(failing).build().unwrap();
    let began = Instant::now();
    let config = LifecycleConfig::default().timeout(ms(300)).retries(100);
    agent.startup_with(config).await.unwrap_err();
    assert!(began.elapsed() <= ms(301), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_pause_between_two_attempts() {
    let failing = Watch::new("watch", &Log::default()).on_start(Fault::Fails);
    let agent = agent("agent", Says::Done).with_lifecycle(failing).build().unwrap();
    let config = LifecycleConfig::default().retries(5).retry_delay(Duration::from_secs(4));
    let (started, ()) = tokio::join!(agent.startup_with(config), async {
        sleep(ms(10)).await;
        let began = Instant::now();
        agent.shutdown().await;
        assert!(began.elapsed() < ms(10), "{:?}", began.elapsed());
    });
    assert!(started.unwrap_err().to_string().contains("interrupted"));
}

#[tokio::test(start_paused = true)]
async fn startups_at_the_same_time_all_get_the_cause() {
    let failing = Watch::new("watch", &Log::default())
        .on_start(Fault::Fails)
        .on_shutdown(Fault::After(ms(5)));
    let slow = Watch::new("slow", &Log::default()).on_start(Fault::After(ms(5)));
    let agent =
        agent("agent", Says::Done).with_lifecycle(slow).with_lifecycle(failing).build().unwrap();
    let (one, two) = tokio::join!(agent.startup(), agent.startup());
    for error in [one.unwrap_err(), two.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Startup);
        assert!(error.to_string().contains("watch is broken"), "{error}");
        assert_eq!(agent.state(), AgentState::Terminated);
    }
}
