//! A tool whose calls a front end shows.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};

/// A tool whose calls a front end shows with a component. Nobody is asked: `ui_tool.shown` announces
/// a call with its arguments, and `ui_tool.result` what came of it.
pub struct ShownTool {
    inner: Arc<dyn Tool>,
    component: Option<String>,
    mode: Option<String>,
}

impl ShownTool {
    /// Shows the calls of `inner` with this component, in this mode: `inline` or `artifact`.
    pub fn new(
        inner: Arc<dyn Tool>,
        component: Option<impl Into<String>>,
        mode: Option<impl Into<String>>,
    ) -> Self {
        Self { inner, component: component.map(Into::into), mode: mode.map(Into::into) }
    }

    fn about(&self, key: &str, value: Value) -> Value {
        let tool = self.inner.spec().name;
        json!({ "tool": tool, "component": self.component, "mode": self.mode, key: value })
    }
}

#[async_trait]
impl Tool for ShownTool {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        cx.announce("ui_tool.shown", || self.about("arguments", arguments.clone()));
        let result = self.inner.call(cx, arguments).await;
        cx.announce("ui_tool.result", || match &result {
            Ok(output) => self.about("result", output.content.text().into()),
            Err(error) => self.about("error", error.to_string().into()),
        });
        result
    }

    fn cancel_grace(&self) -> Duration {
        self.inner.cancel_grace()
    }

    fn is_composite(&self) -> bool {
        self.inner.is_composite()
    }
}
