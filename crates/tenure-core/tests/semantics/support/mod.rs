//! Small models, tools and hooks for these tests.

mod hooks;

pub(crate) use hooks::*;

use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::BoxFuture;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::context::{ModelCx, ToolCx};
use tenure_core::event::{Event, EventKind, Received, Subscriber};
use tenure_core::message::{History, HistoryDefect, Message, ToolCall, ToolResult};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tokio::time::sleep;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What happened, in order. Clones are one log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().expect("no test panics under this lock").push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no test panics under this lock"))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no test panics under this lock").clone()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|other| *other == line).count()
    }
}

/// A counter. Clones are one counter.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn up(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// What a scripted model does when it is called.
#[derive(Clone)]
pub(crate) enum Reply {
    Say(&'static str),
    Call(Vec<ToolCall>),
    Stream(&'static [&'static str]),
    /// Streams this, and then fails.
    Torn(&'static [&'static str], ModelErrorKind),
    Fail(ModelErrorKind),
    Fatal,
    Panic,
    Hang,
    Slow(Duration, Box<Reply>),
}

pub(crate) fn say(text: &'static str) -> Reply {
    Reply::Say(text)
}

/// A reply that calls these tools, by name, with the ids `c1`, `c2` and so on and no arguments.
pub(crate) fn call(tools: &[&str]) -> Reply {
    let calls = tools.iter().enumerate();
    Reply::Call(
        calls.map(|(at, tool)| ToolCall::new(format!("c{}", at + 1), *tool, "{}")).collect(),
    )
}

pub(crate) fn call_with(tool: &str, arguments: &str) -> Reply {
    Reply::Call(vec![ToolCall::new("c1", tool, arguments)])
}

/// A model that answers what its script says, then `done`. Each answer costs 10 in and 1 out.
#[derive(Clone, Default)]
pub(crate) struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<Vec<Message>>>>,
}

pub(crate) fn script(replies: impl IntoIterator<Item = Reply>) -> Script {
    Script { replies: Arc::new(Mutex::new(replies.into_iter().collect())), seen: Arc::default() }
}

impl Script {
    pub(crate) fn calls(&self) -> usize {
        self.seen.lock().expect("no test panics under this lock").len()
    }

    /// The messages of each request so far.
    pub(crate) fn seen(&self) -> Vec<Vec<Message>> {
        self.seen.lock().expect("no test panics under this lock").clone()
    }
}

#[async_trait]
impl Model for Script {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let messages = request.messages.iter().cloned().collect();
        self.seen.lock().expect("no test panics under this lock").push(messages);
        let next = self.replies.lock().expect("no test panics under this lock").pop_front();
        let mut reply = next.unwrap_or(Reply::Say("done"));
        let response = loop {
            break match reply {
                Reply::Say(text) => ModelResponse::text(text),
                Reply::Call(calls) => ModelResponse::calls(calls),
                Reply::Stream(parts) => {
                    for part in parts {
                        cx.delta(part);
                        tokio::task::yield_now().await;
                    }
                    ModelResponse::text(parts.concat())
                }
                Reply::Torn(parts, kind) => {
                    for part in parts {
                        cx.delta(part);
                        tokio::task::yield_now().await;
                    }
                    return Err(ModelError::new(kind, "the connection was lost"));
                }
                Reply::Fail(kind) => return Err(ModelError::new(kind, "the model failed")),
                Reply::Fatal => {
                    let error = ModelError::new(ModelErrorKind::Auth, "the key was revoked");
                    return Err(error.fatal());
                }
                Reply::Panic => panic!("the model is broken"),
                Reply::Hang => std::future::pending().await,
                Reply::Slow(time, then) => {
                    sleep(time).await;
                    reply = *then;
                    continue;
                }
            };
        };
        Ok(response.with_usage(Usage::new(10, 1)))
    }
}

type Body = dyn for<'a> Fn(ToolCx<'a>, &'a Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

/// A tool made of an asynchronous closure.
pub(crate) struct AsyncTool {
    pub(crate) spec: ToolSpec,
    body: Box<Body>,
}

