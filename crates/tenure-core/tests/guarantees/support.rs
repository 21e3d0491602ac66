//! A model that does as it is told, hooks that keep a log, and what the tests look up in it.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::{Cx, InstanceCx, ModelCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::{Event, EventBus, EventKind, Received, Subscriber};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use tenure_core::phase::Phase;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{ExitReason, InstanceId, Outcome};

/// What the model does when it is asked something. Behind a tool result it says "done".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Done,
    Fails,
    Fatal,
    Panics,
    Hangs,
    /// Calls this tool, then says "done".
    Calls(&'static str),
    /// Calls these tools at once, then says "done".
    CallsAll(&'static [&'static str]),
    /// Calls this tool again and again.
    Repeats(&'static str),
}

#[async_trait]
impl Model for Says {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let answered = matches!(request.messages.last(), Some(Message::Tool(_)));
        let response = match *self {
            Self::Fails => return Err(ModelError::new(ModelErrorKind::Other, "out of order")),
            Self::Fatal => {
                return Err(ModelError::new(ModelErrorKind::Auth, "no key left").fatal());
            }
            Self::Panics => fall_over("the model"),
            Self::Hangs => pending().await,
            Self::Calls(tool) if !answered => calls(&[tool]),
            Self::CallsAll(tools) if !answered => calls(tools),
            Self::Repeats(tool) => calls(&[tool]),
            Self::Done | Self::Calls(_) | Self::CallsAll(_) => ModelResponse::text("done"),
        };
        Ok(response.with_usage(Usage::new(3, 2)))
    }
}

fn calls(tools: &[&str]) -> ModelResponse {
    let call = |(at, tool): (usize, &&str)| {
        ToolCall::new(format!("call_{at}"), *tool, r#"{"message":"go"}"#)
    };
    ModelResponse::calls(tools.iter().enumerate().map(call))
}

/// Panics without a word on the terminal.
pub(crate) fn fall_over(who: &str) -> ! {
    std::panic::resume_unwind(Box::new(format!("{who} fell over")))
}

/// What a tool does when it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    Works,
    Fails,
    Fatal,
    Panics,
    Hangs,
}

/// A tool of this name.
pub(crate) struct Acts(pub(crate) &'static str, pub(crate) Does);

#[async_trait]
impl Tool for Acts {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "does as it is told")
    }

    async fn call(
        &self,
        _cx: ToolCx<'_>,
        _arguments: &serde_json::Value,
    ) -> Result<ToolOutput, ToolError> {
        match self.1 {
            Does::Works => Ok("worked".into()),
            Does::Fails => Err(ToolError::new("it broke")),
            Does::Fatal => Err(ToolError::fatal("it broke for good")),
            Does::Panics => fall_over("the tool"),
            Does::Hangs => pending().await,
        }
    }
}

/// How a hook behaves at one of its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    Fails,
    Panics,
    Hangs,
    /// Answers after so long.
    After(Duration),
}

impl Fault {
    pub(crate) async fn meet(self, hook: &str) -> Result<(), HookError> {
        match self {
            Self::None => Ok(()),
            Self::Fails => Err(HookError::new(format!("{hook} is broken"))),
            Self::Panics => fall_over(hook),
            Self::Hangs => pending().await,
            Self::After(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
        }
    }
}

/// What a hook saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saw {
    Start,
    Shutdown(ExitReason),
    Before,
    After(Outcome),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) hook: String,
    pub(crate) instance: InstanceId,
    pub(crate) saw: Saw,
}

/// What all hooks of a test saw, in order. Clones are one log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    fn note(&self, hook: &str, cx: &Cx<'_>, saw: Saw) {
        self.add(hook, cx.instance_id(), saw);
    }

    pub(crate) fn add(&self, hook: &str, instance: InstanceId, saw: Saw) {
        let entry = Entry { hook: hook.to_owned(), instance, saw };
        self.0.lock().unwrap().push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    /// Everything so far, and begins a new page.
    pub(crate) fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// What this hook saw, in order.
    pub(crate) fn of(&self, hook: &str) -> Vec<Saw> {
        let of = |entry: Entry| (entry.hook == hook).then_some(entry.saw);
        self.entries().into_iter().filter_map(of).collect()
    }

    /// What this hook saw in this instance, in order.
    pub(crate) fn of_instance(&self, hook: &str, instance: InstanceId) -> Vec<Saw> {
        let own = |entry: &Entry| entry.hook == hook && entry.instance == instance;
        self.entries().into_iter().filter(own).map(|entry| entry.saw).collect()
    }
}

