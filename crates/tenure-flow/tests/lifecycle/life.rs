//! What a tool gets, gives and leaves when all goes well.

use crate::lifecycle::support::{Lab, Seen, calls, first, logged};
use serde_json::json;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_core::event::{EventKind, Received};
use tenure_flow::ChatStatus;
use tenure_flow::lifecycle::{Trigger, platform_defaults};

const TOOLS: &str = r#"
import logging

logger = logging.getLogger(__name__)

def plain():
    print("printed")

def with_variables(context_variables):
    seen = context_variables.data.get("workflow_name"), context_variables.data["chat_id"]
    context_variables.data["trail"] = context_variables.data.get("trail", []) + ["sync"]
    logger.info("logged for %s in %s", *seen)
    return {"status": "success", "seen": seen}

async def later(context_variables):
    context_variables.data["trail"] = context_variables.data.get("trail", []) + ["async"]
    return "done"

def with_both(ctx, context_variables):
    ctx.log(f"{ctx.hook_type} of {ctx.agent_name}")
    return object

def ended(ctx):
    return {"outcome": ctx.outcome, "output": ctx.output}
"#;

#[tokio::test]
async fn functions_of_every_form_run_at_every_trigger_in_the_order_of_the_array() {
    let mut lab = Lab::new(TOOLS);
    let mut tools = Vec::new();
    for trigger in Trigger::ALL {
        for function in ["plain", "with_variables", "later", "with_both"] {
            let mut tool = lab.tool(trigger, function);
            tool.name = format!("{function}.{trigger}").into();
            tools.push(tool);
        }
    }
    let report = lab.flow(&tools).build().expect("a flow").run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    let trail: Vec<_> = ["sync", "async"].into_iter().cycle().take(12).collect();
    assert_eq!(report.variables["trail"], json!(trail));
    let seen = lab.seen();
    let mut expected = Vec::new();
    let turns = [Trigger::BeforeAgent, Trigger::AfterAgent];
    for trigger in
        [Trigger::BeforeChat].into_iter().chain(turns).chain(turns).chain([Trigger::AfterChat])
    {
        for function in ["plain", "with_variables", "later", "with_both"] {
            expected.push(format!("call {trigger} {function}.{trigger}"));
            expected.push(format!("result {trigger} {function}.{trigger}"));
        }
    }
    assert_eq!(calls(&seen), expected);
    for part in ["printed", "logged for lab in chat_", "before_agent of b", "returned \"done\""] {
        assert!(logged(&seen, part), "{part}: {seen:#?}");
    }
}

#[tokio::test]
async fn the_events_of_a_call_have_the_payload_of_the_guide() {
    let mut lab = Lab::new(TOOLS);
    let mut tool = lab.tool(Trigger::BeforeAgent, "with_variables");
    tool.agent = Some("a".into());
    lab.flow(&[tool, lab.tool(Trigger::AfterChat, "ended")])
        .build()
        .expect("a flow")
        .run("hi")
        .await;
    let seen = lab.seen();
    let call = first(&seen, "lifecycle.tool_call");
    assert_eq!(
        *call,
        json!({
            "tool": "with_variables", "trigger": "before_agent", "agent": "a",
            "current_agent": "a", "function": "with_variables", "file": "tools.py",
            "status": "started",
        })
    );
    let result = first(&seen, "lifecycle.tool_result");
    assert_eq!(result["status"], "success");
    assert_eq!(result["result"]["status"], "success");
    assert!(result["elapsed_ms"].as_f64().is_some_and(|it| it > 0.0), "{result}");
    let both: Vec<_> = seen.iter().filter(|it| it.name == "lifecycle.tool_result").collect();
    assert_eq!(both.len(), 2, "the tool of `a` runs at one turn: {both:?}");
    assert_eq!(both[1].data["result"], json!({ "outcome": "max_turns", "output": null }));
    assert_eq!(both[1].data["agent"], json!(null));
}

#[tokio::test]
async fn what_a_tool_is_for_is_in_its_events_and_in_the_line_of_its_failure() {
    let mut lab =
        Lab::new("def works():\n    return 1\n\ndef fails():\n    raise ValueError('no')\n");
    let mut works = lab.tool(Trigger::BeforeChat, "works");
    works.description = Some("Opens the books".into());
    let mut fails = lab.tool(Trigger::AfterAgent, "fails");
    fails.description = Some("Closes the books".into());
    let flow = lab.flow(&[works, fails]).max_turns(1).build().expect("a flow");
    flow.run("hi").await;
    let seen = lab.seen();
    let described: Vec<_> = seen
        .iter()
        .filter(|seen| seen.name.starts_with("lifecycle."))
        .map(|Seen { name, data }| (name.as_str(), data["description"].as_str().unwrap_or("-")))
        .collect();
    let expected = [
        ("lifecycle.tool_call", "Opens the books"),
        ("lifecycle.tool_result", "Opens the books"),
        ("lifecycle.tool_call", "Closes the books"),
        ("lifecycle.tool_error", "Closes the books"),
    ];
    assert_eq!(described, expected);
    assert!(logged(&seen, "fails (Closes the books) failed: ValueError: no"), "{seen:#?}");
    assert!(logged(&seen, "works (Opens the books) returned 1"), "{seen:#?}");
}

