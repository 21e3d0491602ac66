//! The scope around a chat.

use super::variables::{Declarations, SYSTEM_KEYS};
use super::{ChatEnd, ContextVariables};
use crate::BoxFuture;
use crate::agent::Agent;
use crate::cancel::Signal;
use crate::context::{ChatCx, Cx};
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Entry, Flow, HookError, HookFailure, Point};
use crate::kernel::{Ends, ScopeData, Sequence, Site, caught, sequence};
use crate::outcome::Outcome;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

/// What a chat keeps while it runs.
pub(crate) struct ChatRun {
    pub(crate) id: Arc<str>,
    /// Shared with the chats beside it.
    pub(crate) variables: Arc<Mutex<BTreeMap<String, Value>>>,
    /// What is declared of them.
    pub(crate) declarations: Option<Arc<dyn Declarations>>,
    pub(crate) signal: Signal,
    /// A chat runs once at a time.
    running: AtomicBool,
    /// How many of its agents' questions wait for an answer.
    questions: AtomicUsize,
    /// Who is told that it waits for a person, and that it goes on.
    watcher: OnceLock<Watcher>,
    members: Vec<Member>,
}

type Watcher = Box<dyn Fn(Waits) + Send + Sync>;

/// Whether a chat waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// The first question was put.
    ForPerson,
    /// The last one is settled.
    NoLonger,
}

impl ChatRun {
    /// The names of those who take part.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.agent.name())
    }
}

/// One agent that takes part.
struct Member {
    agent: Agent,
    data: ScopeData,
    /// How many entries of its chain the chat's scope has passed.
    entered: AtomicUsize,
}

/// A chat: the scope around a conversation of several agents.
///
/// Every agent's own `before_chat` and `after_chat` take part, in the order in which the agents
/// were added. The agents must be started; the chat does not shut them down.
#[derive(Clone)]
pub struct Chat {
    run: Arc<ChatRun>,
}

impl Chat {
    /// A chat of these agents.
    pub fn new(id: impl Into<Arc<str>>, agents: impl IntoIterator<Item = Agent>) -> Self {
        let id = id.into();
        let variables = BTreeMap::from([("chat_id".to_owned(), Value::from(&*id))]);
        Self::of(id, Arc::new(Mutex::new(variables)), None, agents)
    }

    /// A chat whose variables are declared: who may write them, and what follows from a write.
    pub fn declared(
        id: impl Into<Arc<str>>,
        declarations: Arc<dyn Declarations>,
        agents: impl IntoIterator<Item = Agent>,
    ) -> Self {
        let id = id.into();
        let variables = BTreeMap::from([("chat_id".to_owned(), Value::from(&*id))]);
        Self::of(id, Arc::new(Mutex::new(variables)), Some(declarations), agents)
    }

    /// Another scope of the same chat: its id and its variables, with other agents. For agents that
    /// join a conversation which has begun; the two run and end each by itself.
    #[must_use]
    pub fn beside(&self, agents: impl IntoIterator<Item = Agent>) -> Self {
        let run = &self.run;
        Self::of(run.id.clone(), run.variables.clone(), run.declarations.clone(), agents)
    }

    fn of(
        id: Arc<str>,
        variables: Arc<Mutex<BTreeMap<String, Value>>>,
        declarations: Option<Arc<dyn Declarations>>,
        agents: impl IntoIterator<Item = Agent>,
    ) -> Self {
        let members = agents
            .into_iter()
            .map(|agent| Member { agent, data: ScopeData::default(), entered: AtomicUsize::new(0) })
            .collect();
        Self {
            run: Arc::new(ChatRun {
                id,
                variables,
                declarations,
                signal: Signal::default(),
                running: AtomicBool::new(false),
                questions: AtomicUsize::new(0),
                watcher: OnceLock::new(),
                members,
            }),
        }
    }

    /// Sets a variable, the system's own included. For whoever runs the chat.
    #[must_use]
    pub fn with_variable(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.run.variables.lock().insert(key.into(), value.into());
        self
    }

    /// The chat's id.
    pub fn id(&self) -> &str {
        &self.run.id
    }

    /// Sets several variables, the system's own and those that are read-only to agents included,
    /// and lets follow what follows. For whoever runs the chat.
    pub fn set_variables(&self, patch: impl IntoIterator<Item = (String, Value)>) {
        let mut variables = self.run.variables.lock();
        let changed: Vec<_> = patch.into_iter().collect();
        let keys: Vec<_> = changed.iter().map(|(key, _)| key.clone()).collect();
        variables.extend(changed);
        if let Some(declarations) = &self.run.declarations {
            declarations.settle(&keys, &mut variables);
        }
    }

