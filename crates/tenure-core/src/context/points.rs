//! A context per point.

use super::Cx;
use crate::agent::ToolSet;
use crate::ask::{Answer, Ask};
use crate::chat::ContextVariables;
use crate::drive::BatchState;
use crate::error::Error;
use crate::event::EventKind;
use crate::id::RunId;
use crate::kernel::{Carried, ScopeData, Site};
use crate::message::ToolCall;
use crate::model::{Model, ModelRequest, ModelResponse, Usage};
use crate::phase::Phase;
use crate::step::Steps;
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

macro_rules! contexts {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a> {
            cx: Cx<'a>,
        }

        impl<'a> $name<'a> {
            #[inline]
            pub(crate) fn new(cx: Cx<'a>) -> Self {
                Self { cx }
            }
        }

        impl<'a> Deref for $name<'a> {
            type Target = Cx<'a>;

            fn deref(&self) -> &Cx<'a> {
                &self.cx
            }
        }
    )+};
}

contexts! {
    /// What `on_start` and `on_shutdown` see.
    #[doc(alias = "AgentLifecycleContext")]
    InstanceCx;
    /// What `before_chat` and `after_chat` see.
    ChatCx;
    /// What the points of a turn see: `before_agent`, `after_agent` and the three of the model.
    TurnCx;
    /// What a model sees.
    ModelCx;
}

/// What a begin leaves for its own end, and what is the same in every scope.
macro_rules! carries {
    ($($name:ident),+) => {$(
        impl<'a> $name<'a> {
            /// Leaves a value for this hook's own end of the same scope. After a resume it is gone;
            /// see [`carry_recorded`](Self::carry_recorded).
            pub fn carry<T: Any + Send + Sync>(&self, value: T) {
                self.leave(Carried::Live(Arc::new(value)));
            }

            /// Leaves a value that is recorded with the begin's decision, and survives a resume.
            pub fn carry_recorded<T: Serialize>(&self, value: &T) -> Result<(), Error> {
                let value = serde_json::to_value(value).map_err(|error| {
                    Error::invalid(format!("the value to carry cannot be recorded: {error}"))
                })?;
                self.leave(Carried::Recorded(value));
                Ok(())
            }

            /// What this hook's begin left by [`carry`](Self::carry).
            pub fn carried<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
                let carried = self.data().carried.lock();
                carried.iter().rev().find_map(|(place, value)| match value {
                    Carried::Live(value) if *place == self.place() => {
                        Arc::downcast(value.clone()).ok()
                    }
                    _ => None,
                })
            }

            /// What this hook's begin left by [`carry_recorded`](Self::carry_recorded).
            pub fn carried_recorded<T: DeserializeOwned>(&self) -> Option<T> {
                let carried = self.data().carried.lock();
                carried.iter().rev().find_map(|(place, value)| match value {
                    Carried::Recorded(value) if *place == self.place() => {
                        serde_json::from_value(value.clone()).ok()
                    }
                    _ => None,
                })
            }

            fn data(&self) -> &'a ScopeData {
                self.site.data
            }

            fn leave(&self, value: Carried) {
                self.data().carried.lock().push((self.place(), value));
            }
        }
    )+};
}

carries!(InstanceCx, ChatCx, TurnCx);

/// Asking a person, and steps: legal in chat, turn, model and tool hooks.
macro_rules! asks {
    ($($name:ident),+) => {$(
        impl $name<'_> {
            /// Asks a person and waits for the answer. The hook's own time stands still meanwhile.
            ///
            /// It is not an error, so no retry wrapper can swallow it. Where nobody can answer, it
            /// is denied.
            pub async fn ask(&self, ask: Ask) -> Result<Answer, Error> {
                crate::ask::ask(**self, self.asking_batch(), ask).await
            }

            /// Runs `effect` once: with a step log its result is recorded before it is used, and a
            /// replay is served from the record (G7).
            pub async fn step<T, F>(&self, name: &str, effect: F) -> Result<T, Error>
            where
                T: Serialize + DeserializeOwned + Send,
                F: Future<Output = Result<T, Error>> + Send,
            {
                crate::step::step(**self, self.asking_batch(), name, effect).await
            }

            /// Asks a model beside the agent's own conversation, under a name of the hook's: for a
            /// judgement, a summary, a choice. It is a step, so that a resumed run is served from
            /// its record; nobody reads along, and what it costs is part of the turn.
            ///
            /// It takes of the hook's own time.
            pub async fn call_model(
                &self,
                name: &str,
                model: &Arc<dyn Model>,
                request: ModelRequest,
            ) -> Result<ModelResponse, Error> {
                crate::drive::call_beside(**self, self.asking_batch(), name, model, request).await
            }
        }
    )+};
}

