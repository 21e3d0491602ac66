//! Plans, and what agents make of them.

use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, FaultKind, Point};
use tenure_core::model::ModelErrorKind;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_core::{ErrorKind, Outcome};
use tenure_models::Passthrough;
use tenure_testkit::{
    Fault, FaultPlan, FaultyHook, FaultyModel, FaultyTool, HookHarness, Injected, Place,
    assert_paired,
};
use tokio::time::Instant;

#[test]
fn a_rule_for_one_call_beats_the_rule_for_all() {
    let plan = FaultPlan::new()
        .always(Place::Model, Fault::Fail)
        .at(Place::Model, 2, Fault::Panic)
        .at(Point::OnStart, 0, Fault::Hang);
    assert_eq!(plan.fault_at(Place::Model, 0), Some(Fault::Fail));
    assert_eq!(plan.fault_at(Place::Model, 2), Some(Fault::Panic));
    assert_eq!(plan.fault_at(Point::OnStart, 0), Some(Fault::Hang));
    assert_eq!(plan.fault_at(Point::OnStart, 1), None);
    assert_eq!(plan.fault_at(Place::Tool, 0), None);
}

#[test]
fn a_seed_always_makes_the_same_plan() {
    let faults = |seed, percent| {
        let plan = FaultPlan::seeded(seed, percent);
        (0..1000).map(|call| plan.fault_at(Place::Model, call)).collect::<Vec<_>>()
    };
    assert_eq!(faults(7, 20), faults(7, 20));
    assert_ne!(faults(7, 20), faults(8, 20));
    let hit = faults(7, 20).into_iter().flatten().count();
    assert!((150..250).contains(&hit), "{hit} of 1000 at 20 percent");
    assert_eq!(faults(7, 0).into_iter().flatten().count(), 0);
    assert_eq!(faults(7, 100).into_iter().flatten().count(), 1000);
    let only = FaultPlan::seeded(7, 100).among([Fault::Panic]);
    assert_eq!(only.fault_at(Point::AfterAgent, 3), Some(Fault::Panic));
    assert_eq!(FaultPlan::seeded(7, 100).among([]).fault_at(Place::Tool, 0), None);
}

#[tokio::test(start_paused = true)]
async fn a_hook_fails_panics_hangs_and_dawdles_by_plan() {
    let slow = Fault::Slow(Duration::from_secs(1));
    for (fault, kind, failed) in [
        (Fault::Fail, Some(ErrorKind::Hook), Some(FaultKind::Failed)),
        (Fault::Panic, Some(ErrorKind::Panicked), Some(FaultKind::Panicked)),
        (Fault::Hang, Some(ErrorKind::TimedOut), Some(FaultKind::TimedOut)),
        (Fault::Block(Duration::from_millis(1)), None, None),
        (slow, None, None),
    ] {
        for point in [
            Point::BeforeAgent,
            Point::BeforeModel,
            Point::WrapModelCall,
            Point::AfterModel,
            Point::WrapToolCall,
        ] {
            let plan = FaultPlan::new().at(point, 0, fault);
            let harness = HookHarness::new(FaultyHook::new(&plan)).tool("look", "seen");
            let run = harness.wrap_tool_call("look", serde_json::json!({})).await;
            assert_eq!(run.error().map(|error| error.kind()), kind, "{fault:?} at {point}");
            let failures: Vec<_> = run.failures().iter().map(|failure| failure.kind).collect();
            assert_eq!(failures, Vec::from_iter(failed), "{fault:?} at {point}");
            assert_eq!(plan.injected(), [Injected { place: point.into(), call: 0, fault }]);
            assert_paired(run.recorder());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_goes_wrong_never_changes_the_outcome() {
    for fault in [Fault::Fail, Fault::Panic, Fault::Hang] {
        for point in [Point::AfterAgent, Point::AfterChat, Point::OnShutdown, Point::OnTransition] {
            let plan = FaultPlan::new().at(point, 0, fault);
            let run = HookHarness::new(FaultyHook::new(&plan)).chat("hello").await;
            assert_eq!(run.outcome(), Outcome::Ok, "{fault:?} at {point}");
            assert_eq!(run.failures().len(), 1, "{fault:?} at {point}");
            assert_eq!(plan.injected().len(), 1);
            assert_paired(run.recorder());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_goes_wrong_at_the_calls_that_the_plan_names() {
    let plan = FaultPlan::new()
        .at(Place::Model, 1, Fault::Fail)
        .at(Place::Model, 2, Fault::Panic)
        .at(Place::Model, 3, Fault::Hang)
        .at(Place::Model, 4, Fault::Slow(Duration::from_secs(2)));
    let agent = Agent::builder("tried")
        .model(FaultyModel::new(Passthrough::new(), &plan))
        .model_limit(Duration::from_secs(5))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("0").await.unwrap().output(), "0");
    let error = agent.run("1").await.unwrap_err();
    assert_eq!(error.to_string(), "planned failure at the model, call 1");
    assert_eq!(error.model_error().unwrap().kind(), ModelErrorKind::Transport);
    assert_eq!(agent.run("2").await.unwrap_err().kind(), ErrorKind::Panicked);
    assert_eq!(agent.run("3").await.unwrap_err().kind(), ErrorKind::TimedOut);
    let started = Instant::now();
    assert_eq!(agent.run("4").await.unwrap().output().lines().last(), Some("4"));
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    assert_eq!((plan.calls(Place::Model), plan.injected().len()), (5, 4));
    agent.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_goes_wrong_is_a_result_for_the_model() {
    let plan = FaultPlan::new().at(Place::Tool, 0, Fault::Fail).at(Place::Tool, 1, Fault::Hang);
    let look = FnTool::new(ToolSpec::new("look", "Looks").limit(Duration::from_secs(1)), |_| {
        Ok("seen".into())
    });
    let agent = Agent::builder("tried")
        .model(Passthrough::new())
        .tool(FaultyTool::new(look, &plan))
        .with_lifecycle(hook::hook(FaultyHook::new(&plan)))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let mut said = Vec::new();
    for _ in 0..3 {
        said.push(agent.run("***CALL_TOOL look").await.unwrap().output().to_owned());
    }
    assert!(said[0].contains("planned failure at the tool, call 0"), "{said:?}");
    assert_eq!(said[2], "seen");
    assert_eq!(plan.calls(Place::Tool), 3);
    agent.shutdown().await;
}
