//! What a tool is to an agent.
//!
//! The trait, what a tool says of itself, tools made of functions, and sources of tools that change.
//! Agents as tools are in [`clone`](crate::clone).

mod error;
mod exact;
mod function;
mod param;
mod source;
mod spec;

pub use error::ToolError;
pub use exact::LongIntegers;
pub use function::FnTool;
pub use param::ToolParam;
pub use source::ToolSource;
pub use spec::{Effect, ToolSpec};

use crate::content::{Content, Media};
use crate::context::ToolCx;
use crate::message::ToolStatus;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Something the model may ask to have done.
///
/// # Cancel safety
///
/// When the turn is cancelled the tool's [`cancelled`](crate::context::Cx::cancelled) resolves, and
/// after [`cancel_grace`](Tool::cancel_grace) the future is dropped. The call's result then says
/// `cancelled`.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What the tool says of itself. Read once, when the agent is built.
    fn spec(&self) -> ToolSpec;

    /// Does it. The arguments are an object as the tool's schema describes, after every wrap.
    #[doc(alias = "execute")]
    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError>;

    /// How long the tool may go on after a cancel to clean up. None by default.
    fn cancel_grace(&self) -> Duration {
        Duration::ZERO
    }

    /// The tool itself, for whoever knows what it is.
    #[doc(hidden)]
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }

    /// Whether the tool records steps of its own, as an agent does.
    #[doc(hidden)]
    fn is_composite(&self) -> bool {
        false
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[doc(alias = "ToolResult")]
pub struct ToolOutput {
    /// What the model gets to read.
    pub content: Content,
    /// The same as a value for programs, where the tool has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
    /// How the call ended.
    pub status: ToolStatus,
}

impl ToolOutput {
    /// Creates an output that ended with this status.
    pub fn new(content: impl Into<Content>, status: ToolStatus) -> Self {
        Self { content: content.into(), structured: None, status }
    }

    /// Creates an answer.
    pub fn text(content: impl Into<Content>) -> Self {
        Self::new(content, ToolStatus::Ok)
    }

    /// Creates a failure that the model gets to read.
    pub fn error(content: impl Into<Content>) -> Self {
        Self::new(content, ToolStatus::Error)
    }

    /// Creates a refusal that the model gets to read.
    pub fn denied(content: impl Into<Content>) -> Self {
        Self::new(content, ToolStatus::Denied)
    }

    /// Adds the value for programs.
    #[must_use]
    pub fn with_structured(mut self, value: impl Into<Arc<Value>>) -> Self {
        self.structured = Some(value.into());
        self
    }
}

impl From<String> for ToolOutput {
    fn from(content: String) -> Self {
        Self::text(content)
    }
}

impl From<&str> for ToolOutput {
    fn from(content: &str) -> Self {
        Self::text(content)
    }
}

impl From<Content> for ToolOutput {
    fn from(content: Content) -> Self {
        Self::text(content)
    }
}

impl From<Media> for ToolOutput {
    fn from(media: Media) -> Self {
        Self::text(media)
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::text(match value {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }
}

/// A tool call on its way to the tool. Wraps may change the arguments.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    pub(crate) id: Arc<str>,
    /// The parsed arguments.
    pub arguments: Value,
    pub(crate) name: Arc<str>,
    pub(crate) index: usize,
    /// The tool's place among the agent's.
    pub(crate) tool: usize,
}

impl ToolRequest {
    /// The id of the call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position of the call in its batch.
    pub fn index(&self) -> usize {
        self.index
    }
}
