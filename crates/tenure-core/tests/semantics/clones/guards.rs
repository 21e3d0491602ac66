//! G11: a parent's guards come along and stand next to the effect.

use crate::semantics::support::*;
use tenure_core::agent::Agent;
use tenure_core::hook::{self, Point, Points, Policy};

const TURN: Points = Points::NONE
    .with(Point::BeforeAgent)
    .with(Point::BeforeModel)
    .with(Point::WrapModelCall)
    .with(Point::AfterModel)
    .with(Point::WrapToolCall);

#[tokio::test(start_paused = true)]
async fn g11_a_parents_guard_stands_innermost_last_before_and_last_to_judge() {
    let log = Log::default();
    let tool_log = log.clone();
    let child = Agent::builder("child")
        .model(script([call(&["act"])]))
        .tool(tool("act", move |_, _| {
            tool_log.add("TOOL");
            Box::pin(async { Ok("acted".into()) })
        }))
        .with_lifecycle(probe_at("own", &log, TURN.with(Point::OnStart).with(Point::AfterAgent)))
        .blueprint()
        .unwrap();
    let points = TURN.with(Point::OnStart);
    let parent = started(
        Agent::builder("parent")
            .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
            .agent_tool(&child)
            .with_lifecycle(
                hook::hook(probe_at("guard", &log, points)).policy(Policy::Deny).order(-1),
            )
            .with_lifecycle(probe_at("parent's own", &log, TURN)),
    )
    .await;
    log.take();
    parent.run("go").await.unwrap();
    let lines = log.take();
    let begin = lines.iter().position(|line| line == "own.on_start").unwrap();
    let end = lines.iter().position(|line| line == "own.after_agent(ok)").unwrap();
    let model = [
        "own.before_model",
        "guard.before_model",
        "own.model>",
        "guard.model>",
        "guard.model<",
        "own.model<",
        "own.after_model",
        "guard.after_model",
    ];
    let mut expected = vec!["own.on_start", "own.before_agent", "guard.before_agent"];
    expected.extend(model);
    expected.extend(["own.tool>", "guard.tool>", "TOOL", "guard.tool<", "own.tool<"]);
    expected.extend(model);
    expected.push("own.after_agent(ok)");
    assert_eq!(lines[begin..=end], expected, "and no other hook of the parent comes along");
}

#[tokio::test(start_paused = true)]
async fn g11_a_guard_that_a_child_has_itself_is_called_once() {
    let log = Log::default();
    let guard: std::sync::Arc<dyn hook::AgentLifecycle> =
        std::sync::Arc::new(probe_at("guard", &log, Point::WrapToolCall));
    let registration = || hook::Registration::shared(guard.clone()).policy(Policy::Deny);
    let child = Agent::builder("child")
        .model(script([call(&["act"])]))
        .tool(ok_tool("act"))
        .with_lifecycle(registration())
        .blueprint()
        .unwrap();
    let parent = started(
        Agent::builder("parent")
            .model(script([call_with("agent__child", r#"{"message":"go"}"#)]))
            .agent_tool(&child)
            .with_lifecycle(registration()),
    )
    .await;
    parent.run("go").await.unwrap();
    assert_eq!(log.count("guard.tool>"), 2, "around the parent's call, and around the child's");
}

#[tokio::test(start_paused = true)]
async fn g11_a_blueprint_is_not_changed_by_whoever_uses_it_as_a_tool() {
    let child = Agent::builder("child").model(script([])).blueprint().unwrap();
    let log = Log::default();
    Agent::builder("parent")
        .model(script([]))
        .agent_tool(&child)
        .with_lifecycle(hook::hook(probe_at("guard", &log, TURN)).policy(Policy::Deny))
        .build()
        .unwrap();
    for point in TURN.iter() {
        assert!(child.entrants(point).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn g11_detached_instances_have_everything_of_their_own() {
    let log = Log::default();
    let agent = started(Agent::builder("agent").model(script([])).with_lifecycle(probe_at(
        "A",
        &log,
        Points::from(Point::OnStart).with(Point::OnShutdown),
    )))
    .await;
    let one = agent.spawn_detached_instance(None).await.unwrap();
    let two = agent.spawn_detached_instance(Some("named")).await.unwrap();
    let three = agent.spawn_detached_instance(None).await.unwrap();
    assert_eq!((one.name(), two.name(), three.name()), ("agent#1", "named", "agent#2"));
    assert_eq!(log.count("A.on_start"), 4);
    one.run("go").await.unwrap();
    assert_eq!((one.usage().calls, agent.usage().calls, two.usage().calls), (1, 1, 0));
    for clone in [one, two, three] {
        clone.shutdown().await;
    }
    assert_eq!(log.count("A.on_shutdown(completed)"), 3);
    assert_eq!(agent.run("still here").await.unwrap().output(), "done");
}
