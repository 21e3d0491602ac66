//! What there is of a plan that was not done as a whole, and how it is recovered.

use crate::contract::support::*;
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse};
use tenure_flow::contract::{
    ErrorStrategy, OrchestrationReport, Recovery, Stage, StepStatus, Task,
};
use tenure_models::{Hanging, Scripted};

/// Fails once, then answers.
fn unlucky(name: &str) -> Blueprint {
    let model = Scripted::from_fn(|_, call| match call {
        0 => Err(ModelError::new(ModelErrorKind::Transport, "the line is dead")),
        _ => Ok(ModelResponse::text("at last")),
    });
    built(Agent::builder(name).model(model))
}

#[tokio::test]
async fn what_was_done_is_kept_and_the_rest_is_recovered() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("good", tenure_models::Passthrough::new()))
            .agent(unlucky("unlucky"))
            .planner(tasks_for(&["good", "unlucky", "good"]))
    });
    let (_, first) = run(it.orchestrate("goal", context())).await;
    assert_eq!(first.stage, Stage::Failed);
    let partial = first.partial.as_ref().expect("it is partial");
    assert_eq!(partial.completed_steps, ["t1".into()]);
    assert_eq!(partial.pending_steps, ["t3".into()]);
    assert_eq!(partial.step_results["t1"], "do 1");
    assert_eq!(partial.failure_point.as_deref(), Some("t2"));
    assert_eq!(partial.recovery, Recovery::RetryFailed);

    let (events, second) = run(it.orchestrate("goal", context()).keeping(partial)).await;
    assert!(second.is_success(), "{second:?}");
    assert_eq!(second.output(), "do 1\n\nat last\n\ndo 3");
    let statuses: Vec<_> = second.steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::Kept, StepStatus::Completed, StepStatus::Completed]);
    assert_eq!(second.metrics.total_steps, 2, "what was kept is not done again");
    let plan = events.iter().find(|event| event.stage == Stage::Plan).expect("a plan");
    assert_eq!(plan.data["kept"][0], "t1");
}

#[tokio::test]
async fn results_are_told_to_those_who_depend_on_them() {
    let it = orchestrator(|it| {
        it.agent(echo("w1")).agent(echo("w2")).planner(vec![
            Task::new("sum", "add them").agent("w2").after("one").after("two"),
            Task::new("one", "1").agent("w1"),
            Task::new("two", "2").agent("w1"),
        ])
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    let done: Vec<_> = report.steps.iter().map(|step| &*step.task.id).collect();
    assert_eq!(done, ["one", "two", "sum"]);
    let sum = &report.step("sum").expect("it is in the plan").output;
    for told in ["1", "2", "add them"] {
        assert!(sum.contains(told), "{sum}");
    }
}

#[tokio::test]
async fn what_depends_on_a_failed_step_is_skipped_and_the_rest_is_done() {
    let it = orchestrator(|it| {
        it.agent(echo("good")).agent(built(Agent::builder("bad").model(broken()))).planner(vec![
            Task::new("a", "1").agent("bad"),
            Task::new("b", "2").agent("good").after("a"),
            Task::new("c", "3").agent("good").after("b"),
            Task::new("d", "4").agent("good"),
        ])
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Continue);
    let (_, report) = run(it).await;
    assert_eq!((report.stage, report.is_success()), (Stage::Complete, false));
    let partial = report.partial.as_ref().expect("it is partial");
    assert_eq!(partial.skipped_steps, ["b".into(), "c".into()]);
    assert_eq!(partial.completed_steps, ["d".into()]);
    let skipped = report.step("b").and_then(|step| step.error.as_ref()).expect("a reason");
    assert!(skipped.message.contains("`a`, which it depends on, was not done"), "{skipped}");
    assert_eq!(report.metrics.total_steps, 2);
    assert_eq!(partial.recovery, Recovery::Manual, "others wait for what failed");
}

async fn recovery(report: OrchestrationReport) -> Recovery {
    report.partial.expect("it is partial").recovery
}

#[tokio::test]
async fn the_recovery_that_is_suggested_fits_what_failed() {
    let bad = |model| built(Agent::builder("bad").model(model));
    let with = |blueprint| {
        orchestrator(|it| {
            it.agent(echo("good"))
                .agent(blueprint)
                .task_limit(Duration::from_millis(50))
                .planner(tasks_for(&["good", "bad"]))
        })
    };
    let asked = Log::default();
    let cases = [
        (bad(overloaded()), Recovery::RetryFailed),
        (built(Agent::builder("bad").model(Hanging::new())), Recovery::RetryFailed),
        (bad(broken()), Recovery::SkipFailed),
        (refusing("bad", &asked), Recovery::Manual),
    ];
    for (blueprint, expected) in cases {
        for strategy in [ErrorStrategy::FailFast, ErrorStrategy::Continue] {
            let it = with(blueprint.clone());
            let (_, report) = run(it.orchestrate("goal", context()).error_strategy(strategy)).await;
            assert_eq!(recovery(report).await, expected, "{strategy}");
        }
    }
    // Nothing was done, and what failed would fail again.
    let it = orchestrator(|it| it.agent(bad(broken())));
    assert_eq!(recovery(it.orchestrate("goal", context()).run().await).await, Recovery::Manual);
    // Not a step's fault.
    let it = orchestrator(|it| it);
    assert_eq!(recovery(it.orchestrate("goal", context()).run().await).await, Recovery::Manual);
    assert_eq!(Recovery::RetryFailed.as_str(), "retry_failed");
    assert_eq!(Recovery::SkipFailed.as_str(), "skip_failed");
    assert_eq!(Recovery::Manual.as_str(), "manual");
}
