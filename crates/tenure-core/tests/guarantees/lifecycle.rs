//! Startup, shutdown, pause and resume: what the contract promises, for every agent.

use crate::guarantees::support::{Acts, Does, Events, Fault, Log, Saw, Says, Watch, agent};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentRegistry, Registry};
use tenure_core::hook;
use tenure_core::life::LifecycleConfig;
use tenure_core::phase::{AgentState, Phase};
use tenure_core::{ErrorKind, ExitReason};
use tokio::time::{Instant, sleep, timeout};

const MOMENT: Duration = Duration::from_secs(1);

fn watched(watch: Watch) -> Agent {
    agent("agent", Says::Done).with_lifecycle(watch).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_agent_is_uninitialized_and_holds_nothing() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log));
    assert_eq!(agent.state(), AgentState::Uninitialized);
    assert_eq!((agent.resource_count(), agent.state_values().len()), (0, 0));
    assert!(log.entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn startup_is_idempotent() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_start(Fault::After(MOMENT)));
    let (one, two) = tokio::join!(agent.startup(), agent.startup());
    assert!(one.is_ok() && two.is_ok());
    agent.startup().await.unwrap();
    agent.pause().await.unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.state(), AgentState::Paused);
    assert_eq!(log.of("watch"), [Saw::Start]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_is_idempotent_and_never_fails() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_shutdown(Fault::Fails));
    agent.startup().await.unwrap();
    tokio::join!(agent.shutdown(), agent.shutdown());
    agent.shutdown().await;
    assert_eq!(agent.state(), AgentState::Terminated);
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::Completed)]);
    assert_eq!(agent.failures().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_startup_error_has_its_kind_and_the_hooks_message() {
    let log = Log::default();
    for (fault, message) in [
        (Fault::Fails, "hook `watch` failed at on_start: watch is broken"),
        (Fault::Panics, "hook `watch` panicked at on_start: watch fell over"),
        (Fault::Hangs, "hook `watch` timed out at on_start: no answer within 30s"),
    ] {
        let agent = watched(Watch::new("watch", &log).on_start(fault));
        let error = agent.startup().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Startup);
        assert_eq!(error.to_string(), format!("startup failed: {message}"));
        assert_eq!(agent.exit_reason(), Some(ExitReason::StartupFailed));
    }
}

#[tokio::test(start_paused = true)]
async fn g4_startup_ends_within_its_timeout() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_start(Fault::After(MOMENT)));
    let began = Instant::now();
    let config = LifecycleConfig::default().timeout(Duration::from_millis(20));
    let error = agent.startup_with(config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Startup);
    assert_eq!(error.to_string(), "startup did not end within 20ms");
    assert!(began.elapsed() < Duration::from_millis(30), "{:?}", began.elapsed());
    assert_eq!(agent.state(), AgentState::Terminated);
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)]);
}

#[tokio::test(start_paused = true)]
async fn retries_are_made_and_each_attempt_is_undone() {
    let log = Log::default();
    let mut flaky = Watch::new("flaky", &log).on_start(Fault::Fails);
    flaky.failing_starts = Some(2);
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("first", &log))
        .with_lifecycle(flaky)
        .lifecycle(LifecycleConfig::default().retries(3))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let undone = Saw::Shutdown(ExitReason::StartupFailed);
    let attempts = [Saw::Start, undone.clone(), Saw::Start, undone, Saw::Start].to_vec();
    assert_eq!(log.of("flaky"), attempts);
    assert_eq!(log.of("first"), attempts);
    assert_eq!(agent.state(), AgentState::Ready);
}

#[tokio::test(start_paused = true)]
async fn without_retry_on_failure_there_is_one_attempt() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_start(Fault::Fails));
    let mut config = LifecycleConfig::default();
    config.max_retries = 5;
    agent.startup_with(config).await.unwrap_err();
    assert_eq!(log.of("watch").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn g4_retries_count_towards_the_timeout() {
    let log = Log::default();
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let slow = hook::on_start(move |_cx| {
        let counted = counted.clone();
        Box::pin(async move {
            counted.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(4)).await;
            Err(hook::HookError::new("not yet"))
        })
    });
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("watch", &log))
        .with_lifecycle(slow)
        .lifecycle(LifecycleConfig::default().timeout(Duration::from_secs(10)).retries(100))
        .build()
        .unwrap();
    let began = Instant::now();
    agent.startup().await.unwrap_err();
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(starts.load(Ordering::Relaxed), 3);
    assert_eq!(log.of("watch").len(), 6, "each start has its shutdown");
}

#[tokio::test(start_paused = true)]
async fn the_config_passed_to_startup_counts_when_it_fails() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_start(Fault::Fails));
    agent.startup_with(LifecycleConfig::default().keep_on_error()).await.unwrap_err();
    assert_eq!(agent.phase(), Phase::Error);
    assert_eq!(log.of("watch"), [Saw::Start], "nothing is cleaned up yet");
    for error in [agent.startup().await.unwrap_err(), agent.run("go").await.unwrap_err()] {
        assert_eq!((error.kind(), error.state()), (ErrorKind::NotReady, Some(AgentState::Error)));
    }
    agent.shutdown().await;
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)]);
    assert_eq!(agent.exit_reason(), Some(ExitReason::StartupFailed));
}

