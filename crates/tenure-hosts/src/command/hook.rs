//! The hook itself.

use super::exchange::Program;
use crate::payload::{At, Stage, encode};
use crate::reply::{Decision, Expect, Reply, apply};
use crate::site::Site;
use crate::{Environment, Role, StartCheck};
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::ask::Answer;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{
    After, AgentLifecycle, FaultKind, Flow, HookAction, HookError, Point, Points,
};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, ExitReason, NextModel, NextTool};

/// How often one call may ask a person.
const MOST_ASKS: usize = 20;

/// A command as a hook: started for each call, with one JSON object in and one out.
///
/// The call is written to its standard input, which is then closed; a command that does not read
/// it does no harm. Its reply is what it writes to its standard output, at most 1 MiB; nothing, and
/// `{}`, mean: go on, unless it is a guard, which has to say `{"allow": true}`. What it writes to
/// its standard error goes out as [`Log`](tenure_core::event::EventKind::Log) events.
///
/// A wrap is called twice: before the call is made (`"stage": "before"`), where it may deny, answer
/// itself or change what goes in; and after it (`"stage": "after"`), where it may change what came
/// out.
///
/// | the command | the hook's fault |
/// |---|---|
/// | is not there, cannot be executed, or does not pass its [check](CommandHook::checked_by) | [`NotStarted`](FaultKind::NotStarted) |
/// | is ended by a signal | [`Panicked`](FaultKind::Panicked) |
/// | exits with another code than 0 | [`Exited`](FaultKind::Exited) |
/// | takes longer than the hook's limit | [`TimedOut`](FaultKind::TimedOut) |
/// | replies what makes no sense | [`BadReply`](FaultKind::BadReply) |
///
/// However the call ends, also if its future is dropped, what is left of the command's process
/// group is killed; if the command itself was still running, so is everything that it started, in
/// whatever group and session that is by now.
///
/// ```
/// use tenure_core::hook::Point;
/// use tenure_hosts::{CommandHook, Environment};
///
/// let argv = vec!["./audit.sh".to_owned(), "--strict".to_owned()];
/// let audit = CommandHook::new(argv, Point::BeforeAgent, "hooks", Environment::new());
/// # let _ = audit;
/// ```
pub struct CommandHook {
    program: Program,
    points: Points,
    role: Role,
    name: Arc<str>,
}

impl CommandHook {
    /// The command `argv` as a hook of these points. A program with a `/` in it is relative to
    /// `dir`, the folder in which it runs; any other is found on the `PATH`.
    pub fn new(
        argv: Vec<String>,
        points: impl Into<Points>,
        dir: impl Into<PathBuf>,
        environment: Environment,
    ) -> Self {
        let program = argv.first().map_or("command", String::as_str);
        let name = Path::new(program).file_name().and_then(|name| name.to_str());
        Self {
            name: name.unwrap_or(program).into(),
            program: Program::new(argv, dir.into(), environment),
            points: points.into(),
            role: Role::default(),
        }
    }

    /// Says whether the command guards: a guard that says nothing has not said yes.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// The name that the command and the log know the hook by. By default it is the program's.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks `check` right before each start. Its error is a fault of the kind
    /// [`NotStarted`](FaultKind::NotStarted), so that a guard denies.
    #[must_use]
    pub fn checked_by(mut self, check: StartCheck) -> Self {
        self.program.check = Some(check);
        self
    }

    fn expect(&self, point: Point, stage: Stage) -> Expect {
        Expect::of_command(point, self.role, stage)
    }

    /// Calls the command, as often as it wants to ask somebody.
    async fn say(
        &self,
        site: &Site<'_>,
        at: &At<'_>,
        stage: Option<Stage>,
    ) -> Result<Reply, HookError> {
        let expect = self.expect(site.cx().hook_type(), stage.unwrap_or(Stage::Before));
        let mut answer: Option<Answer> = None;
        for _ in 0..=MOST_ASKS {
            let call = encode(site.cx(), &self.name, at, stage, answer.as_ref());
            let said = self.program.exchange(site.cx(), &self.name, &call).await?;
            let mut reply = Reply::parse(&said, &expect)?;
            match std::mem::take(&mut reply.decision) {
                Decision::Ask(ask) => {
                    apply::common_at(site, &self.name, &expect, &mut reply)?;
                    if matches!(site, Site::Plain(_)) {
                        return Err(expect.bad("nobody can be asked here"));
                    }
                    answer = Some(site.ask(ask).await?);
                }
                decision => return Ok(Reply { decision, ..reply }),
            }
        }
        Err(HookError::of_kind(
            FaultKind::BadReply,
            format!("it asked {MOST_ASKS} times and still did not decide; look at `answer`"),
        ))
    }
}

