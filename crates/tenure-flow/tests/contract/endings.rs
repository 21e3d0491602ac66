//! Whatever happens: one terminal stage, and the agents that were started are ended.

use crate::contract::support::*;
use async_trait::async_trait;
use std::time::Duration;
use tenure_core::context::ExecutionContext;
use tenure_core::hook::{HookError, on_shutdown};
use tenure_core::{CancelToken, Error, Outcome};
use tenure_flow::contract::{
    ErrorStrategy, Manual, Orchestrator, OrchestratorBuilder, Planner, Recovery, Stage, Start, Task,
};
use tenure_flow::route::RoutingDecision;
use tenure_models::{Hanging, Passthrough, Scripted};
use tokio::time::{Instant, sleep, timeout};

const SHORT: Duration = Duration::from_millis(50);

enum Plans {
    Nothing,
    Panic,
    Never,
    Circle,
}

#[async_trait]
impl Planner for Plans {
    async fn plan(&self, _: &str, _: &ExecutionContext) -> Result<Vec<Task>, Error> {
        match self {
            Self::Nothing => Err(Error::orchestration("the goal is not understood")),
            Self::Panic => fall_over("the plan"),
            Self::Never => std::future::pending().await,
            Self::Circle => Ok(vec![Task::new("a", "").after("b"), Task::new("b", "").after("a")]),
        }
    }
}

/// Panics without a word on the terminal.
fn fall_over(who: &str) -> ! {
    std::panic::resume_unwind(Box::new(format!("{who} fell over")))
}

type With = fn(OrchestratorBuilder, &Log) -> OrchestratorBuilder;

fn with_two(log: &Log, with: With) -> Orchestrator {
    orchestrator(|it| {
        let it = it.agent(log.blueprint("w1", Passthrough::new()));
        with(it.agent(log.blueprint("w2", Passthrough::new())), log)
    })
}

/// What fails, how, where the error is said to be, what it says, and how it ends.
const FAILURES: &[(&str, With, Stage, &str, Outcome)] = &[
    (
        "the planner fails",
        |it, _| it.planner(Plans::Nothing),
        Stage::Plan,
        "the goal is not understood",
        Outcome::Failed,
    ),
    (
        "the planner panics",
        |it, _| it.planner(Plans::Panic),
        Stage::Plan,
        "the planner panicked: the plan fell over",
        Outcome::Panicked,
    ),
    (
        "the plan cannot be done",
        |it, _| it.planner(Plans::Circle),
        Stage::Plan,
        "wait for each other",
        Outcome::Failed,
    ),
    (
        "nobody can do the task",
        |it, _| it.planner(tasks_for(&["nobody"])),
        Stage::Route,
        "no such agent",
        Outcome::Failed,
    ),
    (
        "the router fails",
        |it, _| it.router(Manual::new(|_| Err(Error::orchestration("the map is lost")))),
        Stage::Route,
        "the map is lost",
        Outcome::Failed,
    ),
    (
        "the router panics",
        |it, _| it.router(Manual::new(|_| fall_over("the map"))),
        Stage::Route,
        "the router panicked: the map fell over",
        Outcome::Panicked,
    ),
    (
        "an agent does not start",
        |it, _| it.agent(stillborn("w3")),
        Stage::Initialize,
        "agent `w3` did not start: ",
        Outcome::Failed,
    ),
    (
        "an agent does not start when it is needed",
        |it, _| {
            it.agent(stillborn("w3")).start(Start::WhenNeeded).planner(tasks_for(&["w1", "w3"]))
        },
        Stage::Execute,
        "it did not start: ",
        Outcome::Failed,
    ),
    (
        "a step fails",
        |it, log| it.agent(log.blueprint("w3", broken())).planner(tasks_for(&["w1", "w3"])),
        Stage::Execute,
        "not like that",
        Outcome::Failed,
    ),
    (
        "a step panics",
        |it, log| {
            let model = Scripted::from_fn(|_, _| fall_over("the model"));
            it.agent(log.blueprint("w3", model)).planner(tasks_for(&["w1", "w3"]))
        },
        Stage::Execute,
        "the model fell over",
        Outcome::Panicked,
    ),
    (
        "a step takes too long",
        |it, log| {
            let it = it.agent(log.blueprint("w3", Hanging::new())).task_limit(SHORT);
            it.planner(tasks_for(&["w1", "w3"]))
        },
        Stage::Execute,
        "did not end within its limit",
        Outcome::TimedOut,
    ),
    (
        "the results cannot be put together",
        |it, _| it.aggregate(|_| Err(Error::orchestration("they contradict each other"))),
        Stage::Aggregate,
        "they contradict each other",
        Outcome::Failed,
    ),
    (
        "putting the results together panics",
        |it, _| it.aggregate(|_| fall_over("the sum")),
        Stage::Aggregate,
        "the aggregation panicked: the sum fell over",
        Outcome::Panicked,
    ),
];

