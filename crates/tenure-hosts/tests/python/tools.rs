//! Functions as tools.

use crate::python::support::Lab;
use serde_json::json;
use tenure_core::hook::Point;
use tenure_core::tool::ToolSpec;
use tenure_testkit::eventually;

#[tokio::test]
async fn a_tool_gets_its_arguments_and_tells_its_result() {
    let lab = Lab::new(
        r#"
from dataclasses import dataclass
@dataclass
class Spot:
    x: int
    y: int
def text(what): return what.upper()
async def number(a, b=2): return a * b
def spot(): return Spot(1, 2)
def listed(n): return {"spots": [Spot(n, n)], "none": None}
def raises(): raise ValueError("no such city")
def big(): return "x" * 20_000_000
async def with_ctx(ctx, what):
    ctx.state["asked"] = what
    return ctx.agent_name
def keyed(ctx):
    assert ctx.idempotency_key.endswith("//1/" + ctx.call_id), ctx.idempotency_key
    return ctx.call_id
def crash():
    import os
    os._exit(3)
"#,
    );
    for (call, output) in [
        (r#"text {"what": "tea"}"#, "TEA"),
        (r#"number {"a": 21}"#, "42"),
        ("spot {}", r#"{"x": 1, "y": 2}"#),
        (r#"listed {"n": 3}"#, r#"{"spots": [{"x": 3, "y": 3}], "none": null}"#),
        ("raises {}", "ValueError: no such city"),
        (r#"with_ctx {"what": "tea"}"#, "agent"),
        ("keyed {}", "correlationId0"),
        ("crash {}", "exit code 3"),
        (r#"text {"who": "me"}"#, "TypeError"),
    ] {
        let name = call.split(' ').next().expect("a name");
        let agent = lab.started(lab.agent().tool(lab.tool(name))).await;
        let report = agent.run(format!("***CALL_TOOL {call}")).await.expect("the model reads it");
        assert!(report.output().contains(output), "{call}: {}", report.output());
        if name == "with_ctx" {
            assert_eq!(agent.state_value("asked"), Some("tea".into()));
        }
        agent.shutdown().await;
    }
    let agent = lab.started(lab.agent().tool(lab.tool("big"))).await;
    let report = agent.run("***CALL_TOOL big {}").await.expect("the model reads it");
    assert_eq!(report.output().len(), 20_000_000);
    agent.shutdown().await;
}

#[tokio::test]
async fn arguments_that_the_schema_does_not_take_never_reach_the_function() {
    let lab = Lab::new("def double(x):\n    return str(x * 2)\n");
    let schema = json!({ "type": "object", "properties": { "x": { "type": "integer" } },
                         "required": ["x"], "additionalProperties": false });
    let spec = ToolSpec::new("double", "doubles a number").parameters(schema);
    let tool = lab.host.tool(lab.function("double"), spec);
    let agent = lab.started(lab.agent().tool(tool)).await;
    for (arguments, output) in [
        (r#"{"x": 2}"#, "4"),
        (r#"{"x": "ab"}"#, "argument `x` must be an integer, but is the text \"ab\""),
        ("{}", "argument `x` is missing; it must be an integer"),
        (r#"{"x": 2, "y": 3}"#, "argument `y` is unknown; there are `x`"),
    ] {
        let report = agent.run(format!("***CALL_TOOL double {arguments}")).await;
        let report = report.expect("the model reads it");
        assert!(report.output().contains(output), "{arguments}: {}", report.output());
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_is_cancelled_ends() {
    let lab = Lab::new(
        r#"
import time, os
def slow():
    open(os.path.dirname(__file__) + "/begun", "w").close()
    time.sleep(1000)
def turn(ctx): pass
"#,
    );
    let agent =
        lab.agent().tool(lab.tool("slow")).with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let cancel = async {
        eventually("it began", || lab.path().join("begun").exists()).await;
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("***CALL_TOOL slow {}"), cancel);
    assert!(result.expect_err("it was cancelled").is_cancelled());
    // A plain function that sleeps does not hear of it, so its thread is given up; its process goes on.
    let first = lab.host.processes();
    agent.run("hello").await.expect("another thread took its place");
    assert_eq!(lab.host.processes(), first);
    agent.shutdown().await;
}
