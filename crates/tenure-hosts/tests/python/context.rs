//! What a function gets to see, what it may change, and what it prints.

use crate::python::support::Lab;
use serde_json::json;
use std::sync::Arc;
use tenure_core::agent::AgentRegistry;
use tenure_core::chat::Chat;
use tenure_core::event::LogStream;
use tenure_core::hook::Point;
use tenure_core::message::Message;

#[tokio::test]
async fn the_context_has_what_the_point_has() {
    let lab = Lab::new(
        r#"
import json, os
def look(ctx, input):
    seen = [ctx.agent.name, ctx.agent_name, ctx.agent.id == ctx.instance_id, ctx.hook_type,
            ctx.config.name, ctx.config.model, ctx.context, ctx.has_context, ctx.input, input,
            ctx.agent.phase, ctx.agent.state, ctx.get_agent("nobody"), "x" in ctx.agent_registry,
            __name__ == "tenure_project.hooks", os.path.basename(__file__), ctx.attempt,
            ctx.resumed, os.getcwd() == os.path.realpath(os.path.dirname(__file__))]
    return {"finish": json.dumps(seen)}
"#,
    );
    let agent = lab.started(lab.agent().with_lifecycle(lab.hook("look", Point::BeforeAgent))).await;
    let report = agent.run("hello").await.expect("it finishes");
    let seen: serde_json::Value = serde_json::from_str(report.output()).expect("json");
    assert_eq!(
        seen,
        json!([
            "agent",
            "agent",
            true,
            "before_agent",
            "agent",
            null,
            null,
            false,
            "hello",
            "hello",
            "processing_user_input",
            "busy",
            null,
            false,
            true,
            "hooks.py",
            1,
            false,
            true
        ])
    );
    agent.shutdown().await;
}

#[tokio::test]
async fn the_configuration_and_every_name_of_the_package_are_there() {
    let lab = Lab::new(
        r#"
import dataclasses, json, tenure
from tenure import AgentLifecycleContext, AgentLifecycleHooks, AgentProtocol, LifecycleHookFunction
from tenure import LifecycleToolManager
def started(ctx: AgentLifecycleContext) -> None: ...
HOOKS = AgentLifecycleHooks(on_start=started)
def look(ctx: "tenure.TurnContext"):
    missing = [name for name in tenure.__all__ if not hasattr(tenure, name)]
    config = ctx.config
    seen = [missing, HOOKS.on_start.__name__, dataclasses.replace(HOOKS, on_start=None).on_start,
            config.description, config.model, config.instruction, config.temperature,
            config.max_tokens, config.max_steps, config.max_parallel_tools, config.use_history]
    return {"finish": json.dumps(seen)}
async def called(ctx: tenure.CallContext): return ctx.hook_type
"#,
    );
    let look = lab.hook("look", Point::BeforeAgent);
    let mut agent = lab.agent().with_lifecycle(look);
    agent.config_mut().params.temperature = Some(0.7);
    agent.config_mut().max_parallel_tools = 3;
    let agent = lab.started(agent).await;
    let report = agent.run("hello").await.expect("it finishes");
    let seen: serde_json::Value = serde_json::from_str(report.output()).expect("json");
    let config = json!(["", null, null, 0.7, null, 10, 3, true]);
    let expected =
        [vec![json!([]), json!("started"), json!(null)], config.as_array().unwrap().clone()];
    assert_eq!(seen, json!(expected.concat()));
    agent.shutdown().await;
    let agent = lab.started(lab.agent().tool(lab.tool("called"))).await;
    let report = agent.run("***CALL_TOOL called {}").await.expect("it runs");
    assert_eq!(report.output(), "wrap_tool_call");
    agent.shutdown().await;
}

