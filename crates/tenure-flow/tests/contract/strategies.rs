//! The strategies do what they say.

use crate::contract::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse};
use tenure_core::{Error, Outcome};
use tenure_flow::contract::{
    ErrorStrategy, ExponentialBackoff, OrchestrationError, Reaction, Recovery, Stage, StageEvent,
    StepStatus, Task,
};
use tenure_models::{Failing, Passthrough, Scripted};
use tokio::time::Instant;

const EVERY: [ErrorStrategy; 4] = [
    ErrorStrategy::FailFast,
    ErrorStrategy::Continue,
    ErrorStrategy::RETRY,
    ErrorStrategy::Fallback,
];

/// A model that fails so often and answers then.
fn recovers_after(failures: usize) -> Scripted {
    Scripted::from_fn(move |_, call| match call < failures {
        true => Err(ModelError::new(ModelErrorKind::Overloaded, "come back later")),
        false => Ok(ModelResponse::text(format!("at call {}", call + 1))),
    })
}

fn count(events: &[StageEvent], status: &str) -> usize {
    events.iter().filter(|event| event.data["status"] == status).count()
}

#[tokio::test]
async fn fail_fast_ends_with_failed_and_the_agents_end_and_later_steps_do_not_run() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("good", Passthrough::new()))
            .agent(log.blueprint("bad", broken()))
            .planner(tasks_for(&["good", "bad", "good"]))
    });
    let (events, report) = run(it.orchestrate("goal", context())).await;
    assert_eq!(report.stage, Stage::Failed);
    assert_eq!(events.last().expect("an event").data["error"]["stage"], "execute");
    let statuses: Vec<_> = report.steps.iter().map(|step| step.status).collect();
    use StepStatus::{Completed, Failed, Pending};
    assert_eq!(statuses, [Completed, Failed, Pending]);
    assert_eq!(log.lines(), ["+good", "+bad", "-bad", "-good"]);
    let metrics = report.metrics;
    assert_eq!((metrics.total_steps, metrics.successful_steps, metrics.failed_steps), (2, 1, 1));
    assert_eq!((metrics.retries, metrics.routing_decisions), (0, 2));
}

#[tokio::test]
async fn the_error_carries_stage_message_context_cause_and_whether_it_may_pass() {
    for (model, recoverable) in [(broken(), false), (overloaded(), true)] {
        let log = Log::default();
        let it =
            orchestrator(|it| it.agent(log.blueprint("bad", model)).planner(tasks_for(&["bad"])));
        let (_, report) = run(it.orchestrate("goal", context())).await;
        let error = report.error().expect("it failed");
        assert_eq!(error.stage, Stage::Execute);
        assert!(error.message.starts_with("task `t1` failed at agent `bad`: "), "{error}");
        assert_eq!(error.context.parent(), Some(&context_of(&report.context)));
        assert_eq!(error.task.as_deref(), Some("t1"));
        let cause = error.cause.as_ref().expect("a cause");
        assert!(cause.model_error().is_some());
        assert!(cause.report().is_some(), "what the turn did is not lost");
        assert_eq!((error.recoverable, error.outcome), (recoverable, Outcome::Failed));
        assert!(error.to_string().starts_with("at execute: task `t1`"), "{error}");
        assert!(error.to_string().ends_with("(trace trace-1)"), "{error}");
    }
}

fn context_of(context: &Arc<ExecutionContext>) -> ExecutionContext {
    (**context).clone()
}