#[tokio::test]
async fn whatever_fails_ends_with_failed_and_with_the_agents_ended_in_reverse_order() {
    for (what, with, stage, message, outcome) in FAILURES {
        let log = Log::default();
        let it = with_two(&log, *with);
        let (_, report) = run(it.orchestrate("goal", context())).await;
        assert_eq!(report.stage, Stage::Failed, "{what}");
        let error = report.error().expect("it failed");
        assert_eq!((error.stage, error.outcome), (*stage, *outcome), "{what}: {error}");
        assert!(error.message.contains(message), "{what}: {error}");
        assert_eq!(error.context.trace_id(), "trace-1", "{what}");
        assert!(log.lines().len() >= 2, "{what}: {:?}", log.lines());
        log.assert_ended_in_reverse();
    }
}

#[tokio::test]
async fn a_failure_beside_the_steps_is_one_under_every_strategy() {
    for strategy in [ErrorStrategy::Continue, ErrorStrategy::RETRY, ErrorStrategy::Fallback] {
        for (what, with, stage, ..) in FAILURES.iter().filter(|it| it.2 != Stage::Execute) {
            if *stage == Stage::Route && what.contains("panics") {
                continue;
            }
            let log = Log::default();
            let it = with_two(&log, *with);
            let (_, report) = run(it.orchestrate("goal", context()).error_strategy(strategy)).await;
            assert_eq!(report.stage, Stage::Failed, "{what}, {strategy}");
            log.assert_ended_in_reverse();
        }
    }
}

#[tokio::test]
async fn the_step_whose_router_panicked_is_the_one_that_failed() {
    let it = orchestrator(|it| {
        it.agent(echo("w1")).planner(tasks_for(&["w1", "w1"])).router(Manual::new(|cx| match &*cx
            .task
            .id
        {
            "t1" => Ok(RoutingDecision::agent("w1", "it is the only one there is")),
            _ => fall_over("the map"),
        }))
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    let partial = report.partial.expect("it is partial");
    assert_eq!(partial.completed_steps, ["t1".into()]);
    assert_eq!(partial.failure_point.as_deref(), Some("t2"));
    assert_eq!(report.metrics.failed_steps, 1);
}

/// Cancels when it is in this stage; with the paused clock that is for good.
async fn cancelled_in(stage: Stage, with: With, strategy: ErrorStrategy) {
    let log = Log::default();
    let it = with_two(&log, with);
    let token = CancelToken::new();
    let began = Instant::now();
    let running = it.orchestrate("goal", context()).error_strategy(strategy).cancel_on(&token);
    let cancel = async {
        sleep(SHORT).await;
        token.cancel();
    };
    let ((_, report), ()) = tokio::join!(run(running), cancel);
    assert_eq!(report.stage, Stage::Cancelled, "{:?}", report.result);
    let error = report.error().expect("it was cancelled");
    assert_eq!((error.stage, error.outcome), (stage, Outcome::Cancelled), "{error}");
    assert!(error.is_cancelled() && Error::from(error.clone()).is_cancelled());
    assert!(began.elapsed() < Duration::from_secs(1), "it went on for {:?}", began.elapsed());
    log.assert_ended_in_reverse();
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_it_wherever_it_is_and_is_never_repeated() {
    let hangs: With = |it, log| {
        it.agent(log.blueprint("w3", Hanging::new())).planner(tasks_for(&["w1", "w3", "w2"]))
    };
    for strategy in [
        ErrorStrategy::FailFast,
        ErrorStrategy::Continue,
        ErrorStrategy::RETRY,
        ErrorStrategy::Fallback,
    ] {
        cancelled_in(Stage::Execute, hangs, strategy).await;
    }
    cancelled_in(Stage::Plan, |it, _| it.planner(Plans::Never), ErrorStrategy::FailFast).await;
    // In the wait before a repetition.
    let fails: With =
        |it, log| it.agent(log.blueprint("w3", overloaded())).planner(tasks_for(&["w3"]));
    let retry = ErrorStrategy::Retry { attempts: 5, backoff: Duration::from_secs(30) };
    cancelled_in(Stage::Execute, fails, retry).await;
    // While an agent starts.
    let slow: With = |it, log| {
        use tenure_core::hook::on_start;
        let slow = log.agent("w3", Passthrough::new());
        let slow = slow.with_lifecycle(on_start(|_| {
            Box::pin(async {
                sleep(Duration::from_secs(20)).await;
                Ok(())
            })
        }));
        it.agent(built(slow))
    };
    cancelled_in(Stage::Initialize, slow, ErrorStrategy::FailFast).await;
}

#[tokio::test]
async fn what_was_cancelled_before_it_began_starts_nobody() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("w1", Passthrough::new())).start(Start::WhenNeeded)
    });
    let token = CancelToken::new();
    token.cancel();
    let (events, report) = run(it.orchestrate("goal", context()).cancel_on(&token)).await;
    assert_eq!(stages(&events), [Stage::Initialize, Stage::Cancelled]);
    assert_eq!(report.metrics.total_steps, 0);
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_on_the_whole_ends_it_as_timed_out() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("w1", Passthrough::new()))
            .agent(log.blueprint("w2", Hanging::new()))
            .planner(tasks_for(&["w1", "w2"]))
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::RETRY);
    let (_, report) = run(it.limit(Duration::from_secs(7))).await;
    assert_eq!(report.stage, Stage::Failed);
    let error = report.error().expect("it failed");
    assert_eq!((error.stage, error.outcome), (Stage::Execute, Outcome::TimedOut));
    assert!(error.message.contains("did not end within 7s"), "{error}");
    assert_eq!(report.duration.as_secs(), 7);
    let partial = report.partial.as_ref().expect("it is partial");
    assert_eq!(partial.completed_steps, ["t1".into()]);
    assert_eq!(partial.recovery, Recovery::RetryFailed);
    log.assert_ended_in_reverse();
}

