//! A Python function as a hook.

use super::PythonHost;
use super::call::{Given, Invocation, Rest, Said, Told};
use super::host::Entry;
use super::seats::{Chair, EnvironmentId};
use crate::payload::At;
use crate::reply::{Decision, Expect, Reply, apply};
use crate::site::Site;
use crate::{Environment, Role};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, ExitReason, NextModel, NextTool};

/// A Python function as a hook. See [`PythonHost::hook`].
///
/// A function that returns `None` goes on, unless it is a guard, which has to return
/// `{"allow": True}`; a wrap has to return what `next` gave it, or something in its place. What it
/// prints goes out as [`Log`](tenure_core::event::EventKind::Log) events.
///
/// | the function | the hook's fault |
/// |---|---|
/// | has no worker that starts | [`NotStarted`](tenure_core::hook::FaultKind::NotStarted) |
/// | raises, or its module does | [`Failed`](tenure_core::hook::FaultKind::Failed), with `Type: message` |
/// | crashes the worker, or another one does | [`Panicked`](tenure_core::hook::FaultKind::Panicked) |
/// | ends the worker (`os._exit`) | [`Exited`](tenure_core::hook::FaultKind::Exited) |
/// | takes longer than the hook's limit | [`TimedOut`](tenure_core::hook::FaultKind::TimedOut) |
/// | returns what makes no sense | [`BadReply`](tenure_core::hook::FaultKind::BadReply) |
#[doc(alias = "LifecycleHookFunction")]
pub struct PythonHook {
    host: PythonHost,
    entry: Arc<Entry>,
    points: Points,
    role: Role,
    environment: EnvironmentId,
    name: Arc<str>,
}

impl PythonHook {
    pub(super) fn new(host: PythonHost, entry: Arc<Entry>, points: Points) -> Self {
        let name = entry.function.name.clone();
        let (role, environment) = (Role::default(), EnvironmentId::default());
        Self { host, entry, points, role, environment, name }
    }

    /// Says whether the function guards: a guard that says nothing has not said yes.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Has the function run in another environment than the host's. It shares a worker with functions whose environment
    /// is the same, and no live object with any other.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = self.host.environment_id(environment);
        self
    }

    /// The name that the function and the log know the hook by. By default it is the function's.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    fn expect(&self, point: Point) -> Expect {
        Expect::of_python(point, self.role)
    }

    async fn call(&self, site: Site<'_>, at: &At<'_>, rest: Rest<'_>) -> Result<Said, HookError> {
        let chair = Chair { role: self.role, environment: self.environment };
        let (host, entry, hook) = (&self.host, &self.entry, &*self.name);
        let invocation = Invocation { host, entry, site, hook, rest, chair };
        invocation.run(Told::Hook(at)).await
    }

    /// Calls the function at a point that has no `next`. `None` is what goes on: it said nothing.
    async fn decide(&self, site: Site<'_>, at: &At<'_>) -> Result<Option<Reply>, HookError> {
        let point = site.cx().hook_type();
        match self.call(site, at, Rest::Nothing).await? {
            Said::Decision(Some(value)) => Reply::of_value(value, &self.expect(point)).map(Some),
            // Silence is no consent.
            _ if self.role == Role::Guard => Reply::silence(&self.expect(point)).map(Some),
            _ => Ok(None),
        }
    }

    /// What a wrap decided, after what every reply may say has been done.
    fn settled(
        &self,
        site: Site<'_>,
        value: Option<serde_json::Value>,
    ) -> Result<Decision, HookError> {
        let expect = self.expect(site.cx().hook_type());
        let Some(value) = value else {
            return Err(expect.bad("it returned None; a wrap returns what `next` gave it"));
        };
        let mut reply = Reply::of_value(value, &expect)?;
        apply::common_at(&site, &self.name, &expect, &mut reply)?;
        Ok(reply.decision)
    }

    /// A wrap that decided nothing that could be a result.
    fn without_result(&self, point: Point, decision: Decision) -> HookError {
        match decision {
            Decision::Deny(reason) => Error::denied(reason).into(),
            _ => self
                .expect(point)
                .bad("it neither denied nor gave a result; a wrap returns what `next` gave it"),
        }
    }
}

#[async_trait]
impl AgentLifecycle for PythonHook {
    fn points(&self) -> Points {
        self.points
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let Some(reply) = self.decide(cx.into(), &At::Plain {}).await? else { return Ok(()) };
        apply::notice(&cx, &self.name, &self.expect(Point::OnStart), reply)
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        let Some(reply) = self.decide(cx.into(), &At::Shutdown { reason }).await? else {
            return Ok(());
        };
        apply::notice(&cx, &self.name, &self.expect(Point::OnShutdown), reply)
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        let Some(reply) = self.decide(cx.into(), &At::Plain {}).await? else {
            return Ok(Flow::Continue);
        };
        apply::chat(&cx, &self.name, &self.expect(Point::BeforeChat), reply)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let Some(reply) = self.decide(cx.into(), &At::chat_end(end)).await? else { return Ok(()) };
        apply::notice(&cx, &self.name, &self.expect(Point::AfterChat), reply)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let Some(reply) = self.decide(cx.into(), &At::input(&cx, input)).await? else {
            return Ok(Flow::Continue);
        };
        apply::input(&cx, &self.name, &self.expect(Point::BeforeAgent), reply, input)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let Some(reply) = self.decide(cx.into(), &At::request(&cx, request)).await? else {
            return Ok(Flow::Continue);
        };
        apply::request(&cx, &self.name, &self.expect(Point::BeforeModel), reply, request)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let at = At::request(&cx, request);
        match self.call(cx.into(), &at, Rest::Model(next, request)).await? {
            Said::Given(given) => match *given {
                Given::Model(response) => Ok(response),
                Given::Tool(_) => Err(self.without_result(Point::WrapModelCall, Decision::Silent)),
            },
            Said::Decision(value) => match self.settled(cx.into(), value)? {
                Decision::Response(patch) => Ok(patch.over(ModelResponse::default())),
                other => Err(self.without_result(Point::WrapModelCall, other)),
            },
            _ => Err(self.without_result(Point::WrapModelCall, Decision::Silent)),
        }
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let Some(reply) = self.decide(cx.into(), &At::response(&cx, response)).await? else {
            return Ok(HookAction::Continue);
        };
        apply::response(&cx, &self.name, &self.expect(Point::AfterModel), reply, response)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let at = At::tool(&cx, request);
        match self.call(cx.into(), &at, Rest::Tool(next, request)).await? {
            Said::Given(given) => match *given {
                Given::Tool(output) => Ok(output),
                Given::Model(_) => Err(self.without_result(Point::WrapToolCall, Decision::Silent)),
            },
            Said::Decision(value) => match self.settled(cx.into(), value)? {
                Decision::Result(output) => Ok(output),
                other => Err(self.without_result(Point::WrapToolCall, other)),
            },
            _ => Err(self.without_result(Point::WrapToolCall, Decision::Silent)),
        }
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let Some(reply) = self.decide(cx.into(), &At::turn_end(end)).await? else {
            return Ok(After::Done);
        };
        apply::end(&cx, &self.name, &self.expect(Point::AfterAgent), reply, end)
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let Some(reply) = self.decide(cx.into(), &At::transition(&cx)).await? else {
            return Ok(());
        };
        apply::notice(&cx, &self.name, &self.expect(Point::OnTransition), reply)
    }
}

impl fmt::Debug for PythonHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonHook")
            .field("name", &self.name)
            .field("file", &self.entry.function.file.path())
            .field("points", &self.points)
            .finish_non_exhaustive()
    }
}
