//! People in a chat: who begins, what they are asked, and what their answers mean.

use crate::engine::support::{Log, Plan, agent, said};
use async_trait::async_trait;
use std::sync::{Arc, Mutex};
use tenure_core::Outcome;
use tenure_core::ask::{Answer, Answered, Ask, Asker, PendingAsk};
use tenure_core::context::{ChatCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::event::EventKind;
use tenure_core::hook::{AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_flow::contract::Stage;
use tenure_flow::route::Target;
use tenure_flow::{ChatStatus, Flow, StartupMode};
use tenure_models::{Passthrough, Scripted};

/// Answers with these, one after the other, and keeps the questions.
#[derive(Clone)]
struct Person(Arc<Mutex<(Vec<Answer>, Vec<String>)>>);

impl Person {
    fn new<const N: usize>(answers: [&str; N]) -> Self {
        Self::of(answers.map(|text| Answer::Respond(text.to_owned())).to_vec())
    }

    fn of(mut answers: Vec<Answer>) -> Self {
        answers.reverse();
        Self(Arc::new(Mutex::new((answers, Vec::new()))))
    }

    fn questions(&self) -> Vec<String> {
        self.0.lock().expect("no test panics under this lock").1.clone()
    }
}

#[async_trait]
impl Asker for Person {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        let mut state = self.0.lock().expect("no test panics under this lock");
        state.1.push(ask.ask.prompt.clone());
        Some(state.0.pop().expect("no more questions than answers"))
    }
}

/// An asker that stands for nobody.
struct Nobody;

#[async_trait]
impl Asker for Nobody {
    async fn answer(&self, _ask: &PendingAsk) -> Option<Answer> {
        None
    }

    fn is_there(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn who_begins_depends_on_the_startup_mode() {
    let greeting = "Welcome.";
    for (mode, initial, message, questions, expected) in [
        // The agents begin; what they are told is hidden.
        (StartupMode::AgentDriven, Some("seed"), None, vec![], vec!["system", "user hidden", "a"]),
        (
            StartupMode::AgentDriven,
            Some("seed"),
            Some("hi"),
            vec![],
            vec!["system", "user hidden", "user", "a"],
        ),
        // The person begins, and is asked if they have said nothing yet.
        (StartupMode::UserDriven, None, None, vec![greeting], vec!["system", "user", "a"]),
        (StartupMode::UserDriven, None, Some("hi"), vec![], vec!["system", "user", "a"]),
        (StartupMode::UserDriven, Some("seed"), None, vec![], vec!["system", "user", "a"]),
        // Nobody is greeted, and nobody asked.
        (StartupMode::BackendOnly, Some("seed"), None, vec![], vec!["user hidden", "a"]),
    ] {
        let person = Person::new(["hello"]);
        let flow = Flow::builder("one").agent(agent("a", Scripted::new(["yes"]))).user(true);
        let flow = flow.on_ask(person.clone()).router(Plan::new(["a"])).startup_mode(mode);
        let flow =
            initial.into_iter().fold(flow.greeting(greeting), |it, text| it.initial_message(text));
        let flow = flow.build().expect("a flow");
        let chat = message.into_iter().fold(flow.chat(), |chat, text: &str| chat.message(text));
        let report = chat.run().await;
        assert_eq!(report.status, ChatStatus::Completed, "{mode:?} {:?}", report.error);
        let order: Vec<_> = report
            .messages
            .iter()
            .map(|it| format!("{}{}", it.speaker, if it.hidden { " hidden" } else { "" }))
            .collect();
        assert_eq!(order, expected, "{mode:?} {initial:?} {message:?}");
        assert_eq!(person.questions(), questions, "{mode:?} {initial:?} {message:?}");
    }
}

#[tokio::test]
async fn a_person_who_begins_and_takes_no_part_is_an_error_that_says_so() {
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new()));
    let flow = flow.startup_mode(StartupMode::UserDriven).build().expect("a flow");
    let report = flow.chat().run().await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert!(report.error.unwrap().to_string().contains("human_in_the_loop"));
    assert_eq!(flow.run("hi").await.status, ChatStatus::MaxTurns);
}

#[tokio::test]
async fn a_chat_that_comes_to_a_person_who_takes_no_part_is_complete() {
    for (has_user, mode) in [(false, StartupMode::AgentDriven), (true, StartupMode::BackendOnly)] {
        let flow = Flow::builder("one").agent(agent("a", Passthrough::new())).user(has_user);
        let flow =
            flow.startup_mode(mode).router(Plan::new(["a", "user"])).build().expect("a flow");
        let report = flow.run("go").await;
        assert_eq!((report.status, report.turns), (ChatStatus::Completed, 1));
        let last = report.routing.last().unwrap();
        assert_eq!(last.target, Target::End);
        assert!(last.reason.contains("takes no part"), "{}", last.reason);
    }
}

#[tokio::test]
async fn the_person_is_asked_with_the_last_words_they_saw_and_who_said_them() {
    let person = Person::new(["blue", "bye"]);
    let flow = Flow::builder("two").agent(agent("a", Scripted::new(["which colour?"])));
    let flow = flow.agent(agent("b", Scripted::new(["a secret"]))).hide("b").user(true);
    let flow = flow.on_ask(person.clone()).router(Plan::new(["a", "b", "user", "user"]));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Completed);
    let heard = ["a: which colour?", "What would you like to say?"];
    assert_eq!(person.questions(), heard);
    assert_eq!(said(&report)[3..], [("user", "blue"), ("user", "bye")]);
    assert_eq!((report.turns, &*report.output), (2, "which colour?"));
}