#[tokio::test]
async fn another_agent_is_found_by_name_while_it_lives() {
    let lab = Lab::new(
        r#"
import json
def look(ctx):
    found, same = ctx.get_agent("other"), ctx.agent_registry.get("other")
    if found is None:
        return {"finish": json.dumps([same, "other" in ctx.agent_registry])}
    by_key = ctx.agent_registry["other"]
    return {"finish": json.dumps([found.name, found.instance_id, found.state, found == same,
                                  by_key == found, "other" in ctx.agent_registry])}
async def look_later(ctx): return look(ctx)
"#,
    );
    let registry = Arc::new(AgentRegistry::new());
    let other = tenure_core::agent::Agent::builder("other")
        .model(tenure_models::Passthrough::new())
        .registry(registry.clone());
    let other = lab.started(other).await;
    let state = serde_json::to_value(other.state()).expect("json");
    for name in ["look", "look_later"] {
        let agent = lab.agent().registry(registry.clone());
        let agent = agent.with_lifecycle(lab.hook(name, Point::BeforeAgent));
        let agent = lab.started(agent).await;
        // A plain function asks from a thread at first, and from the main thread when it was fast.
        for _ in 0..3 {
            let report = agent.run("hello").await.expect("it finishes");
            let seen: serde_json::Value = serde_json::from_str(report.output()).expect("json");
            let id = other.id().to_string();
            assert_eq!(seen, json!(["other", id, state, true, true, true]), "{name}");
        }
        agent.shutdown().await;
    }
    let agent = lab.agent().registry(registry.clone());
    let agent = agent.with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    other.shutdown().await;
    let report = agent.run("hello").await.expect("it finishes");
    assert_eq!(report.output(), "[null, false]");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_a_function_leaves_in_its_context_is_there_for_the_next() {
    let lab = Lab::new(
        r#"
import asyncio, contextvars, json
left = contextvars.ContextVar("left", default="nothing")
async def look(ctx):
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    seen = [left.get(), task is not None and not task.done(), loop.is_running()]
    left.set(ctx.input)
    if ctx.input == "wait":
        await asyncio.sleep(0)
        seen.append(asyncio.current_task() is task)
    if ctx.input == "cancel":
        task.cancel()
    return {"finish": json.dumps(seen)}
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    for (input, seen) in [
        ("one", r#"["nothing", true, true]"#),
        ("wait", r#"["one", true, true, true]"#),
        ("cancel", r#"["wait", true, true]"#),
        ("wait", r#"["cancel", true, true, true]"#),
        ("two", r#"["wait", true, true]"#),
    ] {
        assert_eq!(agent.run(input).await.expect("it finishes").output(), seen, "{input}");
    }
    agent.shutdown().await;
    assert_eq!(lab.recorder.logged(), [], "Python has nothing to warn of");
}

#[tokio::test]
async fn what_a_hook_prints_is_logged_under_its_name() {
    let lab = Lab::new(
        r#"
import sys, os
def talk(ctx):
    print("one"); print("two", end=""); print(" three")
    print("wrong", file=sys.stderr)
    sys.stdout.buffer.write(b"raw \xff\n")
    ctx.log("said")
    print("unended", end="")
async def later(ctx):
    print("later")
def child(ctx):
    os.system("echo from a child")
"#,
    );
    let agent = lab.agent();
    let agent = ["talk", "later", "child"]
        .into_iter()
        .fold(agent, |agent, name| agent.with_lifecycle(lab.hook(name, Point::BeforeAgent)));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    // What children write comes by another way, and at the latest with the next call.
    let mut lines = lab.recorder.logged();
    for _ in 0..200 {
        if lines.iter().any(|(_, _, line)| line == "from a child") {
            break;
        }
        agent.run("hello").await.expect("it goes on");
        lines = lab.recorder.logged();
    }
    let of = |name: &str| -> Vec<(LogStream, String)> {
        let lines = lines.iter().filter(|(source, _, _)| source == name);
        lines.map(|(_, stream, line)| (*stream, line.clone())).collect()
    };
    let talk = of("talk");
    assert_eq!(
        talk[..6],
        [
            (LogStream::Stdout, "one".to_owned()),
            (LogStream::Stdout, "two three".to_owned()),
            (LogStream::Stderr, "wrong".to_owned()),
            (LogStream::Stdout, "raw \u{fffd}".to_owned()),
            (LogStream::Host, "said".to_owned()),
            (LogStream::Stdout, "unended".to_owned()),
        ]
    );
    assert_eq!(of("later")[0], (LogStream::Stdout, "later".to_owned()));
    assert!(lines.iter().any(|(_, _, line)| line == "from a child"), "{lines:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_hook_changes_input_request_and_output() {
    let lab = Lab::new(
        r#"
def shout(ctx):
    ctx.input = ctx.input.upper()
async def prefix(ctx):
    ctx.request.messages[-1]["text"] += "!"
    ctx.request.instruction = "be brief"
def end(ctx):
    assert ctx.outcome == "ok"
    ctx.output = ctx.output + "?"
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("shout", Point::BeforeAgent))
        .with_lifecycle(lab.hook("prefix", Point::BeforeModel))
        .with_lifecycle(lab.hook("end", Point::AfterAgent));
    let agent = lab.started(agent).await;
    let report = agent.run("hello").await.expect("it goes on");
    assert_eq!(report.output(), "HELLO!?");
    assert_eq!(agent.history().iter().next().map(Message::text), Some("HELLO"));
    agent.shutdown().await;
}

#[tokio::test]
async fn state_goes_to_the_agent_and_live_objects_stay_in_the_worker() {
    let lab = Lab::new(
        r#"
import threading
def start(ctx):
    ctx.state["count"] = 1
    ctx.state["lock"] = threading.Lock()
def turn(ctx):
    ctx.state["count"] += 1
    ctx.state.setdefault("seen", []).append(ctx.input)
    assert ctx.state["lock"].acquire()
    ctx.state["lock"].release()
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    for text in ["a", "b"] {
        agent.run(text).await.expect("it goes on");
    }
    assert_eq!(agent.state_value("count"), Some(json!(3)));
    assert_eq!(agent.state_value("seen"), Some(json!(["a", "b"])));
    let lock = agent.state_value("lock").expect("it stands for the lock");
    assert_eq!((&lock["$live"], &lock["by"]), (&json!("lock"), &json!("hooks.py:start")));
    agent.shutdown().await;
}

#[tokio::test]
async fn state_that_the_agent_does_not_own_is_refused() {
    let lab = Lab::new("def grab(ctx):\n    ctx.state['trace_id'] = 'mine'\n");
    let agent = lab.agent().with_lifecycle(lab.hook("grab", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let error = agent.run("hello").await.expect_err("it may not");
    assert!(error.to_string().contains("trace_id"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn context_variables_are_the_chats_and_survive_between_hooks() {
    let lab = Lab::new(
        r#"
def begin(ctx, context_variables):
    context_variables.data["topic"] = "tea"
    context_variables["pool"] = object()
def look(ctx, context_variables):
    assert context_variables.get("pool") is not None
    context_variables.set("topic", context_variables.data["topic"] + "!")
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("begin", Point::BeforeChat))
        .with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let chat = Chat::new("chat-1", [agent.clone()]);
    let result =
        chat.run(async |chat: &Chat| agent.request("hello").in_chat(chat).run().await).await;
    assert!(chat.failures().is_empty(), "{:?}", chat.failures());
    drop(result);
    assert_eq!(chat.variable("topic"), Some(json!("tea!")));
    agent.shutdown().await;
}

#[tokio::test]
async fn the_package_for_authors_can_be_imported_and_its_helpers_decide() {
    let lab = Lab::new(
        r#"
import tenure
def check(ctx: tenure.HookContext):
    if ctx.input == "raise":
        raise tenure.Denied("not that")
    return tenure.deny("no") if ctx.input == "bad" else None
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("check", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    assert_eq!(agent.run("good").await.expect("it may").output(), "good");
    for (text, reason) in [("bad", "no"), ("raise", "not that")] {
        let error = agent.run(text).await.expect_err("it is refused");
        assert!(error.is_denied() && error.to_string().contains(reason), "{error}");
    }
    agent.shutdown().await;
}
