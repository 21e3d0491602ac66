//! The trait that hooks implement.

use super::{HookError, Points};
use crate::chat::ChatEnd;
use crate::content::Content;
use crate::context::{ChatCx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use crate::drive::{Input, TurnEnd};
use crate::kernel::{NextModel, NextTool};
use crate::message::Message;
use crate::model::{ModelRequest, ModelResponse};
use crate::outcome::ExitReason;
use crate::tool::{ToolOutput, ToolRequest};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

/// What a `before_*` hook decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[must_use]
pub enum Flow {
    /// Go on.
    #[default]
    Continue,
    /// Stop here; this is the output. The outcome is ok.
    Finish(Content),
}

/// What an `after_model` hook decides.
///
/// Each hook sees the response as modified so far. Reject beats jump, jump beats modify, modify
/// beats approve, approve beats continue; of several jumps the outermost hook's counts, and of
/// several rewrites. A modify or a rewrite takes back the approvals given before it: whoever gave
/// them has seen something else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[must_use]
pub enum HookAction {
    /// Go on.
    #[default]
    Continue,
    /// Go on, and count what is pending as approved.
    Approve,
    /// Stop the turn as denied. The response is not committed.
    Reject(String),
    /// Go on with this response.
    Modify(Box<ModelResponse>),
    /// Go on with this response, and with these messages as the conversation before it, from here
    /// on. Together they have to be a valid history (G8), else the turn fails.
    Rewrite {
        /// The conversation, without the response.
        messages: Vec<Message>,
        /// The response.
        response: Box<ModelResponse>,
    },
    /// Commit the response, skip its tool calls, and go elsewhere. At most once in a turn.
    JumpTo(JumpTarget),
}

/// Where an `after_model` hook may jump to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JumpTarget {
    /// Ask the model again.
    Model,
    /// End the turn; the response's text is the output.
    End,
}

/// What an `after_agent` hook decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[must_use]
pub enum After {
    /// The turn is over.
    #[default]
    Done,
    /// Go on with this message as if the user had said it. At most once in a turn, and only if the
    /// outcome is ok; the hook and those outside it are called again at the real end.
    Continue(Content),
}

