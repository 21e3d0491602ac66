//! What is recorded, and what does not fit together.

use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind};
use tenure_core::hook::{self, After, Flow, HookError, Point};
use tenure_core::model::ModelResponse;
use tenure_core::phase::Phase;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_models::{Hanging, Passthrough, Scripted, Slow};
use tenure_testkit::{
    Fault, FaultPlan, FaultyHook, FaultyModel, FaultyTool, Place, Recorder, assert_paired,
};

fn look() -> impl tenure_core::tool::Tool {
    FnTool::new(ToolSpec::new("look", "Looks"), |_| Ok("seen".into()))
}

fn watch() -> impl tenure_core::hook::AgentLifecycle {
    FaultyHook::new(&FaultPlan::seeded(0, 0))
}

#[tokio::test]
async fn every_event_of_a_life_is_kept_in_order() {
    let (bus, recorder) = Recorder::with_bus();
    let agent = Agent::builder("echo").model(Passthrough::new()).events(&bus).build().unwrap();
    let other = Agent::builder("other").model(Passthrough::new()).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    other.startup().await.unwrap();
    agent.run("hello").await.unwrap();
    other.shutdown().await;
    agent.shutdown().await;
    let events = recorder.events();
    assert!(events.windows(2).all(|pair| pair[0].id + 1 == pair[1].id));
    assert_eq!(recorder.of(agent.id()).len() + recorder.of(other.id()).len(), events.len());
    assert_eq!(recorder.names().first(), Some(&"agent.phase.bootstrapping_started"));
    assert_eq!(recorder.count("agent.turn.ended"), 1);
    assert_paired(&recorder);
}

#[tokio::test]
async fn an_agent_that_is_not_shut_down_does_not_fit() {
    let (bus, recorder) = Recorder::with_bus();
    let agent = Agent::builder("left").model(Passthrough::new()).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    let faults = recorder.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].contains("began its startup and is not terminated; it is idle"),
        "{faults:?}"
    );
    agent.shutdown().await;
    assert_eq!(recorder.faults(), [""; 0]);
}

#[tokio::test]
async fn a_turn_that_is_still_going_on_does_not_fit() {
    let (bus, recorder) = Recorder::with_bus();
    let agent = Agent::builder("stuck").model(Hanging).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    let running = agent.run("hello");
    let looking = async {
        tokio::task::yield_now().await;
        let faults = recorder.faults().join("\n");
        assert!(faults.contains("the turn in turn"), "{faults}");
        assert!(faults.contains("model call 1 in turn"), "{faults}");
        agent.cancel();
    };
    let (result, ()) = tokio::join!(running, looking);
    assert!(result.unwrap_err().is_cancelled());
    agent.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test]
#[should_panic(expected = "ended without being open")]
async fn an_end_whose_begin_was_missed_does_not_fit() {
    let bus = EventBus::new();
    let agent = Agent::builder("late")
        .model(Slow::new().by(Duration::from_millis(1)))
        .events(&bus)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    // Somebody listens from the start, so that events are made; the recorder comes later.
    let _early = Recorder::new(&bus);
    let late = async {
        tokio::task::yield_now().await;
        Recorder::new(&bus)
    };
    let (_, recorder) = tokio::join!(agent.run("hello"), late);
    agent.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test]
