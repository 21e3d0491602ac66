//! The four examples of the seed.

use crate::examples::support::{CHAT, Ran, folder, run};
use serde_json::{Value, json};
use tenure_core::event::EventKind;
use tenure_flow::ChatStatus;

/// A payload without its time, which has to be there and to be a number.
fn timeless(mut payload: Value) -> Value {
    let fields = payload.as_object_mut().expect("a payload is an object");
    let elapsed = fields.remove("elapsed_ms").expect("it says how long it took");
    assert!(elapsed.as_f64().is_some_and(|it| it >= 0.0), "{elapsed}");
    payload
}

fn assert_platform_lines(ran: &Ran, workflow: &str) {
    let began = ran.line("Workflow Initialized");
    let start = format!(
        "🚀 Workflow Initialized | workflow={workflow} | chat={CHAT} | user=user_xyz | \
         app=ent_001 | timestamp="
    );
    assert!(began.starts_with(&start), "{began}");
    let over = ran.line("Workflow Completed");
    let start = format!("✅ Workflow Completed | workflow={workflow} | chat={CHAT} | duration=");
    let rest = over.strip_prefix(&start).unwrap_or_else(|| panic!("{over}"));
    let (duration, rest) = rest.split_once("s | timestamp=").expect("a duration, then a time");
    assert!(duration.parse::<f64>().is_ok_and(|it| it >= 0.0), "{over}");
    for time in [rest, began.rsplit('=').next().expect("a time")] {
        assert!(time.ends_with('Z') && time.len() == "2025-10-10T14:32:15.123Z".len(), "{time}");
    }
}

#[tokio::test]
async fn example_1_logs_the_start_of_the_workflow_and_leaves_its_time_behind() {
    let ran = run(&folder("workflow_logger")).await;
    assert_eq!(ran.report.status, ChatStatus::Completed);
    assert_platform_lines(&ran, "workflow_logger");
    let line = ran.line("Workflow started");
    let start =
        format!("🚀 Workflow started: workflow_logger | chat={CHAT} | user=user_xyz | timestamp=");
    assert!(line.contains(&start), "{line}");
    let payloads: Vec<_> = ran.tools("lifecycle.tool_result").into_iter().map(timeless).collect();
    assert_eq!(
        payloads,
        [json!({
            "tool": "log_workflow_start",
            "trigger": "before_chat",
            "agent": null,
            "function": "log_workflow_start",
            "file": "workflow_logger.py",
            "description": "Log workflow initialization for observability",
            "status": "success",
            "result": null,
        })]
    );
    assert_eq!(ran.tools("lifecycle.tool_call").len(), 1);
    assert_eq!(ran.tools("lifecycle.tool_error").len(), 0);
    let time = ran.report.variables.get("workflow_start_time").and_then(Value::as_str);
    assert!(time.is_some_and(|it| it.ends_with("+00:00")), "{time:?}");
    let tool = ran.place("call", |it| it.name() == "lifecycle.tool_call");
    let turn = ran.place("turn", |it| it.name() == "agent.turn.started");
    assert!(tool < turn);
}

#[tokio::test]
async fn example_2_keeps_the_pool_alive_from_the_hook_to_the_tool_to_the_hook() {
    let ran = run(&folder("data_processor")).await;
    assert_eq!(ran.report.status, ChatStatus::Completed, "{:?}", ran.report.error);
    assert_eq!(ran.report.output, "Open orders: 2");
    assert_platform_lines(&ran, "data_processor");
    let payloads: Vec<_> = ran.tools("lifecycle.tool_result").into_iter().map(timeless).collect();
    assert_eq!(
        payloads,
        [
            json!({
                "tool": "allocate_data_resources",
                "current_agent": "DataProcessorAgent",
                "trigger": "before_agent",
                "agent": "DataProcessorAgent",
                "function": "allocate_data_resources",
                "file": "setup_data_context.py",
                "description": "Allocate database connections before DataProcessorAgent",
                "status": "success",
                "result": { "status": "allocated", "pool_size": 3 },
            }),
            json!({
                "tool": "release_data_resources",
                "current_agent": "DataProcessorAgent",
                "trigger": "after_agent",
                "agent": "DataProcessorAgent",
                "function": "release_data_resources",
                "file": "cleanup_data_context.py",
                "description": "Release database connections after DataProcessorAgent",
                "status": "success",
                "result": { "status": "released" },
            }),
        ]
    );
    assert!(!ran.report.variables.contains_key("db_connection"), "{:?}", ran.report.variables);
}

#[tokio::test]
async fn example_3_runs_what_comes_after_a_chat_in_the_order_of_the_file() {
    let ran = run(&folder("metrics_cleanup")).await;
    assert_eq!(ran.report.status, ChatStatus::Completed, "{:?}", ran.report.error);
    assert_eq!(ran.report.output, "The draft has 14 characters.");
    assert_platform_lines(&ran, "metrics_cleanup");
    let results: Vec<_> = ran
        .tools("lifecycle.tool_result")
        .into_iter()
        .map(|it| (it["trigger"].clone(), it["function"].clone(), it["result"].clone()))
        .collect();
    assert_eq!(
        results,
        [
            (
                json!("after_chat"),
                json!("submit_workflow_metrics"),
                json!({ "status": "submitted", "files": 1, "bytes": 14 })
            ),
            (
                json!("after_chat"),
                json!("cleanup_temporary_files"),
                json!({ "status": "clean", "removed": 1 })
            ),
        ]
    );
    let line = ran.line("metrics | ");
    assert_eq!(line, "metrics | workflow=metrics_cleanup | {'files': 1, 'bytes': 14}");
    assert_eq!(ran.report.variables["temporary_files"], json!([]));
    let tools = ran.place("result", |event| match &event.kind {
        EventKind::Announced { name, data } => {
            *name == "lifecycle.tool_result" && data["trigger"] == "after_chat"
        }
        _ => false,
    });
    let turn = ran.place("end", |it| it.name() == "agent.turn.ended");
    let shutdown = ran.place("shutdown", |it| it.name() == "agent.shutdown");
    assert!(turn < tools && tools < shutdown);
}

#[tokio::test]
async fn example_4_runs_before_the_turn_of_every_agent() {
    let ran = run(&folder("agent_logger")).await;
    assert_eq!(ran.report.status, ChatStatus::Completed, "{:?}", ran.report.error);
    assert_platform_lines(&ran, "agent_logger");
    let agents = ["PlannerAgent", "WriterAgent", "EditorAgent"];
    for (turn, agent) in agents.iter().enumerate() {
        let turn = turn + 1;
        let line = ran.line(&format!("turn {turn} | "));
        assert!(line.ends_with(&format!("turn {turn} | agent={agent} | chat={CHAT}")), "{line}");
    }
    let calls = ran.tools("lifecycle.tool_call");
    assert!(calls.iter().all(|it| it["agent"].is_null() && it["trigger"] == "before_agent"));
    let called: Vec<_> = calls.iter().map(|it| it["current_agent"].clone()).collect();
    assert_eq!(called, agents);
    let spoke: Vec<_> = ran.report.turn_summaries.iter().map(|it| &*it.agent).collect();
    assert_eq!(spoke, agents);
    assert_eq!(ran.report.variables["turns_started"], json!(3));
    let speakers: Vec<_> =
        ran.announced("select_speaker").into_iter().map(|it| it["agent"].clone()).collect();
    assert_eq!(speakers, agents);
}
