//! What every context shares.

use super::{ExecutionContext, Logger};
use crate::agent::{Agent, AgentConfig, Inner};
use crate::cancel::CancelCause;
use crate::chat::{ChatRun, ContextVariables};
use crate::error::Error;
use crate::event::{EventBus, EventKind, LogStream, emit_once};
use crate::hook::Point;
use crate::id::InstanceId;
use crate::kernel::{Clock, Paused, Site, step_name};
use crate::life::LifecycleMetrics;
use crate::memory::MemoryHandle;
use crate::message::History;
use crate::model::Model;
use crate::phase::{AgentState, Phase};
use crate::resource::Resources;
use crate::secret::Redactor;
use crate::state::Slot;
use crate::step::{Steps, fingerprint_texts};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What every hook, model and tool gets to see. Each point's own context derefs to it.
#[derive(Clone, Copy)]
#[doc(alias = "HookContext")]
pub struct Cx<'a> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) clock: &'a Clock,
    pub(crate) point: Point,
    /// The entry's place in the chain; small, because a context is copied into every hook's future.
    place: u16,
}

/// The limit of a call runs again when this is dropped. See [`Cx::pause_limit`].
#[must_use = "the limit runs again as soon as this is dropped"]
pub struct LimitPaused<'a> {
    _paused: Paused<'a>,
    clock: &'a Clock,
    since: Instant,
}

impl Drop for LimitPaused<'_> {
    fn drop(&mut self) {
        self.clock.take_off(self.since.elapsed());
    }
}

/// The place of an effect: behind every entry.
const EFFECT: u16 = u16::MAX;
/// The place of a model whose answer nobody reads along: behind every entry too.
const QUIET: u16 = u16::MAX - 1;

impl<'a> Cx<'a> {
    #[inline]
    pub(crate) fn new(site: &'a Site<'a>, point: Point, place: u16, clock: &'a Clock) -> Self {
        Self { site, clock, point, place }
    }

    /// The context of a model or a tool itself.
    #[inline]
    pub(crate) fn of_effect(site: &'a Site<'a>, point: Point, clock: &'a Clock) -> Self {
        Self::new(site, point, EFFECT, clock)
    }

    pub(crate) fn is_effect(&self) -> bool {
        self.place >= QUIET
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.place == QUIET
    }

    /// The same effect, without anybody who reads along.
    pub(crate) fn quiet(self) -> Self {
        Self { place: QUIET, ..self }
    }

    pub(crate) fn place(&self) -> usize {
        usize::from(self.place)
    }

