//! The handle that users hold.

use super::{AgentBuilder, AgentConfig, Blueprint, Inner, Label, Request};
use crate::ask::{Answer, Answered, PendingAsk};
use crate::cancel::CancelCause;
use crate::context::ExecutionContext;
use crate::drive::{Input, TurnReport, TurnStream};
use crate::error::Error;
use crate::event::{EventKind, emit_once};
use crate::hook::HookFailure;
use crate::id::InstanceId;
use crate::life::{self, LifecycleConfig, LifecycleMetrics};
use crate::memory::MemoryHandle;
use crate::message::History;
use crate::model::Usage;
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase};
use crate::state::StateOwnership;
use crate::step::Steps;
use crate::sync::atomic::Ordering;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// One live agent. Clones are handles to the same instance.
///
/// Dropping the last handle shuts the agent down in the background: its `on_shutdown` hooks run on
/// the agent's own tracker. With no runtime left, what it acquired is released at once, as far as
/// that is possible, and its end is recorded as [`ExitReason::Crashed`].
#[doc(alias = "LlmDecorator")]
#[doc(alias = "McpAgent")]
pub struct Agent {
    inner: Arc<Inner>,
}

impl Agent {
    /// Starts building an agent of this name.
    pub fn builder(name: impl Into<Arc<str>>) -> AgentBuilder {
        AgentBuilder::new(AgentConfig::new(name))
    }

    #[inline]
    pub(crate) fn of(inner: Arc<Inner>) -> Self {
        inner.handles.fetch_add(1, Ordering::Relaxed);
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Its id, unique for ever.
    pub fn id(&self) -> InstanceId {
        self.inner.id
    }

    /// What it is made of.
    pub fn blueprint(&self) -> Blueprint {
        Blueprint(self.inner.blueprint.clone())
    }

    /// How it is configured.
    pub fn config(&self) -> &AgentConfig {
        self.inner.config()
    }

    /// The phase it is in.
    pub fn phase(&self) -> Phase {
        self.inner.phase()
    }

    /// The state it is in.
    ///
    /// While the hooks of `bootstrapping -> idle` run it reads as ready, but takes no
    /// request: [`Agent::ready`] waits for them.
    #[doc(alias = "get_state")]
    #[doc(alias = "initialized")]
    pub fn state(&self) -> AgentState {
        self.phase().state()
    }

    /// Why it is terminated, once it is.
    pub fn exit_reason(&self) -> Option<ExitReason> {
        self.inner.exit_reason()
    }

    /// Its numbers so far.
    #[doc(alias = "get_metrics")]
    pub fn metrics(&self) -> LifecycleMetrics {
        self.inner.metrics.read(self.inner.cell.moves())
    }

    /// What its turns have cost so far, those of its clones included.
    pub fn usage(&self) -> Usage {
        *self.inner.usage.lock()
    }

    /// The committed history of its conversation. Every tool call in it has its result (G8).
    pub fn history(&self) -> History {
        self.inner.history.lock().clone()
    }

    /// Replaces the history of a ready agent, for instance to go on with an earlier conversation.
    pub fn set_history(&self, history: History) -> Result<(), Error> {
        if let Some(defect) = crate::message::HistoryDefect::find(&history) {
            let error = Error::new(crate::ErrorKind::History, defect.to_string());
            return Err(error.caused_by(defect));
        }
        match self.phase() {
            Phase::Idle | Phase::Uninitialized | Phase::Paused => {
                *self.inner.history.lock() = history;
                Ok(())
            }
            other => Err(Error::not_ready(other.state(), "ready")),
        }
    }

    /// What failed at startup, shutdown and transitions. What fails in a turn is in its report.
    pub fn failures(&self) -> Vec<HookFailure> {
        self.inner.if_extra().map(|extra| extra.data.failures.lock().clone()).unwrap_or_default()
    }

    /// Starts the agent, as configured.
    ///
    /// Idempotent once it is ready. Bounded, retries included. Atomic: it is ready afterwards, or
    /// everything acquired so far was released and it is terminated. A terminated agent cannot be
    /// started again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future rolls the startup back in the background.
    #[doc(alias = "initialize")]
    pub async fn startup(&self) -> Result<(), Error> {
        self.inner.startup(None).await
    }

    /// Starts the agent with another configuration of its lifecycle. It counts for this life.
    pub async fn startup_with(&self, config: LifecycleConfig) -> Result<(), Error> {
        self.inner.startup(Some(config)).await
    }

    /// Shuts the agent down: cancels the turn and lets its ends run, runs `on_shutdown`, flushes
    /// memory, releases resources last to first, deregisters, clears the agent's state.
    ///
    /// Idempotent, bounded, and never fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing: the shutdown goes on in the background.
    pub async fn shutdown(&self) {
        self.inner.shutdown(ExitReason::Completed, None).await;
    }

    /// Shuts the agent down within another budget than the configured one.
    pub async fn shutdown_within(&self, budget: Duration) {
        self.inner.shutdown(ExitReason::Completed, Some(budget)).await;
    }

    /// Suspends a ready agent. While it is busy this is a typed error.
    pub async fn pause(&self) -> Result<(), Error> {
        self.inner.pause().await
    }

    /// Makes a paused agent ready again.
    pub async fn resume(&self) -> Result<(), Error> {
        self.inner.resume().await
    }

    /// Waits until the agent is ready; fails at once if it has not been started or never will be
    /// ready again. A paused agent is waited for.
    pub async fn ready(&self) -> Result<(), Error> {
        life::wait_ready(&self.inner.cell).await
    }

    /// Waits until the agent is terminated.
    pub async fn terminated(&self) {
        self.inner.cell.wait(|life, _| life == Phase::Terminated).await;
    }

    /// Starts a request, to be given options and then run.
    pub fn request(&self, input: impl Into<Input>) -> Request<'_> {
        Request::new(self, input.into())
    }