asks!(ChatCx, TurnCx, ToolCx);

impl ChatCx<'_> {
    /// The chat's context variables.
    pub fn variables(&self) -> ContextVariables<'_> {
        ContextVariables::new(self.site)
    }

    fn asking_batch(&self) -> Option<Batch<'_>> {
        None
    }
}

impl TurnCx<'_> {
    /// The id of the turn.
    pub fn run_id(&self) -> RunId {
        self.turn().run
    }

    /// How many model calls the turn has made so far.
    #[doc(alias = "iteration")]
    pub fn step_number(&self) -> usize {
        self.turn().steps_made()
    }

    /// What the turn has cost so far.
    pub fn usage(&self) -> Usage {
        self.turn().total_usage()
    }

    /// Adds to what the turn cost: for what a hook spent elsewhere.
    pub fn charge(&self, usage: Usage) {
        self.turn().charge_beside(usage);
        self.site.inner.charge(usage);
    }

    /// Whether some of the answer that is being made has reached its reader. A wrap must not have
    /// the model begin anew then: what was read cannot be taken back.
    pub fn is_text_out(&self) -> bool {
        self.turn().sink().is_some_and(|sink| sink.is_text_out())
    }

    /// Whether somebody reads along while the turn is made.
    pub fn is_streaming(&self) -> bool {
        self.turn().is_streaming()
    }

    /// Runs `until` as a wait for a person, though it is not this hook that asks: one whose work is
    /// done by another agent waits where that does. The time of the hook and of the turn stands still
    /// meanwhile.
    pub async fn wait_for_person<T>(&self, until: impl Future<Output = T>) -> T {
        crate::ask::wait_on_behalf(**self, None, until).await
    }

    fn asking_batch(&self) -> Option<Batch<'_>> {
        None
    }

    fn turn(&self) -> &crate::drive::Turn {
        self.site.turn.expect("a turn context is only made inside a turn")
    }
}

impl ModelCx<'_> {
    /// The same call without a reader: for a model that asks another one and does not answer with
    /// what that says.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self::new(self.cx.quiet())
    }

    /// Whether somebody reads the answer while it is made.
    pub fn is_streaming(&self) -> bool {
        !self.is_quiet() && self.site.turn.is_some_and(|turn| turn.is_streaming())
    }

    /// Hands on a piece of the answer's text. Without a reader this does nothing.
    pub fn delta(&self, text: &str) {
        if let Some(turn) = self.site.turn.filter(|_| !self.is_quiet()) {
            turn.model_delta(text);
        }
    }
}

/// One call of a batch, and the others it was asked for together with.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    pub(crate) state: &'a BatchState,
    pub(crate) calls: &'a [ToolCall],
    pub(crate) index: usize,
}

impl<'a> Batch<'a> {
    /// The tools that the calls of the batch go to.
    #[inline]
    pub(crate) fn tools(self, site: &Site<'a>) -> &'a ToolSet {
        match &self.state.tools {
            Some(tools) => tools,
            None => &site.inner.blueprint.tools,
        }
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("calls", &self.calls).field("index", &self.index).finish()
    }
}

/// What `wrap_tool_call` and tools see.
#[derive(Clone, Copy, Debug)]
pub struct ToolCx<'a> {
    cx: Cx<'a>,
    batch: Batch<'a>,
}

impl<'a> ToolCx<'a> {
    #[inline]
    pub(crate) fn new(cx: Cx<'a>, batch: Batch<'a>) -> Self {
        Self { cx, batch }
    }

