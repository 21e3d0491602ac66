//! A model picks the speaker.

use crate::routing::support::*;
use serde_json::json;
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::model::ModelErrorKind;
use tenure_flow::route::{Auto, Selector};
use tenure_flow::{ChatReport, ChatStatus, Flow, StartupMode};
use tenure_models::{Failing, Hanging};
use tenure_testkit::Recorder;

fn auto() -> Auto {
    Auto::new(Selector::new(SELECTOR)).describe("a", "adds things").describe("c", "  ")
}

async fn run(answers: &[&'static str]) -> (ChatReport, Vec<String>) {
    let (model, asked) = questions(answers);
    let flow = cast(&["a", "b", "c"]).helper(selector(model)).router(auto()).max_turns(20);
    let report = flow.build().expect("a flow").run("hello").await;
    let asked = asked.lock().expect("no test failed").clone();
    (report, asked)
}

#[tokio::test]
async fn the_model_is_told_who_there_is_and_what_was_said() {
    let (report, asked) = run(&["b", "The next one is A.", "terminate"]).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(chosen(&report), ["b", "a", "terminate"]);
    assert_eq!(reason(&report, 1), "the model picked it");
    // Two turns and three questions: what the helper costs is part of what the chat cost.
    assert_eq!(report.usage.calls, 5);
    assert_eq!(report.routing[1].fallback.as_deref(), Some("b"));
    assert_eq!(report.routing[1].metadata, json!({ "answer": "The next one is A.", "asked": 1 }));
    assert_eq!(
        asked[1],
        "Who speaks next? These can be chosen:\n- a: adds things\n- b\n- c\n- terminate: ends the \
         conversation; choose it when nothing is left to do\n\nThe conversation so far:\n[user] \
         hello\n[b] b\n\nAnswer with one name of the list and nothing else."
    );
}

#[tokio::test]
async fn a_person_can_be_picked_only_where_one_is_there() {
    for (mode, is_there) in [(StartupMode::AgentDriven, true), (StartupMode::BackendOnly, false)] {
        let (model, asked) = questions(&["terminate"]);
        let flow = cast(&["a", "b"]).helper(selector(model)).router(auto()).user(true);
        let flow = flow.on_ask(|_: &PendingAsk| None::<Answer>).startup_mode(mode);
        let report = flow.build().expect("a flow").run("hello").await;
        assert_eq!(chosen(&report), ["terminate"]);
        let asked = asked.lock().expect("no test failed").concat();
        assert_eq!(asked.contains("- user: the person"), is_there, "{asked}");
    }
}

#[tokio::test]
async fn nonsense_is_asked_again_with_what_was_wrong() {
    let (report, asked) = run(&["nobody", "b or c", "c", "end"]).await;
    assert_eq!(chosen(&report), ["c", "terminate"]);
    assert_eq!(reason(&report, 0), "the model picked it with its answer number 3");
    assert!(asked[1].starts_with(&*asked[0]), "{}", asked[1]);
    assert!(
        asked[1].ends_with(
            "You answered \"nobody\" before, but that names none of `a`, `b`, `c`, `terminate`."
        ),
        "{}",
        asked[1]
    );
    assert!(
        asked[2]
            .ends_with("You answered \"b or c\" before, but that names several of them: `b`, `c`."),
        "{}",
        asked[2]
    );
}

#[tokio::test]
async fn after_three_answers_of_nonsense_it_is_the_next_ones_turn() {
    let (bus, recorder) = Recorder::with_bus();
    let (model, _) = questions(&["c", "?", "?!", "?!?", "stop"]);
    let flow = cast(&["a", "b", "c"]).helper(selector(model)).router(auto()).events(&bus);
    let report = flow.build().expect("a flow").run("hello").await;
    assert_eq!(chosen(&report), ["c", "a", "terminate"]);
    assert_eq!(
        reason(&report, 1),
        "it is the next in order, since the model said \"?!?\", but that names none of `a`, `b`, \
         `c`, `terminate`"
    );
    assert_eq!(report.routing[1].metadata, json!({ "asked": 3, "in_order": true }));
    assert_eq!(report.routing[1].fallback.as_deref(), Some("b"));
    let errors: Vec<_> =
        recorder.events().into_iter().filter(|it| it.name() == "selector.error").collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(said(&errors[0])["next"], "a");
}

#[tokio::test]
async fn a_model_that_always_talks_nonsense_makes_a_round_and_ends_with_the_turns() {
    let nonsense = tenure_models::Scripted::from_fn(|_, _| {
        Ok(tenure_core::model::ModelResponse::text("let me think about it"))
    });
    let flow = cast(&["a", "b"]).helper(selector(nonsense)).router(auto()).max_turns(4);
    let report = flow.build().expect("a flow").run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    assert_eq!(chosen(&report)[..4], ["a", "b", "a", "b"]);
}

#[tokio::test]
async fn a_model_that_fails_or_hangs_is_not_waited_for() {
    let failing = Failing::new(ModelErrorKind::Overloaded).saying("too busy");
    let flow = cast(&["a", "b"]).helper(selector(failing)).router(auto()).max_turns(2);
    let report = flow.build().expect("a flow").run("hello").await;
    assert_eq!(chosen(&report)[..2], ["a", "b"]);
    assert!(reason(&report, 0).contains("since the model failed: "), "{}", reason(&report, 0));
    assert!(reason(&report, 0).contains("too busy"), "{}", reason(&report, 0));

    let quick = Selector::new(SELECTOR).limit(Duration::from_millis(20));
    let flow = cast(&["a", "b"]).helper(selector(Hanging::new())).router(Auto::new(quick));
    let report = flow.max_turns(2).build().expect("a flow").run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(chosen(&report)[..2], ["a", "b"]);

    // A flow that forgot its helper goes on in order, too, and says so.
    let report = cast(&["a"]).router(auto()).max_turns(1).build().expect("a flow").run("x").await;
    assert!(reason(&report, 0).contains("no helper `selector`"), "{}", reason(&report, 0));
}

#[tokio::test]
async fn a_chat_is_cancelled_while_the_model_thinks() {
    let flow = cast(&["a", "b"]).helper(selector(Hanging::new())).router(auto());
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        token.cancel();
    };
    let (report, ()) = tokio::join!(flow.chat().message("x").cancel_on(&token).run(), cancel);
    assert_eq!(report.status, ChatStatus::Cancelled, "{:?}", report.error);
    assert_eq!(report.turns, 0);
}