#[tokio::test]
async fn a_dropped_future_is_torn_down_in_the_background() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("w1", Passthrough::new()))
            .agent(log.blueprint("w2", Hanging::new()))
            .planner(tasks_for(&["w1", "w2"]))
    });
    let dropped = timeout(SHORT, it.orchestrate("goal", context()).run()).await;
    assert!(dropped.is_err(), "it hangs");
    it.settled().await;
    assert_eq!(log.lines(), ["+w1", "+w2", "-w2", "-w1"]);
}

#[tokio::test]
async fn dropping_one_orchestration_does_not_cancel_another_with_the_same_token() {
    let token = CancelToken::new();
    let it = orchestrator(|it| it.agent(built(Log::default().agent("w1", Hanging::new()))));
    let dropped = it.orchestrate("goal", context()).cancel_on(&token).stream();
    drop(dropped);
    it.settled().await;
    assert!(!token.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn teardown_never_fails_whatever_the_agents_do_at_their_end() {
    let log = Log::default();
    let ends_badly = |name: &str, how: u8| {
        built(log.agent(name, Passthrough::new()).with_lifecycle(on_shutdown(move |_, _| {
            Box::pin(async move {
                match how {
                    0 => Err(HookError::new("it does not close")),
                    1 => fall_over("the end"),
                    _ => std::future::pending().await,
                }
            })
        })))
    };
    let it = orchestrator(|it| {
        it.agent(ends_badly("fails", 0))
            .agent(ends_badly("panics", 1))
            .agent(ends_badly("hangs", 2))
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    assert!(report.is_success(), "{report:?}");
    log.assert_ended_in_reverse();
    assert_eq!(log.lines().len(), 6);
}

#[test]
fn a_runtime_that_goes_away_is_a_failure_that_says_so() {
    let it = orchestrator(|it| it.agent(built(Log::default().agent("w1", Hanging::new()))));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut stream = {
        let _inside = runtime.enter();
        it.orchestrate("goal", context()).stream()
    };
    runtime.block_on(async {
        while stream.stage() != Some(Stage::Execute) {
            let _ = stream.next().await;
        }
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    let other = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let report = other.block_on(stream.finish());
    assert_eq!(report.stage, Stage::Failed);
    let error = report.error().expect("it failed");
    assert_eq!((error.stage, error.outcome), (Stage::Execute, Outcome::Abandoned));
}
