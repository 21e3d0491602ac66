//! Conversations that never outgrow their model.

use super::conversations::{
    ANSWER, Read, any_conversation, call, count_words, now, reader, result, turn, weight, words,
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::message::{History, HistoryDefect, Message, ToolCall};
use tenure_core::model::{ModelErrorKind, ModelResponse, StopReason};
use tenure_core::step::{MemoryStepLog, Steps};
use tenure_core::tool::{FnTool, ToolSpec};
use tenure_hooks::context::ContextWindow;
use tenure_hooks::ready::{self, Bench};
use tenure_models::{Hanging, Scripted};

/// Ten exchanges of two messages with ten words each.
fn long() -> Vec<Message> {
    let exchange = |_| [Message::user(words(10)), Message::assistant(words(10))];
    (0..10).flat_map(exchange).collect()
}

fn window() -> ContextWindow {
    ContextWindow::new().count_by(count_words)
}

fn total(messages: &[Message]) -> u64 {
    ANSWER + messages.iter().map(weight).sum::<u64>()
}

/// A model that summarises, and what it read.
fn summariser() -> (Scripted, Read) {
    let read = Read::default();
    let seen = read.clone();
    let model = Scripted::from_fn(move |request, call| {
        let instruction = Message::system(request.instruction.as_deref().unwrap_or_default());
        let messages = request.messages.iter().cloned();
        seen.keep([instruction].into_iter().chain(messages).collect());
        Ok(ModelResponse::text(format!("summary {call}")))
    });
    (model, read)
}

#[tokio::test]
async fn a_conversation_that_has_room_is_left_alone() {
    let turned = turn(window().max_tokens(1000).trigger_messages(50), long(), "next").await;
    assert_eq!(turned.read.last().len(), 21);
    assert!(turned.recorder.announced("window.shortened").is_empty());
}

#[tokio::test]
async fn what_has_no_room_goes_for_this_call_only() {
    let turned = turn(window().max_tokens(100), long(), "next").await;
    let read = turned.read.last();
    assert_eq!(read.len(), 7, "the newest 6 and what is asked");
    assert!(matches!(read[0], Message::User { .. }));
    assert!(total(&read) <= 100);
    assert_eq!(turned.history.len(), 22);
    let told = turned.recorder.announced("window.shortened");
    assert_eq!((&told[0]["how"], &told[0]["messages"]["after"]), (&json!("trim"), &json!(7)));
    assert_eq!(told[0]["tokens"]["after"], json!(total(&read)));

    let turned = turn(window().max_tokens(100).persist(true), long(), "next").await;
    assert_eq!(turned.history.len(), 8, "what is left, and the answer");
}

#[tokio::test]
async fn any_trigger_acts_and_keep_says_how_much_stays() {
    let triggered = [
        window().trigger_messages(21).keep_messages(3),
        window().trigger_tokens(200).keep_messages(3),
        window().context_size(400).trigger_fraction(0.5).keep_messages(3),
        window().trigger_messages(21).keep_tokens(35),
        window().context_size(350).trigger_messages(21).keep_fraction(0.1),
    ];
    for window in triggered {
        let name = format!("{window:?}");
        let turned = turn(window, long(), "next").await;
        assert_eq!(turned.read.last().len(), 3, "{name}");
    }
    let not_yet = window().trigger_messages(22).trigger_tokens(5000).keep_messages(3);
    assert_eq!(turn(not_yet, long(), "next").await.read.last().len(), 21);
    let pinned = window().trigger_messages(21).keep_messages(3).pin_first();
    let turned = turn(pinned, [vec![Message::user("first")], long()].concat(), "next").await;
    assert_eq!((turned.read.texts()[0].as_str(), turned.read.last().len()), ("first", 4));
    // A share of the context is for the answer.
    let turned = turn(window().context_size(200).fraction(0.5), long(), "next").await;
    assert!(total(&turned.read.last()) <= 100);
}

#[tokio::test]
async fn the_instruction_and_the_tools_take_of_the_room() {
    for (instruction, expected) in [("", 21), (words(100).as_str(), 15)] {
        let (model, read) = reader();
        let builder = Agent::builder("clerk").model(model).with_lifecycle(window().max_tokens(300));
        let agent = builder.instruction(instruction).build().unwrap();
        agent.startup().await.unwrap();
        agent.set_history(long().into_iter().collect::<History>()).unwrap();
        agent.run("next").await.unwrap();
        agent.shutdown().await;
        assert_eq!(read.last().len(), expected, "{instruction}");
    }
}

#[tokio::test]
async fn calls_and_their_results_stay_or_go_together() {
    let mut messages = vec![Message::user("task")];
    for id in 0..8 {
        let (one, two) = (format!("{id}a"), format!("{id}b"));
        messages.push(call(&[&one, &two], "{}"));
        messages.extend([result(&two, &words(10)), result(&one, &words(10))]);
    }
    for most in [60, 80, 100, 120, 200] {
        let turned = turn(window().max_tokens(most), messages.clone(), "and now?").await;
        let read = turned.read.last();
        assert_eq!(HistoryDefect::find(&read), None);
        assert!(total(&read) <= most, "{} of {most}", total(&read));
    }
}

#[tokio::test]
async fn a_summary_takes_the_place_of_what_goes_and_is_made_once() {
    let (model, summarised) = summariser();
    let hook = window().trigger_messages(21).keep_messages(4).model(model).prompt("Be brief.");
    let (own, read) = reader();
    let agent = Agent::builder("clerk").model(own).with_lifecycle(hook).build().unwrap();
    agent.startup().await.unwrap();
    agent.set_history(long().into_iter().collect::<History>()).unwrap();
    let report = agent.run("next").await.unwrap();
    assert_eq!(read.texts()[0], "Here is a summary of the conversation to date:\n\nsummary 0");
    assert_eq!(read.last().len(), 5, "the summary, and four");
    assert_eq!(report.usage.calls, 2, "the summary is part of what the turn cost");
    agent.run("and then").await.unwrap();
    assert_eq!((read.last().len(), summarised.all().len()), (7, 1), "it is not made again");
    // When the conversation has grown again, the summary is summarised with it.
    for _ in 0..8 {
        agent.run("more").await.unwrap();
    }
    agent.shutdown().await;
    assert_eq!(summarised.all().len(), 2);
    let [instruction, asked] = &summarised.last()[..] else { panic!("one message") };
    assert_eq!(instruction.text(), "Be brief.");
    assert!(asked.text().contains("Earlier: summary 0"), "{}", asked.text());
    assert!(asked.text().contains("User: next\nAssistant: ok"), "{}", asked.text());
    assert_eq!(HistoryDefect::find(&read.last()), None);
}

#[tokio::test]
async fn a_summary_is_made_of_as_much_as_may_be_read_and_fits_whatever_it_says() {
    let mut messages = long();
    messages[0] = Message::user(format!("the very first {}", words(5)));
    let trigger = || window().trigger_messages(21).keep_messages(2);
    let (model, all) = summariser();
    turn(trigger().model(model).trim_tokens_to_summarise(None), messages.clone(), "x").await;
    assert!(all.last()[1].text().contains("the very first"));
    let (model, some) = summariser();
    turn(trigger().model(model).trim_tokens_to_summarise(Some(40)), messages.clone(), "x").await;
    let asked = some.last()[1].text().to_owned();
    assert!(!asked.contains("the very first") && count_words(&asked) < 50, "{asked}");
    // A prompt may say where the conversation stands in it.
    let (model, placed) = summariser();
    turn(trigger().model(model).prompt("Of {messages}: what?"), messages.clone(), "x").await;
    let asked = placed.last()[1].text().to_owned();
    assert!(asked.starts_with("Of <conversation>") && asked.ends_with(": what?"), "{asked}");

    let endless = Scripted::from_fn(|_, _| Ok(ModelResponse::text(words(5000))));
    let turned = turn(window().max_tokens(120).model(endless), messages, "x").await;
    let read = turned.read.last();
    assert!(read[0].text().contains("characters were cut"), "{}", read[0].text());
    assert!(total(&read) <= 120, "{}", total(&read));
}

#[tokio::test(start_paused = true)]
async fn without_a_summary_it_trims_and_tries_again_or_fails() {
    let trigger = || window().trigger_messages(21).keep_messages(3);
    let refuses = ModelResponse { stop: StopReason::Refused, ..ModelResponse::text("I cannot") };
    let failing: [(ContextWindow, &str); 4] = [
        (trigger().model(Scripted::empty().error(ModelErrorKind::Overloaded, "busy")), "busy"),
        (trigger().model(Scripted::new([refuses])), "refused"),
        (trigger().model(Scripted::new([" "])), "said nothing"),
        (trigger().model(Hanging::new()).timeout(Duration::from_secs(7)), "longer than 7s"),
    ];
    for (window, why) in failing {
        let turned = turn(window.clone(), long(), "next").await;
        assert_eq!(turned.read.last().len(), 3, "{why}");
        assert_eq!(turned.history.len(), 22, "what was not summarised is not lost: {why}");
        let told = turned.recorder.announced("window.no_summary");
        assert!(told[0]["why"].as_str().unwrap().contains(why), "{told:?}");
    }
    let strict = trigger().model(Scripted::empty().error(ModelErrorKind::Overloaded, "busy"));
    let turned = turn(strict.fail_without_summary(), long(), "next").await;
    let error = turned.report.unwrap_err().to_string();
    assert!(error.contains("could not be summarised") && error.contains("busy"), "{error}");
}

#[tokio::test]
async fn a_last_exchange_that_does_not_fit_fails_or_is_cut() {
    let turned = turn(window().max_tokens(50), long(), &words(60)).await;
    let error = turned.report.unwrap_err().to_string();
    assert!(error.contains("at most 50 tokens") && error.contains("alone has 63"), "{error}");

    let big = |window: ContextWindow| async {
        let read = Read::default();
        let seen = read.clone();
        let model = Scripted::from_fn(move |request, call| match call {
            0 => Ok(ModelResponse::calls(
                [("1", "big"), ("2", "small")].map(|(id, name)| ToolCall::new(id, name, "{}")),
            )),
            _ => {
                seen.keep(request.messages.iter().cloned().collect());
                Ok(ModelResponse::text("ok"))
            }
        });
        let tool = |name: &'static str, size: usize| {
            FnTool::new(ToolSpec::new(name, "tells").parameters(json!({})), move |_| {
                Ok(words(size).into())
            })
        };
        let builder = Agent::builder("clerk").model(model).with_lifecycle(window);
        let agent = builder.tool(tool("big", 500)).tool(tool("small", 20)).build().unwrap();
        let report = agent.scoped(async |agent| agent.run("look").await).await;
        (report, read)
    };
    let (report, _) = big(window().max_tokens(200)).await;
    assert!(report.unwrap_err().to_string().contains("on_overflow: truncate"));
    let (report, read) = big(window().max_tokens(200).truncate_results()).await;
    assert_eq!(report.unwrap().output(), "ok");
    let read = read.last();
    assert_eq!(HistoryDefect::find(&read), None);
    let cut = &read[2].text();
    assert!(cut.contains("characters were cut") && count_words(cut) > 60, "{cut}");
    assert_eq!(read[3].text(), words(20), "only the largest is cut");
    let (report, _) = big(window().max_tokens(60).truncate_results()).await;
    assert!(report.unwrap_err().to_string().contains("with its results cut"));
}

