//! Messages that say the same twice in a row.

use super::conversations::{any_conversation, call, now, result, turn};
use proptest::prelude::*;
use serde_json::json;
use tenure_core::message::{HistoryDefect, Message};
use tenure_hooks::context::Dedupe;
use tenure_hooks::ready::{self, Bench};

fn repeated() -> Vec<Message> {
    vec![
        Message::user("hello"),
        Message::user("hello"),
        Message::user(" hello\n"),
        Message::assistant("hi"),
        Message::user("hi"),
        call(&["a"], "{}"),
        result("a", "hi"),
        call(&["a"], "{}"),
        result("a", "hi"),
        Message::assistant("hi"),
        Message::assistant("hi"),
    ]
}

#[tokio::test]
async fn repetitions_go_and_the_newest_stays() {
    let turned = turn(Dedupe::new(), repeated(), "next").await;
    let texts = [" hello\n", "hi", "hi", "", "hi", "", "hi", "hi", "next"];
    assert_eq!(turned.read.texts(), texts);
    assert_eq!(turned.recorder.announced("messages.deduped"), [json!({ "removed": 3 })]);
    assert_eq!(turned.history.len(), repeated().len() + 2, "the agent's own stays as it is");

    let turned = turn(Dedupe::new().exact().persist(), repeated(), "next").await;
    assert_eq!(turned.read.texts()[..2], ["hello", " hello\n"]);
    assert_eq!(turned.history.len(), repeated().len() - 2 + 2);

    let turned = turn(Dedupe::new(), repeated(), "hi").await;
    assert_eq!(
        turned.read.texts().len(),
        texts.len(),
        "what the user says is not what the model said"
    );
}

#[tokio::test]
async fn a_conversation_without_repetitions_is_not_touched() {
    let turned = turn(Dedupe::new(), vec![Message::user("a"), Message::assistant("a")], "a").await;
    assert_eq!(turned.read.texts(), ["a", "a", "a"]);
    assert!(turned.recorder.announced("messages.deduped").is_empty());
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("dedupe").unwrap().make(&with, &Bench::new());
    assert!(make(json!({ "exact": true, "persist": true })).is_ok());
    assert_eq!(make(json!({ "exact": "yes" })).unwrap_err().field(), "exact");
    assert_eq!(make(json!({ "precise": true })).unwrap_err().field(), "precise");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_left_is_valid_and_only_repetitions_go(messages in any_conversation(), exact: bool) {
        let hook = if exact { Dedupe::new().exact() } else { Dedupe::new() };
        let turned = now(turn(hook, messages.clone(), "the newest"));
        prop_assert!(turned.report.is_ok());
        let read = turned.read.last();
        prop_assert_eq!(HistoryDefect::find(&read), None);
        prop_assert_eq!(read.last().map(Message::text), Some("the newest"));
        // Whatever went had the same one next to it.
        let mut expected = messages;
        expected.push(Message::user("the newest"));
        expected.dedup_by(|later, earlier| {
            later == earlier && !matches!(later, Message::Tool(_)) && later.calls().is_empty()
        });
        prop_assert_eq!(read, expected);
    }
}
