//! States that change by what is said and answered.

use crate::variables::support::{Stage, announced, recording, variables};
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::EventBus;
use tenure_flow::route::RoundRobin;
use tenure_flow::variables::{
    Computed, Definition, Kind, Pattern, Source, State, Transition, Trigger,
};
use tenure_flow::{ChatStatus, Flow};

fn says(agent: &str, matches: Pattern, ui_hidden: bool) -> Trigger {
    Trigger::AgentText { agent: agent.to_owned(), matches, ui_hidden }
}

fn answers(tool: &str, key: Option<&str>) -> Trigger {
    Trigger::UiResponse { tool: tool.to_owned(), response_key: key.map(str::to_owned) }
}

fn triggered(
    name: &str,
    kind: Kind,
    default: impl Into<Value>,
    triggers: Vec<Transition>,
) -> Definition {
    let mut state = State::new(default);
    state.triggers = triggers;
    Definition::new(name, kind, Source::State(state))
}

#[tokio::test]
async fn a_message_sets_a_state_trimmed_and_without_case() {
    for (pattern, good, bad) in [
        (Pattern::Equals("NEXT".to_owned()), "  next\n", "next one"),
        (Pattern::Contains("approved".to_owned()), "It is APPROVED!", "approve"),
        (Pattern::regex(r"^score: \d+$").unwrap(), " Score: 12 ", "score: none"),
    ] {
        let once = vec![Transition::new(says("judge", pattern, false))];
        let done = triggered("done", Kind::Bool, false, once);
        let mut stage = Stage::new(variables(vec![done])).await;
        let say = |agent: &str, text: &str| {
            stage.session.after_message(&stage.chat, agent, text).expect("it is good")
        };
        assert!(!say("judge", bad));
        assert!(!say("other", good));
        assert_eq!(stage.get("done"), json!(false));
        assert!(!say("judge", good));
        assert_eq!(stage.get("done"), json!(true));
        // Nothing changes any more.
        say("judge", good);
        assert_eq!(
            stage.changes(),
            [json!({ "name": "done", "from": false, "to": true, "cause": "agent_text judge" })]
        );
    }
}

#[tokio::test]
async fn the_older_transitions_go_from_one_value_to_the_next() {
    let step = |from: Option<&str>, to: &str, word: &str| {
        let trigger = says("guide", Pattern::Equals(word.to_owned()), false);
        Transition::between(from.map(Value::from), json!(to), trigger)
    };
    let phase = triggered(
        "phase",
        Kind::Str,
        "draft",
        vec![
            step(Some("draft"), "review", "go"),
            step(Some("review"), "done", "go"),
            step(None, "draft", "restart"),
        ],
    );
    let finished = Computed::new("phase == 'done'");
    let finished = Definition::new("finished", Kind::Bool, Source::Computed(finished));
    let mut stage = Stage::new(variables(vec![phase, finished])).await;
    for (word, after) in [("go", "review"), ("go", "done"), ("go", "done"), ("restart", "draft")] {
        stage.session.after_message(&stage.chat, "guide", word).unwrap();
        assert_eq!(stage.get("phase"), json!(after), "after {word}");
    }
    let changes: Vec<_> = stage.changes().iter().map(|it| it["cause"].clone()).collect();
    let (said, follows) = (json!("agent_text guide"), json!("computed"));
    assert_eq!(changes, [&said, &said, &follows, &said, &follows].map(Clone::clone));
}