#[tokio::test(start_paused = true)]
async fn shutdown_from_uninitialized_runs_no_hooks() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log));
    agent.shutdown().await;
    assert_eq!(agent.state(), AgentState::Terminated);
    assert_eq!(agent.exit_reason(), Some(ExitReason::Completed));
    assert!(log.entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_terminated_agent_cannot_be_started_again() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log));
    agent.startup().await.unwrap();
    agent.shutdown().await;
    let error = agent.startup().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotReady);
    assert_eq!(error.state(), Some(AgentState::Terminated));
    assert!(error.to_string().contains("build a new instance"), "{error}");
    assert_eq!(agent.state(), AgentState::Terminated);
    assert_eq!(log.of("watch").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_need_a_ready_agent_and_the_error_names_the_state() {
    let agent = agent("agent", Says::Done).build().unwrap();
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "agent must be in ready state, but it is uninitialized; call startup() first"
    );
    agent.startup().await.unwrap();
    agent.pause().await.unwrap();
    assert_eq!(agent.run("go").await.unwrap_err().state(), Some(AgentState::Paused));
    agent.resume().await.unwrap();
    agent.run("go").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_two_runs_at_the_same_time_one_passes() {
    let agent = agent("agent", Says::Hangs).turn_limit(MOMENT).build().unwrap();
    agent.startup().await.unwrap();
    let (one, two) = tokio::join!(agent.run("one"), agent.run("two"));
    assert!(one.unwrap_err().is_timeout());
    assert_eq!(two.unwrap_err().state(), Some(AgentState::Busy));
    assert_eq!(agent.metrics().total_requests, 1);
}

#[tokio::test(start_paused = true)]
async fn pause_while_busy_is_a_typed_error_that_names_the_legal_targets() {
    let agent = agent("agent", Says::Hangs).turn_limit(MOMENT).build().unwrap();
    agent.startup().await.unwrap();
    let (_, paused) = tokio::join!(agent.run("go"), async {
        sleep(MOMENT / 2).await;
        agent.pause().await
    });
    let error = paused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IllegalTransition);
    let illegal = error.illegal_transition().unwrap();
    assert_eq!((illegal.from, illegal.to), (Phase::AwaitingLlmResponse, Phase::Paused));
    assert!(error.to_string().contains("legal from here: "), "{error}");
    assert_eq!(agent.resume().await.unwrap_err().kind(), ErrorKind::IllegalTransition);
}

#[tokio::test(start_paused = true)]
async fn ready_waits_for_resume_and_for_the_end_of_a_turn() {
    let agent = agent("agent", Says::Hangs).turn_limit(MOMENT).build().unwrap();
    assert_eq!(agent.ready().await.unwrap_err().state(), Some(AgentState::Uninitialized));
    agent.startup().await.unwrap();
    agent.pause().await.unwrap();
    let (ready, resumed) = tokio::join!(agent.ready(), async {
        sleep(MOMENT).await;
        agent.resume().await
    });
    assert!(ready.is_ok() && resumed.is_ok());
    let (_, ready) = tokio::join!(agent.run("go"), agent.ready());
    assert!(ready.is_ok());
    let (ready, ()) = tokio::join!(
        async {
            agent.pause().await.unwrap();
            agent.ready().await
        },
        async {
            sleep(MOMENT).await;
            agent.shutdown().await;
        }
    );
    assert!(ready.is_err(), "it never will be ready again");
}

#[tokio::test(start_paused = true)]
async fn metrics_are_real() {
    let log = Log::default();
    let watch = Watch::new("watch", &log)
        .on_start(Fault::After(MOMENT))
        .on_shutdown(Fault::After(MOMENT * 2));
    let agent = agent("agent", Says::Calls("hangs"))
        .tool(Acts("hangs", Does::Hangs))
        .tool_limit(MOMENT * 3)
        .with_lifecycle(watch)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.metrics().state_transitions, 2);
    agent.run("go").await.unwrap();
    let dropped = timeout(MOMENT, agent.run("go")).await;
    assert!(dropped.is_err());
    agent.blueprint().settled().await;
    agent.pause().await.unwrap();
    agent.resume().await.unwrap();
    agent.shutdown().await;
    let metrics = agent.metrics();
    assert_eq!((metrics.total_requests, metrics.failed_requests), (2, 1));
    assert!((metrics.startup_time_ms - 1e3).abs() < 5.0, "{metrics:?}");
    assert!((metrics.active_time_ms - 4e3).abs() < 5.0, "{metrics:?}");
    assert!((metrics.shutdown_time_ms - 2e3).abs() < 5.0, "{metrics:?}");
    // Start 2, a turn with a tool 8, one dropped in its tool 5, pause and resume 2, stop 2.
    assert_eq!(metrics.state_transitions, 19, "{metrics:?}");
}