    /// The variables as its hooks see them, with the same rules for writing.
    pub fn context_variables(&self) -> ContextVariables<'_> {
        ContextVariables::of(&self.run)
    }

    /// The value of a variable.
    pub fn variable(&self, key: &str) -> Option<Value> {
        self.run.variables.lock().get(key).cloned()
    }

    /// Every variable.
    pub fn variables(&self) -> BTreeMap<String, Value> {
        self.run.variables.lock().clone()
    }

    /// The names of the variables that only the platform sets.
    pub fn system_keys() -> &'static [&'static str] {
        &SYSTEM_KEYS
    }

    /// Cancels the chat: its body is dropped, and its ends run.
    pub fn cancel(&self) {
        self.run.signal.set();
        for member in &self.run.members {
            member.agent.cancel();
        }
    }

    /// Announces an event of the chat that this crate has no kind for, if anybody listens. It is
    /// the first agent's.
    pub fn announce(&self, name: &'static str, data: impl FnOnce() -> Value) {
        if let Some(first) = self.run.members.first() {
            first.agent.announce(name, data);
        }
    }

    /// Has `watcher` called whenever the chat begins to wait for a person, and when it goes on:
    /// around the questions of its turns, its hooks and its tools, once for those that stand at the
    /// same time. There is one watcher; a second one is not called.
    pub fn on_wait(&self, watcher: impl Fn(Waits) + Send + Sync + 'static) {
        let _ = self.run.watcher.set(Box::new(watcher));
    }

    /// Says that a person is asked on the chat's behalf, in another chat, for as long as the result
    /// lives.
    pub fn question(&self) -> Question<'_> {
        self.run.question()
    }

    /// Hooks of the chat's scope that failed, so far.
    pub fn failures(&self) -> Vec<HookFailure> {
        let of = |member: &Member| member.data.failures.lock().clone();
        self.run.members.iter().flat_map(of).collect()
    }

    pub(crate) fn run_data(&self) -> Arc<ChatRun> {
        self.run.clone()
    }

    /// Runs `body` as the chat: `before_chat` of every agent before it, `after_chat` of every entry
    /// passed after it, last to first, however it ended. A chat that runs already is refused.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the ends run in the background, as cancelled.
    pub async fn run<T>(&self, body: impl AsyncFnOnce(&Chat) -> Result<T, Error>) -> ChatResult<T> {
        if self.run.running.swap(true, Ordering::AcqRel) {
            let error = Error::invalid(format!(
                "the chat `{}` runs already; wait for it, or make another chat",
                self.run.id
            ));
            let end = ChatEnd { outcome: Outcome::Failed, error: Some(error), output: None };
            return ChatResult { value: None, end };
        }
        self.run.signal.clear();
        let mut guard = Guard { run: Some(self.run.clone()), ends: None };
        self.emit(|id| EventKind::ChatStarted { chat: id.clone() });
        let result = match self.begin().await {
            Ok(Some(output)) => Ok(Begun::Finished(output)),
            Ok(None) => {
                let mut body = pin!(body(self));
                let outcome = poll_fn(|cx| {
                    if let std::task::Poll::Ready(result) = caught(|| body.as_mut().poll(cx)) {
                        return std::task::Poll::Ready(result);
                    }
                    if self.run.signal.register(cx.waker()) {
                        return std::task::Poll::Ready(Ok(Err(Error::cancelled())));
                    }
                    std::task::Poll::Pending
                })
                .await;
                match outcome {
                    Ok(result) => result.map(Begun::Ran),
                    Err(panic) => Err(Error::new(ErrorKind::Panicked, panic)),
                }
            }
            Err(error) => Err(error),
        };
        let (value, output, error) = match result {
            Ok(Begun::Ran(value)) => (Some(value), None, None),
            Ok(Begun::Finished(output)) => (None, Some(output), None),
            Err(error) => (None, None, Some(error)),
        };
        let outcome = error.as_ref().map_or(Outcome::Ok, Error::outcome);
        let end = ChatEnd { outcome, error, output };
        guard.run = None;
        guard.ends = Some((self.run.clone(), Box::pin(finish(self.run.clone(), end.clone()))));
        poll_fn(|cx| match &mut guard.ends {
            Some((_, ends)) => ends.as_mut().poll(cx),
            None => std::task::Poll::Ready(()),
        })
        .await;
        guard.ends = None;
        ChatResult { value, end }
    }

    async fn begin(&self) -> Result<Option<String>, Error> {
        for member in &self.run.members {
            let chain = &member.agent.inner().blueprint.chain;
            if chain.has(Point::BeforeChat) {
                let site = member.site(&self.run, Some(&self.run.signal));
                let mut before = BeforeChat { entered: &member.entered, finish: None };
                sequence(&site, chain, Ends::No, &mut before).await?;
                if before.finish.is_some() {
                    return Ok(before.finish);
                }
            }
            member.entered.store(chain.entries.len(), Ordering::Release);
        }
        Ok(None)
    }

    fn emit(&self, kind: impl FnOnce(&Arc<str>) -> EventKind) {
        self.run.emit(kind);
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat").field("id", &self.run.id).finish_non_exhaustive()
    }
}