    /// The agent that this runs in.
    pub fn agent(&self) -> AgentView<'a> {
        AgentView(self.site.inner)
    }

    /// The agent's name; a clone's is `child#1[tool]`, a fork's `agent#1`.
    pub fn agent_name(&self) -> &'a str {
        self.site.inner.name()
    }

    /// The id of the instance, unique for ever.
    #[doc(alias = "agent_id")]
    pub fn instance_id(&self) -> InstanceId {
        self.site.inner.id
    }

    /// The id of the instance that this one descends from: of a clone or a fork that of whoever was
    /// built first, of every other its own.
    pub fn family_id(&self) -> InstanceId {
        self.site.inner.eldest().id
    }

    /// How the agent is configured.
    pub fn config(&self) -> &'a AgentConfig {
        self.site.inner.config()
    }

    /// The id of the chat that this is part of, if it is part of one.
    pub fn chat_id(&self) -> Option<&'a str> {
        self.site.chat.map(|chat| &*chat.id)
    }

    /// The names of the agents that take part in the chat that this is part of, in its order.
    pub fn chat_agents(&self) -> impl Iterator<Item = &'a str> {
        self.site.chat.into_iter().flat_map(ChatRun::agents)
    }

    /// The context variables of the chat that this is part of, if it is part of one.
    pub fn chat_variables(&self) -> Option<ContextVariables<'a>> {
        self.site.chat.map(|_| ContextVariables::new(self.site))
    }

    /// Whether there is somebody to ask: an asker who is there, or a listener who may answer.
    pub fn can_ask(&self) -> bool {
        if self.site.steps().is_some_and(|scope| scope.log().keeps_asks()) {
            return true;
        }
        match &self.site.inner.blueprint.asker {
            Some(asker) => asker.is_there(),
            None => self.site.inner.is_heard(),
        }
    }

    /// The name by which the hook stands in the agent: no other hook of the agent has it. Empty for a
    /// model or a tool.
    pub fn hook_name(&self) -> &'a str {
        let entries = &self.site.inner.blueprint.chain.entries;
        entries.get(self.place()).map_or("", |entry| &entry.name)
    }

    /// Announces that this call does not concern the hook, for whoever listens. The hook does
    /// nothing then, and what it stands before goes on.
    pub fn skipped(&self) {
        let entries = &self.site.inner.blueprint.chain.entries;
        if let Some(entry) = entries.get(self.place()) {
            let kind = || EventKind::HookSkipped { hook: entry.name.clone(), point: self.point };
            self.site.emit(kind);
        }
    }

    /// Announces an event that this crate has no kind for, if anybody listens.
    #[doc(alias = "emit")]
    pub fn announce(&self, name: &'static str, data: impl FnOnce() -> Value) {
        self.site.emit(|| EventKind::Announced { name, data: data() });
    }

    /// Announces an event at a place of a recorded run, once over all lives of the run: as
    /// [`Agent::announce_once`] does.
    pub fn announce_once(&self, place: &Steps, name: &'static str, data: impl FnOnce() -> Value) {
        let kind = EventKind::Announced { name, data: data() };
        emit_once(place, self.site.inner, self.site.turn, kind);
    }

    /// Announces a line that something foreign printed, for whoever listens: `source` says what.
    pub fn log(&self, source: &str, stream: LogStream, line: &str) {
        let kind = || EventKind::Log { source: source.into(), stream, line: line.to_owned() };
        self.site.emit(kind);
    }

    /// Hides `value` from now on in every sink of the project: events, logs, what hooks write and
    /// send, the store, and what is shown to people. For a secret that is made or fetched at run time.
    ///
    /// What was written before is not changed, and a value of less than six characters is left alone.
    pub fn secret(&self, value: &str) {
        self.redactor().learn([value]);
    }

    /// The redactor of the project. A hook that writes or sends what was said puts it through here.
    pub fn redactor(&self) -> &'a Redactor {
        &self.site.inner.blueprint.config.redactor
    }

    /// Where the events of the agent go, if they go anywhere.
    #[doc(alias = "emitter")]
    pub fn events(&self) -> Option<&'a EventBus> {
        self.site.inner.bus.as_ref()
    }

    /// The same for lines that come when no call is under way.
    pub fn logger(&self) -> Logger {
        Logger::of(self.site.inner)
    }

    /// What the orchestrator says about the request, if there is one.
    pub fn context(&self) -> Option<&'a ExecutionContext> {
        self.site.turn.and_then(|turn| turn.context()).or_else(|| self.site.inner.context())
    }

    /// Whether there is an execution context.
    pub fn has_context(&self) -> bool {
        self.context().is_some()
    }

    /// The point that is being called.
    pub fn hook_type(&self) -> Point {
        self.point
    }

    /// The trace that everything of this request belongs to.
    pub fn trace_id(&self) -> String {
        self.site.trace_id()
    }

    /// Which attempt this is, counted from one.
    pub fn attempt(&self) -> u32 {
        self.site.attempt
    }

    /// Whether this goes on where an earlier process stopped.
    pub fn resumed(&self) -> bool {
        self.site.turn.map_or_else(|| self.site.inner.resumed(), |turn| turn.resumed())
    }

    /// Where in a recorded run the steps go of what this is part of: its turn, its chat, or the life
    /// of its instance. None if it is not recorded.
    pub fn steps(&self) -> Option<Steps> {
        self.site.steps().map(|scope| scope.steps.clone())
    }

    /// When the turn's time is up, if it has a limit.
    pub fn deadline(&self) -> Option<std::time::Instant> {
        self.site.deadline().map(tokio::time::Instant::into_std)
    }

    /// A name of this call of an end, the same whenever it is delivered again: for whoever has to
    /// know that it has seen it before. In a recorded run it is the same in every life of the run.
    pub fn delivery_id(&self) -> String {
        let site = self.site;
        let entry = site.inner.blueprint.chain.entries.get(self.place());
        let name = entry.map(|entry| step_name(site, entry)).unwrap_or_default();
        match site.steps() {
            Some(scope) => scope.last(self.point.as_str(), &name).id(scope.log().run_id()),
            None => {
                let run = site.turn.map(|turn| turn.run.to_string());
                let run = run.unwrap_or_else(|| site.inner.id.to_string());
                format!("{:016x}", fingerprint_texts(&[&run, self.point.as_str(), &name]))
            }
        }
    }

    /// Whether somebody cancelled what this belongs to.
    pub fn is_cancelled(&self) -> bool {
        self.site.is_cancelled()
    }

    /// Returns the cause that what this belongs to was cancelled for, if it was.
    pub fn cancel_cause(&self) -> Option<CancelCause> {
        self.site.signal?.cause()
    }

    /// Whether it was cancelled because time is up.
    pub fn is_expired(&self) -> bool {
        self.cancel_cause() == Some(CancelCause::TimeIsUp)
    }

    /// Whether the chat that this belongs to was left as it is, for its recorded run to go on later.
    pub fn is_left(&self) -> bool {
        self.site.is_left()
    }

    /// Waits until somebody cancels what this belongs to; for ever, if nobody does.
    pub async fn cancelled(&self) {
        match self.site.signal {
            Some(signal) => signal.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the call's own limit until the result is dropped, for time that is not the call's: the start
    /// of a process, or a queue before it.
    ///
    /// A cancel does not cut a call whose limit stands still, and neither does the turn's limit: what is
    /// waited for needs a limit of its own, no longer than [`Cx::may_wait`], and has to end with
    /// [`Cx::cancelled`].
    pub fn pause_limit(&self) -> LimitPaused<'a> {
        LimitPaused { _paused: self.clock.pause(), clock: self.clock, since: Instant::now() }
    }

    /// Returns the longest that may be waited for before the call: at an end, and in a transition, what is left
    /// of the time that it shares with the others; elsewhere what is left of the turn. `None`: there is no such
    /// limit.
    pub fn may_wait(&self) -> Option<Duration> {
        let shared = self.site.shared_left().map(|left| left.saturating_sub(self.time_off()));
        let turn = || Some(self.site.deadline()?.saturating_duration_since(Instant::now()));
        shared.or_else(turn)
    }

    /// Returns how much of the time since the call began was not the call's: what
    /// [`Cx::pause_limit`] took out of it, as far as that is over. What the call took is the rest.
    pub fn time_off(&self) -> Duration {
        self.clock.time_off()
    }

    /// Another agent, by name, from the registry that this one is in.
    pub fn get_agent(&self, name: &str) -> Option<Agent> {
        self.site.inner.registry()?.find(name)
    }

    /// The names of the agents in the registry that this one is in, sorted, as far as the registry
    /// can tell.
    pub fn agent_names(&self) -> Vec<String> {
        self.site.inner.registry().map(|registry| registry.names()).unwrap_or_default()
    }

    /// A value of the agent's state, or a shared one.
    pub fn state(&self, key: &str) -> Option<Value> {
        self.site.inner.read_state(key)
    }

    /// The same as a `T`: as [`Cx::keep_state`] has left it, or read from its JSON. It is an error if
    /// that is no `T`, and none if there is nothing, or `null`.
    pub fn state_as<T: DeserializeOwned + Any + Send + Sync>(
        &self,
        key: &str,
    ) -> Result<Option<Arc<T>>, Error> {
        let slot = self.site.inner.if_extra().and_then(|extra| extra.state.slot(key));
        let read = slot.map_or(Ok(None), Slot::read);
        read.map_err(|error| Error::invalid(format!("the state `{key}` is broken: {error}")))
    }

    /// Every value that the agent itself holds.
    pub fn state_values(&self) -> BTreeMap<String, Value> {
        self.site.inner.if_extra().map(|extra| extra.state.all()).unwrap_or_default()
    }

    /// Writes a value that the agent owns, or that its declaration lets it write.
    ///
    /// Any other key is a [`StateViolation`](crate::state::StateViolation).
    pub fn set_state(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        self.update_state([(key.into(), value.into())])
    }

    /// Writes a value as [`Cx::set_state`] does, which becomes JSON only when somebody reads it so, or
    /// when it goes on record: quick enough for what a hook counts at every call.
    pub fn keep_state<T: Clone + Into<Value> + Any + Send + Sync>(
        &self,
        key: &str,
        value: T,
    ) -> Result<(), Error> {
        self.site.inner.keep_state(key, Slot::typed(value))
    }

    /// Writes several values, all or none.
    pub fn update_state(
        &self,
        patch: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<(), Error> {
        self.site.inner.write_state(patch.into_iter().collect())
    }

    /// What the agent remembers across runs, if it has a memory.
    pub fn memory(&self) -> Option<MemoryHandle<'a>> {
        self.site.inner.memory()
    }

    /// Where the instance registers what it acquires.
    pub fn resources(&self) -> Resources<'a> {
        Resources::new(self.site.inner)
    }

    /// Asks for a shutdown of the agent. It is obeyed after the current transition, or the current
    /// turn is cancelled for it.
    pub fn request_shutdown(&self) {
        self.site.inner.request_shutdown();
    }
}

