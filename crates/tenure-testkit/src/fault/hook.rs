//! A hook that goes wrong.

use super::FaultPlan;
use async_trait::async_trait;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx, PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{ExitReason, NextModel, NextTool};

/// A hook that goes wrong where its plan says so, and does nothing otherwise. It has the points
/// that the plan speaks of; with a seeded plan, all of them.
///
/// See [`FaultPlan`].
#[derive(Clone, Debug)]
pub struct FaultyHook {
    plan: FaultPlan,
    points: Points,
}

impl FaultyHook {
    /// A hook that follows `plan`.
    pub fn new(plan: &FaultPlan) -> Self {
        Self { plan: plan.clone(), points: plan.points() }
    }

    async fn strike(&self, point: Point) -> Result<(), HookError> {
        self.plan.strike_hook(point).await.map_err(HookError::new)
    }
}

#[async_trait]
impl AgentLifecycle for FaultyHook {
    fn points(&self) -> Points {
        self.points
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.strike(Point::OnStart).await
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, _reason: ExitReason) -> Result<(), HookError> {
        self.strike(Point::OnShutdown).await
    }

    async fn before_chat(&self, _cx: ChatCx<'_>) -> Result<Flow, HookError> {
        self.strike(Point::BeforeChat).await?;
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, _cx: ChatCx<'_>, _end: &ChatEnd) -> Result<(), HookError> {
        self.strike(Point::AfterChat).await
    }

    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        self.strike(Point::BeforeAgent).await?;
        Ok(Flow::Continue)
    }

    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        self.strike(Point::BeforeModel).await?;
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        self.strike(Point::WrapModelCall).await?;
        Ok(next.call(request).await?)
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        _response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        self.strike(Point::AfterModel).await?;
        Ok(HookAction::Continue)
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        self.strike(Point::WrapToolCall).await?;
        Ok(next.call(request).await?)
    }

    async fn after_agent(
        &self,
        _cx: TurnCx<'_>,
        _end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        self.strike(Point::AfterAgent).await?;
        Ok(After::Done)
    }

    async fn on_transition(&self, _cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.strike(Point::OnTransition).await
    }
}
