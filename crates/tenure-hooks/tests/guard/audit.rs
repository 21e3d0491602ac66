//! What an audit log says of calls.

use crate::guard::audit_file::lines;
use crate::guard::support::*;
use crate::support::refused;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::hook;
use tenure_core::message::ToolStatus::{Denied, Error as Failed};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{Effect, FnTool, ToolError, ToolSpec};
use tenure_hooks::calls::ToolRetry;
use tenure_hooks::guard::{AuditLog, DryRun, Keep, Permissions};
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Script, Scripted};

fn one_call() -> Value {
    json!([{ "call": "shell", "with": { "command": "ls", "password": "hunter2" } }, "end"])
}

#[tokio::test]
async fn both_lines_say_who_had_what_done_and_what_came_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let seen = Seen::default();
    let audit = AuditLog::new(&path).redact("password").unwrap();
    let agent = scripted(&seen, one_call()).with_lifecycle(audit).build().unwrap();
    let context = ExecutionContext::new("trace-7").with_user_id("ada");
    let turn = async |agent: &Agent| agent.request("go").context(context).run().await;
    agent.scoped(turn).await.unwrap();
    assert_eq!(seen.all()[0].1["password"], "hunter2", "the tool gets what was sent");
    let lines = lines(&path);
    let [begun, ended] = &lines[..] else { panic!("{lines:?}") };
    for line in [begun, ended] {
        assert_eq!((&line["agent"], &line["tool"]), (&json!("agent"), &json!("shell")));
        assert_eq!((&line["user"], &line["trace"]), (&json!("ada"), &json!("trace-7")));
        assert_eq!(line["key"], begun["key"]);
        assert!(line["instance"].is_string() && line["run"].is_string() && line["at"].is_string());
    }
    assert_eq!((&begun["phase"], &begun["seq"]), (&json!("begun"), &json!(1)));
    assert_eq!(begun["arguments"], json!({ "command": "ls", "password": "[redacted]" }));
    assert_eq!((&ended["phase"], &ended["status"]), (&json!("ended"), &json!("ok")));
    assert_eq!((&ended["result"], &ended["attempts"]), (&json!("shell done"), &json!(1)));
    assert!(ended["took_ms"].as_f64().is_some());
}

#[tokio::test]
async fn denials_rehearsals_and_attempts_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let seen = Seen::default();
    let denies = Permissions::new().allow("search");
    let builder = scripted(&seen, one_call()).with_lifecycle(denies);
    run(builder.with_lifecycle(AuditLog::new(at("denied")))).await.unwrap();
    let ended = &lines(&at("denied"))[1];
    assert_eq!((&ended["status"], &ended["attempts"]), (&json!("denied"), &json!(0)));

    let builder = scripted(&seen, one_call()).with_lifecycle(DryRun::new());
    run(builder.with_lifecycle(AuditLog::new(at("dry")))).await.unwrap();
    let ended = &lines(&at("dry"))[1];
    assert_eq!((&ended["status"], &ended["attempts"]), (&json!("ok"), &json!(0)));

    let flaky = FnTool::new(ToolSpec::new("flaky", "Fails").effect(Effect::Idempotent), |_| {
        Err(ToolError::new("no"))
    });
    let script = Script::from_json(&json!([{ "call": "flaky" }, "end"])).unwrap();
    let retry = ToolRetry::new().attempts(3).initial_delay(Duration::from_millis(1));
    let builder = Agent::builder("agent").model(script).tool(flaky).with_lifecycle(retry);
    let turn = run(builder.with_lifecycle(AuditLog::new(at("flaky")))).await;
    assert_eq!(statuses(&turn), [Failed]);
    let lines = lines(&at("flaky"));
    assert_eq!(lines.len(), 2, "one call, however often it is tried");
    assert_eq!((&lines[1]["status"], &lines[1]["attempts"]), (&json!("error"), &json!(3)));
}

