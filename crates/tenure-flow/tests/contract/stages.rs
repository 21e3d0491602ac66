//! The stages, their order, and what they carry.

use crate::contract::support::*;
use serde_json::json;
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::event::{Event, EventKind};
use tenure_core::phase::AgentState;
use tenure_flow::contract::{ErrorStrategy, Stage, Stages, Task};
use tenure_models::{Hanging, Passthrough};
use tenure_testkit::{Recorder, assert_paired};

#[test]
fn nothing_follows_a_terminal_stage_and_nothing_comes_before_initialize() {
    for stage in Stage::ALL {
        assert_eq!(Stages::new().enter(stage).is_ok(), stage == Stage::Initialize, "{stage}");
    }
    for last in [Stage::Complete, Stage::Failed, Stage::Cancelled] {
        assert!(last.is_terminal());
        let path: &[Stage] = match last {
            Stage::Complete => &[Stage::Initialize, Stage::Plan, Stage::Aggregate],
            _ => &[Stage::Initialize],
        };
        for next in Stage::ALL {
            let mut stages = Stages::new();
            for stage in path {
                stages.enter(*stage).expect("a legal path");
            }
            stages.enter(last).expect("a legal end");
            let illegal = stages.enter(next).expect_err("nothing follows");
            assert!(illegal.to_string().contains("is the last stage"), "{illegal}");
        }
    }
}

#[test]
fn every_stage_but_the_last_may_fail_and_may_be_cancelled() {
    for stage in Stage::ALL.into_iter().filter(|stage| !stage.is_terminal()) {
        assert!(stage.next().contains(&Stage::Failed), "{stage}");
        assert!(stage.next().contains(&Stage::Cancelled), "{stage}");
    }
}

#[tokio::test]
async fn stages_come_in_order_and_the_terminal_one_is_last() {
    let it =
        orchestrator(|it| it.agent(echo("w1")).agent(echo("w2")).planner(tasks_for(&["w1", "w2"])));
    let (events, report) = run(it.orchestrate("both", context())).await;
    use Stage::{Aggregate, Complete, Execute, Initialize, Plan, Route};
    let expected = [Initialize, Plan, Route, Execute, Route, Execute, Aggregate, Complete];
    assert_eq!(distinct_stages(&events), expected);
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.output(), "do 1\n\ndo 2");
}

#[tokio::test]
async fn every_event_carries_what_there_is_to_say() {
    let it = orchestrator(|it| it.agent(echo("w1")).agent(echo("w2")));
    let (events, report) = run(it.orchestrate("say it", context())).await;
    let data = |stage: Stage| {
        let of_stage = events.iter().filter(move |event| event.stage == stage);
        of_stage.map(|event| event.data.clone()).collect::<Vec<_>>()
    };
    let initialize = &data(Stage::Initialize)[0];
    assert_eq!(initialize["goal"], "say it");
    assert_eq!(initialize["workers"], 2);
    assert_eq!(initialize["agents"], json!(["w1", "w2"]));
    assert_eq!(data(Stage::Plan)[0]["steps"], 1);
    let decision = &data(Stage::Route)[0]["decision"];
    assert_eq!((&decision["target"], &decision["fallback"]), (&json!("w1"), &json!("w2")));
    assert!(decision["reason"].as_str().is_some_and(|reason| reason.chars().count() > 10));
    let execute = data(Stage::Execute);
    assert_eq!(execute[0]["status"], "started");
    assert_eq!(
        (&execute[1]["status"], &execute[1]["result"]),
        (&json!("completed"), &json!("say it"))
    );
    assert_eq!(data(Stage::Aggregate)[0]["output"], "say it");
    let complete = &data(Stage::Complete)[0];
    assert_eq!(complete["success"], true);
    assert_eq!(complete["metrics"]["total_steps"], 1);
    assert_eq!(complete["metrics"]["routing_decisions"], 1);
    assert_eq!(report.output(), "say it");
}

#[tokio::test]
async fn the_context_is_not_changed_and_every_task_has_a_child_of_it() {
    let given = context().with_user_intent("the whole").with_metadata("kept", true);
    let it = orchestrator(|it| it.agent(echo("w1")).planner(tasks_for(&["w1", "w1"])));
    let (events, report) = run(it.orchestrate("goal", given.clone())).await;
    assert_eq!(*report.context, given);
    for event in &events {
        match event.stage {
            Stage::Route | Stage::Execute => {
                assert_eq!(event.context.parent(), Some(&given));
                assert_ne!(*event.context, given);
                assert_eq!(event.context.metadata()["kept"], true);
                let task = event.data["task"].as_str().expect("a task");
                assert_eq!(event.context.metadata()["task"], task);
                assert_eq!(event.context.user_intent(), task.replace('t', "do "));
            }
            _ => assert_eq!(*event.context, given),
        }
    }
}

