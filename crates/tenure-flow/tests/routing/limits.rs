//! How often an agent may reply before the person is asked.

use crate::routing::support::*;
use serde_json::json;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_flow::ChatStatus;
use tenure_flow::route::{Pattern, ReplyLimits, RoundRobin, Routing};

#[tokio::test]
async fn without_a_person_the_chat_is_complete_when_replies_are_used_up() {
    let router = ReplyLimits::new(RoundRobin, [("b".into(), 2)]);
    let report = cast(&["a", "b"]).router(router).build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(chosen(&report), ["a", "b", "a", "b", "a", "terminate"]);
    assert_eq!(
        reason(&report, 5),
        "`b` has used up its 2 replies since the user spoke; the chat is complete"
    );
    assert_eq!(
        report.routing[5].metadata,
        json!({ "instead_of": [{ "target": "b", "reason": "it is its turn, round robin" }] })
    );
}

#[tokio::test]
async fn with_a_person_they_are_asked_and_the_count_begins_anew() {
    let plan = Routing::new(Pattern::Default).handoffs([after("a", "a")]).reply_limit("a", 2);
    let flow = cast(&["a"]).router(plan.router().expect("a router")).user(true).max_turns(5);
    let flow = flow.on_ask(|_: &PendingAsk| Some(Answer::Respond("go on".to_owned())));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(chosen(&report), ["a", "a", "user", "a", "a", "user", "a", "a"]);
    assert_eq!(
        reason(&report, 2),
        "`a` has used up its 2 replies since the user spoke; the user is asked"
    );
}

#[tokio::test]
async fn an_agent_that_may_not_reply_at_all_never_does() {
    let router = ReplyLimits::new(RoundRobin, [("a".into(), 0)]);
    let report = cast(&["a", "b"]).router(router).build().expect("a flow").run("go").await;
    assert_eq!(chosen(&report), ["terminate"]);
    let router = ReplyLimits::new(RoundRobin, [("a".into(), 0)]);
    let flow = cast(&["a", "b"]).router(router).user(true);
    let flow = flow.on_ask(|_: &PendingAsk| Some(Answer::Respond("well".to_owned())));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(chosen(&report), ["user", "terminate"]);
    assert_eq!(report.turns, 0);
}
