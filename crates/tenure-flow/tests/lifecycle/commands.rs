//! Tools that are commands.

use crate::lifecycle::support::{Lab, Seen, calls, limit, logged};
use serde_json::{Value, json};
use tenure_flow::ChatStatus;
use tenure_flow::lifecycle::{LifecycleTool, Run, Trigger};

fn command(lab: &Lab, trigger: Trigger, name: &str, script: &str) -> LifecycleTool {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    LifecycleTool::new(trigger, name, Run::Command { argv, dir: lab.dir.path().to_owned() })
}

fn ends(seen: &[Seen]) -> Vec<&Value> {
    let is_end =
        |it: &&Seen| it.name == "lifecycle.tool_result" || it.name == "lifecycle.tool_error";
    seen.iter().filter(is_end).map(|it| &it.data).collect()
}

#[tokio::test]
async fn a_command_gets_the_call_as_json_and_may_answer_with_variables_and_a_result() {
    let mut lab =
        Lab::new("def keeps(context_variables):\n    context_variables.data['live'] = keeps\n");
    let answer = r#"{"context_variables": {"from_shell": [1]}, "result": {"ok": true}}"#;
    let tools = [
        lab.tool(Trigger::BeforeChat, "keeps"),
        command(&lab, Trigger::BeforeChat, "answers", &format!("echo '{answer}'")),
        command(&lab, Trigger::BeforeAgent, "tells", "cat"),
        command(&lab, Trigger::AfterChat, "tells_too", "cat"),
    ];
    let flow = lab.flow(&tools).max_turns(1).build().expect("a flow");
    let report = flow.chat().id("c1").message("hello").run().await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(report.variables["from_shell"], json!([1]));
    let seen = lab.seen();
    let ends = ends(&seen);
    assert_eq!(ends[1]["result"], json!({ "ok": true }));
    // `cat` says what it was told: its variables are written back, and the rest is the result.
    assert_eq!(ends[2]["status"], "error", "it may not write the chat's own: {:?}", ends[2]);
    let errors = ends[2]["error"].as_str().expect("a message");
    assert!(errors.contains("app_id"), "{errors}");
}

#[tokio::test]
async fn what_a_command_is_told_has_the_trigger_the_agent_and_the_outcome() {
    let mut lab = Lab::new("");
    let script = r#"sed 's/"context_variables"/"variables"/'"#;
    let tools = [
        command(&lab, Trigger::BeforeAgent, "before", script),
        command(&lab, Trigger::AfterAgent, "after", script),
        command(&lab, Trigger::AfterChat, "end", script),
    ];
    let flow = lab.flow(&tools).max_turns(1).build().expect("a flow");
    flow.chat().id("c1").user("u").app("x").message("hello").run().await;
    let seen = lab.seen();
    let ends: Vec<_> = ends(&seen).iter().map(|it| it["result"].clone()).collect();
    let system = json!({ "app_id": "x", "chat_id": "c1", "user_id": "u", "workflow_name": "lab" });
    let all = json!({ "workflow_name": "lab", "chat_id": "c1", "variables": system });
    let with = |more: Value| {
        let mut all = all.clone();
        let more = more.as_object().cloned().unwrap_or_default();
        all.as_object_mut().expect("an object").extend(more);
        all
    };
    let before = json!({ "trigger": "before_agent", "agent": "a", "input": "hello" });
    assert_eq!(ends[0], with(before));
    let after = json!({ "trigger": "after_agent", "agent": "a", "outcome": "ok", "error": null,
                        "output": "hello" });
    assert_eq!(ends[1], with(after));
    assert_eq!(ends[2]["trigger"], "after_chat");
    assert_eq!(ends[2]["agent"], json!(null));
    assert_eq!(ends[2]["outcome"], "max_turns");
}

#[tokio::test]
async fn a_command_fails_by_its_code_its_signal_its_nonsense_and_its_time() {
    let cases = [
        ("echo said >&2; exit 3", "error", "exit code 3"),
        ("kill -9 $$", "crashed", "signal"),
        ("echo '{\"result\": '", "bad_reply", "looks like JSON"),
        ("echo '{\"context_variables\": 3}'", "bad_reply", "not an object"),
        ("sleep 30", "timed_out", "no answer"),
        ("echo plain text", "success", ""),
        ("true", "success", ""),
    ];
    let mut lab = Lab::new("");
    let tools: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(at, (script, ..))| {
            let mut tool = command(&lab, Trigger::BeforeChat, &format!("c{at}"), script);
            tool.timeout = limit(600);
            tool
        })
        .collect();
    let report = lab.flow(&tools).build().expect("a flow").run("hi").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let seen = lab.seen();
    assert_eq!(calls(&seen).len(), 2 * cases.len());
    for (end, (script, status, part)) in ends(&seen).into_iter().zip(cases) {
        assert_eq!(end["status"], status, "{script}: {end}");
        assert!(end["error"].as_str().unwrap_or_default().contains(part), "{script}: {end}");
    }
    assert!(logged(&seen, "said") && logged(&seen, "plain text"), "{seen:#?}");
}
