//! What `ctx` shows: the agent, its state, other agents, memory.

use crate::python::support::Lab;
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::AgentRegistry;
use tenure_core::hook::Point;
use tenure_core::memory::InMemory;
use tenure_core::model::ModelResponse;
use tenure_models::Scripted;

#[tokio::test]
async fn the_agent_is_one_object_for_an_instances_life_and_keeps_what_is_left_on_it() {
    let lab = Lab::new(
        r#"
def start(ctx):
    ctx.agent.budget = 3
    ctx.agent.number = id(ctx.agent)
async def turn(ctx):
    assert id(ctx.agent) == ctx.agent.number
    ctx.agent.budget -= 1
    return {"finish": "%s %s" % (ctx.agent.budget, ctx.agent.state)}
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let first = lab.started(agent).await;
    let clone = first.spawn_detached_instance(None).await.expect("a clone");
    for agent in [&first, &clone] {
        for left in ["2 busy", "1 busy"] {
            assert_eq!(agent.run("hello").await.expect("it finishes").output(), left);
        }
    }
    clone.shutdown().await;
    first.shutdown().await;
}

#[tokio::test]
async fn another_agent_can_be_spoken_to() {
    let lab = Lab::new(
        r#"
async def later(ctx):
    other = ctx.get_agent("other")
    assert ctx.get_agent("nobody") is None
    return {"finish": await other.send("from " + ctx.agent_name)}
def plain(ctx):
    return {"finish": ctx.agent_registry["other"]("from plain")}
"#,
    );
    let registry = Arc::new(AgentRegistry::default());
    let other = lab.agent_named("other").registry(registry.clone());
    let other = lab.started(other).await;
    for (name, said) in [("later", "from agent"), ("plain", "from plain")] {
        let agent = lab.agent().registry(registry.clone());
        let agent = lab.started(agent.with_lifecycle(lab.hook(name, Point::BeforeAgent))).await;
        assert_eq!(agent.run("hello").await.expect("it finishes").output(), said);
        agent.shutdown().await;
    }
    other.shutdown().await;
}

#[tokio::test]
async fn memory_is_read_written_and_searched() {
    let lab = Lab::new(
        r#"
def turn(ctx):
    memory = ctx.memory
    assert memory.get("facts") is None and "facts" not in memory
    memory.update("facts", {"home": "a lighthouse in the north"})
    assert memory["facts"]["home"].endswith("north")
    found = memory.search("lighthouse")
    return {"finish": found[0].key}
"#,
    );
    let agent = lab.agent().memory(InMemory::default());
    let agent = lab.started(agent.with_lifecycle(lab.hook("turn", Point::BeforeAgent))).await;
    assert_eq!(agent.run("hello").await.expect("it finishes").output(), "facts");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_call_takes_back_no_object_that_another_one_made_at_the_same_time() {
    let lab = Lab::new(
        r#"
import asyncio
MADE = []
def start(ctx):
    ctx.state.update(changed=iter("before"), made=None)
async def slow(ctx):
    ctx.state["own"] = iter("own")
    while not MADE: await asyncio.sleep(0.01)
async def make(ctx):
    ctx.state.update(changed=iter("changed"), made=iter("made"))
    MADE.append(True)
async def use(ctx):
    return " ".join("".join(ctx.state[it]) for it in ("changed", "made", "own"))
"#,
    );
    let model = Scripted::new(Vec::<ModelResponse>::new())
        .calls([("slow", json!({})), ("make", json!({}))])
        .calls([("use", json!({}))])
        .text("over");
    let tools = ["slow", "make", "use"].map(|name| lab.tool(name));
    let agent = tools.into_iter().fold(lab.agent().model(model), |agent, tool| agent.tool(tool));
    let agent = lab.started(agent.with_lifecycle(lab.hook("start", Point::OnStart))).await;
    agent.run("hello").await.expect("it runs");
    let said = format!("{:?}", agent.history());
    assert!(said.contains("changed made own"), "{said}");
    agent.shutdown().await;
}