#[tokio::test]
async fn a_resumed_run_is_not_summarised_again() {
    let agent = |summaries: Scripted, own: Scripted| {
        let hook = window().trigger_messages(3).keep_messages(1).model(summaries);
        Agent::builder("clerk").model(own).with_lifecycle(hook).build().unwrap()
    };
    let log = MemoryStepLog::new();
    let steps = |log: &MemoryStepLog| Steps::new(Arc::new(log.clone()));
    let before: Vec<Message> = long()[..4].to_vec();
    let (own, read) = reader();
    let first = agent(Scripted::new(["it was so"]), own);
    first.startup().await.unwrap();
    first.set_history(before.iter().cloned().collect::<History>()).unwrap();
    first.request("next").recorded(&steps(&log)).run().await.unwrap();
    first.shutdown().await;
    let seen = read.last();
    assert_eq!(seen.len(), 2);

    let last = log.keys().iter().rposition(|key| &*key.kind == "model").unwrap();
    let (own, read) = reader();
    let second = agent(Scripted::empty(), own);
    second.startup().await.unwrap();
    second.set_history(before.into_iter().collect::<History>()).unwrap();
    let resumed = steps(&log.cut_after(last));
    second.request("next").recorded(&resumed).run().await.unwrap();
    second.shutdown().await;
    assert_eq!(read.last(), seen);
}

