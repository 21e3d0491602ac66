//! What the tests of routing share.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::TurnCx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::Event;
use tenure_core::hook::{After, AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::model::{Model, ModelResponse};
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Selector, Target};
use tenure_flow::{ChatReport, Flow, FlowBuilder};
use tenure_models::Scripted;

/// Whoever picks speakers is called this.
pub(crate) const SELECTOR: &str = "selector";

pub(crate) fn from(name: &str) -> Source {
    Source::of_name(name, [name].into_iter().filter(|it| *it != "user")).expect("a source")
}

pub(crate) fn to(name: &str) -> Target {
    Target::of_alias(name).unwrap_or_else(|| Target::Agent(name.into()))
}

pub(crate) fn after(source: &str, target: &str) -> HandoffRule {
    HandoffRule::after(from(source), to(target))
}

pub(crate) fn when(source: &str, target: &str, condition: &str) -> HandoffRule {
    HandoffRule::when(from(source), to(target), condition).expect("it compiles")
}

pub(crate) fn before(source: &str, target: &str, condition: &str) -> HandoffRule {
    HandoffRule::before(from(source), to(target), condition).expect("it compiles")
}

pub(crate) fn judged(source: &str, target: &str, condition: &str) -> HandoffRule {
    HandoffRule::judged(from(source), to(target), condition).expect("a condition")
}

/// An agent that says its own name.
pub(crate) fn speaker(name: &str) -> AgentBuilder {
    let said = name.to_owned();
    Agent::builder(name).model(Scripted::from_fn(move |_, _| Ok(ModelResponse::text(&*said))))
}

pub(crate) fn built(agent: AgentBuilder) -> Blueprint {
    agent.blueprint().expect("it can be built")
}

/// A flow of agents that say their own names.
pub(crate) fn cast(names: &[&str]) -> FlowBuilder {
    names.iter().fold(Flow::builder("stage"), |flow, name| flow.agent(built(speaker(name))))
}

/// Somebody who picks speakers by this script.
pub(crate) fn selector(model: impl Model) -> Blueprint {
    built(Selector::agent(SELECTOR).model(model))
}

/// A script of which every question is kept.
pub(crate) fn questions(answers: &[&'static str]) -> (impl Model + use<>, Arc<Mutex<Vec<String>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let answers = answers.to_vec();
    let keep = kept.clone();
    let model = Scripted::from_fn(move |request, call| {
        let asked: Vec<_> = request.messages.iter().map(|it| it.text()).collect();
        assert_eq!(asked.len(), 1, "it remembers earlier questions: {asked:?}");
        keep.lock().expect("no test failed").push(asked.concat());
        let answer = answers.get(call).expect("there is an answer left");
        Ok(ModelResponse::text(*answer))
    });
    (model, kept)
}

/// Who was chosen, in order.
pub(crate) fn chosen(report: &ChatReport) -> Vec<&str> {
    report.routing.iter().map(|it| it.target.as_str()).collect()
}

/// Why the nth was chosen.
pub(crate) fn reason(report: &ChatReport, at: usize) -> &str {
    &report.routing[at].reason
}

/// Sets variables at the end of each turn of an agent: the nth patch at the end of the nth.
pub(crate) struct Sets {
    patches: Vec<Value>,
    at: AtomicUsize,
}

pub(crate) fn sets<const N: usize>(patches: [Value; N]) -> Sets {
    Sets { patches: patches.into(), at: AtomicUsize::new(0) }
}

#[async_trait]
impl AgentLifecycle for Sets {
    fn points(&self) -> Points {
        Point::AfterAgent.into()
    }

    fn name(&self) -> &str {
        "sets"
    }

    async fn after_agent(&self, cx: TurnCx<'_>, _: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        if let (Some(Value::Object(patch)), Some(variables)) =
            (self.patches.get(at), cx.chat_variables())
        {
            variables.update(patch.clone())?;
        }
        Ok(After::Done)
    }
}

/// A person who answers by a list, and whose nth answer is kept in a variable of that name.
pub(crate) struct Person {
    keeps: Vec<(&'static str, Value)>,
    at: AtomicUsize,
}

pub(crate) fn person<const N: usize>(keeps: [(&'static str, Value); N]) -> Person {
    Person { keeps: keeps.into(), at: AtomicUsize::new(0) }
}

#[async_trait]
impl AgentLifecycle for Person {
    fn points(&self) -> Points {
        Point::BeforeAgent.into()
    }

    fn name(&self) -> &str {
        "person"
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Go, HookError> {
        let answer = match cx.ask(Ask::input(input.content.text())).await? {
            Answer::Respond(text) => text,
            other => panic!("not an answer in words: {other:?}"),
        };
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        if let (Some((name, value)), Some(variables)) = (self.keeps.get(at), cx.chat_variables()) {
            variables.set(*name, value.clone())?;
        }
        Ok(Go::Finish(answer.into()))
    }
}

/// An event as a line, without times and ids.
pub(crate) fn line(event: &Event) -> String {
    let kind = serde_json::to_value(&event.kind).expect("events are JSON");
    let data = match event.name() {
        name if name.starts_with("agent.phase.") => Value::Null,
        _ => kind.get("data").cloned().unwrap_or_default(),
    };
    match without_times(data) {
        Value::Null => format!("{:<28} {}", event.name(), event.agent),
        data => format!("{:<28} {} {data}", event.name(), event.agent),
    }
}

fn without_times(data: Value) -> Value {
    const TIMES: [&str; 6] = ["took", "busy_ms", "duration", "timestamp", "ask", "usage"];
    match data {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(key, _)| !TIMES.contains(&&**key));
            let kept: serde_json::Map<_, _> =
                kept.map(|(key, value)| (key, without_times(value))).collect();
            if kept.is_empty() { Value::Null } else { kept.into() }
        }
        Value::Array(items) => items.into_iter().map(without_times).collect(),
        other => other,
    }
}

/// The log of a chat, without times and ids, and without the phases of its agents.
pub(crate) fn log(events: &[Arc<Event>]) -> String {
    let shown = events.iter().filter(|event| !event.name().starts_with("agent.phase."));
    shown.map(|event| line(event) + "\n").collect()
}

/// What an event of a layer above says.
pub(crate) fn said(event: &Event) -> Value {
    match &event.kind {
        tenure_core::event::EventKind::Announced { data, .. } => data.clone(),
        _ => json!(null),
    }
}