/// The hooks of an agent's whole life. Implement the points you need; the others do nothing.
///
/// Put `#[lifecycle]` on the `impl`: it computes [`points`](AgentLifecycle::points), so that the
/// points you leave out cost nothing, and it makes the methods `async`. A hook that uses
/// `#[async_trait]` in its stead claims every point: that is correct, only slower, and streams are
/// held back for it.
///
/// **Order.** `before_*` and `on_start` run first to last, `wrap_*` first is outermost, `after_*`
/// and `on_shutdown` run last to first.
///
/// **Limits.** Every call has a time limit (30 s; observers 5 s; ends 5 s each and 15 s together).
/// For a wrap only its own time counts, not the time inside `next`, and waiting for a person never
/// counts. A hook that blocks its thread cannot be stopped: use [`blocking`](crate::blocking()).
///
/// **Failure.** An error, a panic and a time-out all meet the registration's
/// [`Policy`](super::Policy). See each point for its default.
#[async_trait]
#[allow(unused_variables)]
pub trait AgentLifecycle: Send + Sync + 'static {
    /// The points that this hook implements. `#[lifecycle]` writes this method.
    fn points(&self) -> Points {
        Points::ALL
    }

    /// The name under which reports, events and order constraints know the hook.
    fn name(&self) -> &str {
        short_type_name::<Self>()
    }

    /// The instance starts.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | `startup()` has loaded memory and registered the agent; once per attempt |
    /// | may change | agent state, resources |
    /// | on failure | abort: startup fails and rolls back; every hook attempted so far gets its `on_shutdown` |
    /// | on cancel | rolled back |
    /// | on resume | runs, with `cx.resumed()` |
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        Ok(())
    }

    /// The instance ends.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | the agent shuts down, for whatever reason, exactly once per attempted `on_start` |
    /// | may change | nothing |
    /// | on failure | continue, always: it is recorded, and the others still run |
    /// | on cancel | cannot be cancelled, only time out |
    /// | on resume | with a store: the dead instance's runs first, with [`ExitReason::Crashed`] |
    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        Ok(())
    }

    /// A chat begins.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | the agents of the chat have started |
    /// | may change | context variables |
    /// | on failure | abort: the chat fails, and `after_chat` runs for every entry passed and every one without a `before_chat` |
    /// | on cancel | stops |
    /// | on resume | with a store: not called again once its decision is recorded |
    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    /// A chat ends.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | the chat is over, however it ended; exactly once per entry that was passed or has no `before_chat` |
    /// | may change | context variables |
    /// | on failure | continue: recorded, never changes the outcome |
    /// | on cancel | runs, in the cleanup budget |
    /// | on resume | waits for the real end |
    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        Ok(())
    }

    /// A turn begins: one request to one agent.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | `run`, `stream` or `handle` got the agent, before the model is asked |
    /// | may change | the input, own state |
    /// | on failure | abort: the turn fails, and `after_agent` runs for every entry passed |
    /// | on cancel | stops |
    /// | on resume | not called again once its decision is recorded |
    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    /// A model call is about to be made.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | before each model call of the turn |
    /// | may change | the request, for this call only unless it calls [`ModelRequest::persist`] |
    /// | on failure | abort: the turn fails |
    /// | on cancel | stops |
    /// | on resume | not called again once its decision is recorded |
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    /// A model call. Call `next` as often as you like: not at all, once, or again after a failure.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | around each model call of the turn |
    /// | may change | the request on its way in, the response on its way out |
    /// | on failure | propagates outward; an outer wrap may recover |
    /// | on cancel | `next` yields a cancelled error; the wrap's own awaits are dropped |
    /// | on resume | runs again, around the recorded `next` |
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        Ok(next.call(request).await?)
    }

    /// A model has answered.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | once for each assembled response; not after an error or a cancel, which wraps see |
    /// | may change | nothing directly; it decides by its [`HookAction`] |
    /// | on failure | abort: the response is not committed |
    /// | on cancel | not called |
    /// | on resume | not called again once its decision is recorded |
    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        Ok(HookAction::Continue)
    }

    /// A tool call. Call `next` to make it; or answer without it; or ask a person first.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | around each call of a tool, concurrently with the others of its batch; a tool that does not exist, and arguments that are no JSON object, are answered without it |
    /// | may change | the arguments on their way in, the result on its way out |
    /// | on failure | a tool's error becomes a result for the model; the hook's own aborts the turn, and the other calls of the batch get synthetic results |
    /// | on cancel | the call gets a synthetic result |
    /// | on resume | runs again, around the recorded `next` |
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        Ok(next.call(request).await?)
    }

    /// A turn ends.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | the turn is over, however it ended, also if its future was dropped; exactly once per entry that was passed or has no `before_agent` |
    /// | may change | the output, only if the outcome is ok |
    /// | on failure | continue: recorded as secondary, never changes the outcome |
    /// | on cancel | runs, in the cleanup budget |
    /// | on resume | waits for the real end; not called again once its delivery is recorded |
    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        Ok(After::Done)
    }

    /// The agent moved from one phase to another.
    ///
    /// | | |
    /// |---|---|
    /// | fires when | after the phase was set and before its event goes out |
    /// | may change | nothing; it may ask for a shutdown, which is obeyed afterwards |
    /// | on failure | continue, always |
    /// | on cancel | runs |
    /// | on resume | runs: a transition that happens again is a transition |
    #[doc(alias = "_transition_phase")]
    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        Ok(())
    }
}

/// The last part of a type's path, without its generics.
pub(crate) fn short_type_name<T: ?Sized>() -> &'static str {
    let full = std::any::type_name::<T>();
    let plain = full.split('<').next().unwrap_or(full);
    plain.rsplit("::").next().unwrap_or(plain)
}
