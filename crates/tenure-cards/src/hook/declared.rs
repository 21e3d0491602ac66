//! What a file says about when a hook is called and how often.

use super::when::{At, Condition, Moment};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, Cx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::LogStream;
use tenure_core::hook::{After, AgentLifecycle, Flow, HookAction, HookError, Points};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{ExitReason, NextModel, NextTool};
use tenure_hosts::Role;

/// How long the first repetition waits if the file does not say.
const BACKOFF: Duration = Duration::from_millis(100);

/// A hook with its condition and its repetitions.
///
/// **When.** A hook whose condition does not hold is not called: a begin goes on, a wrap calls
/// `next`, an end does nothing. If the condition cannot be evaluated a guard is called, and any
/// other hook is not; either way it is logged.
///
/// **Retries.** A call that fails by itself is made again, after a wait that doubles each time. A
/// refusal, a cancel and an error that came out of `next` are not failures of the hook, and are not
/// repeated; nor is a wrap whose `next` has begun its effect, nor a panic. The hook's time limit
/// covers all attempts and the waits between them.
pub struct Declared {
    inner: Arc<dyn AgentLifecycle>,
    name: Arc<str>,
    role: Role,
    when: Option<Condition>,
    retries: u32,
    backoff: Duration,
}

impl Declared {
    /// `inner`, called always and once. `name` is how the log knows it.
    pub fn new(inner: Arc<dyn AgentLifecycle>, name: impl Into<Arc<str>>, role: Role) -> Self {
        Self { inner, name: name.into(), role, when: None, retries: 0, backoff: BACKOFF }
    }

    /// Calls it only if `condition` holds.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.when = Some(condition);
        self
    }

    /// Repeats a failed call so often.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Waits so long before the first repetition, and twice as long before each further one.
    #[must_use]
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.backoff = backoff;
        self
    }

    fn applies(&self, cx: &Cx<'_>, at: At<'_>) -> bool {
        let applies = self.holds(cx, at);
        if !applies {
            cx.skipped();
        }
        applies
    }

    fn holds(&self, cx: &Cx<'_>, at: At<'_>) -> bool {
        let Some(condition) = &self.when else { return true };
        match condition.holds(&Moment { cx, at }) {
            Ok(holds) => holds,
            Err(why) => {
                let runs = self.role == Role::Guard;
                let then = if runs { "the guard is called" } else { "the hook is not called" };
                let line = format!(
                    "when `{}` cannot be evaluated at {}: {why}; {then}",
                    condition.text(),
                    cx.hook_type()
                );
                tracing::warn!(agent = cx.agent_name(), hook = &*self.name, "{line}");
                cx.log(&self.name, LogStream::Host, &line);
                runs
            }
        }
    }

    /// Waits for the next attempt, if there is one after this failure.
    async fn again(&self, cx: &Cx<'_>, attempt: &mut u32, error: &HookError) -> bool {
        if *attempt >= self.retries || !error.is_own() || cx.is_cancelled() {
            return false;
        }
        let wait = self.backoff.saturating_mul(1 << (*attempt).min(20));
        *attempt += 1;
        let line = format!("failed: {error}; attempt {} follows in {wait:?}", *attempt + 1);
        tracing::debug!(agent = cx.agent_name(), hook = &*self.name, "{line}");
        cx.log(&self.name, LogStream::Host, &line);
        tokio::time::sleep(wait).await;
        !cx.is_cancelled()
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("name", &self.name)
            .field("when", &self.when)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Makes a call until it succeeds or may not be made again. `$reset` puts back what a failed
/// attempt may have changed.
macro_rules! attempts {
    ($self:ident, $cx:ident, $call:expr $(, reset $place:ident)?) => {{
        $(let original = ($self.retries > 0).then(|| $place.clone());)?
        let mut attempt = 0;
        loop {
            match $call.await {
                Ok(value) => break Ok(value),
                Err(error) if $self.again(&$cx, &mut attempt, &error).await => {
                    $(if let Some(original) = &original {
                        $place.clone_from(original);
                    })?
                }
                Err(error) => break Err(error),
            }
        }
    }};
}

/// The same for a wrap, which is not repeated once its effect has begun.
macro_rules! wrap_attempts {
    ($self:ident, $cx:ident, $request:ident, $next:ident, $call:expr) => {{
        let original = ($self.retries > 0).then(|| $request.clone());
        let mut attempt = 0;
        loop {
            match $call.await {
                Ok(value) => break Ok(value),
                Err(error) if !$next.has_run() && $self.again(&$cx, &mut attempt, &error).await => {
                    if let Some(original) = &original {
                        $request.clone_from(original);
                    }
                }
                Err(error) => break Err(error),
            }
        }
    }};
}

#[async_trait]
impl AgentLifecycle for Declared {
    fn points(&self) -> Points {
        self.inner.points()
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        if !self.applies(&cx, At::Plain) {
            return Ok(());
        }
        attempts!(self, cx, self.inner.on_start(cx))
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        if !self.applies(&cx, At::Shutdown(reason)) {
            return Ok(());
        }
        attempts!(self, cx, self.inner.on_shutdown(cx, reason))
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        if !self.applies(&cx, At::Plain) {
            return Ok(Flow::Continue);
        }
        attempts!(self, cx, self.inner.before_chat(cx))
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        if !self.applies(&cx, At::ChatEnd(end)) {
            return Ok(());
        }
        attempts!(self, cx, self.inner.after_chat(cx, end))
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        if !self.applies(&cx, At::Input(input)) {
            return Ok(Flow::Continue);
        }
        attempts!(self, cx, self.inner.before_agent(cx, input), reset input)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if !self.applies(&cx, at_request(cx, request)) {
            return Ok(Flow::Continue);
        }
        attempts!(self, cx, self.inner.before_model(cx, request), reset request)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        if !self.applies(&cx, at_request(cx, request)) {
            return Ok(next.call(request).await?);
        }
        wrap_attempts!(self, cx, request, next, self.inner.wrap_model_call(cx, request, next))
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        if !self.applies(&cx, At::Response { step: cx.step_number(), response }) {
            return Ok(HookAction::Continue);
        }
        attempts!(self, cx, self.inner.after_model(cx, response))
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if !self.applies(&cx, At::Tool { cx, request }) {
            return Ok(next.call(request).await?);
        }
        wrap_attempts!(self, cx, request, next, self.inner.wrap_tool_call(cx, request, next))
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        if !self.applies(&cx, At::TurnEnd(end)) {
            return Ok(After::Done);
        }
        attempts!(self, cx, self.inner.after_agent(cx, end))
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        if !self.applies(&cx, At::Transition(cx)) {
            return Ok(());
        }
        attempts!(self, cx, self.inner.on_transition(cx))
    }
}

fn at_request<'a>(cx: TurnCx<'_>, request: &'a ModelRequest) -> At<'a> {
    At::Request { step: cx.step_number(), instruction: request.instruction.as_deref() }
}
