//! Lifecycle tools that are written in Rust.

use super::LifecycleCall;
use super::work::give;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use tenure_core::BoxFuture;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError, Point, Points};

/// The four triggers, as points.
pub(super) const POINTS: Points = Points::NONE
    .with(Point::BeforeChat)
    .with(Point::AfterChat)
    .with(Point::BeforeAgent)
    .with(Point::AfterAgent);

/// A function in Rust that workflow files can name by `use`, at any trigger. What it gives is its
/// result, which is logged and announced.
///
/// ```
/// use serde_json::json;
/// use tenure_cards::build::HookCatalog;
/// use tenure_flow::lifecycle;
///
/// let count = lifecycle::function("count_turns", |call| {
///     Box::pin(async move {
///         let variables = call.variables().ok_or("there is no chat")?;
///         let turns = variables.get("turns").and_then(|it| it.as_u64()).unwrap_or(0) + 1;
///         variables.set("turns", turns)?;
///         Ok(json!({ "turns": turns }))
///     })
/// });
/// let catalog = HookCatalog::new().register("count_turns", count);
/// # let _ = catalog;
/// ```
pub fn function<F>(name: impl Into<Arc<str>>, body: F) -> impl AgentLifecycle
where
    F: for<'a> Fn(LifecycleCall<'a>) -> BoxFuture<'a, Result<Value, FunctionError>>
        + Send
        + Sync
        + 'static,
{
    Function { name: name.into(), body }
}

/// What a function in Rust fails with: any error, or a text.
pub type FunctionError = Box<dyn std::error::Error + Send + Sync>;

struct Function<F> {
    name: Arc<str>,
    body: F,
}

impl<F> Function<F>
where
    F: for<'a> Fn(LifecycleCall<'a>) -> BoxFuture<'a, Result<Value, FunctionError>>
        + Send
        + Sync
        + 'static,
{
    async fn call(&self, call: LifecycleCall<'_>) -> Result<(), HookError> {
        let result = (self.body)(call).await.map_err(HookError::new)?;
        give(result);
        Ok(())
    }
}

#[async_trait]
impl<F> AgentLifecycle for Function<F>
where
    F: for<'a> Fn(LifecycleCall<'a>) -> BoxFuture<'a, Result<Value, FunctionError>>
        + Send
        + Sync
        + 'static,
{
    fn points(&self) -> Points {
        POINTS
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        self.call(LifecycleCall::before_chat(cx)).await?;
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        self.call(LifecycleCall::after_chat(cx, end)).await
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        self.call(LifecycleCall::before_agent(cx, input)).await?;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.call(LifecycleCall::after_agent(cx, end)).await?;
        Ok(After::Done)
    }
}
