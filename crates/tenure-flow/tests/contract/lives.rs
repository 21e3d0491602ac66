//! Agents are started if they are not ready, and ended by whoever started them.

use crate::contract::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentRegistry};
use tenure_core::context::ExecutionContext;
use tenure_core::hook::on_shutdown;
use tenure_core::model::ModelErrorKind;
use tenure_core::phase::AgentState;
use tenure_core::{CancelToken, ErrorKind};
use tenure_flow::contract::{ErrorStrategy, Stage, Start, Task};
use tenure_models::{Failing, Hanging, Passthrough, Slow};
use tenure_testkit::{Recorder, assert_paired};

fn agent(log: &Log, name: &str) -> Agent {
    log.agent(name, Passthrough::new()).build().expect("an agent")
}

#[tokio::test]
async fn who_was_not_started_is_started_and_ended_and_who_was_ready_stays_so() {
    let log = Log::default();
    let (new, ready) = (agent(&log, "new"), agent(&log, "ready"));
    ready.startup().await.expect("it starts");
    let it = orchestrator(|it| {
        it.agent(&new)
            .agent(&ready)
            .agent(log.blueprint("printed", Passthrough::new()))
            .planner(tasks_for(&["printed", "ready", "new"]))
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!((new.state(), ready.state()), (AgentState::Terminated, AgentState::Ready));
    assert_eq!(log.lines(), ["+ready", "+new", "+printed", "-printed", "-new"]);
    ready.shutdown().await;
}

#[tokio::test]
async fn when_needed_starts_only_those_who_get_a_task_in_that_order() {
    let log = Log::default();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("w1", Passthrough::new()))
            .agent(log.blueprint("w2", Passthrough::new()))
            .agent(log.blueprint("w3", Passthrough::new()))
            .start(Start::WhenNeeded)
            .planner(tasks_for(&["w3", "w1", "w3"]))
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    assert!(report.is_success());
    assert_eq!(log.lines(), ["+w3", "+w1", "-w1", "-w3"]);
}

#[tokio::test]
async fn a_terminated_agent_is_a_typed_error_and_is_not_brought_back() {
    let log = Log::default();
    for start in [Start::AtOnce, Start::WhenNeeded] {
        let gone = agent(&log, "gone");
        gone.startup().await.expect("it starts");
        gone.shutdown().await;
        let it = orchestrator(|it| it.agent(&gone).start(start));
        let retry = ErrorStrategy::RETRY;
        let (_, report) = run(it.orchestrate("goal", context()).error_strategy(retry)).await;
        assert_eq!(report.stage, Stage::Failed);
        let error = report.error().expect("it failed");
        let stage = if start == Start::AtOnce { Stage::Initialize } else { Stage::Execute };
        assert_eq!(error.stage, stage);
        let cause = error.cause.as_ref().expect("a cause");
        assert_eq!(cause.kind(), ErrorKind::NotReady);
        assert_eq!(cause.state(), Some(AgentState::Terminated));
        assert_eq!(report.metrics.retries, 0, "it will never be ready again");
        assert_eq!(gone.state(), AgentState::Terminated);
    }
    assert_eq!(log.lines(), ["+gone", "-gone", "+gone", "-gone"]);
}

#[tokio::test]
async fn an_agent_that_was_started_by_one_orchestration_is_over_for_the_next() {
    let log = Log::default();
    let once = agent(&log, "once");
    let it = orchestrator(|it| it.agent(&once));
    let (_, first) = run(it.orchestrate("goal", context())).await;
    assert!(first.is_success());
    let (_, second) = run(it.orchestrate("goal", context())).await;
    let cause = second.error().and_then(|error| error.cause.as_ref()).expect("a cause");
    assert_eq!(cause.state(), Some(AgentState::Terminated));
    assert_eq!(log.lines(), ["+once", "-once"]);
}

#[tokio::test]
async fn a_paused_agent_is_a_typed_error_and_stays_paused() {
    let paused = agent(&Log::default(), "paused");
    paused.startup().await.expect("it starts");
    paused.pause().await.expect("it is ready");
    let it = orchestrator(|it| it.agent(&paused));
    let (_, report) = run(it.orchestrate("goal", context())).await;
    let cause = report.error().and_then(|error| error.cause.clone()).expect("a cause");
    assert_eq!(cause.state(), Some(AgentState::Paused));
    assert_eq!(paused.state(), AgentState::Paused);
    paused.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_a_fatal_error_ended_is_made_anew_of_its_blueprint() {
    let log = Log::default();
    let fatal = Failing::new(ModelErrorKind::Auth).fatal();
    let it = orchestrator(|it| {
        it.agent(log.blueprint("doomed", fatal))
            .agent(echo("good"))
            .planner(tasks_for(&["doomed", "good", "doomed"]))
    });
    let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Continue);
    let (_, report) = run(it).await;
    assert_eq!((report.stage, report.is_success()), (Stage::Complete, false));
    assert_eq!(log.lines(), ["+doomed", "-doomed", "+doomed", "-doomed"]);
    for step in [&report.steps[0], &report.steps[2]] {
        let cause = step.error.as_ref().and_then(|error| error.cause.as_ref()).expect("a cause");
        assert!(cause.is_fatal(), "its own error, not that it is gone: {cause}");
    }
}

#[tokio::test]
async fn agents_of_a_registry_are_found_by_name_and_left_as_they_are() {
    let registry = AgentRegistry::new();
    let shared = |name: &str| {
        let agent = Agent::builder(name).model(Passthrough::new());
        agent.registry(Arc::new(registry.clone())).build().expect("an agent")
    };
    let it = orchestrator(|it| it.agent(echo("own")).registry(&registry));
    let names = || it.agents().iter().map(|agent| agent.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(), ["own"]);
    let (second, first) = (shared("second"), shared("first"));
    second.startup().await.expect("it starts");
    first.startup().await.expect("it starts");
    assert_eq!(names(), ["own", "first", "second"]);
    let (_, report) = run(it.orchestrate("goal", context()).cursor(1)).await;
    assert_eq!(report.steps[0].agent.as_deref(), Some("first"));
    assert_eq!((first.state(), second.state()), (AgentState::Ready, AgentState::Ready));
    first.shutdown().await;
    assert_eq!(names(), ["own", "second"]);
    second.shutdown().await;
}

#[tokio::test]
async fn a_task_for_a_busy_agent_is_done_by_a_fork_of_it() {
    let model = Slow::new().by(Duration::from_millis(100));
    let agent = Agent::builder("busy").model(model).build().expect("an agent");
    agent.startup().await.expect("it starts");
    let it = orchestrator(|it| it.agent(&agent));
    let (own, (_, report)) =
        tokio::join!(agent.run("mine"), run(it.orchestrate("yours", context())));
    assert_eq!(own.expect("it answers").output(), "mine");
    assert_eq!(report.output(), "yours");
    assert_eq!(agent.state(), AgentState::Ready);
    agent.shutdown().await;
}

#[tokio::test]
async fn concurrent_traces_do_not_see_each_other() {
    let (bus, recorder) = Recorder::with_bus();
    let log = Log::default();
    let handle = log.agent("shared", Passthrough::new()).events(&bus).build().expect("an agent");
    let it = orchestrator(|it| {
        it.agent(&handle)
            .agent(echo_on("own", &bus))
            .planner(vec![Task::new("a", "first"), Task::new("b", "second")])
            .events(&bus)
    });
    let trace = |number: usize| format!("trace-{number}");
    let runs = (0..10).map(|number| {
        run(it.orchestrate(format!("goal {number}"), ExecutionContext::new(trace(number))))
    });
    let done = futures_util::future::join_all(runs).await;
    for (number, (events, report)) in done.iter().enumerate() {
        assert!(report.is_success(), "{report:?}");
        assert_eq!(report.goal, format!("goal {number}"));
        assert_eq!(report.output(), "first\n\nsecond");
        assert_eq!(report.metrics.total_steps, 2);
        assert!(events.iter().all(|event| event.context.trace_id() == trace(number)));
        let told = recorder.events();
        let told = told.iter().filter(|it| it.trace.as_deref() == Some(&*trace(number)));
        let ends = told.filter(|it| it.name() == "orchestrator.complete").count();
        assert_eq!(ends, 1);
    }
    // The last one that used it ended it, and nobody before.
    assert_eq!(handle.state(), AgentState::Terminated);
    let ends = log.lines().iter().filter(|line| *line == "-shared").count();
    assert_eq!(ends, 1, "{:?}", log.lines());
    assert_paired(&recorder);
}

#[tokio::test]
async fn an_agent_that_two_orchestrations_use_ends_with_the_last_of_them() {
    let log = Log::default();
    let handle = log.agent("shared", Hanging::new()).build().expect("an agent");
    let it = orchestrator(|it| it.agent(&handle).task_limit(Duration::from_secs(20)));
    let (one, two) = (CancelToken::new(), CancelToken::new());
    let first = it.orchestrate("goal", context()).cancel_on(&one);
    let second = it.orchestrate("goal", context()).cancel_on(&two);
    let script = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        one.cancel();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_ne!(handle.state(), AgentState::Terminated, "somebody still uses it");
        two.cancel();
    };
    let ((_, first), (_, second), ()) = tokio::join!(run(first), run(second), script);
    assert_eq!((first.stage, second.stage), (Stage::Cancelled, Stage::Cancelled));
    assert_eq!(handle.state(), AgentState::Terminated);
}

