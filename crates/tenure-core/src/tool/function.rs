//! Tools made of functions.

use super::{Tool, ToolError, ToolOutput, ToolSpec};
use crate::context::ToolCx;
use async_trait::async_trait;
use serde_json::Value;

/// A tool made of a synchronous function over its arguments.
///
/// For asynchronous bodies, and for parameters with types, use `#[tool]` or implement [`Tool`].
///
/// ```
/// use tenure_core::tool::{FnTool, ToolSpec};
///
/// let upper = FnTool::new(ToolSpec::new("upper", "Upper case"), |arguments| {
///     Ok(arguments["text"].as_str().unwrap_or_default().to_uppercase().into())
/// });
/// # let _ = upper;
/// ```
#[derive(Debug)]
pub struct FnTool<F> {
    spec: ToolSpec,
    body: F,
}

impl<F> FnTool<F>
where
    F: Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    /// A tool that calls `body`.
    pub fn new(spec: ToolSpec, body: F) -> Self {
        Self { spec, body }
    }
}

#[async_trait]
impl<F> Tool for FnTool<F>
where
    F: Fn(&Value) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
{
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        (self.body)(arguments)
    }
}