impl fmt::Debug for CommandHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandHook")
            .field("argv", &self.program.argv)
            .field("points", &self.points)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl AgentLifecycle for CommandHook {
    fn points(&self) -> Points {
        self.points
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let reply = self.say(&cx.into(), &At::Plain {}, None).await?;
        apply::notice(&cx, &self.name, &self.expect(Point::OnStart, Stage::Before), reply)
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        let reply = self.say(&cx.into(), &At::Shutdown { reason }, None).await?;
        apply::notice(&cx, &self.name, &self.expect(Point::OnShutdown, Stage::Before), reply)
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        let reply = self.say(&cx.into(), &At::Plain {}, None).await?;
        apply::chat(&cx, &self.name, &self.expect(Point::BeforeChat, Stage::Before), reply)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let reply = self.say(&cx.into(), &At::chat_end(end), None).await?;
        apply::notice(&cx, &self.name, &self.expect(Point::AfterChat, Stage::Before), reply)
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let reply = self.say(&cx.into(), &At::input(&cx, input), None).await?;
        let expect = self.expect(Point::BeforeAgent, Stage::Before);
        apply::input(&cx, &self.name, &expect, reply, input)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let reply = self.say(&cx.into(), &At::request(&cx, request), None).await?;
        let expect = self.expect(Point::BeforeModel, Stage::Before);
        apply::request(&cx, &self.name, &expect, reply, request)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let site = cx.into();
        let at = At::request(&cx, request);
        let mut reply = self.say(&site, &at, Some(Stage::Before)).await?;
        let expect = self.expect(Point::WrapModelCall, Stage::Before);
        apply::common_at(&site, &self.name, &expect, &mut reply)?;
        if let Some(patch) = reply.request {
            patch.apply(request);
        }
        match reply.decision {
            Decision::Deny(reason) => return Err(Error::denied(reason).into()),
            Decision::Response(patch) => return Ok(patch.over(ModelResponse::default())),
            _ => {}
        }
        let response = next.call(request).await?;
        let at = At::answered(&cx, request, &response);
        let mut reply = self.say(&site, &at, Some(Stage::After)).await?;
        apply::common_at(
            &site,
            &self.name,
            &self.expect(Point::WrapModelCall, Stage::After),
            &mut reply,
        )?;
        match reply.decision {
            Decision::Deny(reason) => Err(Error::denied(reason).into()),
            Decision::Response(patch) => Ok(patch.over(response)),
            _ => Ok(response),
        }
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let reply = self.say(&cx.into(), &At::response(&cx, response), None).await?;
        let expect = self.expect(Point::AfterModel, Stage::Before);
        apply::response(&cx, &self.name, &expect, reply, response)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let site = cx.into();
        let mut reply = self.say(&site, &At::tool(&cx, request), Some(Stage::Before)).await?;
        let expect = self.expect(Point::WrapToolCall, Stage::Before);
        apply::common_at(&site, &self.name, &expect, &mut reply)?;
        if let Some(arguments) = reply.arguments {
            request.arguments = Value::Object(arguments);
        }
        match reply.decision {
            Decision::Deny(reason) => return Err(Error::denied(reason).into()),
            Decision::Result(output) => return Ok(output),
            _ => {}
        }
        let output = next.call(request).await?;
        let at = At::executed(&cx, request, &output);
        let mut reply = self.say(&site, &at, Some(Stage::After)).await?;
        apply::common_at(
            &site,
            &self.name,
            &self.expect(Point::WrapToolCall, Stage::After),
            &mut reply,
        )?;
        match reply.decision {
            Decision::Deny(reason) => Err(Error::denied(reason).into()),
            Decision::Result(changed) => Ok(changed),
            _ => Ok(output),
        }
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let reply = self.say(&cx.into(), &At::turn_end(end), None).await?;
        let expect = self.expect(Point::AfterAgent, Stage::Before);
        apply::end(&cx, &self.name, &expect, reply, end)
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let reply = self.say(&cx.into(), &At::transition(&cx), None).await?;
        apply::notice(&cx, &self.name, &self.expect(Point::OnTransition, Stage::Before), reply)
    }
}