#[tokio::test]
async fn a_silent_person_is_not_quoted_and_twice_is_the_end() {
    let person = Person::new(["  ", "", "never"]);
    let flow = Flow::builder("one").agent(agent("a", Scripted::new(["?", "well then"])));
    let flow = flow.user(true).on_ask(person.clone()).router(Plan::new(["a", "user", "user"]));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!((report.status, report.stage), (ChatStatus::Completed, Stage::Complete));
    assert_eq!(said(&report), [("user", "go"), ("a", "?"), ("a", "well then")]);
    let reasons: Vec<_> = report.routing.iter().map(|it| &*it.reason).collect();
    assert_eq!(reasons[2], "the person said nothing, and it goes on");
    assert_eq!(reasons[4], "the person said nothing twice");
    assert_eq!(person.questions().len(), 2);
}

#[tokio::test]
async fn a_person_who_refuses_denies_the_chat() {
    let person = Person::of(vec![Answer::Reject("not now".into())]);
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new())).user(true);
    let flow = flow.on_ask(person).router(Plan::new(["user"]));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!((report.status, report.outcome), (ChatStatus::Failed, Outcome::Denied));
    assert!(report.error.unwrap().to_string().contains("not now"));
}

#[tokio::test]
async fn without_anybody_there_the_chat_is_paused() {
    let log = Log::new();
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new())).user(true);
    let flow = flow.events(&log.bus).on_ask(Nobody).router(Plan::new(["a", "user"]));
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::Paused, "{:?}", report.error);
    assert_eq!((report.stage, report.turns), (Stage::Failed, 1));
    assert_eq!(log.statuses(), ["running", "paused"]);
}

#[tokio::test]
async fn a_person_who_answers_for_ever_does_not_keep_the_chat_for_ever() {
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new())).user(true);
    let flow = flow.on_ask(|_: &PendingAsk| Some(Answer::Respond("again".into())));
    let flow = flow.router(Plan(vec![Target::User; 100], Mutex::new(0))).max_turns(7);
    let report = flow.build().expect("a flow").run("go").await;
    assert_eq!((report.status, report.turns), (ChatStatus::MaxTurns, 0));
    assert_eq!(report.messages.len(), 8);
}

/// Asks at two points.
struct Asks;

#[async_trait]
impl AgentLifecycle for Asks {
    fn points(&self) -> Points {
        Points::NONE.with(Point::BeforeChat).with(Point::BeforeAgent)
    }

    fn name(&self) -> &str {
        "asks"
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Go, HookError> {
        cx.ask(Ask::input("may it begin?")).await?;
        Ok(Go::Continue)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Go, HookError> {
        cx.ask(Ask::input("may it speak?")).await?;
        Ok(Go::Continue)
    }
}

#[tokio::test]
async fn the_chat_is_paused_around_every_question_and_each_turn_has_its_speaker() {
    let log = Log::new();
    let person = Person::new(["yes", "yes", "hello", "yes"]);
    let own = log.builder("a", Passthrough::new()).with_lifecycle(Asks).on_ask(person.clone());
    let flow = Flow::builder("one")
        .agent(own.blueprint().expect("it can be built"))
        .events(&log.bus)
        .user(true);
    let flow = flow.on_ask(person.clone()).router(Plan::new(["a", "user", "a", "a"]));
    let report = flow.max_turns(2).build().expect("a flow").run("go").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(person.questions(), ["may it begin?", "may it speak?", "a: go", "may it speak?"]);
    let mut order = Vec::new();
    for event in log.events() {
        match event.kind {
            EventKind::Announced { name: "chat.status", data } => {
                order.push(data["status"].as_str().expect("a text").to_owned());
            }
            EventKind::Announced { name: "select_speaker", data } => {
                order.push(format!("speaker {}", data["agent"].as_str().expect("a text")));
            }
            EventKind::Asked { .. } => order.push("asked".to_owned()),
            EventKind::Answered { .. } => order.push("answered".to_owned()),
            _ => {}
        }
    }
    let mut expected = vec!["running"];
    let question = ["paused", "asked", "answered", "running"];
    expected.extend(question);
    for speaker in ["speaker a", "speaker user", "speaker a"] {
        expected.push(speaker);
        expected.extend(question);
    }
    expected.push("max_turns");
    assert_eq!(order, expected);
}

#[tokio::test]
async fn the_first_answer_counts_and_the_second_is_told_so() {
    let log = Log::new();
    let user = Arc::new(Mutex::new(None));
    let flow = Flow::builder("one").agent(agent("a", Passthrough::new())).user(true);
    let known = user.clone();
    let flow = flow.events(&log.bus).router(Plan::new(["user"])).prepare(move |agent, _| {
        if agent.name() == "user" {
            *known.lock().expect("no test panics under this lock") = Some(agent.clone());
        }
    });
    let flow = flow.build().expect("a flow");
    let answers = async {
        loop {
            let user = user.lock().expect("no test panics under this lock").clone();
            let asked = user.as_ref().map(|it| it.pending_asks()).unwrap_or_default();
            if let (Some(user), Some(ask)) = (user, asked.first()) {
                let first = user.answer(&ask.id, Answer::Respond("first".into()));
                let second = user.answer(&ask.id, Answer::Respond("second".into()));
                return (first, second);
            }
            tokio::task::yield_now().await;
        }
    };
    let (report, answered) = tokio::join!(flow.run("go"), answers);
    assert_eq!(answered, (Answered::Accepted, Answered::AlreadyDecided));
    assert_eq!(said(&report), [("user", "go"), ("user", "first")]);
    assert_eq!(log.statuses(), ["running", "paused", "running", "completed"]);
}