#[tokio::test]
async fn an_agent_that_is_being_ended_is_over_for_whoever_comes_then() {
    let slow =
        Agent::builder("slow").model(Passthrough::new()).with_lifecycle(on_shutdown(|_, _| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(())
            })
        }));
    let slow = slow.build().expect("an agent");
    let it = orchestrator(|it| it.agent(&slow));
    let mut first = it.orchestrate("goal", context()).stream();
    while first.stage() != Some(Stage::Complete) {
        first.next().await.expect("it has not ended");
    }
    let (first, (_, second)) = tokio::join!(first.finish(), run(it.orchestrate("goal", context())));
    assert!(first.is_success());
    let cause = second.error().and_then(|error| error.cause.as_ref()).expect("a cause");
    assert_eq!(cause.state(), Some(AgentState::Terminated));
}

#[tokio::test]
async fn an_agent_reads_the_context_of_its_task() {
    let seen = Log::default();
    let keeps = seen.clone();
    let agent = Agent::builder("reads").model(Passthrough::new()).with_lifecycle(
        tenure_core::hook::before_agent(move |cx, _| {
            let keeps = keeps.clone();
            Box::pin(async move {
                let context = cx.context().expect("it has one");
                let parent = context.parent().expect("it is a child");
                keeps.say(format!("{} of {}", context.user_intent(), parent.user_intent()));
                Ok(tenure_core::hook::Flow::Continue)
            })
        }),
    );
    let it = orchestrator(|it| it.agent(built(agent)).planner(tasks_for(&["reads", "reads"])));
    let (_, report) = run(it.orchestrate("goal", context().with_user_intent("whole"))).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(seen.lines(), ["do 1 of whole", "do 2 of whole"]);
}