#[tokio::test]
async fn what_is_kept_is_a_choice() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Seen::default();
    let log = async |name: &str, audit: &dyn Fn(AuditLog) -> AuditLog| {
        let path = folder.path().join(name);
        let audit = audit(AuditLog::new(&path));
        run(scripted(&seen, one_call()).with_lifecycle(audit)).await.unwrap();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (lines(&path), text)
    };
    let (hashed, text) = log("hash", &|it| it.keep(Keep::Hash)).await;
    assert_eq!(hashed[1]["result"]["bytes"], json!("shell done".len()));
    assert!(!text.contains("hunter2") && !text.contains("shell done"), "{text}");
    let (nothing, text) = log("none", &|it| it.keep(Keep::Nothing)).await;
    assert!(nothing[0].get("arguments").is_none() && !text.contains("hunter2"), "{text}");
    let (cut, _) = log("cut", &|it| it.most(5)).await;
    assert_eq!(cut[1]["result"]["begins"], json!("shell"));
    let (none, _) = log("other", &|it| it.except("sh*")).await;
    assert!(none.is_empty());
}

#[tokio::test]
async fn a_tool_is_not_called_that_cannot_be_logged_and_a_result_is_withheld() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let gone = path.clone();
    let seen = Seen::default();
    // The log is taken away while the first call is made.
    let thief = hook::hook(hook::wrap_tool_call(move |_cx, request, next| {
        let gone = gone.clone();
        Box::pin(async move {
            let _ = std::fs::remove_file(&gone);
            Ok(next.call(request).await?)
        })
    }));
    let replies = json!([calls("search", 1), calls("search", 1), "end"]);
    let builder = scripted(&seen, replies)
        .with_lifecycle(AuditLog::new(&path))
        .with_lifecycle(thief.named("thief").after("audit"));
    let turn = run(builder).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied, Denied], 1));
    let told = results(&turn);
    assert!(told[0].1.contains("moved or deleted"), "{}", told[0].1);
}

#[tokio::test]
async fn a_run_that_goes_on_writes_no_call_twice() {
    let replies = json!([calls("search", 2), calls("shell", 1), "end"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let seen = Seen::default();
    let agent = || scripted(&seen, replies.clone()).with_lifecycle(AuditLog::new(&path).models());
    let log = MemoryStepLog::new();
    recorded(agent(), &log).await.unwrap();
    let whole = lines(&path).len();
    assert_eq!(whole, 2 * (3 + 3), "three calls of tools, and three of the model");
    // Whatever the record had when the process died, the lines are all there already.
    for cut in 0..log.keys().len() {
        recorded(agent(), &log.cut_after(cut)).await.unwrap();
        assert_eq!(lines(&path).len(), whole, "after {cut} steps");
    }
    AuditLog::verify(&path).unwrap();
}

#[tokio::test]
async fn a_call_that_is_cancelled_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let model = Scripted::empty().call("wait", json!({}));
    let agent = Agent::builder("agent")
        .model(model)
        .tool(Waits)
        .with_lifecycle(AuditLog::new(&path))
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    let cancels = async {
        while lines(&path).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        agent.cancel();
    };
    let (turn, ()) = tokio::join!(agent.run("go"), cancels);
    assert!(turn.unwrap_err().is_cancelled());
    agent.shutdown().await;
    let mut found = lines(&path);
    for _ in 0..200 {
        if found.len() > 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        found = lines(&path);
    }
    assert_eq!(found[1]["status"], "cancelled");
}

struct Waits;

#[async_trait::async_trait]
impl tenure_core::tool::Tool for Waits {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("wait", "Waits")
    }

    async fn call(
        &self,
        _cx: tenure_core::context::ToolCx<'_>,
        _arguments: &Value,
    ) -> Result<tenure_core::tool::ToolOutput, ToolError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn options_make_a_log_beneath_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let with = json!({ "file": "logs/a.jsonl", "content": "none", "models": true });
    let made = ready::find("audit").unwrap().make(&with, &bench).unwrap();
    assert!(made.is_guard());
    assert!(!folder.path().join("logs").exists(), "nothing is made before it is needed");
    run(scripted(&Seen::default(), json!(["end"])).with_lifecycle(made)).await.unwrap();
    let lines = lines(&folder.path().join("logs/a.jsonl"));
    assert_eq!((lines.len(), &lines[1]["kind"]), (2, &json!("model")));
}

#[test]
fn options_are_checked() {
    let field = |with| refused("audit", with);
    assert_eq!(field(json!({})), "file");
    assert_eq!(field(json!({ "file": "../a" })), "file");
    assert_eq!(field(json!({ "file": "a", "most": 0 })), "most");
    assert_eq!(field(json!({ "file": "a", "redact": ["a..b"] })), "redact[0]");
    assert_eq!(field(json!({ "file": "a", "content": "some" })), "content");
}
