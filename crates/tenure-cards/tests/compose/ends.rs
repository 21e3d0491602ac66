//! What a composed agent has in common with every other: hooks, guards, cancels, streams.

use crate::compose::support::*;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::compose::{ChainMemory, Composition, FanInRequest};
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Flow, Policy};
use tenure_core::model::Model;
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_core::{Error, Outcome};
use tenure_models::{Hanging, Passthrough, Scripted};

#[tokio::test(start_paused = true)]
async fn a_cancel_in_the_middle_ends_the_members_first() {
    let asked = Asked::default();
    let bus = tenure_core::event::EventBus::new();
    let mut recorder = tenure_testkit::Recorder::new(&bus);
    let hanging = built(Agent::builder("hangs").model(Hanging::new()));
    let composition = Composition::Parallel {
        fan_out: names(["hangs", "also"]),
        fan_in: Some(name("in")),
        request: FanInRequest::Included,
    };
    let members = [
        hanging,
        built(Agent::builder("also").model(Hanging::new())),
        saying("in", &asked, ["never"]),
    ];
    let builder = Agent::builder("whole").events(&bus);
    let agent = composition.apply(builder, &members, None).build().expect("good");
    agent.startup().await.expect("starts");
    let (result, ()) = tokio::join!(agent.run("go"), async {
        recorder
            .wait_for(|event| event.name() == "model.started" && event.agent.starts_with("also"))
            .await;
        agent.cancel();
    });
    assert_eq!(result.expect_err("cancelled").outcome(), Outcome::Cancelled);
    agent.shutdown().await;
    assert_eq!(asked.who(), Vec::<String>::new());
    let ends: Vec<_> = recorder
        .events()
        .iter()
        .filter(|event| {
            event.name() == "agent.turn.ended" || event.name() == "agent.phase.shutdown_completed"
        })
        .map(|event| event.agent.split('#').next().unwrap_or_default().to_owned())
        .collect();
    let whole = ends.iter().position(|who| who == "whole").expect("the whole ended");
    assert_eq!(whole, 4, "two turns and two lives of members end before it: {ends:?}");
    tenure_testkit::assert_paired(&recorder);
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_the_whole_applies_inside_its_members() {
    let act = FnTool::new(ToolSpec::new("act", "Acts"), |_| Ok("acted".into()));
    let member = built(Agent::builder("m").model(Passthrough::new()).tool(act));
    let guard = hook::wrap_tool_call(|_, request, next| {
        Box::pin(async move {
            if request.name() == "act" {
                return Err(Error::denied("not here").into());
            }
            Ok(next.call(request).await?)
        })
    });
    let composition = Composition::Chain { sequence: names(["m"]), memory: ChainMemory::Last };
    let stage = stage_with(composition, &[member], None, |builder| {
        builder.with_lifecycle(hook::hook(guard).policy(Policy::Deny))
    })
    .await;
    assert_eq!(stage.answer("***CALL_TOOL act").await, "not here");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_denies_a_member_ends_the_turn_and_says_so() {
    let asked = Asked::default();
    let member = saying("m", &asked, ["never"]);
    let guard = hook::wrap_tool_call(|_, _, _| {
        Box::pin(async move { Err(Error::denied("not today").into()) })
    });
    let composition = Composition::Chain { sequence: names(["m"]), memory: ChainMemory::Last };
    let stage = stage_with(composition, &[member], None, |builder| {
        builder.with_lifecycle(hook::hook(guard).policy(Policy::Deny))
    })
    .await;
    assert_eq!(
        stage.failure("go").await,
        "agent `m` (1 of 1 in the chain) was not allowed to run: not today"
    );
    assert!(asked.all().is_empty());
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn hooks_of_the_whole_see_each_step() {
    let asked = Asked::default();
    let members = [saying("a", &asked, ["A"]), saying("b", &asked, ["B"])];
    let seen = Asked::default();
    let (before, after) = (seen.clone(), seen.clone());
    let composition = Composition::Chain { sequence: names(["a", "b"]), memory: ChainMemory::Last };
    let stage = stage_with(composition, &members, None, |builder| {
        builder
            .with_lifecycle(hook::before_agent(move |_, input| {
                before.add("before", input.content.text());
                Box::pin(async { Ok(Flow::Continue) })
            }))
            .with_lifecycle(hook::wrap_tool_call(move |_, request, next| {
                after.add("tool", request.name());
                Box::pin(async move { Ok(next.call(request).await?) })
            }))
    })
    .await;
    assert_eq!(stage.answer("go").await, "B");
    let expected = [("before", "go"), ("tool", "agent__a"), ("tool", "agent__b")]
        .map(|(who, what)| (who.to_owned(), what.to_owned()));
    assert_eq!(seen.all(), expected);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_not_streamed_and_the_answer_is() {
    use tenure_cards::compose::{Iterations, PlanType};
    let plan = r#"{"steps": [{"description": "x", "tasks": [{"description": "x", "agent": "a"}]}], "is_complete": true}"#;
    let llm: Arc<dyn Model> = Arc::new(Scripted::new(["not a plan", plan, "the very answer"]));
    let asked = Asked::default();
    let composition = Composition::Orchestrator {
        agents: names(["a"]),
        plan_type: PlanType::Full,
        iterations: Iterations::AtMost(std::num::NonZeroUsize::MIN),
    };
    let members = [saying("a", &asked, ["A"])];
    let stage = stage_with(composition, &members, Some(llm), |builder| builder).await;
    let mut stream = stage.agent.stream("go");
    let mut text = String::new();
    while let Some(piece) = stream.next().await {
        text.push_str(&piece);
    }
    assert!(!text.contains("not a plan"), "{text}");
    assert!(text.ends_with("the very answer"), "{text}");
    drop(stream);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn the_choice_of_a_router_is_not_streamed_while_it_is_made() {
    let asked = Asked::default();
    let llm: Arc<dyn Model> = Arc::new(Scripted::new(["the left one", r#"{"agent": "b"}"#]));
    let composition = Composition::Router { agents: names(["a", "b"]) };
    let members = [saying("a", &asked, ["A"]), saying("b", &asked, ["the very answer"])];
    let stage = stage_with(composition, &members, Some(llm), |builder| builder).await;
    let mut stream = stage.agent.stream("go");
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        pieces.push(piece);
    }
    // What was said and could not be used is nobody's to read; what stands beside the call is whole.
    assert_eq!(pieces, [r#"{"agent": "b"}"#, "the very answer"]);
    drop(stream);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_ends_everything() {
    let hanging = built(Agent::builder("hangs").model(Hanging::new()));
    let composition = Composition::Chain { sequence: names(["hangs"]), memory: ChainMemory::Last };
    let stage = staged(composition, &[hanging]).await;
    let run = tokio::time::timeout(Duration::from_secs(1), stage.agent.run("go")).await;
    assert!(run.is_err(), "the future was dropped");
    stage.agent.ready().await.expect("it is ready again");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_with_its_record_asks_nobody_again() {
    use tenure_core::step::MemoryStepLog;
    let asked = Asked::default();
    let llm: Arc<dyn Model> =
        Arc::new(model("llm", &asked, |_, _| Ok(r#"{"agent": "b"}"#.to_owned())));
    // What a member remembers of the session is no part of the record.
    let forgetful = |who: &str| {
        let (model, answer) = (who.to_owned(), who.to_uppercase());
        let model = crate::compose::support::model(&model, &asked, move |_, _| Ok(answer.clone()));
        built(Agent::builder(who).model(model).without_history())
    };
    let members = [forgetful("a"), forgetful("b")];
    let composition = Composition::Router { agents: names(["a", "b"]) };
    let stage = stage_with(composition, &members, Some(llm), |builder| builder).await;
    let log = MemoryStepLog::new();
    for log in [log.clone(), log.resumed()] {
        let report = stage.agent.request("go").steps(log).run().await.expect("it runs");
        assert_eq!(report.output(), "B");
    }
    assert_eq!(asked.who(), ["llm", "b"]);
    stage.over().await;
}
