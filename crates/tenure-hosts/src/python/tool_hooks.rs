//! fast-agent's five tool hooks, on the points of an agent's life.

mod standing;

use super::call::{Invocation, Rest, Said, Told};
use super::host::Entry;
use super::seats::Chair;
use super::{PythonFunction, PythonHost, lock};
use crate::payload::{At, Response};
use crate::reply::RequestPatch;
use crate::site::Site;
use async_trait::async_trait;
use serde_json::{Map, Value};
use standing::{Standing, patch};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::event::LogStream;
use tenure_core::hook::{AgentLifecycle, FaultKind, Flow, HookAction, HookError, Point, Points};
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::{Messages, ModelParams, ModelRequest, ModelResponse, Usage};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{NextTool, RunId};

/// The functions of a card's `tool_hooks`.
#[derive(Clone, Debug, Default)]
pub struct ToolHooks {
    /// Before each model call. It sees the newest message, and may change the conversation.
    pub before_llm_call: Option<PythonFunction>,
    /// After each answer of the model, which it may change.
    pub after_llm_call: Option<PythonFunction>,
    /// Once for each batch of tool calls, before any of them is made. It may change the calls. If
    /// it fails, none is made, each is answered with the error, and the turn fails.
    pub before_tool_call: Option<PythonFunction>,
    /// Once for each batch, when all results are there. It may change them; its failure is logged
    /// and does no harm.
    pub after_tool_call: Option<PythonFunction>,
    /// Once at the end of a turn that was not cancelled, as the last part of its body. It sees the
    /// whole conversation, and may put another in its place.
    pub after_turn_complete: Option<PythonFunction>,
}

/// One of the five.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    BeforeLlm,
    AfterLlm,
    BeforeTool,
    AfterTool,
    AfterTurn,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeLlm => "before_llm_call",
            Self::AfterLlm => "after_llm_call",
            Self::BeforeTool => "before_tool_call",
            Self::AfterTool => "after_tool_call",
            Self::AfterTurn => "after_turn_complete",
        }
    }
}

/// fast-agent's five tool hooks as one hook: they keep their own order, context and failure rules,
/// and have our limits and policies around them. Made by [`PythonHost::tool_hooks`].
///
/// | tool hook | is called in |
/// |---|---|
/// | `after_tool_call` | `before_model`, first, if a batch of tools has answered since the last one |
/// | `before_llm_call` | `before_model` |
/// | `after_llm_call` | `after_model` |
/// | `before_tool_call` | `after_model`, if the answer has calls |
/// | `after_turn_complete` | `after_model`, if it has none |
///
/// What they change in messages is kept in the conversation, as it is there: unless another hook
/// has edited the request for one call only, which is then all that the change is for, too.
pub struct ToolHooksAdapter {
    host: PythonHost,
    hooks: Vec<(Kind, Arc<Entry>)>,
    points: Points,
    /// The turns that are under way, for tool calls to find theirs.
    turns: Mutex<HashMap<RunId, Weak<Memory>>>,
}

/// What one turn knows. The turn itself holds it.
struct Memory(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The conversation before the model's next answer, and what steers the model.
    conversation: Messages,
    params: ModelParams,
    /// Whether a batch of tools was asked for and has not been seen by `after_tool_call`.
    batch: bool,
    /// The calls of this batch, as `before_tool_call` has left them.
    checked: Vec<ToolCall>,
    /// Why the calls of this batch are not made.
    failed: Option<(FaultKind, String)>,
    /// Messages that a hook put behind an answer that has tool calls.
    extra: Vec<Message>,
}

/// What a call is made with.
struct Seen<'a> {
    messages: &'a Messages,
    response: Option<&'a ModelResponse>,
    params: &'a ModelParams,
    iteration: usize,
    usage: Usage,
}

impl ToolHooksAdapter {
    pub(super) fn new(host: PythonHost, hooks: ToolHooks) -> Self {
        let all = [
            (Kind::BeforeLlm, hooks.before_llm_call),
            (Kind::AfterLlm, hooks.after_llm_call),
            (Kind::BeforeTool, hooks.before_tool_call),
            (Kind::AfterTool, hooks.after_tool_call),
            (Kind::AfterTurn, hooks.after_turn_complete),
        ];
        let hooks: Vec<_> = all
            .into_iter()
            .filter_map(|(kind, function)| Some((kind, host.entry(function?))))
            .collect();
        let mut points = Points::NONE;
        for (kind, _) in &hooks {
            points |= match kind {
                Kind::BeforeLlm => Point::BeforeModel.into(),
                Kind::BeforeTool => Points::from(Point::AfterModel)
                    .with(Point::BeforeModel)
                    .with(Point::WrapToolCall),
                // The conversation that the others see is known from before the model's call.
                _ => Points::from(Point::AfterModel).with(Point::BeforeModel),
            };
        }
        Self { host, hooks, points, turns: Mutex::default() }
    }

