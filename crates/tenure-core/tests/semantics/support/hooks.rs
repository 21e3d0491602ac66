//! Hooks that watch, and hooks that break.

use super::Log;
use async_trait::async_trait;
use std::fmt;
use tenure_core::context::{InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{ExitReason, NextModel, NextTool};

/// A hook that writes down every call of it, `name.point`, and around its wraps `>` and `<`.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) points: Points,
}

pub(crate) fn probe(name: &'static str, log: &Log) -> Probe {
    let points = Points::ALL.iter().filter(|point| *point != Point::OnTransition).collect();
    Probe { name, log: log.clone(), points }
}

pub(crate) fn probe_at(name: &'static str, log: &Log, points: impl Into<Points>) -> Probe {
    Probe { name, log: log.clone(), points: points.into() }
}

impl Probe {
    fn mark(&self, what: impl fmt::Display) {
        self.log.add(format!("{}.{what}", self.name));
    }
}

#[async_trait]
impl AgentLifecycle for Probe {
    fn points(&self) -> Points {
        self.points
    }

    fn name(&self) -> &str {
        self.name
    }

    async fn on_start(&self, _: InstanceCx<'_>) -> Result<(), HookError> {
        self.mark("on_start");
        Ok(())
    }

    async fn on_shutdown(&self, _: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        self.mark(format_args!("on_shutdown({reason})"));
        Ok(())
    }

    async fn before_agent(&self, _: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        self.mark("before_agent");
        Ok(Flow::Continue)
    }

    async fn before_model(&self, _: TurnCx<'_>, _: &mut ModelRequest) -> Result<Flow, HookError> {
        self.mark("before_model");
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        _: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.mark("model>");
        let result = next.call(request).await;
        self.mark("model<");
        Ok(result?)
    }

    async fn after_model(&self, _: TurnCx<'_>, _: &ModelResponse) -> Result<HookAction, HookError> {
        self.mark("after_model");
        Ok(HookAction::Continue)
    }

    async fn wrap_tool_call(
        &self,
        _: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        self.mark("tool>");
        let result = next.call(request).await;
        self.mark("tool<");
        Ok(result?)
    }

    async fn after_agent(&self, _: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.mark(format_args!("after_agent({})", end.outcome()));
        Ok(After::Done)
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.mark(format_args!("{}>{}", cx.from(), cx.to()));
        Ok(())
    }
}

/// A way in which a hook fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Error,
    Panic,
    Hang,
}

impl Fault {
    pub(crate) const ALL: [Fault; 3] = [Fault::Error, Fault::Panic, Fault::Hang];

    pub(crate) async fn strike<T>(self) -> Result<T, HookError> {
        match self {
            Fault::Error => Err(HookError::new("broken on purpose")),
            Fault::Panic => panic!("broken on purpose"),
            Fault::Hang => std::future::pending().await,
        }
    }
}

/// A hook that fails at one point. A wrap fails before or after it called `next`.
#[derive(Clone, Copy)]
pub(crate) struct Broken {
    pub(crate) point: Point,
    pub(crate) fault: Fault,
    pub(crate) after_next: bool,
}

#[async_trait]
impl AgentLifecycle for Broken {
    fn points(&self) -> Points {
        self.point.into()
    }

    async fn on_start(&self, _: InstanceCx<'_>) -> Result<(), HookError> {
        self.fault.strike().await
    }

    async fn on_shutdown(&self, _: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        self.fault.strike().await
    }

    async fn before_agent(&self, _: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        self.fault.strike().await
    }

    async fn before_model(&self, _: TurnCx<'_>, _: &mut ModelRequest) -> Result<Flow, HookError> {
        self.fault.strike().await
    }

    async fn wrap_model_call(
        &self,
        _: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        if self.after_next {
            next.call(request).await?;
        }
        self.fault.strike().await
    }

    async fn after_model(&self, _: TurnCx<'_>, _: &ModelResponse) -> Result<HookAction, HookError> {
        self.fault.strike().await
    }

    async fn wrap_tool_call(
        &self,
        _: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if self.after_next {
            next.call(request).await?;
        }
        self.fault.strike().await
    }

    async fn after_agent(&self, _: TurnCx<'_>, _: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.fault.strike().await
    }

    async fn on_transition(&self, _: PhaseCx<'_>) -> Result<(), HookError> {
        self.fault.strike().await
    }
}
