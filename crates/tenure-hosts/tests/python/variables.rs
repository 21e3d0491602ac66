//! Context variables: one object for all functions of a chat in a worker.

use crate::python::support::Lab;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::chat::Chat;
use tenure_core::hook::{Point, Policy, hook};
use tenure_core::model::ModelResponse;
use tenure_hosts::Role;
use tenure_models::Scripted;
use tokio::time::timeout;

/// Runs each of these in one chat, all at once, and gives the variables that are left.
async fn together(lab: &Lab, agents: &[Agent], inputs: &[&str]) -> Value {
    for agent in agents {
        lab.host.join(agent.id(), "chat");
    }
    let chat = Chat::new("chat-1", agents.to_vec());
    let result = chat
        .run(async |chat| {
            let runs = agents
                .iter()
                .zip(inputs)
                .map(|(agent, input)| agent.request(*input).in_chat(chat).run());
            for ended in futures_util::future::join_all(runs).await {
                ended?;
            }
            Ok(json!(chat.variables()))
        })
        .await;
    result.value.unwrap_or_else(|| panic!("{:?}", result.end))
}

#[tokio::test]
async fn parallel_increments_of_plain_functions_all_count() {
    let lab = Lab::new(
        r#"
def add(context_variables):
    count = context_variables.get("count", 0)
    for _ in range(20000): pass
    context_variables["count"] = count + 1
    return "done"
"#,
    );
    let mut agents = Vec::new();
    for _ in 0..4 {
        let calls: Vec<_> = (0..10).map(|_| ("add", json!({}))).collect();
        let model = Scripted::new(Vec::<ModelResponse>::new()).calls(calls).text("over");
        let agent = lab.agent().model(model).tool(lab.tool("add"));
        agents.push(lab.started(agent).await);
    }
    let left = together(&lab, &agents, &["a", "b", "c", "d"]).await;
    assert_eq!(left["count"], json!(40));
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn values_keep_their_types_and_the_methods_of_ag2_are_there() {
    let lab = Lab::new(
        r#"
import enum
class Colour(enum.Enum):
    RED = 1
def write(ctx, context_variables):
    context_variables.update({"pair": (1, 2), "colour": Colour.RED, "big": 10 ** 30})
    context_variables.set("map", {1: "one"})
    context_variables["set"] = {1, 2}
    del context_variables["set"]
    assert context_variables.contains("pair") and "set" not in context_variables
    assert {"big", "colour", "map", "pair"} <= set(context_variables.keys())
    assert len(list(context_variables.items())) == len(list(context_variables.values())) == len(context_variables)
    assert context_variables.to_dict()["pair"] == (1, 2)
    assert type(context_variables).from_dict({"a": 1})["a"] == 1
def read(ctx, context_variables):
    assert context_variables["pair"] == (1, 2)
    assert context_variables["colour"] is Colour.RED
    assert context_variables["big"] == 10 ** 30
    assert context_variables["map"] == {1: "one"}
    kept = context_variables
    context_variables.data = {"only": True}
    assert kept is ctx.context_variables
    assert kept["only"] is True and "pair" not in kept and "chat_id" in kept
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("write", Point::BeforeAgent))
        .with_lifecycle(lab.hook("read", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let left = together(&lab, std::slice::from_ref(&agent), &["hello"]).await;
    assert_eq!(left["only"], json!(true));
    assert_eq!(left.get("pair"), None, "{left}");
    agent.shutdown().await;
}

#[tokio::test]
async fn values_that_only_python_has_are_json_to_others() {
    let lab = Lab::new(
        r#"
import enum
class Colour(enum.Enum):
    RED = "red"
def write(ctx, context_variables):
    context_variables["colour"] = Colour.RED
    context_variables["both"] = {Colour.RED: [{2, 1}, 10 ** 30], None: (1, 2)}
def guard(ctx, context_variables):
    assert context_variables["colour"] == "red", context_variables["colour"]
    assert context_variables["both"] == {"red": [[1, 2], "1" + "0" * 30], "null": [1, 2]}
    return {"allow": True}
def read(ctx, context_variables):
    assert context_variables["colour"] is Colour.RED
    assert context_variables["both"][Colour.RED] == [{1, 2}, 10 ** 30]
    context_variables["both"][Colour.RED].append(3)
"#,
    );
    let guard = hook(lab.hook("guard", Point::BeforeAgent).role(Role::Guard));
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("write", Point::BeforeAgent))
        .with_lifecycle(guard.policy(Policy::Deny))
        .with_lifecycle(lab.hook("read", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let left = together(&lab, std::slice::from_ref(&agent), &["hello"]).await;
    assert_eq!(left["colour"], json!("red"));
    assert_eq!(left["both"]["red"][2], json!(3), "a change in place is seen");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_value_that_others_cannot_read_is_an_error_of_its_write_and_of_nothing_else() {
    let lab = Lab::new(
        r#"
def nested(levels):
    value = []
    for _ in range(levels): value = [value]
    return value
def cycle(*more):
    value = list(more)
    value += [value, value]
    return value
VALUES = {
    "deep": lambda: nested(300), "very deep": lambda: nested(5000), "cycle": cycle,
    "cycle and set": lambda: cycle({1}), "number": lambda: [float("nan")],
}
def write(ctx, context_variables):
    context_variables["bad"] = VALUES[ctx.input]()
def read(ctx, context_variables):
    context_variables["seen"] = "bad" in context_variables
"#,
    );
    let write = lab.agent().with_lifecycle(lab.hook("write", Point::BeforeAgent));
    let write = lab.started(write).await;
    let read = lab.agent().with_lifecycle(lab.hook("read", Point::BeforeAgent));
    let read = lab.started(read).await;
    for agent in [&write, &read] {
        lab.host.join(agent.id(), "chat");
    }
    let chat = Chat::new("chat-1", [write.clone(), read.clone()]);
    let result = chat
        .run(async |chat| {
            for (input, why) in [
                ("deep", "more than 100 levels"),
                ("very deep", "more than 100 levels"),
                ("cycle", "contains itself"),
                ("cycle and set", "contains itself"),
                ("number", "JSON has no such number"),
            ] {
                let error = write.request(input).in_chat(chat).run().await.expect_err(input);
                assert!(error.to_string().contains("`bad` cannot be kept"), "{input}: {error}");
                assert!(error.to_string().contains(why), "{input}: {error}");
            }
            read.request("hello").in_chat(chat).run().await?;
            Ok(json!(chat.variables()))
        })
        .await;
    let left = result.value.unwrap_or_else(|| panic!("{:?}", result.end));
    assert_eq!(left["seen"], json!(false));
    assert_eq!(lab.host.processes().len(), 1);
    write.shutdown().await;
    read.shutdown().await;
}

#[tokio::test]
async fn what_others_write_is_seen_and_what_was_refused_is_not_kept() {
    let lab = Lab::new(
        r#"
def look(ctx, context_variables):
    context_variables["saw"] = [context_variables.get("theirs"), context_variables.get("chat_id")]
    if ctx.input == "forge": context_variables["chat_id"] = "forged"
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    lab.host.join(agent.id(), "chat");
    let chat = Chat::new("chat-1", [agent.clone()]);
    let result = chat
        .run(async |chat| {
            let saw = async |input: &str| {
                let _ = agent.request(input).in_chat(chat).run().await;
                chat.variable("saw").unwrap_or_default()
            };
            let own = saw("hello").await[1].clone();
            for number in 0..3 {
                chat.context_variables().set("theirs", json!(number))?;
                assert_eq!(saw("hello").await, json!([number, own]));
            }
            assert_eq!(saw("forge").await, json!([2, own]), "the whole patch is dropped");
            chat.context_variables().set("theirs", json!(7))?;
            assert_eq!(saw("hello").await, json!([7, own]), "and so is what was refused");
            Ok(())
        })
        .await;
    result.value.unwrap_or_else(|| panic!("{:?}", result.end));
    agent.shutdown().await;
}

#[tokio::test]
async fn plain_functions_of_several_agents_have_the_variables_one_after_the_other() {
    let lab = Lab::new(
        r#"
import time
def add(context_variables):
    count = context_variables.get("count", 0)
    time.sleep(0.05)
    context_variables["count"] = count + 1
def around(ctx, next, context_variables):
    context_variables["around"] = True
    return next()
"#,
    );
    let mut agents = Vec::new();
    for _ in 0..4 {
        let agent = lab.agent().tool(lab.tool("add"));
        let wrap = lab.hook("around", Point::WrapToolCall);
        agents.push(lab.started(agent.with_lifecycle(wrap)).await);
    }
    // The tool runs while its wrap waits, which gives the variables to others until then.
    let run = together(&lab, &agents, &["***CALL_TOOL add {}"; 4]);
    let left = timeout(Duration::from_secs(10), run).await.expect("none waits for itself");
    assert_eq!((&left["count"], &left["around"]), (&json!(4), &json!(true)));
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn what_a_function_wrote_that_raises_is_taken_back() {
    let lab = Lab::new(
        r#"
def write(ctx, context_variables):
    if ctx.input == "first":
        context_variables.update(list=[1], tuple=(1, 2), text="kept")
    elif ctx.input == "second":
        context_variables["list"].append(2)
        context_variables["text"] = "changed"
        context_variables["new"] = 1
        del context_variables["tuple"]
        raise ValueError("no")
    else:
        assert context_variables["tuple"] == (1, 2) or context_variables["tuple"] == [1, 2]
"#,
    );
    let agent =
        lab.started(lab.agent().with_lifecycle(lab.hook("write", Point::BeforeAgent))).await;
    lab.host.join(agent.id(), "chat");
    let chat = Chat::new("chat-1", [agent.clone()]);
    let result = chat
        .run(async |chat| {
            agent.request("first").in_chat(chat).run().await?;
            agent.request("second").in_chat(chat).run().await.expect_err("it raises");
            agent.request("third").in_chat(chat).run().await?;
            Ok(json!(chat.variables()))
        })
        .await;
    let left = result.value.unwrap_or_else(|| panic!("{:?}", result.end));
    assert_eq!((&left["list"], &left["text"]), (&json!([1]), &json!("kept")));
    assert_eq!((left.get("new"), &left["tuple"]), (None, &json!([1, 2])));
    agent.shutdown().await;
}
