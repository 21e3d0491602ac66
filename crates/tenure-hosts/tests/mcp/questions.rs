//! Questions that a server has while it is called.

use crate::mcp::support::{Lab, Ours, bounded, call, results};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookAction, HookError, Point, Points};
use tenure_core::model::ModelResponse;
use tenure_models::Scripted;
use tenure_testkit::eventually;

#[tokio::test]
async fn two_calls_that_ask_at_once_get_each_its_own_answer() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let asker = |ask: &PendingAsk| {
        let name = if ask.ask.prompt.contains("mathematician") { "Ada" } else { "Grace" };
        Some(Answer::Respond(json!({ "name": name }).to_string()))
    };
    let model = Scripted::empty()
        .calls([
            ("ours__ask", json!({ "question": "Which mathematician?" })),
            ("ours__ask", json!({ "question": "Which admiral?" })),
        ])
        .text("done");
    let agent = lab.start(lab.agent().model(model).on_ask(asker)).await;
    bounded("the turn", agent.run("go")).await.expect("a turn");
    let said: Vec<_> = results(&agent).into_iter().map(|(content, _)| content).collect();
    assert_eq!(said, ["accept Ada", "accept Grace"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let times = Arc::new(AtomicUsize::new(0));
    let count = times.clone();
    let asker = move |ask: &PendingAsk| match count.fetch_add(1, Ordering::Relaxed) {
        0 => Some(Answer::Edit(json!({ "name": "A" }))),
        1 => {
            assert!(ask.ask.prompt.contains("did not fit"), "{}", ask.ask.prompt);
            Some(Answer::Edit(json!({ "name": "Ada" })))
        }
        _ => None,
    };
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    assert_eq!(call(&agent, "ours__ask", json!({ "question": "Who?" })).await, "accept Ada");
    assert_eq!(times.load(Ordering::Relaxed), 2);
    agent.shutdown().await;
}

#[tokio::test]
async fn an_address_is_shown_exactly_and_only_a_yes_accepts_it() {
    let url = "https://host.example/login?state=a%20b&next=%2F";
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    for (answer, expected) in [
        (Answer::Respond("true".into()), "accept None"),
        (Answer::Edit(json!(true)), "accept None"),
        (Answer::Respond("false".into()), "decline None"),
        (Answer::Respond("I did not open it".into()), "decline None"),
        (Answer::Edit(json!({ "open": url })), "decline None"),
        (Answer::Approve, "decline None"),
        (Answer::Reject("no".into()), "decline None"),
    ] {
        let given = answer.clone();
        let asker = move |ask: &PendingAsk| {
            assert!(ask.ask.prompt.contains(url), "{}", ask.ask.prompt);
            assert!(!ask.ask.is_approval(), "approval in advance does not answer it");
            Some(given.clone())
        };
        let agent = lab.start(lab.agent().on_ask(asker)).await;
        let said = call(&agent, "ours__visit", json!({ "url": url })).await;
        assert_eq!(said, expected, "{answer:?}");
        agent.shutdown().await;
    }
}

/// Approves every call in advance.
struct Approves;

#[async_trait]
impl AgentLifecycle for Approves {
    fn points(&self) -> Points {
        Point::AfterModel.into()
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        _response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        Ok(HookAction::Approve)
    }
}

#[tokio::test]
async fn a_call_that_was_approved_in_advance_opens_no_address() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let asker = move |_: &PendingAsk| {
        count.fetch_add(1, Ordering::Relaxed);
        Some(Answer::Reject("no".into()))
    };
    let agent = lab.start(lab.agent().with_lifecycle(Approves).on_ask(asker)).await;
    let given = json!({ "url": "https://host.example/login" });
    assert_eq!(call(&agent, "ours__visit", given).await, "decline None");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the person was asked all the same");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_yes_to_a_form_sends_what_the_form_says_only_if_that_fits() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let asker = move |_: &PendingAsk| {
        count.fetch_add(1, Ordering::Relaxed);
        Some(Answer::Approve)
    };
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    // Without a default, and with one that is too short.
    for given in [json!({ "question": "Who?" }), json!({ "question": "Who?", "default": "A" })] {
        let before = asked.swap(0, Ordering::Relaxed);
        assert_eq!(call(&agent, "ours__ask", given.clone()).await, "decline None", "{given}");
        assert_eq!(asked.load(Ordering::Relaxed), 3, "asked again, {before} before");
    }
    let given = json!({ "question": "Who?", "default": "Ada" });
    assert_eq!(call(&agent, "ours__ask", given).await, "accept Ada");
    agent.shutdown().await;
}

#[tokio::test]
async fn where_nobody_can_answer_it_is_declined() {
    let ours = Ours::new("plain");
    let mut server = ours.server();
    server.call_limit = Some(Duration::from_secs(10));
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    let asked = call(&agent, "ours__ask", json!({ "question": "Who?" }));
    let (said, ()) = tokio::join!(asked, async {
        // Without an asker the question stands until somebody answers it from outside.
        let pending = loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            if let Some(pending) = agent.pending_asks().pop() {
                break pending;
            }
        };
        agent.answer(&pending.id, Answer::Reject("nobody is here".into()));
    });
    assert_eq!(said, "decline None");
    agent.shutdown().await;
}

#[tokio::test]
async fn the_time_that_a_person_takes_does_not_count() {
    let ours = Ours::new("plain");
    let mut server = ours.server();
    server.call_limit = Some(Duration::from_millis(400));
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    let asked = call(&agent, "ours__ask", json!({ "question": "Who?" }));
    let (said, ()) = tokio::join!(asked, async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        let pending = agent.pending_asks().pop().expect("a question");
        agent.answer(&pending.id, Answer::Respond(r#"{"name": "Ada"}"#.into()));
    });
    assert_eq!(said, "accept Ada");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_question_outside_every_call_is_declined() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let asker = |_: &PendingAsk| Some(Answer::Edit(json!({ "name": "Ada" })));
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    assert_eq!(call(&agent, "ours__later", json!({})).await, "later");
    eventually("it has an answer", || !ours.left("later").is_empty()).await;
    assert_eq!(ours.left("later"), ["decline"]);
    agent.shutdown().await;
}