    fn memory(&self, cx: &TurnCx<'_>) -> Arc<Memory> {
        if let Some(memory) = cx.carried::<Memory>() {
            return memory;
        }
        cx.carry(Memory(Mutex::default()));
        let memory = cx.carried::<Memory>().unwrap_or_else(|| Arc::new(Memory(Mutex::default())));
        if self.points.contains(Point::WrapToolCall) {
            let mut turns = lock(&self.turns);
            turns.retain(|_, memory| memory.strong_count() > 0);
            turns.insert(cx.run_id(), Arc::downgrade(&memory));
        }
        memory
    }

    /// Shows `before_tool_call` a call that it has not seen like this: another hook made it up or
    /// changed it, or an earlier process has seen it and ended. A call that nobody checked is never
    /// made. What is given back is given in its place.
    async fn check_alone(
        &self,
        cx: &ToolCx<'_>,
        request: &mut ToolRequest,
    ) -> Result<Option<ToolOutput>, HookError> {
        let call = ToolCall::new(request.id(), request.name(), request.arguments.to_string());
        let response = ModelResponse::calls([call]);
        let seen = Seen {
            messages: &Messages::default(),
            response: Some(&response),
            params: &cx.config().params,
            iteration: 0,
            usage: Usage::default(),
        };
        let changed = self.call((*cx).into(), Kind::BeforeTool, seen).await;
        let changed = changed.map_err(|error| match error.is_own() {
            true => HookError::of_kind(error.kind(), not_run(&error)),
            false => error,
        })?;
        let Some(messages) = changed.and_then(|mut patch| patch.take_messages()) else {
            return Ok(None);
        };
        let mut calls = messages.iter().flat_map(Message::calls);
        let bad = |what: String| {
            let error = self.named(Kind::BeforeTool, HookError::of_kind(FaultKind::BadReply, what));
            HookError::of_kind(FaultKind::BadReply, not_run(&error))
        };
        match calls.find(|call| *call.id == *request.id()) {
            None => {
                let content = "before_tool_call took this call away".to_owned();
                Ok(Some(ToolOutput::new(content, ToolStatus::NotExecuted)))
            }
            Some(call) if *call.name != *request.name() => {
                let (name, was) = (&call.name, request.name());
                Err(bad(format!("it put `{name}` in the place of `{was}`, which is too late")))
            }
            Some(call) => {
                request.arguments = parsed(call).ok_or_else(|| {
                    bad("the arguments that it put in place are no JSON".to_owned())
                })?;
                Ok(None)
            }
        }
    }

    /// An error with the function and the tool hook that it comes from.
    fn named(&self, kind: Kind, error: HookError) -> HookError {
        let entry = self.hooks.iter().find(|(it, _)| *it == kind);
        let Some((_, entry)) = entry.filter(|_| error.is_own()) else { return error };
        let PythonFunction { file, name, .. } = &entry.function;
        let file = file.path().file_name().unwrap_or_default().to_string_lossy();
        HookError::of_kind(error.kind(), format!("{} {file}:{name}: {error}", kind.as_str()))
    }

    /// Calls one of the five, if there is such a one. `None` means that it changed nothing.
    async fn call(
        &self,
        site: Site<'_>,
        kind: Kind,
        seen: Seen<'_>,
    ) -> Result<Option<RequestPatch>, HookError> {
        let Some((_, entry)) = self.hooks.iter().find(|(it, _)| *it == kind) else {
            return Ok(None);
        };
        let Some(run_id) = site.run_id() else { return Ok(None) };
        let at = At::ToolHook {
            tool_hook: kind.as_str(),
            run_id,
            iteration: seen.iteration,
            messages: seen.messages,
            response: seen.response.map(Response::of),
            params: seen.params,
            usage: seen.usage,
        };
        let call = Invocation {
            host: &self.host,
            entry,
            site,
            hook: kind.as_str(),
            rest: Rest::Nothing,
            chair: Chair::default(),
        };
        let named = |error| self.named(kind, error);
        match call.run(Told::Hook(&at)).await.map_err(named)? {
            Said::Decision(Some(changed)) if !changed.is_null() => {
                patch(changed, seen.messages, seen.response).map(Some).map_err(named)
            }
            _ => Ok(None),
        }
    }
}

#[async_trait]
impl AgentLifecycle for ToolHooksAdapter {
    fn points(&self) -> Points {
        self.points
    }