#[tokio::test]
async fn continue_does_the_rest_and_never_calls_it_a_success() {
    let it = orchestrator(|it| {
        it.agent(echo("good"))
            .agent(built(Agent::builder("bad").model(broken())))
            .planner(tasks_for(&["good", "bad", "good"]))
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Continue);
    let (events, report) = run(it).await;
    assert_eq!(report.stage, Stage::Complete);
    assert!(!report.is_success());
    assert_eq!(report.output(), "do 1\n\ndo 3");
    let last = &events.last().expect("an event").data;
    assert_eq!((&last["success"], &last["strategy"]), (&false.into(), &"continue".into()));
    assert_eq!(last["partial"]["failed_steps"][0], "t2");
    let partial = report.partial.as_ref().expect("it is partial");
    assert_eq!(partial.completed_steps, ["t1".into(), "t3".into()]);
    assert_eq!(partial.failed_steps[0].0, "t2".into());
    assert_eq!(partial.failure_point.as_deref(), Some("t2"));
    assert_eq!(partial.recovery, Recovery::SkipFailed);
    let metrics = report.metrics;
    assert_eq!((metrics.total_steps, metrics.successful_steps, metrics.failed_steps), (3, 2, 1));
}

#[tokio::test]
async fn continue_with_nothing_done_is_failed() {
    let it = orchestrator(|it| {
        it.agent(built(Agent::builder("bad").model(broken()))).planner(tasks_for(&["bad", "bad"]))
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Continue);
    let (_, report) = run(it).await;
    assert_eq!(report.stage, Stage::Failed);
    assert_eq!(report.metrics.failed_steps, 2);
    assert_eq!(report.error().and_then(|error| error.task.as_deref()), Some("t1"));
}

#[tokio::test]
async fn continue_goes_on_after_a_task_that_nobody_can_do() {
    let it = orchestrator(|it| it.agent(echo("good")).planner(tasks_for(&["nobody", "good"])));
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Continue);
    let (_, report) = run(it).await;
    assert_eq!((report.stage, report.is_success()), (Stage::Complete, false));
    assert_eq!(report.output(), "do 2");
    let failed = report.step("t1").and_then(|step| step.error.as_ref()).expect("it failed");
    assert_eq!(failed.stage, Stage::Route);
    assert_eq!((report.metrics.failed_steps, report.metrics.routing_decisions), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_succeeds_after_retries_that_wait_longer_each_time() {
    let it = orchestrator(|it| it.agent(built(Agent::builder("w1").model(recovers_after(3)))));
    let began = Instant::now();
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::RETRY);
    let (events, report) = run(it).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.output(), "at call 4");
    assert_eq!(began.elapsed().as_secs(), 1 + 2 + 4);
    assert_eq!((count(&events, "failed"), count(&events, "completed")), (3, 1));
    assert_eq!((report.steps[0].attempts, report.metrics.retries), (4, 3));
    assert_eq!((report.metrics.total_steps, report.metrics.failed_steps), (1, 0));
    assert!(report.metrics.average_step_duration_ms() >= 7_000.0);
}

#[tokio::test(start_paused = true)]
async fn retries_are_bounded_and_end_with_failed() {
    let retry = ErrorStrategy::Retry { attempts: 8, backoff: Duration::from_secs(1) };
    let it = orchestrator(|it| it.agent(built(Agent::builder("w1").model(overloaded()))));
    let began = Instant::now();
    let (events, report) = run(it.orchestrate("goal", context()).error_strategy(retry)).await;
    assert_eq!(report.stage, Stage::Failed);
    assert_eq!(began.elapsed().as_secs(), 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60);
    assert_eq!((count(&events, "started"), report.metrics.retries), (9, 8));
    assert_eq!((report.metrics.total_steps, report.metrics.failed_steps), (1, 1));
    assert_eq!(report.partial.expect("it is partial").recovery, Recovery::RetryFailed);
}

#[tokio::test(start_paused = true)]
async fn a_retry_comes_no_sooner_than_the_model_asks_for_within_the_bound() {
    for (asked, waited) in [(5, 5), (3_600, 60)] {
        let model = Failing::new(ModelErrorKind::RateLimited);
        let model = model.retry_after(Duration::from_secs(asked));
        let it = orchestrator(|it| it.agent(built(Agent::builder("w1").model(model))));
        let retry = ErrorStrategy::Retry { attempts: 1, backoff: Duration::from_secs(1) };
        let began = Instant::now();
        run(it.orchestrate("goal", context()).error_strategy(retry)).await;
        assert_eq!(began.elapsed().as_secs(), waited);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_neither_repeated_nor_asked_of_somebody_else() {
    for strategy in EVERY {
        let asked = Log::default();
        let it = orchestrator(|it| {
            it.agent(refusing("guarded", &asked))
                .agent(echo("other"))
                .planner(vec![Task::new("a", "one"), Task::new("b", "two")])
        });
        let (_, report) = run(it.orchestrate("goal", context()).error_strategy(strategy)).await;
        assert_eq!(asked.lines().len(), 1, "{strategy}");
        let first = &report.steps[0];
        assert_eq!((first.status, first.attempts), (StepStatus::Failed, 1), "{strategy}");
        let error = first.error.as_ref().expect("it was refused");
        assert_eq!((error.outcome, error.recoverable), (Outcome::Denied, false));
        let goes_on = strategy == ErrorStrategy::Continue;
        let stage = if goes_on { Stage::Complete } else { Stage::Failed };
        assert_eq!(report.stage, stage, "{strategy}");
        assert_eq!(report.partial.expect("it is partial").recovery, Recovery::Manual);
    }
}

#[tokio::test]
async fn a_fallback_does_the_step_and_is_recorded() {
    let it = orchestrator(|it| {
        it.agent(built(Agent::builder("bad").model(broken()))).agent(echo("good"))
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Fallback);
    let (events, report) = run(it).await;
    assert!(report.is_success(), "{report:?}");
    let step = &report.steps[0];
    assert_eq!(step.agent.as_deref(), Some("good"));
    assert_eq!(step.fell_back_from.as_deref(), Some("bad"));
    assert_eq!(step.attempts, 2);
    assert_eq!(report.routing[0].decision.target.as_str(), "bad");
    let agents: Vec<_> =
        events.iter().filter(|it| it.stage == Stage::Execute).map(|it| &it.data["agent"]).collect();
    assert_eq!(agents, ["bad", "bad", "good", "good"]);
    let metrics = report.metrics;
    assert_eq!((metrics.total_steps, metrics.successful_steps, metrics.failed_steps), (1, 1, 0));
    assert_eq!((metrics.retries, metrics.routing_decisions), (0, 1));
}

#[tokio::test]
async fn a_fallback_that_fails_too_ends_with_failed_and_without_one_so_does_the_target() {
    let bad = |name: &str| built(Agent::builder(name).model(broken()));
    for (it, attempts) in [
        (orchestrator(|it| it.agent(bad("w1")).agent(bad("w2")).agent(echo("w3"))), 2),
        (orchestrator(|it| it.agent(bad("w1"))), 1),
    ] {
        let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Fallback);
        let (_, report) = run(it).await;
        assert_eq!(report.stage, Stage::Failed);
        assert_eq!(report.steps[0].attempts, attempts);
    }
}

#[tokio::test]
async fn an_agent_that_does_not_start_is_a_failed_step_if_it_is_started_when_needed() {
    use tenure_flow::contract::Start;
    for strategy in [ErrorStrategy::Fallback, ErrorStrategy::Continue] {
        let it = orchestrator(|it| {
            let it = it.agent(stillborn("never")).agent(echo("good")).start(Start::WhenNeeded);
            it.planner(vec![Task::new("a", "one"), Task::new("b", "two")])
        });
        let (_, report) = run(it.orchestrate("goal", context()).error_strategy(strategy)).await;
        assert_eq!(report.stage, Stage::Complete, "{strategy}");
        assert_eq!(report.is_success(), strategy == ErrorStrategy::Fallback);
    }
}

#[test]
fn handle_error_gives_the_error_back_or_says_what_is_done() {
    let it = orchestrator(|it| it.agent(echo("w1")));
    let error = |cause: Error| {
        OrchestrationError::new(Stage::Execute, "it broke", context()).because(cause)
    };
    let failed = || error(Error::orchestration("broken"));
    let other: Arc<str> = "w2".into();
    let handled =
        |error, strategy, repeats| it.handle_error(error, strategy, repeats, Some(&other));

    let back = handled(failed(), ErrorStrategy::FailFast, 0).expect_err("it comes back");
    assert_eq!((back.stage, &*back.message), (Stage::Execute, "it broke"));
    assert_eq!(handled(failed(), ErrorStrategy::Continue, 0).ok(), Some(Reaction::GoOn));
    let again = handled(failed(), ErrorStrategy::RETRY, 2).ok();
    assert_eq!(again, Some(Reaction::Repeat { after: Duration::from_secs(4) }));
    assert!(handled(failed(), ErrorStrategy::RETRY, 3).is_err(), "three times are enough");
    let falls = handled(failed(), ErrorStrategy::Fallback, 0).ok();
    assert_eq!(falls, Some(Reaction::FallBack(other.clone())));
    assert!(it.handle_error(failed(), ErrorStrategy::Fallback, 0, None).is_err());
    for strategy in EVERY {
        let cancelled = handled(error(Error::cancelled()), strategy, 0);
        assert!(cancelled.is_err_and(|error| error.is_cancelled()), "{strategy}");
        let denied = handled(error(Error::denied("no")), strategy, 0);
        assert_eq!(denied.is_ok(), strategy == ErrorStrategy::Continue, "{strategy}");
        let unplanned = OrchestrationError::new(Stage::Plan, "no plan", context());
        let unplanned = handled(unplanned, strategy, 0);
        assert_eq!(unplanned.is_ok(), strategy == ErrorStrategy::Continue, "{strategy}");
    }
}

#[test]
fn waits_double_up_to_the_bound_and_a_longer_first_one_stays() {
    let waits = |base: u64| {
        let backoff = ExponentialBackoff::new(Duration::from_secs(base));
        [0, 1, 2, 40, u32::MAX].map(|repeat| backoff.delay(repeat).as_secs())
    };
    assert_eq!(waits(1), [1, 2, 4, 60, 60]);
    assert_eq!(waits(40), [40, 60, 60, 60, 60]);
    assert_eq!(waits(90), [90, 90, 90, 90, 90]);
    assert_eq!(waits(0), [0, 0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_remembers_nothing_of_the_turn_that_failed() {
    let model = Scripted::from_fn(|request, call| match call {
        0 => Err(ModelError::new(ModelErrorKind::Overloaded, "come back later")),
        _ => Ok(ModelResponse::text(format!("{} messages", request.messages.len()))),
    });
    let it = orchestrator(|it| it.agent(built(Agent::builder("w1").model(model))));
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::RETRY);
    let (_, report) = run(it).await;
    assert_eq!(report.output(), "1 messages");
}
