//! A newsroom of twelve, with handoffs of every kind, as a golden event log.

use crate::routing::support::*;
use serde_json::{Value, json};
use std::sync::Mutex;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::model::{ModelErrorKind, ModelResponse};
use tenure_flow::contract::ErrorStrategy;
use tenure_flow::route::handoff::HandoffRule;
use tenure_flow::route::{Pattern, Routing, Selector};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::{Failing, Scripted, Silent};
use tenure_testkit::Recorder;

fn rules() -> Vec<HandoffRule> {
    vec![
        after("intake", "archivist"),
        after("intake", "triage").described("every request is triaged"),
        when("triage", "writer", "${urgent} == True").described("no time to research"),
        judged("triage", "researcher", "the request needs research on ${topic}"),
        judged("triage", "planner", "the request is too vague"),
        after("triage", "writer"),
        when("researcher", "researcher", "${sources} < 2 and not ${offline}")
            .described("two sources at least"),
        when("researcher", "fact_checker", "'primary' in ${kinds}"),
        after("researcher", "planner"),
        after("fact_checker", "planner"),
        after("planner", "writer"),
        before("writer", "user_proxy", "${brief} == None")
            .described("nobody writes without a brief"),
        when("user", "writer", "${brief} != None and ${approved} == False"),
        when("user", "publisher", "${approved} == True"),
        after("writer", "editor"),
        judged("editor", "legal", "the text needs a lawyer"),
        judged("editor", "writer", "the text is too long"),
        when("editor", "illustrator", "${needs_image} == True"),
        after("editor", "translator"),
        when("legal", "publisher", "${cleared} == True and ${approved}"),
        after("legal", "editor"),
        when("translator", "archivist", "${scratch} == 1").described("scratch is not declared"),
        after("translator", "Human"),
        before("publisher", "legal", "${cleared} != True")
            .described("nothing is printed uncleared"),
        after("publisher", "archivist"),
        after("archivist", "stop"),
    ]
}

/// Somebody of the newsroom, and what changes with each of their turns.
fn member(name: &'static str) -> AgentBuilder {
    let agent = Agent::builder(name);
    let says = |agent: AgentBuilder, text: &'static str| {
        agent.model(Scripted::from_fn(move |_, _| Ok(ModelResponse::text(text))))
    };
    match name {
        "intake" => says(agent, "A story about tides."),
        "triage" => says(agent, "It is not urgent."),
        "researcher" => says(agent, "I found a source.").with_lifecycle(sets([
            json!({ "sources": 1, "kinds": ["blog"] }),
            json!({ "sources": 2, "kinds": ["blog", "primary"] }),
        ])),
        "fact_checker" => says(agent, "The facts hold."),
        "planner" => says(agent, "Three parts."),
        "writer" => says(agent, "The tide comes in."),
        "editor" => says(agent, "Shorter."),
        "legal" => says(agent, "No objections.").with_lifecycle(sets([json!({ "cleared": true })])),
        "illustrator" => agent.model(Failing::new(ModelErrorKind::Other).saying("out of ink")),
        "translator" => says(agent, "Die Flut kommt."),
        "publisher" => says(agent, "Printed."),
        _ => says(agent, "Filed."),
    }
}

const NAMES: [&str; 12] = [
    "intake",
    "triage",
    "planner",
    "researcher",
    "fact_checker",
    "writer",
    "editor",
    "legal",
    "illustrator",
    "translator",
    "publisher",
    "archivist",
];

async fn newsroom() -> (ChatReport, String) {
    let (bus, recorder) = Recorder::with_bus();
    let declared = [
        "urgent",
        "topic",
        "sources",
        "offline",
        "kinds",
        "brief",
        "approved",
        "needs_image",
        "cleared",
    ];
    let router = Routing::new(Pattern::Default)
        .handoffs(rules())
        .declared(declared)
        .selector(Selector::new(SELECTOR))
        .router()
        .expect("a router");
    // What triage needs; then nonsense about the editor's text, three times.
    let judge = Scripted::new(["Statement 1.", "hard to say", "9", "1 or 2"]);
    let person = person([("brief", json!("short and dry")), ("approved", json!(true))]);
    let answers = Mutex::new(vec!["Print it.", "Short and dry, please."]);
    let user = Agent::builder("user")
        .model(Silent::new())
        .with_lifecycle(person)
        .on_ask(move |_: &PendingAsk| {
            let answer = answers.lock().expect("no test failed").pop()?;
            Some(Answer::Respond(answer.to_owned()))
        })
        .events(&bus);
    let flow = NAMES
        .iter()
        .fold(Flow::builder("newsroom"), |flow, name| flow.agent(built(member(name).events(&bus))));
    let flow = flow
        .helper(built(Selector::agent(SELECTOR).model(judge).events(&bus)))
        .user_agent(built(user))
        .router(router)
        .initial_agent("intake")
        .error_strategy(ErrorStrategy::Fallback)
        .events(&bus)
        .build()
        .expect("a flow");
    let mut chat = flow.chat().id("chat").message("Write about tides.");
    for (name, value) in [
        ("urgent", json!(false)),
        ("topic", json!("tides")),
        ("sources", json!(0)),
        ("offline", json!(false)),
        ("kinds", json!([])),
        ("brief", Value::Null),
        ("approved", json!(false)),
        ("needs_image", json!(true)),
        ("scratch", json!(1)),
    ] {
        chat = chat.variable(name, value);
    }
    let report = chat.run().await;
    (report, log(&recorder.events()))
}

#[tokio::test]
async fn a_newsroom_of_twelve_hands_over_in_every_way() {
    let (report, log) = newsroom().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}\n{log}", report.error);
    assert_eq!(
        chosen(&report),
        [
            "intake",
            "triage",
            "researcher",
            "researcher",
            "fact_checker",
            "planner",
            "user",
            "writer",
            "editor",
            "illustrator",
            "user",
            "legal",
            "publisher",
            "archivist",
            "terminate",
        ],
        "{log}"
    );
    // Everybody had a turn; the illustrator's failed, and the translator stepped in.
    for name in NAMES {
        assert!(report.turn_summaries.iter().any(|turn| &*turn.agent == name), "{name}");
    }
    insta::assert_snapshot!("newsroom", log);
}

#[tokio::test]
async fn the_newsroom_does_the_same_every_time() {
    let (_, first) = newsroom().await;
    for _ in 0..3 {
        assert_eq!(newsroom().await.1, first);
    }
}
