//! Old results of tools that make room.

use super::conversations::{
    any_conversation, call, count_words, now, result, result_of, turn, weight, words,
};
use proptest::prelude::*;
use serde_json::json;
use tenure_core::message::{HistoryDefect, Message};
use tenure_hooks::context::ClearToolResults;
use tenure_hooks::ready::{self, Bench};

/// Four calls of one tool each, with results of a hundred words.
fn worked() -> Vec<Message> {
    let mut messages = vec![Message::user("go")];
    for id in ["a", "b", "c", "d"] {
        messages.push(call(&[id], r#"{ "path": "a long one" }"#));
        messages.push(result_of(if id == "b" { "manual" } else { "look" }, id, &words(100)));
    }
    messages
}

fn clear() -> ClearToolResults {
    ClearToolResults::new().count_by(count_words).trigger(100)
}

fn is_cleared(messages: &[Message], placeholder: &str) -> Vec<bool> {
    let results = messages.iter().filter(|message| matches!(message, Message::Tool(_)));
    results.map(|message| message.text() == placeholder).collect()
}

#[tokio::test]
async fn old_results_are_cleared_and_the_newest_are_not() {
    let turned = turn(clear().keep(1), worked(), "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "[cleared]"), [true, true, true, false]);
    let told = turned.recorder.announced("tool_results.cleared");
    assert_eq!((&told[0]["results"], &told[0]["tokens"]["won"]), (&json!(3), &json!(297)));
    assert_eq!(is_cleared(&turned.history, "[cleared]"), [false; 4], "the agent's own stays");

    let turned =
        turn(clear().keep(0).exclude_tool("manual").placeholder("-"), worked(), "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "-"), [true, false, true, true]);

    let turned = turn(clear().keep(1).clear_at_least(150).persist(), worked(), "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "[cleared]"), [true, true, false, false]);
    assert_eq!(is_cleared(&turned.history, "[cleared]"), [true, true, false, false]);
}

#[tokio::test]
async fn inputs_are_cleared_with_their_results_if_that_is_wanted() {
    let mut messages = worked();
    // Two calls at once: each with its own result.
    messages.push(call(&["e", "f"], r#"{ "path": "another" }"#));
    messages.extend([result("f", &words(50)), result("e", &words(50))]);
    let turned = turn(clear().keep(1).clear_tool_inputs(), messages, "on").await;
    let read = turned.read.last();
    let inputs: Vec<&str> = read.iter().flat_map(Message::calls).map(|it| &*it.arguments).collect();
    assert_eq!(inputs[..4], ["{}"; 4]);
    assert_eq!(
        inputs[4..],
        [r#"{ "path": "another" }"#, "{}"],
        "of the one that was answered first"
    );
    assert_eq!(HistoryDefect::find(&read), None);
}

#[tokio::test]
async fn a_small_request_is_left_alone() {
    let turned = turn(clear().trigger(10_000).keep(0), worked(), "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "[cleared]"), [false; 4]);
    assert!(turned.recorder.announced("tool_results.cleared").is_empty());
}

#[cfg(feature = "tokens")]
#[tokio::test]
async fn tokens_are_counted_as_models_do_unless_told_otherwise() {
    let messages = vec![Message::user("go"), call(&["a"], "{}"), result("a", &words(200))];
    let hook = |trigger| ClearToolResults::new().trigger(trigger).keep(0);
    let turned = turn(hook(200), messages.clone(), "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "[cleared]"), [true]);
    let turned = turn(hook(250), messages, "on").await;
    assert_eq!(is_cleared(&turned.read.last(), "[cleared]"), [false]);
}

#[test]
fn options_are_checked() {
    let make = |with| ready::find("clear_tool_results").unwrap().make(&with, &Bench::new());
    assert!(make(json!({ "encoding": "cl100k_base", "exclude_tools": ["manual"] })).is_ok());
    for (bad, field) in [
        (json!({ "encoding": "words" }), "encoding"),
        (json!({ "exclude_tools": [""] }), "exclude_tools"),
        (json!({ "keep": -1 }), "keep"),
        (json!({ "clear": 1 }), "clear"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_left_is_valid_and_smaller(
        messages in any_conversation(),
        trigger in 0u64..300,
        keep in 0usize..4,
        at_least in 0u64..200,
        inputs: bool,
    ) {
        let mut hook = clear().trigger(trigger).keep(keep).clear_at_least(at_least);
        hook = hook.exclude_tool("manual");
        if inputs {
            hook = hook.clear_tool_inputs();
        }
        let turned = now(turn(hook, messages.clone(), "the newest"));
        prop_assert!(turned.report.is_ok());
        let read = turned.read.last();
        prop_assert_eq!(HistoryDefect::find(&read), None);
        prop_assert_eq!(read.len(), messages.len() + 1);
        prop_assert_eq!(read.last().map(Message::text), Some("the newest"));
        let before: u64 = messages.iter().map(weight).sum();
        let after: u64 = read[..messages.len()].iter().map(weight).sum();
        // An empty result has fewer words than its placeholder.
        let empty = messages.iter().filter(|it| matches!(it, Message::Tool(_)) && it.text().is_empty());
        prop_assert!(after <= before + empty.count() as u64);
        let results: Vec<usize> =
            (0..messages.len()).filter(|at| matches!(messages[*at], Message::Tool(_))).collect();
        for at in results.iter().rev().take(keep) {
            prop_assert_eq!(&read[*at], &messages[*at], "the newest results stay");
        }
        for (was, is) in messages.iter().zip(&read) {
            if matches!(was, Message::Tool(it) if &*it.name == "manual") || !matches!(was, Message::Tool(_) | Message::Assistant { .. }) {
                prop_assert_eq!(was, is);
            }
        }
    }
}