#[cfg(feature = "tokens")]
#[tokio::test]
async fn tokens_are_counted_as_models_do_unless_told_otherwise() {
    let turned = turn(ContextWindow::new().max_tokens(120), long(), "next").await;
    let read = turned.read.last();
    assert_eq!(read.len(), 9, "thirteen tokens each, and the last question");
    assert_eq!(turned.recorder.announced("window.shortened")[0]["tokens"]["before"], json!(267));
}

#[test]
fn options_are_checked() {
    let bench = Bench::new();
    let make = |with| ready::find("window").unwrap().make(&with, &bench);
    let good = json!({
        "context_size": 1000, "fraction": 0.8, "trigger": { "tokens": 500, "fraction": 0.5 },
        "keep": { "fraction": 0.2 }, "strategy": "summarise", "model": "passthrough",
        "prompt": "Be brief", "trim_tokens_to_summarise": 0, "summary_tokens": 100,
        "timeout": "10s", "on_failure": "error", "persist": false, "pin_first": true,
        "on_overflow": "truncate", "encoding": "cl100k_base",
    });
    assert!(make(good).is_ok());
    for (bad, field) in [
        (json!({}), ""),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "max_tokens": 10, "trigger": { "fraction": 0.5 } }), "trigger.fraction"),
        (json!({ "context_size": 10, "trigger": { "fraction": 5 } }), "trigger.fraction"),
        (json!({ "context_size": 10, "fraction": 0 }), "fraction"),
        (json!({ "max_tokens": 10, "keep": { "messages": 1, "tokens": 1 } }), "keep"),
        (json!({ "max_tokens": 10, "keep": { "messages": 0 } }), "keep.messages"),
        (json!({ "max_tokens": 10, "keep": { "words": 1 } }), "keep.words"),
        (json!({ "max_tokens": 10, "model": "passthrough" }), "model"),
        (json!({ "max_tokens": 10, "prompt": "a" }), "prompt"),
        (json!({ "max_tokens": 10, "strategy": "summarise", "model": "nobody" }), "model"),
        (json!({ "max_tokens": 10, "strategy": "forget" }), "strategy"),
        (json!({ "max_tokens": 10, "timeout": "10" }), "timeout"),
    ] {
        assert_eq!(make(bad.clone()).unwrap_err().field(), field, "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_is_said_what_goes_to_the_model_is_valid_and_fits(
        messages in any_conversation(),
        most in 10u64..500,
        trigger in 1usize..20,
        keep in 1usize..12,
        (summarises, truncates, pins) in any::<(bool, bool, bool)>(),
        said in 1usize..30,
    ) {
        let mut hook = window().max_tokens(most).trigger_messages(trigger).keep_messages(keep);
        if summarises {
            hook = hook.model(Scripted::from_fn(|_, _| Ok(ModelResponse::text(words(60)))));
        }
        if truncates {
            hook = hook.truncate_results();
        }
        if pins {
            hook = hook.pin_first();
        }
        let newest = words(said);
        let turned = now(turn(hook, messages, &newest));
        match turned.report {
            Ok(_) => {
                let read = turned.read.last();
                prop_assert_eq!(HistoryDefect::find(&read), None);
                prop_assert!(total(&read) <= most, "{} of {}", total(&read), most);
                prop_assert_eq!(read.last(), Some(&Message::user(newest)));
                prop_assert_eq!(HistoryDefect::find(&turned.history), None);
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.contains("does not fit"), "{}", error);
                prop_assert!(turned.read.all().is_empty(), "the model is not asked then");
            }
        }
    }
}