#[tokio::test]
async fn an_answer_of_a_person_sets_a_state_by_its_dotted_key() {
    let all = vec![
        triggered(
            "plan",
            Kind::Str,
            json!(null),
            vec![Transition::new(answers("pick", Some("choice.plan")))],
        ),
        triggered("seats", Kind::Int, 1, vec![Transition::new(answers("pick", Some("seats")))]),
        triggered("raw", Kind::Any, json!(null), vec![Transition::new(answers("pick", None))]),
        triggered(
            "status",
            Kind::Str,
            "open",
            vec![Transition::between(None, json!("paid"), answers("pick", Some("paid")))],
        ),
    ];
    let mut stage = Stage::new(variables(all)).await;
    let answer = |tool: &str, value: Value| {
        let all = stage.session.variables();
        let changes = all.after_ui_response(&stage.chat.context_variables(), tool, &value);
        changes.map(|changes| changes.len()).map_err(|error| error.to_string())
    };
    assert_eq!(answer("other", json!({ "seats": 4 })), Ok(0));
    let response = json!({ "choice": { "plan": "pro" }, "seats": "4", "paid": false });
    assert_eq!(answer("pick", response.clone()), Ok(3));
    assert_eq!((stage.get("plan"), stage.get("seats")), (json!("pro"), json!(4)));
    assert_eq!((stage.get("raw"), stage.get("status")), (response, json!("open")));
    assert_eq!(answer("pick", json!({ "paid": true })), Ok(2));
    assert_eq!(stage.get("status"), json!("paid"));
    let error = answer("pick", json!({ "seats": "many" })).unwrap_err();
    assert_eq!(
        error,
        "context variable `seats` cannot be set from what `pick` got: \"many\" is not a whole \
         number (int)"
    );
    assert!(stage.changes().is_empty(), "whoever asks for changes announces them");
}

#[tokio::test]
async fn a_hidden_match_hides_that_message_of_the_chat_and_no_other() {
    let word = Pattern::Equals("ready".to_owned());
    let ready =
        triggered("ready", Kind::Bool, false, vec![Transition::new(says("writer", word, true))]);
    let variables = Arc::new(variables(vec![ready]));
    let (writer, _) = recording("writer", "", &["hello", "READY"], &variables);
    let bus = EventBus::new();
    let mut events = bus.subscribe(1000);
    let host = tenure_core::agent::Agent::builder("host").model(tenure_models::Scripted::empty());
    let flow = Flow::builder("shop")
        .agent(writer)
        .host(host.events(&bus).blueprint().unwrap())
        .router(RoundRobin)
        .max_turns(2)
        .variables(variables)
        .build()
        .unwrap();
    let report = flow.run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns);
    let shown: Vec<_> = report.messages.iter().map(|it| (&*it.text, it.hidden)).collect();
    assert_eq!(shown, [("go", false), ("hello", false), ("READY", true)]);
    assert_eq!(report.output, "hello");
    assert_eq!(report.variables["ready"], json!(true));
    let changed = announced(&mut events, "context.changed");
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["name"], json!("ready"));
}

#[tokio::test]
async fn a_message_is_said_though_what_it_leads_to_fails() {
    let zero = || Pattern::Equals("zero".to_owned());
    for (speaker, text) in [("user", "zero"), ("writer", "ZERO")] {
        let to_zero = Transition::between(None, json!(0), says(speaker, zero(), false));
        let parts = triggered("parts", Kind::Int, 2, vec![to_zero]);
        let share = Computed::new("10 / parts");
        let share = Definition::new("share", Kind::Float, Source::Computed(share));
        let variables = Arc::new(variables(vec![parts, share]));
        let says = if speaker == "writer" { text } else { "hello" };
        let (writer, _) = recording("writer", "", &[says], &variables);
        let flow = Flow::builder("shop").agent(writer).router(RoundRobin).max_turns(2).user(true);
        let flow = flow.on_ask(|_: &PendingAsk| Some(Answer::Respond("zero".to_owned())));
        let report = flow.variables(variables).build().unwrap().run("go").await;
        assert_eq!(report.status, ChatStatus::Failed, "{speaker}");
        let error = report.error.map(|it| it.to_string()).unwrap_or_default();
        assert!(error.contains("`share` cannot be computed"), "{speaker}: {error}");
        let last = report.messages.last().expect("something was said");
        assert_eq!((last.speaker.as_str(), &*last.text), (speaker, text));
        assert_eq!(report.variables["parts"], json!(2));
    }
}