impl fmt::Debug for Cx<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx")
            .field("agent", &self.agent_name())
            .field("instance", &self.instance_id())
            .field("point", &self.point)
            .finish_non_exhaustive()
    }
}

/// An agent as its own hooks see it: to look at, not to hold on to.
#[derive(Clone, Copy)]
#[doc(alias = "AgentProtocol")]
pub struct AgentView<'a>(pub(crate) &'a Inner);

impl<'a> AgentView<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        self.0.name()
    }

    /// Its id.
    pub fn id(&self) -> InstanceId {
        self.0.id
    }

    /// The phase it is in.
    pub fn phase(&self) -> Phase {
        self.0.phase()
    }

    /// The state it is in.
    pub fn state(&self) -> AgentState {
        self.0.phase().state()
    }

    /// Its numbers so far.
    pub fn metrics(&self) -> LifecycleMetrics {
        self.0.metrics.read(self.0.cell.moves())
    }

    /// Its model.
    pub fn model(&self) -> &'a Arc<dyn Model> {
        &self.0.blueprint.model
    }

    /// The committed history of the conversation.
    pub fn history(&self) -> History {
        self.0.history.lock().clone()
    }
}

impl fmt::Debug for AgentView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentView")
            .field("name", &self.name())
            .field("id", &self.id())
            .field("phase", &self.phase())
            .finish()
    }
}