async fn what_goes_on_in_the_background_can_be_waited_for() {
    let (bus, mut recorder) = Recorder::with_bus();
    let agent = Agent::builder("dropped").model(Passthrough::new()).events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    drop(agent);
    let over = recorder
        .wait_for(|event| {
            matches!(event.kind, EventKind::PhaseEntered { to: Phase::Terminated, .. })
        })
        .await;
    assert_eq!(over.unwrap().name(), "agent.phase.shutdown_completed");
    assert_paired(&recorder);
    drop(bus);
    assert!(recorder.wait_for(|event| event.name() == "chat.started").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn everything_fits_however_a_turn_ends() {
    for (place, fault) in [
        (Place::Model, Fault::Fail),
        (Place::Model, Fault::Panic),
        (Place::Model, Fault::Hang),
        (Place::Tool, Fault::Fail),
        (Place::Tool, Fault::Panic),
        (Place::Tool, Fault::Hang),
        (Point::WrapToolCall.into(), Fault::Fail),
        (Point::WrapToolCall.into(), Fault::Panic),
        (Point::WrapToolCall.into(), Fault::Hang),
        (Point::BeforeModel.into(), Fault::Hang),
        (Point::AfterAgent.into(), Fault::Hang),
    ] {
        let (bus, recorder) = Recorder::with_bus();
        let plan = FaultPlan::new().at(place, 1, fault);
        let model = Scripted::empty()
            .calls([("look", serde_json::json!({})), ("look", serde_json::json!({}))])
            .text("done")
            .text("done again");
        let agent = Agent::builder("tried")
            .model(FaultyModel::new(model, &plan))
            .tool(FaultyTool::new(look(), &plan))
            .with_lifecycle(watch())
            .with_lifecycle(hook::hook(FaultyHook::new(&plan)).named("faulty"))
            .events(&bus)
            .turn_limit(Duration::from_secs(60))
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        let _ = agent.run("first").await;
        let _ = agent.run("second").await;
        agent.shutdown().await;
        let faults = recorder.faults();
        assert!(faults.is_empty(), "{fault:?} at {place}: {faults:#?}\n{recorder:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_fits_when_a_turn_is_dropped_anywhere() {
    for place in [
        Place::Model,
        Place::Tool,
        Point::BeforeAgent.into(),
        Point::BeforeModel.into(),
        Point::WrapModelCall.into(),
        Point::AfterModel.into(),
        Point::WrapToolCall.into(),
        Point::AfterAgent.into(),
    ] {
        let (bus, recorder) = Recorder::with_bus();
        let plan = FaultPlan::new().at(place, 0, Fault::Hang);
        let model = Scripted::empty()
            .calls([("look", serde_json::json!({})), ("look", serde_json::json!({}))])
            .text("done");
        let agent = Agent::builder("dropped")
            .model(FaultyModel::new(model, &plan))
            .tool(FaultyTool::new(look(), &plan))
            .with_lifecycle(watch())
            .with_lifecycle(hook::hook(FaultyHook::new(&plan)).named("faulty"))
            .events(&bus)
            .build()
            .unwrap();
        agent.startup().await.unwrap();
        let dropped = tokio::time::timeout(Duration::from_millis(5), agent.run("first")).await;
        assert!(dropped.is_err(), "{place}");
        agent.shutdown().await;
        let faults = recorder.faults();
        assert!(faults.is_empty(), "dropped at {place}: {faults:#?}\n{recorder:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_fits_in_seeded_lives() {
    for seed in 0..200 {
        let (bus, recorder) = Recorder::with_bus();
        let plan = FaultPlan::seeded(seed, 5);
        let agent = Agent::builder("seeded")
            .model(FaultyModel::new(Passthrough::new(), &plan))
            .tool(FaultyTool::new(look(), &plan))
            .with_lifecycle(FaultyHook::new(&plan))
            .with_lifecycle(hook::after_agent(|_cx, _end| Box::pin(async { Ok(After::Done) })))
            .with_lifecycle(hook::before_agent(|_cx, _input| {
                Box::pin(async { Ok(Flow::Continue) })
            }))
            .events(&bus)
            .turn_limit(Duration::from_secs(100))
            .build()
            .unwrap();
        if agent.startup().await.is_ok() {
            for _ in 0..3 {
                let _ = agent.run("***CALL_TOOL look").await;
            }
        }
        agent.shutdown().await;
        let faults = recorder.faults();
        assert!(faults.is_empty(), "seed {seed}, {plan:?}: {faults:#?}\n{recorder:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_fits_when_an_agent_is_shut_down_while_busy() {
    let (bus, recorder) = Recorder::with_bus();
    let agent = Agent::builder("busy")
        .model(Slow::new())
        .with_lifecycle(watch())
        .with_lifecycle(hook::after_agent(|_cx, _end| {
            Box::pin(async { Err(HookError::new("late")) })
        }))
        .events(&bus)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        agent.shutdown().await;
    };
    let (result, ()) = tokio::join!(agent.run("hello"), stop);
    assert!(result.unwrap_err().is_cancelled());
    assert_paired(&recorder);
}

#[tokio::test(start_paused = true)]
async fn everything_fits_in_clones_and_forks() {
    let (bus, recorder) = Recorder::with_bus();
    let child = Agent::builder("child")
        .model(Slow::new().by(Duration::from_millis(20)))
        .with_lifecycle(watch())
        .events(&bus)
        .blueprint()
        .unwrap();
    let call = |text: &str| ("agent__child", serde_json::json!({ "message": text }));
    let calls = Scripted::from_fn(move |request, _| {
        let said = request.messages.last().is_some_and(|last| last.text().starts_with("go"));
        let calls = [call("one"), call("two")].into_iter().enumerate().map(|(at, (tool, with))| {
            tenure_core::message::ToolCall::new(format!("call_{at}"), tool, with.to_string())
        });
        match said {
            true => Ok(ModelResponse::calls(calls)),
            false => Ok(ModelResponse::text("done")),
        }
    });
    let parent = Agent::builder("parent")
        .model(calls)
        .agent_tool(&child)
        .with_lifecycle(hook::hook(watch()).named("watch"))
        .events(&bus)
        .build()
        .unwrap();
    parent.startup().await.unwrap();
    let (one, two) = tokio::join!(parent.handle("go once"), parent.handle("go twice"));
    assert_eq!((one.unwrap().output(), two.unwrap().output()), ("done", "done"));
    parent.shutdown().await;
    assert_paired(&recorder);
    assert_eq!(recorder.count("agent.phase.shutdown_completed"), 6, "parent, fork, four clones");
}