/// The start of Python and the import of the module take half a second here, and the function none.
#[tokio::test]
async fn the_time_of_a_call_begins_with_its_function() {
    let slow = "import time\ntime.sleep(0.5)\n";
    let lab =
        Lab::new(&format!("{slow}\ndef quick():\n    pass\n\nasync def later():\n    pass\n"));
    let mut events = lab.bus.subscribe(10_000);
    let tools = [lab.tool(Trigger::BeforeChat, "quick"), lab.tool(Trigger::BeforeAgent, "later")];
    lab.flow(&tools).build().expect("a flow").run("hi").await;
    let mut took = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        match &event.kind {
            EventKind::Announced { name: "lifecycle.tool_result", data } => {
                took.push(data["elapsed_ms"].as_f64().expect("it is a number"));
            }
            EventKind::HookEnded { hook, took: all, .. } if hook.starts_with("lifecycle_tools") => {
                took.push(all.as_secs_f64() * 1000.0);
            }
            _ => {}
        }
    }
    assert_eq!(took.len(), 6, "{took:?}");
    assert!(took.iter().all(|millis| *millis > 0.0 && *millis < 250.0), "{took:?}");
}

#[tokio::test]
async fn what_is_no_json_is_told_by_its_repr() {
    let mut lab = Lab::at("tools/tools.py", TOOLS);
    lab.flow(&[lab.tool(Trigger::BeforeChat, "with_both")])
        .build()
        .expect("a flow")
        .run("hi")
        .await;
    let seen = lab.seen();
    let result = &first(&seen, "lifecycle.tool_result")["result"];
    assert_eq!(*result, "<class 'object'>");
}

/// Stands for nobody.
struct Nobody;

#[async_trait::async_trait]
impl Asker for Nobody {
    async fn answer(&self, _ask: &PendingAsk) -> Option<Answer> {
        None
    }

    fn is_there(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_chat_that_waits_for_a_person_ends_with_a_line_that_says_so() {
    let mut lab = Lab::new(TOOLS);
    let mut tools = platform_defaults(|_| None);
    let mut waits = lab.tool(Trigger::AfterChat, "plain");
    waits.when = Some("outcome == 'failed' and 'waits for a person' in error".into());
    tools.push(waits);
    let mut other = lab.tool(Trigger::AfterChat, "ended");
    other.when = Some("not ('waits for a person' in error)".into());
    tools.push(other);
    let flow = lab.flow(&tools).user(true).on_ask(Nobody).build().expect("a flow");
    let report = flow.chat().id("chat_7").message("hi").run().await;
    assert_eq!(report.status, ChatStatus::Paused, "{:?}", report.error);
    let seen = lab.seen();
    let end = "⏸ Workflow Paused | workflow=lab | chat=chat_7 | duration=0.";
    assert!(logged(&seen, end) && !logged(&seen, "Workflow Ended"), "{seen:#?}");
    let ran: Vec<_> = calls(&seen);
    assert!(ran.contains(&"result after_chat plain".to_owned()), "{ran:?}");
    assert!(!ran.contains(&"call after_chat ended".to_owned()), "{ran:?}");
}

fn first_result<'a>(seen: &'a [Seen], tool: &str) -> &'a serde_json::Value {
    let is_it = |it: &&Seen| it.name == "lifecycle.tool_result" && it.data["tool"] == tool;
    &seen.iter().find(is_it).expect("it returned").data["result"]
}

#[tokio::test]
async fn every_chat_has_a_line_at_its_begin_and_at_its_end() {
    let mut lab = Lab::new(TOOLS);
    let flow = lab.flow(&platform_defaults(|_| None)).build().expect("a flow");
    flow.chat().id("chat_7").app("ent_001").user("user_xyz").message("hi").run().await;
    let seen = lab.seen();
    let begin = "🚀 Workflow Initialized | workflow=lab | chat=chat_7 | user=user_xyz | \
                 app=ent_001 | timestamp=20";
    assert!(logged(&seen, begin), "{seen:#?}");
    let end = "⛔ Workflow Ended | workflow=lab | chat=chat_7 | outcome=max_turns | duration=0.";
    assert!(logged(&seen, end), "{seen:#?}");
    assert!(!logged(&seen, "returned"), "what they return is in the line already: {seen:#?}");
    assert!(first_result(&seen, "log_workflow_completion")["duration_s"].is_number());
    assert_eq!(
        calls(&seen),
        [
            "call before_chat log_workflow_start",
            "result before_chat log_workflow_start",
            "call after_chat log_workflow_completion",
            "result after_chat log_workflow_completion",
        ]
    );
}

#[tokio::test]
async fn the_project_replaces_what_the_platform_says() {
    let mut lab = Lab::new("def log_workflow_start(context_variables):\n    print('mine')\n");
    let function = lab.function("log_workflow_start");
    let tools = platform_defaults(|name| (name == "log_workflow_start").then(|| function.clone()));
    lab.flow(&tools).build().expect("a flow").run("hi").await;
    let seen = lab.seen();
    assert!(logged(&seen, "mine") && !logged(&seen, "Initialized"), "{seen:#?}");
    assert!(logged(&seen, "Workflow Ended"), "{seen:#?}");
    let Seen { data, .. } =
        seen.iter().find(|it| it.name == "lifecycle.tool_call").expect("a call");
    assert_eq!(data["file"], "logs/workflow_lifecycle.py");
}
