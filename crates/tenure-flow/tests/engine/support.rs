//! What the tests of the engine share.

use async_trait::async_trait;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::{Event, EventBus, EventKind};
use tenure_core::hook::{After, AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::model::Model;
use tenure_flow::ChatReport;
use tenure_flow::route::{RouteCx, Router, RoutingDecision, Target};
use tenure_testkit::Recorder;

/// A bus, and what came over it.
pub(crate) struct Log {
    pub(crate) bus: EventBus,
    recorder: Recorder,
}

impl Log {
    pub(crate) fn new() -> Self {
        let (bus, recorder) = Recorder::with_bus();
        Self { bus, recorder }
    }

    pub(crate) fn agent(&self, name: &str, model: impl Model) -> Blueprint {
        self.builder(name, model).blueprint().expect("it can be built")
    }

    pub(crate) fn builder(&self, name: &str, model: impl Model) -> AgentBuilder {
        Agent::builder(name).model(model).events(&self.bus)
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.recorder.events().iter().map(|event| (**event).clone()).collect()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.recorder.names()
    }

    /// What was announced by this name.
    pub(crate) fn announced(&self, wanted: &[&str]) -> Vec<(&'static str, Value)> {
        let of = |event: Event| match event.kind {
            EventKind::Announced { name, data } if wanted.contains(&name) => Some((name, data)),
            _ => None,
        };
        self.events().into_iter().filter_map(of).collect()
    }

    /// What states the chat went through.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let statuses = self.recorder.announced("chat.status");
        statuses.iter().map(|data| data["status"].as_str().expect("a text").to_owned()).collect()
    }
}

pub(crate) fn agent(name: &str, model: impl Model) -> Blueprint {
    Agent::builder(name).model(model).blueprint().expect("it can be built")
}

/// Who said what.
pub(crate) fn said(report: &ChatReport) -> Vec<(&str, &str)> {
    report.messages.iter().map(|it| (it.speaker.as_str(), &*it.text)).collect()
}

/// A router that is a function of how many decisions were made before.
pub(crate) struct Plan(pub(crate) Vec<Target>, pub(crate) Mutex<usize>);

impl Plan {
    /// Goes through these, and ends.
    pub(crate) fn new<const N: usize>(targets: [&str; N]) -> Self {
        let target = |name: &str| match name {
            "user" => Target::User,
            "end" => Target::End,
            agent => Target::Agent(agent.into()),
        };
        Self(targets.into_iter().map(target).collect(), Mutex::new(0))
    }
}

#[async_trait]
impl Router for Plan {
    async fn route(&self, _cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        let mut at = self.1.lock().expect("no test panics under this lock");
        let target = self.0.get(*at).cloned().unwrap_or(Target::End);
        *at += 1;
        Ok(RoutingDecision::new(target, "the plan says so"))
    }

    fn name(&self) -> &str {
        "plan"
    }
}

/// Writes down every point it is called at.
#[derive(Clone, Default)]
pub(crate) struct Spy(pub(crate) Arc<Mutex<Vec<String>>>);

impl Spy {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().expect("no test panics under this lock").push(what.into());
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.0.lock().expect("no test panics under this lock").clone()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.notes().iter().filter(|note| note.starts_with(what)).count()
    }
}

#[async_trait]
impl AgentLifecycle for Spy {
    fn points(&self) -> Points {
        Points::NONE
            .with(Point::OnStart)
            .with(Point::BeforeChat)
            .with(Point::BeforeAgent)
            .with(Point::AfterAgent)
            .with(Point::AfterChat)
            .with(Point::OnShutdown)
    }

    fn name(&self) -> &str {
        "spy"
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.note(format!("start {}", cx.agent_name()));
        Ok(())
    }

    async fn before_chat(&self, _cx: ChatCx<'_>) -> Result<Go, HookError> {
        self.note("before_chat");
        Ok(Go::Continue)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Go, HookError> {
        self.note(format!("before_agent {}", cx.agent_name()));
        Ok(Go::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.note(format!("after_agent {} {}", cx.agent_name(), end.outcome()));
        Ok(After::Done)
    }

    async fn after_chat(&self, _cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        self.note(format!("after_chat {}", end.outcome));
        Ok(())
    }

    async fn on_shutdown(
        &self,
        cx: InstanceCx<'_>,
        _reason: tenure_core::ExitReason,
    ) -> Result<(), HookError> {
        self.note(format!("shutdown {}", cx.agent_name()));
        Ok(())
    }
}