/// How many resources were acquired, and how many of them released. Clones are one account.
#[derive(Clone, Default)]
pub(crate) struct Held(Arc<[AtomicUsize; 2]>);

impl Held {
    pub(crate) fn acquire(&self, cx: &Cx<'_>) {
        self.0[0].fetch_add(1, Ordering::SeqCst);
        let held = self.clone();
        cx.resources().register("held", move || async move {
            // What it takes to release it takes a while.
            tokio::task::yield_now().await;
            held.0[1].fetch_add(1, Ordering::SeqCst);
            Ok(())
        });
    }

    /// Acquired, and released.
    pub(crate) fn counts(&self) -> [usize; 2] {
        [0, 1].map(|at| self.0[at].load(Ordering::SeqCst))
    }
}

/// A hook on the begin and the end of instance and turn that keeps a log, and fails where told.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    /// Where each start acquires a resource.
    pub(crate) held: Option<Held>,
    pub(crate) on_start: Fault,
    pub(crate) on_shutdown: Fault,
    pub(crate) before_agent: Fault,
    pub(crate) after_agent: Fault,
    /// How many starts fail before one works, with [`Fault::Fails`].
    pub(crate) failing_starts: Option<u32>,
}

impl Watch {
    pub(crate) fn new(name: &'static str, log: &Log) -> Self {
        Self { name, log: log.clone(), ..Self::default() }
    }

    pub(crate) fn holding(mut self, held: &Held) -> Self {
        self.held = Some(held.clone());
        self
    }

    pub(crate) fn on_start(mut self, fault: Fault) -> Self {
        self.on_start = fault;
        self
    }

    pub(crate) fn on_shutdown(mut self, fault: Fault) -> Self {
        self.on_shutdown = fault;
        self
    }

    pub(crate) fn before_agent(mut self, fault: Fault) -> Self {
        self.before_agent = fault;
        self
    }

    pub(crate) fn after_agent(mut self, fault: Fault) -> Self {
        self.after_agent = fault;
        self
    }
}

#[async_trait]
impl AgentLifecycle for Watch {
    fn points(&self) -> Points {
        [Point::OnStart, Point::OnShutdown, Point::BeforeAgent, Point::AfterAgent]
            .into_iter()
            .collect()
    }

    fn name(&self) -> &str {
        self.name
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.log.note(self.name, &cx, Saw::Start);
        if let Some(held) = &self.held {
            held.acquire(&cx);
        }
        match self.failing_starts {
            Some(failing) if cx.attempt() > failing => Ok(()),
            _ => self.on_start.meet(self.name).await,
        }
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        self.log.note(self.name, &cx, Saw::Shutdown(reason));
        self.on_shutdown.meet(self.name).await
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        self.log.note(self.name, &cx, Saw::Before);
        self.before_agent.meet(self.name).await?;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.log.note(self.name, &cx, Saw::After(end.outcome()));
        self.after_agent.meet(self.name).await?;
        Ok(After::Done)
    }
}

/// A builder of an agent with this model.
pub(crate) fn agent(name: &'static str, model: Says) -> AgentBuilder {
    Agent::builder(name).model(model)
}

/// The events of a test.
pub(crate) struct Events {
    pub(crate) bus: EventBus,
    subscriber: Option<Subscriber>,
    seen: Vec<Arc<Event>>,
}

impl Events {
    pub(crate) fn new() -> Self {
        let bus = EventBus::new();
        let subscriber = Some(bus.subscribe(1 << 20));
        Self { bus, subscriber, seen: Vec::new() }
    }