pub(crate) fn tool<F>(name: &str, body: F) -> AsyncTool
where
    F: for<'a> Fn(ToolCx<'a>, &'a Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
        + Send
        + Sync
        + 'static,
{
    AsyncTool { spec: ToolSpec::new(name, name), body: Box::new(body) }
}

impl AsyncTool {
    pub(crate) fn effect(mut self, effect: Effect) -> Self {
        self.spec = self.spec.effect(effect);
        self
    }
}

#[async_trait]
impl Tool for AsyncTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        (self.body)(cx, arguments).await
    }
}

/// A tool that answers `<name> ok` and counts.
pub(crate) fn counted(name: &'static str, count: &Count) -> AsyncTool {
    let count = count.clone();
    tool(name, move |_, _| {
        count.up();
        Box::pin(async move { Ok(format!("{name} ok").into()) })
    })
}

pub(crate) fn ok_tool(name: &'static str) -> AsyncTool {
    counted(name, &Count::default())
}

/// A tool that takes its time.
pub(crate) fn slow_tool(name: &'static str, time: Duration) -> AsyncTool {
    tool(name, move |_, _| {
        Box::pin(async move {
            sleep(time).await;
            Ok(format!("{name} ok").into())
        })
    })
}

pub(crate) fn failing_tool(name: &'static str) -> AsyncTool {
    tool(name, move |_, _| Box::pin(async move { Err(ToolError::new("the tool failed")) }))
}

/// Builds the agent and starts it.
pub(crate) async fn started(builder: AgentBuilder) -> Agent {
    let agent = builder.build().expect("the agent is valid");
    agent.startup().await.expect("the agent starts");
    agent
}

/// The tool results of a conversation, in order.
pub(crate) fn results(history: &History) -> Vec<ToolResult> {
    let result = |message: &Message| match message {
        Message::Tool(result) => Some(result.clone()),
        _ => None,
    };
    history.iter().filter_map(result).collect()
}

/// The contents of the tool results, in order.
pub(crate) fn contents(history: &History) -> Vec<String> {
    results(history).into_iter().map(|result| result.content.into_text()).collect()
}

/// G8: every call of the agent's committed history has exactly one result.
#[track_caller]
pub(crate) fn assert_valid(agent: &Agent) {
    assert_eq!(HistoryDefect::find(&agent.history()), None, "{:?}", agent.history());
}

/// What is in the queue now.
pub(crate) fn events(subscriber: &mut Subscriber) -> Vec<Arc<Event>> {
    std::iter::from_fn(|| subscriber.try_recv())
        .filter_map(|received| match received {
            Received::Event(event) => Some(event),
            Received::Missed(_) => None,
        })
        .collect()
}

/// The names of the events, without those that `skip`.
pub(crate) fn names(events: &[Arc<Event>]) -> Vec<&'static str> {
    events.iter().map(|event| event.name()).collect()
}

/// Everything that began has ended, once.
#[track_caller]
pub(crate) fn assert_paired(events: &[Arc<Event>]) {
    let mut open: Vec<String> = Vec::new();
    for event in events {
        let instance = event.instance;
        let (begins, key) = match &event.kind {
            EventKind::TurnStarted => (true, format!("turn {instance}")),
            EventKind::TurnEnded { .. } => (false, format!("turn {instance}")),
            EventKind::HookStarted { hook, point } => (true, format!("{hook} {point} {instance}")),
            EventKind::HookEnded { hook, point, .. } => {
                (false, format!("{hook} {point} {instance}"))
            }
            EventKind::ModelStarted { step } => (true, format!("model {step} {instance}")),
            EventKind::ModelEnded { step, .. } => (false, format!("model {step} {instance}")),
            EventKind::ToolStarted { call, .. } => (true, format!("tool {call} {instance}")),
            EventKind::ToolEnded { call, .. } => (false, format!("tool {call} {instance}")),
            _ => continue,
        };
        if begins {
            open.push(key);
        } else {
            let at = open.iter().rposition(|other| *other == key);
            let at = at.unwrap_or_else(|| panic!("{key} ended without a begin"));
            open.remove(at);
        }
    }
    assert_eq!(open, Vec::<String>::new(), "began and never ended");
}