    fn name(&self) -> &str {
        "tool_hooks"
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let memory = self.memory(&cx);
        let (failed, batch, extra) = {
            let mut known = lock(&memory.0);
            let batch = std::mem::take(&mut known.batch);
            (known.failed.take(), batch, std::mem::take(&mut known.extra))
        };
        if let Some((kind, why)) = failed {
            return Err(HookError::of_kind(kind, why));
        }
        let is_own =
            !request.messages.is_edited() || request.conversation().iter().eq(&request.messages);
        let mut is_changed = !extra.is_empty();
        if is_changed {
            request.messages.edit().extend(extra);
        }
        let step = cx.step_number();
        for (kind, iteration) in
            [(Kind::AfterTool, step.saturating_sub(2)), (Kind::BeforeLlm, step.saturating_sub(1))]
        {
            if kind == Kind::AfterTool && !batch {
                continue;
            }
            let ModelRequest { messages, params, .. } = &*request;
            let seen = Seen { messages, response: None, params, iteration, usage: cx.usage() };
            match self.call(cx.into(), kind, seen).await {
                Ok(Some(patch)) => {
                    patch.apply(request);
                    is_changed = true;
                }
                Ok(None) => {}
                Err(error) if kind == Kind::AfterTool => {
                    let line = format!("{error}; the results stay as they are");
                    tracing::warn!(agent = cx.agent_name(), "{line}");
                    cx.log(kind.as_str(), LogStream::Host, &line);
                }
                Err(error) => return Err(error),
            }
        }
        if is_changed && is_own && request.messages.is_edited() {
            request.persist();
        }
        let mut known = lock(&memory.0);
        known.conversation = request.conversation().into();
        known.params = request.params.clone();
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let memory = self.memory(&cx);
        let (before, params) = {
            let known = lock(&memory.0);
            (known.conversation.clone(), known.params.clone())
        };
        let mut standing = Standing::new(before, response.clone());
        let iteration = cx.step_number().saturating_sub(1);
        for kind in [Kind::AfterLlm, Kind::BeforeTool, Kind::AfterTurn] {
            let has_calls = !standing.response.calls.is_empty();
            if (kind == Kind::BeforeTool && !has_calls) || (kind == Kind::AfterTurn && has_calls) {
                continue;
            }
            let seen = Seen {
                messages: &standing.before,
                response: Some(&standing.response),
                params: &params,
                iteration,
                usage: cx.usage(),
            };
            match self.call(cx.into(), kind, seen).await {
                Ok(Some(mut patch)) => {
                    if let Some(messages) = patch.take_messages() {
                        standing.change(messages);
                    }
                }
                Ok(None) => {}
                Err(error) if kind == Kind::BeforeTool && error.is_own() => {
                    lock(&memory.0).failed = Some((error.kind(), not_run(&error)));
                }
                Err(error) => return Err(error),
            }
        }
        let mut known = lock(&memory.0);
        known.batch = !standing.response.calls.is_empty();
        known.checked = standing.response.calls.clone();
        known.extra = std::mem::take(&mut standing.extra);
        Ok(standing.action())
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let memory = cx.run_id().and_then(|run| lock(&self.turns).get(&run)?.upgrade());
        let checked = memory.and_then(|memory| {
            let known = lock(&memory.0);
            let is_same = |call: &ToolCall| {
                *call.id == *request.id()
                    && *call.name == *request.name()
                    && parsed(call).is_some_and(|arguments| arguments == request.arguments)
            };
            let is_checked = known.batch && known.checked.iter().any(is_same);
            match &known.failed {
                Some((_, why)) if known.batch => Some(Err(why.clone())),
                _ => is_checked.then_some(Ok(())),
            }
        });
        let instead = match checked {
            Some(Err(why)) => Some(ToolOutput::error(why)),
            Some(Ok(())) => None,
            None => self.check_alone(&cx, request).await?,
        };
        match instead {
            Some(output) => Ok(output),
            None => Ok(next.call(request).await?),
        }
    }
}

/// The arguments of a call; none at all are an empty object.
fn parsed(call: &ToolCall) -> Option<Value> {
    match call.arguments.trim() {
        "" => Some(Value::Object(Map::new())),
        text => serde_json::from_str(text).ok(),
    }
}

#[cold]
fn not_run(error: &HookError) -> String {
    format!("Tool hook or execution failed during {error}")
}

impl fmt::Debug for ToolHooksAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hooks = self.hooks.iter().map(|(kind, entry)| (kind.as_str(), &*entry.function.name));
        f.debug_map().entries(hooks).finish()
    }
}