    /// The calls that the model asked for together with this one, in its order.
    pub fn batch(&self) -> &'a [ToolCall] {
        self.batch.calls
    }

    /// The position of this call in its batch.
    pub fn index(&self) -> usize {
        self.batch.index
    }

    /// The id of this call. It is the same on every attempt, so a keyed tool may use it with
    /// [`ToolCx::idempotency_key`].
    pub fn call_id(&self) -> &'a str {
        &self.batch.calls[self.batch.index].id
    }

    /// A key for the effect of this call: equal on every attempt, also in a run that goes on with
    /// its record; different for every other call.
    pub fn idempotency_key(&self) -> String {
        let (step, call) = (self.batch.state.step, self.call_id());
        match self.site.turn {
            Some(turn) => match turn.steps() {
                Some(scope) => format!("{}/{}/{step}/{call}", scope.log().run_id(), scope.path()),
                None => format!("{}//{step}/{call}", turn.run),
            },
            None => format!("{}//{step}/{call}", self.instance_id()),
        }
    }

    /// A place of this call's own in a recorded run, for a tool that has steps of its own there
    /// ([`Tool::is_composite`](crate::tool::Tool::is_composite)): which step of the turn asked for
    /// the call, its id, and how often the turn has made it before. None if the turn is not recorded.
    pub fn own_steps(&self) -> Option<Steps> {
        let parent = self.site.turn?.steps()?;
        let call = format!("{}:{}", self.batch.state.step, self.call_id());
        let attempt = parent.key("agent", &call, 0).ordinal;
        Some(parent.steps.at(format_args!("{call}#{attempt}")))
    }

    /// Runs `part` as what is recorded of this call, for a tool that does something before it that
    /// is recorded by itself, as a question is: a call that waits for a person has not been made yet.
    /// What was done once is served from the record, and the promise of the tool
    /// ([`ToolSpec::effect`]) holds for it. Such a tool is
    /// [composite](crate::tool::Tool::is_composite). `arguments` are what it depends on.
    pub async fn recorded(
        &self,
        arguments: &Value,
        part: impl Future<Output = Result<ToolOutput, ToolError>> + Send,
    ) -> Result<ToolOutput, ToolError> {
        crate::drive::recorded_part(self.batch, self.cx, arguments, part).await
    }

    /// The id of the turn.
    pub fn run_id(&self) -> Option<RunId> {
        self.site.turn.map(|turn| turn.run)
    }

    /// What the tool says of itself; `None` for a tool that does not exist.
    pub fn tool(&self) -> Option<&'a ToolSpec> {
        let call = &self.batch.calls[self.batch.index];
        self.batch.tools(self.site).spec(&call.name)
    }

    /// Counts what the tool has spent on models itself to the turn and to the agent. It is spent
    /// however the call ends, and the turn.
    pub fn charge(&self, usage: Usage) {
        if let Some(turn) = self.site.turn {
            turn.charge_beside(usage);
        }
        self.site.inner.charge(usage);
    }

    /// Runs `until` as a wait for a person, though it is not this call that asks: one whose work is
    /// done by other agents waits where they do. The time of the call and of the turn stands still
    /// meanwhile, and the chat is one that waits.
    pub async fn wait_for_person<T>(&self, until: impl Future<Output = T>) -> T {
        crate::ask::wait_on_behalf(self.cx, Some(self.batch), until).await
    }

    /// Says how far the call has come, for whoever listens.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        self.site.emit(|| {
            let ToolCall { id, name, .. } = &self.batch.calls[self.batch.index];
            EventKind::ToolProgress {
                call: id.clone(),
                tool: name.clone(),
                done,
                total,
                message: message.map(str::to_owned),
            }
        });
    }

    /// Whether an `after_model` hook approved the batch.
    pub fn approved(&self) -> bool {
        self.batch.state.approved
    }

    /// Writes a value that the agent owns or that is declared as shared. It takes effect when the
    /// batch is committed, in the order of the calls; shared keys go through their reducer.
    pub fn set_state(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        self.update_state([(key.into(), value.into())])
    }

    /// Like [`ToolCx::set_state`] for a value of a type: what a batch writes is put together as JSON.
    pub fn keep_state<T: Into<Value>>(&self, key: &str, value: T) -> Result<(), Error> {
        self.set_state(key, value)
    }

    /// Like [`ToolCx::set_state`] for several values, all or none.
    pub fn update_state(
        &self,
        patch: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<(), Error> {
        let patch: Vec<_> = patch.into_iter().collect();
        self.site.inner.check_writes(patch.iter().map(|(key, _)| key.as_str()))?;
        self.batch.state.patches.lock().push((self.batch.index, patch));
        Ok(())
    }

    pub(crate) fn as_batch(&self) -> Batch<'a> {
        self.batch
    }

    fn asking_batch(&self) -> Option<Batch<'a>> {
        Some(self.batch)
    }
}

impl<'a> Deref for ToolCx<'a> {
    type Target = Cx<'a>;

    fn deref(&self) -> &Cx<'a> {
        &self.cx
    }
}

/// What `on_transition` and phase hooks see.
#[derive(Clone, Copy, Debug)]
pub struct PhaseCx<'a> {
    cx: Cx<'a>,
    from: Phase,
    to: Phase,
}

impl<'a> PhaseCx<'a> {
    pub(crate) fn new(cx: Cx<'a>, from: Phase, to: Phase) -> Self {
        Self { cx, from, to }
    }

    /// The phase the agent comes from.
    #[doc(alias = "old_phase")]
    pub fn from(&self) -> Phase {
        self.from
    }

    /// The phase the agent has just entered.
    #[doc(alias = "new_phase")]
    pub fn to(&self) -> Phase {
        self.to
    }
}

impl<'a> Deref for PhaseCx<'a> {
    type Target = Cx<'a>;

    fn deref(&self) -> &Cx<'a> {
        &self.cx
    }
}