    /// Runs one turn. The agent must be ready, else the error names its state.
    ///
    /// A turn that did not end well is an error that carries its outcome and report.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the turn; its ends run in the background, and the agent is
    /// ready again when they have.
    #[inline]
    #[doc(alias = "process")]
    pub async fn run(&self, input: impl Into<Input>) -> Result<TurnReport, Error> {
        crate::drive::drive(&self.inner, input.into(), None).await
    }

    /// Runs one turn and hands out its text while it is made. The same loop, the same hooks.
    pub fn stream(&self, input: impl Into<Input>) -> TurnStream<'_> {
        self.request(input).stream()
    }

    /// Runs one turn for a server: here if the agent is ready, on a fork of it if it is busy.
    ///
    /// A fork (`name#1`) starts with a snapshot of the history, has its own start and shutdown, and
    /// gives back its usage only.
    pub async fn handle(&self, input: impl Into<Input>) -> Result<TurnReport, Error> {
        self.request(input).handle().await
    }

    /// Cancels the turn that is running, if there is one.
    pub fn cancel(&self) {
        self.cancel_for(CancelCause::Requested);
    }

    /// Cancels the turn that is running, if there is one, for a cause. Of several the first counts.
    pub fn cancel_for(&self, cause: CancelCause) {
        if self.inner.cell.is_held() {
            self.inner.signal.set_for(cause);
        }
    }

    /// Starts the agent, runs `body` with it and shuts it down, whatever the body returns.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, or the body panics, the agent is shut down in the background,
    /// whoever else holds it.
    pub async fn scoped<T, E>(self, body: impl AsyncFnOnce(&Agent) -> Result<T, E>) -> Result<T, E>
    where
        E: From<Error>,
    {
        self.startup().await?;
        let scope = Scope(&self);
        let result = body(&self).await;
        scope.0.shutdown().await;
        result
    }

    /// A detached clone of this agent, started: own id, own state, own history, own start and
    /// shutdown (G11). Without a name it is called `name#1`, `name#2` and so on. It is made of the
    /// blueprint, so it does not matter what state this agent is in.
    ///
    /// If its startup fails it is rolled back, and the error returned.
    pub async fn spawn_detached_instance(&self, name: Option<&str>) -> Result<Agent, Error> {
        let label = match name {
            Some(name) => Label::Given(name.into()),
            None => Label::Numbered(self.inner.next_number()),
        };
        self.inner.spawn(&self.blueprint(), label, None).await
    }

    /// The questions that wait for an answer: its own, and those of its clones.
    pub fn pending_asks(&self) -> Vec<PendingAsk> {
        let family = self.inner.eldest().if_extra();
        family.map(|extra| extra.asks.pending(self.inner.id)).unwrap_or_default()
    }

    /// Answers a question of this agent or of one of its clones. The first answer counts; a second
    /// one is told so, and one that does not have the form that was asked for is refused.
    pub fn answer(&self, ask: &str, answer: Answer) -> Answered {
        match self.inner.eldest().if_extra() {
            Some(extra) => extra.asks.answer(ask, answer),
            None => Answered::Unknown,
        }
    }

    /// Announces an event of this agent that this crate has no kind for, if anybody listens.
    pub fn announce(&self, name: &'static str, data: impl FnOnce() -> Value) {
        if let Some(bus) = self.inner.listening() {
            bus.emit(&self.inner, None, EventKind::Announced { name, data: data() });
        }
    }

    /// Announces an event of this agent at a place of a recorded run, once over all lives of the run.
    ///
    /// `place` and `name` are what it is known by: no other announcement of the run has both. It is
    /// announced by the first life that comes here, and by a later one only if the process died
    /// before it was on record ([`StepLog::announce`](crate::step::StepLog::announce)).
    pub fn announce_once(&self, place: &Steps, name: &'static str, data: impl FnOnce() -> Value) {
        emit_once(place, &self.inner, None, EventKind::Announced { name, data: data() });
    }

    /// Who owns `key`.
    pub fn owns_state(&self, key: &str) -> StateOwnership {
        self.inner.blueprint.ownership.owner(key)
    }

    /// Writes a value that the agent owns, or that its declaration lets it write.
    pub fn set_state(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        self.inner.write_state(vec![(key.into(), value.into())])
    }

    /// A value of the agent's state, or a shared one.
    pub fn state_value(&self, key: &str) -> Option<Value> {
        self.inner.read_state(key)
    }

    /// Every value that the agent itself holds. Empty after shutdown.
    #[doc(alias = "_agent_state")]
    pub fn state_values(&self) -> BTreeMap<String, Value> {
        self.inner.if_extra().map(|extra| extra.state.all()).unwrap_or_default()
    }

    /// What the agent remembers across runs, if it has a memory.
    pub fn memory(&self) -> Option<MemoryHandle<'_>> {
        self.inner.memory()
    }

    /// How many resources the instance holds.
    pub fn resource_count(&self) -> usize {
        self.inner.if_extra().map_or(0, |extra| extra.resources.len())
    }

    /// Gives the instance an execution context, before it is started. It counts for startup, for
    /// shutdown, and for every request that brings none of its own.
    pub fn set_context(&self, context: impl Into<Arc<ExecutionContext>>) -> Result<(), Error> {
        self.inner.extra().context.set(context.into()).map_err(|_| {
            Error::invalid(
                "the agent has an execution context already, and contexts do not change; pass \
                 another one with the request",
            )
        })
    }

    /// A reference that does not keep the agent alive.
    pub fn downgrade(&self) -> WeakAgent {
        WeakAgent::of(&self.inner)
    }
}

/// Shuts an agent down when its scope is left without having done so.
struct Scope<'a>(&'a Agent);

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        self.0.inner.shutdown_detached();
    }
}

impl Clone for Agent {
    fn clone(&self) -> Self {
        Self::of(self.inner.clone())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.inner.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.inner.last_handle_dropped();
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("name", &self.name())
            .field("id", &self.id())
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

/// A reference to an agent that does not keep it alive.
#[derive(Clone)]
pub struct WeakAgent {
    inner: Weak<Inner>,
    name: Arc<str>,
    id: InstanceId,
}

impl WeakAgent {
    pub(crate) fn of(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::downgrade(inner), name: inner.name().into(), id: inner.id }
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent's id.
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// A handle, if anybody still holds one.
    pub fn upgrade(&self) -> Option<Agent> {
        let inner = self.inner.upgrade()?;
        // Never from none: an agent whose last handle was dropped is on its way out.
        let more = |handles: usize| (handles > 0).then_some(handles + 1);
        inner.handles.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Agent { inner })
    }
}

impl fmt::Debug for WeakAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakAgent").field("name", &self.name).field("id", &self.id).finish()
    }
}
