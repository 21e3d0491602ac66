//! How a tool fails.

use crate::BoxError;
use std::fmt;

/// A tool call that failed. Its message becomes the result that the model reads, unless the error
/// is fatal: then the turn fails and the agent shuts down.
///
/// Any error converts into a recoverable one, so `?` works in a tool's body.
pub struct ToolError {
    source: BoxError,
    fatal: bool,
}

impl ToolError {
    /// A failure that the model may read and work around.
    pub fn new(message: impl Into<BoxError>) -> Self {
        Self { source: message.into(), fatal: false }
    }

    /// A failure that the agent cannot survive.
    pub fn fatal(message: impl Into<BoxError>) -> Self {
        Self { source: message.into(), fatal: true }
    }

    /// Whether the agent shuts down for it.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    pub(crate) fn into_source(self) -> BoxError {
        self.source
    }
}

impl<E> From<E> for ToolError
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self { source: Box::new(error), fatal: false }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}
