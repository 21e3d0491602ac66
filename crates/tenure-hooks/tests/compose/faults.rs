//! A hook that breaks, beside any other.

use crate::compose::stage::{Stage, some_pairs};
use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::drive::Input;
use tenure_core::hook::{AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{NextModel, NextTool, Outcome};
use tenure_testkit::assert_paired;
use tenure_testkit::cases;

/// Fails wherever the hook had something to judge.
struct Broken(Points);

#[async_trait]
impl AgentLifecycle for Broken {
    fn points(&self) -> Points {
        self.0
    }

    async fn before_agent(&self, _: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        Err(HookError::new("it is broken"))
    }

    async fn before_model(&self, _: TurnCx<'_>, _: &mut ModelRequest) -> Result<Flow, HookError> {
        Err(HookError::new("it is broken"))
    }

    async fn wrap_model_call(
        &self,
        _: TurnCx<'_>,
        _: &mut ModelRequest,
        _: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        Err(HookError::new("it is broken"))
    }

    async fn after_model(&self, _: TurnCx<'_>, _: &ModelResponse) -> Result<HookAction, HookError> {
        Err(HookError::new("it is broken"))
    }

    async fn wrap_tool_call(
        &self,
        _: ToolCx<'_>,
        _: &mut ToolRequest,
        _: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        Err(HookError::new("it is broken"))
    }
}

#[tokio::test]
async fn g3_a_guard_that_breaks_denies_beside_any_other_hook() {
    let mut guards = 0;
    for (one, two) in some_pairs() {
        let stage = Stage::new();
        let guard = stage.hook(one);
        if !guard.is_guard() {
            continue;
        }
        guards += 1;
        let points = guard.points();
        let judges_tools = points.contains(Point::WrapToolCall);
        let broken = guard.map_hook(|_| Arc::new(Broken(points)));
        for stack in [[broken.clone(), stage.hook(two)], [stage.hook(two), broken.clone()]] {
            let played = stage.play(stack).await;
            let both = format!("{} and {}", one.name(), two.name());
            assert_eq!(played.ran, 0, "{both}: the tool ran past a broken guard");
            if let Err(error) = &played.result {
                assert_eq!(error.outcome(), Outcome::Denied, "{both}: {error}");
            } else {
                // A guard of tools alone denies the call, and the model goes on without it.
                assert!(judges_tools, "{both}: the turn passed a broken guard");
            }
            assert_paired(&played.recorder);
        }
    }
    assert!(guards > cases(50, 100), "only {guards} pairs with a guard");
}
