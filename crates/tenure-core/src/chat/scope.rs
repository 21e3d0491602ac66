//! The scope around a chat.

use super::points::BeforeChat;
use super::run::{ChatRun, Guard, Member, Question, Waits, finish};
use super::variables::{Declarations, SYSTEM_KEYS, Values};
use super::{ChatEnd, ContextVariables};
use crate::agent::Agent;
use crate::cancel::{CancelCause, Signal};
use crate::content::Content;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{HookFailure, Point};
use crate::kernel::{Ends, ScopeData, caught, sequence};
use crate::outcome::Outcome;
use crate::phase::{AgentState, Phase};
use crate::step::{StepScope, Steps};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

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
        Self::of(id, Arc::new(Values::new(variables)), None, agents)
    }

    /// A chat whose variables are declared: who may write them, and what follows from a write.
    pub fn declared(
        id: impl Into<Arc<str>>,
        declarations: Arc<dyn Declarations>,
        agents: impl IntoIterator<Item = Agent>,
    ) -> Self {
        let id = id.into();
        let variables = BTreeMap::from([("chat_id".to_owned(), Value::from(&*id))]);
        Self::of(id, Arc::new(Values::new(variables)), Some(declarations), agents)
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
        variables: Arc<Values>,
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
                left: AtomicBool::new(false),
                questions: AtomicUsize::new(0),
                watcher: OnceLock::new(),
                members,
                steps: OnceLock::new(),
                recorded: Mutex::default(),
            }),
        }
    }

    /// Makes the chat part of a recorded run: what its hooks decide is recorded, what they and its
    /// turns write to its variables too, and its end. Its turns are recorded each by itself.
    ///
    /// A chat that is parked does not end; it goes on in the next life of the run.
    pub fn record(&self, steps: &Steps) {
        let _ = self.run.steps.set(StepScope::new(steps.clone()));
    }

    /// Whether everybody who is at work in it waits for a person.
    pub fn is_waiting(&self) -> bool {
        let working = |phase: Phase| phase.state() == AgentState::Busy;
        let waiting =
            |phase| matches!(phase, Phase::AwaitingUserInput | Phase::AwaitingToolApproval);
        let phases = self.run.members.iter().map(|member| member.agent.phase());
        self.run.questions.load(Ordering::Acquire) > 0
            && phases.filter(|phase| working(*phase)).all(waiting)
    }

    /// Sets a variable, the system's own included. For whoever runs the chat.
    #[must_use]
    pub fn with_variable(self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.run.variables.write().insert(key.into(), value.into());
        self
    }

    /// The chat's id.
    pub fn id(&self) -> &str {
        &self.run.id
    }

    /// Sets several variables, the system's own and those that are read-only to agents included,
    /// and lets follow what follows. For whoever runs the chat.
    pub fn set_variables(&self, patch: impl IntoIterator<Item = (String, Value)>) {
        let mut variables = self.run.variables.write();
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
        self.cancel_for(CancelCause::Requested);
    }

    /// Cancels the chat for a cause. Of several the first counts.
    pub fn cancel_for(&self, cause: CancelCause) {
        self.run.signal.set_for(cause);
        for member in &self.run.members {
            member.agent.cancel_for(cause);
        }
    }

    /// Notes that the caller is about to drop the chat as it is, for its recorded run to go on
    /// later: what goes on in it is not over, and no end of it is announced.
    pub fn leave(&self) {
        self.run.left.store(true, Ordering::Release);
    }

    /// Announces an event of the chat that this crate has no kind for, if anybody listens. It is
    /// the first agent's.
    pub fn announce(&self, name: &'static str, data: impl FnOnce() -> Value) {
        if let Some(first) = self.run.members.first() {
            first.agent.announce(name, data);
        }
    }

    /// Announces an event of the chat as [`Chat::announce`] does; if the chat is recorded, once over all
    /// lives of its run. `place` is where in the chat it is: no other event of this name is there.
    pub fn announce_once(
        &self,
        place: impl fmt::Display,
        name: &'static str,
        data: impl FnOnce() -> Value,
    ) {
        match (self.run.members.first(), self.run.steps.get()) {
            (Some(first), Some(scope)) => {
                first.agent.announce_once(&scope.steps.at(place), name, data);
            }
            _ => self.announce(name, data),
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
        self.run.left.store(false, Ordering::Release);
        let mut guard = Guard { run: Some(self.run.clone()), ends: None };
        let begun = match self.run.steps.get() {
            Some(scope) => scope.log().begin(self.run.record(scope)).await,
            None => Ok(()),
        };
        self.emit(|id| EventKind::ChatStarted { chat: id.clone() });
        let begun = match begun {
            Ok(()) => self.begin().await,
            Err(error) => Err(error),
        };
        let result = match begun {
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
        // Its turns may have swallowed what parks the run.
        let trouble = self.run.steps.get().and_then(|scope| scope.log().trouble());
        let error = trouble.or(error);
        let is_late = self.run.signal.is_late() && error.as_ref().is_some_and(Error::is_cancelled);
        let error = if is_late { Some(Error::chat_timed_out()) } else { error };
        let outcome = error.as_ref().map_or(Outcome::Ok, Error::outcome);
        let end = ChatEnd { outcome, error, output };
        guard.run = None;
        if self.run.is_recorded() && end.error.as_ref().is_some_and(Error::parks) {
            self.run.park();
            return ChatResult { value: None, end };
        }
        guard.ends = Some((self.run.clone(), Box::pin(finish(self.run.clone(), end.clone()))));
        poll_fn(|cx| match &mut guard.ends {
            Some((_, ends)) => ends.as_mut().poll(cx),
            None => std::task::Poll::Ready(()),
        })
        .await;
        guard.ends = None;
        ChatResult { value, end }
    }

    async fn begin(&self) -> Result<Option<Content>, Error> {
        for member in &self.run.members {
            let chain = &member.agent.inner().blueprint.chain;
            if chain.has(Point::BeforeChat) {
                let site = member.site(&self.run, Some(&self.run.signal));
                let data = &member.data;
                let mut before =
                    BeforeChat { entered: &member.entered, finish: None, data, place: 0 };
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
    Finished(Content),
}

/// What became of a chat.
#[derive(Clone, Debug)]
pub struct ChatResult<T> {
    /// What the body returned, if it ran and ended well.
    pub value: Option<T>,
    /// How the chat ended.
    pub end: ChatEnd,
}
