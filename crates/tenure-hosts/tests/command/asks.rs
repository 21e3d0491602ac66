//! A command that asks a person is called again with the answer.

use crate::command::support::{Script, faults};
use serde_json::{Value, json};
use tenure_core::Outcome;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::hook::{FaultKind, Point};
use tenure_testkit::HookHarness;

const ASKING: &str = "call=$(cat); echo x >> calls.txt\n\
     case \"$call\" in\n\
       *'\"answer\":'*) printf %s \"$call\" > answered.json; echo '{\"allow\": true}';;\n\
       *'\"stage\":\"after\"'*) ;;\n\
       *) echo '{\"ask\": {\"prompt\": \"may I?\", \"action\": {\"tool\": \"clock\"}}}';;\n\
     esac";

#[tokio::test]
async fn it_is_called_again_with_the_answer() {
    for (answer, decision) in [
        (Answer::Approve, json!({ "decision": "approve" })),
        (Answer::Edit(json!({ "a": 1 })), json!({ "decision": "edit", "value": { "a": 1 } })),
        (Answer::Reject("no".into()), json!({ "decision": "reject", "value": "no" })),
    ] {
        let script = Script::new(ASKING);
        let given = answer.clone();
        let run = HookHarness::new(script.hook(Point::WrapToolCall))
            .tool("clock", "noon")
            .configure(move |builder| {
                let answer = given.clone();
                builder.on_ask(move |ask: &PendingAsk| {
                    assert_eq!(ask.ask.prompt, "may I?");
                    assert_eq!(ask.ask.action, Some(json!({ "tool": "clock" })));
                    Some(answer.clone())
                })
            })
            .wrap_tool_call("clock", json!({}))
            .await;
        assert_eq!(run.output(), "done", "{run:?}");
        let told = script.left("answered.json").expect("it was called again");
        let told: Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!(told["answer"], decision);
        assert_eq!(script.left("calls.txt").expect("calls").lines().count(), 3);
    }
}

#[tokio::test]
async fn one_that_only_asks_is_stopped() {
    let script = Script::new("echo x >> calls.txt; echo '{\"ask\": {\"prompt\": \"again?\"}}'");
    let run = HookHarness::new(script.hook(Point::BeforeAgent))
        .configure(|builder| builder.on_ask(|_: &PendingAsk| Some(Answer::Approve)))
        .before_agent("hello")
        .await;
    assert_eq!(run.outcome(), Outcome::Failed);
    let faults = faults(&run);
    assert_eq!(faults[0].0, FaultKind::BadReply);
    assert!(faults[0].1.contains("asked 20 times"), "{faults:?}");
    assert_eq!(script.left("calls.txt").expect("calls").lines().count(), 21);
}

#[tokio::test]
async fn where_nobody_can_be_asked_it_is_a_bad_reply() {
    let script = Script::new("echo '{\"ask\": {\"prompt\": \"may I?\"}}'");
    let run = HookHarness::new(script.hook(Point::OnStart)).on_start().await;
    assert_eq!(faults(&run)[0].0, FaultKind::BadReply, "{run:?}");
}