#[tokio::test(start_paused = true)]
async fn g1_a_dropped_startup_is_rolled_back() {
    let log = Log::default();
    let (mut events, registry) = (Events::new(), AgentRegistry::new());
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("first", &log))
        .with_lifecycle(Watch::new("slow", &log).on_start(Fault::Hangs))
        .with_lifecycle(Watch::new("never", &log))
        .registry(Arc::new(registry.clone()))
        .events(&events.bus)
        .build()
        .unwrap();
    assert!(timeout(MOMENT, agent.startup()).await.is_err());
    agent.terminated().await;
    agent.blueprint().settled().await;
    let whole = [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)];
    assert_eq!(log.of("first"), whole);
    assert_eq!(log.of("slow"), whole);
    assert!(log.of("never").is_empty());
    assert_eq!(events.exits(agent.id()), [ExitReason::StartupFailed]);
    assert!(registry.names().is_empty());
    events.assert_paired("a dropped startup");
}

#[tokio::test(start_paused = true)]
async fn g1_a_rollback_whose_startup_is_dropped_goes_on() {
    let log = Log::default();
    let agent = agent("agent", Says::Done)
        .with_lifecycle(Watch::new("first", &log))
        .with_lifecycle(Watch::new("slow", &log).on_shutdown(Fault::After(MOMENT)))
        .with_lifecycle(Watch::new("broken", &log).on_start(Fault::Fails))
        .build()
        .unwrap();
    assert!(timeout(MOMENT / 2, agent.startup()).await.is_err());
    timeout(MOMENT * 2, agent.terminated()).await.unwrap();
    let whole = [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)];
    for hook in ["first", "slow", "broken"] {
        assert_eq!(log.of(hook), whole, "{hook}");
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_during_startup_interrupts_it_and_rolls_back() {
    let log = Log::default();
    let agent = watched(Watch::new("watch", &log).on_start(Fault::Hangs));
    let began = Instant::now();
    let (started, ()) = tokio::join!(agent.startup(), async {
        sleep(MOMENT).await;
        agent.shutdown().await;
        assert_eq!(agent.state(), AgentState::Terminated);
    });
    let error = started.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Startup);
    assert!(error.to_string().contains("interrupted by a shutdown"), "{error}");
    assert!(began.elapsed() < MOMENT * 2);
    assert_eq!(log.of("watch"), [Saw::Start, Saw::Shutdown(ExitReason::StartupFailed)]);
}

#[tokio::test(start_paused = true)]
async fn a_phase_hook_that_asks_for_shutdown_is_obeyed_after_the_transition() {
    for (from, to) in [
        (Phase::Uninitialized, Phase::Bootstrapping),
        (Phase::Bootstrapping, Phase::Idle),
        (Phase::Idle, Phase::ProcessingUserInput),
        (Phase::AwaitingLlmResponse, Phase::AnalyzingLlmResponse),
        (Phase::AnalyzingLlmResponse, Phase::Idle),
        (Phase::Idle, Phase::Paused),
        (Phase::Paused, Phase::Idle),
    ] {
        let log = Log::default();
        let asks = hook::on_transition(|cx| {
            cx.request_shutdown();
            Box::pin(async { Ok(()) })
        });
        let agent = agent("agent", Says::Done)
            .with_lifecycle(Watch::new("watch", &log))
            .with_lifecycle(hook::hook(asks).on(from, to))
            .build()
            .unwrap();
        let _ = agent.startup().await;
        let _ = agent.run("go").await;
        let _ = agent.pause().await;
        let _ = agent.resume().await;
        agent.blueprint().settled().await;
        assert_eq!(agent.state(), AgentState::Terminated, "{from} -> {to}");
        let starts = log.of("watch").iter().filter(|it| **it == Saw::Start).count();
        let stops = log.of("watch").iter().filter(|it| matches!(it, Saw::Shutdown(_))).count();
        assert_eq!(starts, stops, "{from} -> {to}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_registered_from_before_on_start_until_after_on_shutdown() {
    let registry = AgentRegistry::new();
    let find = |cx: tenure_core::context::InstanceCx<'_>| cx.get_agent("agent").is_some();
    let found = Arc::new(AtomicUsize::new(0));
    let (up, down) = (found.clone(), found.clone());
    let agent = agent("agent", Says::Done)
        .registry(Arc::new(registry.clone()))
        .with_lifecycle(hook::on_start(move |cx| {
            up.fetch_add(usize::from(find(cx)), Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        }))
        .with_lifecycle(hook::on_shutdown(move |cx, _reason| {
            down.fetch_add(usize::from(find(cx)), Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        }))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert!(registry.find("agent").is_some());
    let other = agent.blueprint().instance();
    let error = other.startup().await.unwrap_err();
    assert!(error.to_string().contains("registered already"), "{error}");
    assert!(registry.find("agent").is_some(), "a loser does not take the winner's place");
    agent.shutdown().await;
    assert_eq!(found.load(Ordering::Relaxed), 2);
    assert!(registry.find("agent").is_none());
}