#[tokio::test]
async fn a_listener_sees_the_stages_around_the_turns_and_in_their_trace() {
    let (bus, recorder) = Recorder::with_bus();
    let it = orchestrator(|it| it.agent(echo_on("w1", &bus)).events(&bus));
    let (_, report) = run(it.orchestrate("goal", context())).await;
    assert!(report.is_success());
    let events = recorder.events();
    let interesting: Vec<_> = events
        .iter()
        .map(|event| event.name())
        .filter(|name| name.starts_with("orchestrator.") || name.starts_with("agent.turn."))
        .collect();
    assert_eq!(
        interesting,
        [
            "orchestrator.initialize",
            "orchestrator.plan",
            "orchestrator.route",
            "orchestrator.execute",
            "agent.turn.started",
            "agent.turn.ended",
            "orchestrator.execute",
            "orchestrator.aggregate",
            "orchestrator.complete",
        ]
    );
    // Its agents end behind the last stage, and everything belongs to the trace: starts and ends too.
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(|it| wanted(it));
    let ended = |event: &Event| matches!(event.kind, EventKind::Shutdown { .. });
    assert!(at(&|it| it.name() == "orchestrator.complete") < at(&ended));
    for event in &events {
        assert_eq!(event.trace.as_deref(), Some("trace-1"), "{event:?}");
    }
    assert_paired(&recorder);
}

#[tokio::test]
async fn the_stage_is_that_of_the_orchestration_and_not_made_of_the_state_of_an_agent() {
    let agent = Agent::builder("hangs").model(Hanging::new()).build().expect("an agent");
    agent.startup().await.expect("it starts");
    let it = orchestrator(|it| it.agent(&agent));
    let mut stream = it.orchestrate("goal", context()).stream();
    while let Some(event) = stream.next().await {
        if event.stage == Stage::Execute {
            break;
        }
    }
    // A ready or terminated agent says nothing of how far the orchestration is.
    assert_eq!(stream.stage(), Some(Stage::Execute));
    stream.cancel();
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event.stage);
    }
    assert_eq!((last, stream.stage()), (Some(Stage::Cancelled), Some(Stage::Cancelled)));
    let report = stream.finish().await;
    assert_eq!(report.stage, Stage::Cancelled);
    agent.ready().await.expect("it is ready again");
    assert_eq!(agent.state(), AgentState::Ready);
    agent.shutdown().await;
}

#[tokio::test]
async fn an_invalid_context_fails_before_anybody_is_started() {
    let log = Log::default();
    let bad = [
        (ExecutionContext::new(""), "trace_id is required"),
        (context().with_memory_scope("notes"), "memory_scope needs a user_id"),
        (context().with_conversation_id("c"), "conversation_id needs a session_id"),
    ];
    for (context, expected) in bad {
        let it = orchestrator(|it| it.agent(log.blueprint("w1", Passthrough::new())));
        let (events, report) = run(it.orchestrate("goal", context)).await;
        assert_eq!(stages(&events), [Stage::Initialize, Stage::Failed]);
        let error = report.error().expect("it failed");
        assert_eq!(error.stage, Stage::Initialize);
        assert!(error.message.contains(expected), "{error}");
    }
    assert_eq!(log.lines(), [""; 0]);
}

#[tokio::test]
async fn a_plan_without_tasks_is_done_at_once() {
    let it = orchestrator(|it| it.agent(echo("w1")).planner(Vec::<Task>::new()));
    let (events, report) = run(it.orchestrate("nothing", context())).await;
    let expected = [Stage::Initialize, Stage::Plan, Stage::Aggregate, Stage::Complete];
    assert_eq!(stages(&events), expected);
    assert!(report.is_success());
}

#[tokio::test]
async fn the_same_goal_gives_the_same_events() {
    let tell = async || {
        let log = Log::default();
        let it = orchestrator(|it| {
            it.agent(log.blueprint("w1", Passthrough::new()))
                .agent(log.blueprint("w2", broken()))
                .planner(vec![
                    Task::new("a", "one"),
                    Task::new("b", "two"),
                    Task::new("c", "three"),
                ])
        });
        let it = it.orchestrate("goal", context()).error_strategy(ErrorStrategy::Fallback);
        let (events, _) = run(it).await;
        let told = events.into_iter().map(|mut event| {
            if let Some(data) = event.data.as_object_mut() {
                data.remove("average_step_duration_ms");
                if let Some(metrics) = data.get_mut("metrics") {
                    metrics["busy_ms"].take();
                }
            }
            format!("{} {}", event.stage, event.data)
        });
        told.collect::<Vec<_>>()
    };
    assert_eq!(tell().await, tell().await);
}
