//! A tool that goes wrong.

use super::{FaultPlan, Place};
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};

/// A tool that goes wrong where its plan says so, and does as another one does otherwise.
///
/// See [`FaultPlan`].
pub struct FaultyTool<T> {
    inner: T,
    plan: FaultPlan,
}

impl<T: Tool> FaultyTool<T> {
    /// `inner`, which goes wrong by `plan`.
    pub fn new(inner: T, plan: &FaultPlan) -> Self {
        Self { inner, plan: plan.clone() }
    }
}

#[async_trait]
impl<T: Tool> Tool for FaultyTool<T> {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        self.plan.strike(Place::Tool).await.map_err(ToolError::new)?;
        self.inner.call(cx, arguments).await
    }

    fn cancel_grace(&self) -> Duration {
        self.inner.cancel_grace()
    }

    fn is_composite(&self) -> bool {
        self.inner.is_composite()
    }
}

impl<T> fmt::Debug for FaultyTool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyTool").field("plan", &self.plan).finish_non_exhaustive()
    }
}
