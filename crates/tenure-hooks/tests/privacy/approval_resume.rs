//! Decisions of people in runs that go on in another process.

use crate::privacy::support::*;
use serde_json::json;
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::context::ExecutionContext;
use tenure_core::model::ModelResponse;
use tenure_core::step::MemoryStepLog;
use tenure_hooks::people::{Approval, ApprovalRule};

/// An agent as each process has it: who is not the boss is asked about.
fn clerk(
    notes: &Notes,
    answer: impl Fn(&PendingAsk) -> Option<Answer> + Send + Sync + 'static,
) -> Agent {
    let rule = ApprovalRule::new().when("user != 'boss'").expect("it works here");
    let made = calls([("pay", json!({ "amount": 1 })), ("pay", json!({ "amount": 2 }))]);
    Agent::builder("clerk")
        .model(ByTurn(vec![made, ModelResponse::text("done")]))
        .with_lifecycle(Approval::new().tool_with("pay", rule))
        .tool(tool("pay", notes, "paid"))
        .on_ask(answer)
        .build()
        .expect("it works here")
}

async fn run(agent: Agent, log: MemoryStepLog, user: &str) -> String {
    let context = ExecutionContext::new("trace").with_user_id(user);
    let output = agent
        .scoped(async |agent| {
            let report = agent.request("go").context(context).steps(log).run().await?;
            Ok::<_, tenure_core::Error>(report.output().to_owned())
        })
        .await;
    output.expect("it works here")
}

/// Rejects the call for 1, and approves the one for 2.
fn decides(ask: &PendingAsk) -> Option<Answer> {
    let amount = ask.ask.action.as_ref().and_then(|action| action["amount"].as_i64());
    Some(if amount == Some(1) { Answer::Reject("no".into()) } else { Answer::Approve })
}

#[tokio::test]
async fn what_was_rejected_stays_so_though_the_condition_has_changed_and_somebody_else_answers() {
    let log = MemoryStepLog::new();
    let notes = Notes::default();
    assert_eq!(run(clerk(&notes, decides), log.clone(), "ann").await, "done");
    assert_eq!(notes.all(), [r#"pay {"amount":2}"#]);

    let keys = log.keys();
    let is_about = |key: &str| key.contains("ask") && key.contains("c0");
    let rejected = keys.iter().position(|key| is_about(&key.to_string()));
    let rejected = rejected.expect("the question is on record") + 1;
    // In whatever step the process died after the rejection.
    for cut in rejected..=keys.len() {
        let notes = Notes::default();
        let anything = |_: &PendingAsk| Some(Answer::Approve);
        let output = run(clerk(&notes, anything), log.cut_after(cut), "boss").await;
        assert_eq!(output, "done", "cut after {cut}");
        let ran = notes.all();
        assert!(!ran.contains(&r#"pay {"amount":1}"#.to_owned()), "cut after {cut}: {ran:?}");
    }
}

#[tokio::test]
async fn whom_nobody_had_to_ask_about_is_not_asked_about_later() {
    let log = MemoryStepLog::new();
    let notes = Notes::default();
    assert_eq!(run(clerk(&notes, decides), log.clone(), "boss").await, "done");
    assert_eq!(notes.all().len(), 2);
    // Everything is on record: nothing is asked, and nothing done twice.
    let notes = Notes::default();
    let nothing = |_: &PendingAsk| -> Option<Answer> { panic!("nobody is asked") };
    assert_eq!(run(clerk(&notes, nothing), log.resumed(), "ann").await, "done");
    assert!(notes.all().is_empty());
}