#[tokio::test]
async fn the_initial_agent_begins_unasked_and_a_person_can_be_picked() {
    let (model, asked) = questions(&["Ask the user.", "user", "b", "exit"]);
    let flow: Flow = cast(&["a", "b"])
        .helper(selector(model))
        .router(auto())
        .initial_agent("b")
        .user(true)
        .on_ask(|_: &PendingAsk| Some(Answer::Respond("well".to_owned())))
        .build()
        .expect("a flow");
    let report = flow.run("hello").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    // Who has just spoken cannot be asked again: `user` is no answer there.
    assert_eq!(chosen(&report), ["b", "user", "b", "terminate"]);
    let asked = asked.lock().expect("no test failed");
    assert!(asked[0].contains("- user: the person;"), "{}", asked[0]);
    assert!(!asked[1].contains("- user"), "{}", asked[1]);
    assert!(asked[2].contains("names none of `a`, `b`, `terminate`"), "{}", asked[2]);
}

#[tokio::test]
async fn a_model_that_repeats_the_question_is_quoted_in_one_short_line() {
    let flow = cast(&["a", "b"]).helper(selector(tenure_models::Passthrough::new()));
    let flow = flow.router(auto()).max_turns(1).build().expect("a flow");
    let report = flow.run("hello").await;
    let reason = reason(&report, 0);
    assert!(reason.contains("the model said \"Who speaks next?"), "{reason}");
    assert!(!reason.contains('\n') && reason.len() < 250, "{reason}");
}