    /// A bus that nobody listens to.
    pub(crate) fn unwatched() -> Self {
        Self { bus: EventBus::new(), subscriber: None, seen: Vec::new() }
    }

    pub(crate) fn are_watched(&self) -> bool {
        self.subscriber.is_some()
    }

    /// Everything that has happened so far.
    pub(crate) fn all(&mut self) -> &[Arc<Event>] {
        let Some(subscriber) = &mut self.subscriber else {
            panic!("nobody listens, so there is nothing to say about events");
        };
        while let Some(received) = subscriber.try_recv() {
            match received {
                Received::Event(event) => self.seen.push(event),
                Received::Missed(missed) => panic!("{missed} events were missed"),
            }
        }
        &self.seen
    }

    /// Forgets what has happened so far.
    pub(crate) fn clear(&mut self) {
        self.all();
        self.seen.clear();
    }

    /// The transitions of an instance, in the order in which they were announced.
    pub(crate) fn phases(&mut self, instance: InstanceId) -> Vec<(Phase, Phase)> {
        let of = |event: &Arc<Event>| match event.kind {
            EventKind::PhaseEntered { from, to, .. } if event.instance == instance => {
                Some((from, to))
            }
            _ => None,
        };
        self.all().iter().filter_map(of).collect()
    }

    /// How the turns of an instance ended.
    pub(crate) fn turn_ends(&mut self, instance: InstanceId) -> Vec<Outcome> {
        let of = |event: &Arc<Event>| match event.kind {
            EventKind::TurnEnded { outcome, .. } if event.instance == instance => Some(outcome),
            _ => None,
        };
        self.all().iter().filter_map(of).collect()
    }

    /// Why an instance is over, once for each time that was announced.
    pub(crate) fn exits(&mut self, instance: InstanceId) -> Vec<ExitReason> {
        let of = |event: &Arc<Event>| match event.kind {
            EventKind::PhaseEntered { to: Phase::Terminated, reason, .. }
                if event.instance == instance =>
            {
                Some(reason.expect("whoever is over is told why"))
            }
            _ => None,
        };
        self.all().iter().filter_map(of).collect()
    }

    /// The instances of this name, in order of their first event.
    pub(crate) fn instances(&mut self, name: &str) -> Vec<InstanceId> {
        let mut found = Vec::new();
        for event in self.all() {
            if *event.agent == *name && !found.contains(&event.instance) {
                found.push(event.instance);
            }
        }
        found
    }

    /// Asserts that everything that was announced as begun was announced as ended, once (G1).
    pub(crate) fn assert_paired(&mut self, what: &str) {
        let mut open: BTreeMap<String, i32> = BTreeMap::new();
        for event in self.all() {
            let (key, by) = match &event.kind {
                EventKind::TurnStarted => ("turn".to_owned(), 1),
                EventKind::TurnEnded { .. } => ("turn".to_owned(), -1),
                EventKind::HookStarted { hook, point } => (format!("{hook} at {point}"), 1),
                EventKind::HookEnded { hook, point, .. } => (format!("{hook} at {point}"), -1),
                EventKind::ModelStarted { step } => (format!("model call {step}"), 1),
                EventKind::ModelEnded { step, .. } => (format!("model call {step}"), -1),
                EventKind::ToolStarted { call, .. } => (format!("tool call {call}"), 1),
                EventKind::ToolEnded { call, .. } => (format!("tool call {call}"), -1),
                _ => continue,
            };
            let count = open.entry(format!("{} of {}", key, event.instance)).or_default();
            *count += by;
            assert!(*count >= 0, "{what}: {key} ended without a begin");
        }
        open.retain(|_, count| *count != 0);
        assert!(open.is_empty(), "{what}: begun and not ended: {open:?}");
    }
}

/// How many cases a test tries: `long` if `scripts/test --long` asks for it. The testkit has the same, and needs this crate.
pub(crate) fn cases(short: usize, long: usize) -> usize {
    let is_long = std::env::var_os("TENURE_LONG").is_some_and(|value| !value.is_empty());
    if is_long { long } else { short }
}