enum Begun<T> {
    Ran(T),
    Finished(String),
}

/// What became of a chat.
#[derive(Clone, Debug)]
pub struct ChatResult<T> {
    /// What the body returned, if it ran and ended well.
    pub value: Option<T>,
    /// How the chat ended.
    pub end: ChatEnd,
}

impl ChatRun {
    /// A question stands for as long as this lives.
    pub(crate) fn question(&self) -> Question<'_> {
        if self.questions.fetch_add(1, Ordering::AcqRel) == 0 {
            self.tell(Waits::ForPerson);
        }
        Question(self)
    }

    fn tell(&self, waits: Waits) {
        if let Some(watcher) = self.watcher.get() {
            watcher(waits);
        }
    }

    fn emit(&self, kind: impl FnOnce(&Arc<str>) -> EventKind) {
        if let Some(first) = self.members.first() {
            let inner = first.agent.inner();
            if let Some(bus) = inner.listening() {
                bus.emit(inner, None, kind(&self.id));
            }
        }
    }
}

/// A question of a chat that waits for an answer, for as long as this lives.
#[must_use = "the question is settled when this is dropped"]
pub struct Question<'a>(&'a ChatRun);

impl fmt::Debug for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question").field("chat", &self.0.id).finish_non_exhaustive()
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if self.0.questions.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.tell(Waits::NoLonger);
        }
    }
}

impl Member {
    fn site<'a>(&'a self, run: &'a ChatRun, signal: Option<&'a Signal>) -> Site<'a> {
        Site {
            inner: self.agent.inner(),
            turn: None,
            chat: Some(run),
            signal,
            data: &self.data,
            attempt: 1,
        }
    }
}

/// Runs the ends of everything that was passed, last to first.
async fn finish(run: Arc<ChatRun>, end: ChatEnd) {
    for member in run.members.iter().rev() {
        let entered = member.entered.swap(0, Ordering::AcqRel);
        let chain = &member.agent.inner().blueprint.chain;
        if entered > 0 && chain.has(Point::AfterChat) {
            let site = member.site(&run, None);
            let mut after = AfterChat { end: &end, entered };
            // Ends are always continued; there is nothing to fail with (G5).
            let ends = Ends::Within(member.agent.config().limits.ends);
            let _ = sequence(&site, chain, ends, &mut after).await;
        }
    }
    run.running.store(false, Ordering::Release);
    run.emit(|id| EventKind::ChatEnded { chat: id.clone(), outcome: end.outcome });
}

/// Ends a chat whose future is dropped.
struct Guard {
    run: Option<Arc<ChatRun>>,
    ends: Option<(Arc<ChatRun>, BoxFuture<'static, ()>)>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (run, ends) = match (self.run.take(), self.ends.take()) {
            (_, Some(ends)) => ends,
            (Some(run), None) => {
                let error = Some(Error::cancelled());
                let end = ChatEnd { outcome: Outcome::Cancelled, error, output: None };
                (run.clone(), Box::pin(finish(run, end)) as BoxFuture<'static, ()>)
            }
            (None, None) => return,
        };
        if let Some(first) = run.members.first() {
            first.agent.inner().blueprint.run_detached(ends);
        }
    }
}

struct BeforeChat<'a> {
    entered: &'a AtomicUsize,
    finish: Option<String>,
}

impl Sequence for BeforeChat<'_> {
    const POINT: Point = Point::BeforeChat;
    type Out = Flow;

    #[inline]
    fn says_nothing(out: &Flow) -> bool {
        matches!(out, Flow::Continue)
    }

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Flow, HookError>> {
        entry.hook.before_chat(ChatCx::new(cx))
    }

    fn accept(&mut self, entry: &Entry, out: Flow) -> ControlFlow<()> {
        match out {
            Flow::Finish(output) if !entry.observes => {
                self.finish = Some(output);
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn entered(&mut self, place: usize) {
        self.entered.store(place + 1, Ordering::Release);
    }
}

struct AfterChat<'e> {
    end: &'e ChatEnd,
    entered: usize,
}

impl Sequence for AfterChat<'_> {
    const POINT: Point = Point::AfterChat;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.after_chat(ChatCx::new(cx), self.end)
    }

    fn skips(&self, place: usize, _entry: &Entry) -> bool {
        place >= self.entered
    }
}
