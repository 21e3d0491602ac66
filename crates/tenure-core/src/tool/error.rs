//! How a tool fails.

use crate::BoxError;
use crate::error::{Error, ErrorKind};
use std::fmt;

/// A tool call that failed. Its message becomes the result that the model reads, unless the error
/// ends the turn, or is fatal: then the turn fails and the agent shuts down.
///
/// Any error converts into a recoverable one, so `?` works in a tool's body.
pub struct ToolError {
    source: BoxError,
    reach: Reach,
}

/// How far a failure goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Call,
    Turn,
    Agent,
}

impl ToolError {
    /// A failure that the model may read and work around.
    pub fn new(message: impl Into<BoxError>) -> Self {
        Self { source: message.into(), reach: Reach::Call }
    }

    /// A failure that the model must not work around: the turn fails with it, and the agent lives
    /// on.
    pub fn ends_turn(message: impl Into<BoxError>) -> Self {
        Self { source: message.into(), reach: Reach::Turn }
    }

    /// A failure that the agent cannot survive.
    pub fn fatal(message: impl Into<BoxError>) -> Self {
        Self { source: message.into(), reach: Reach::Agent }
    }

    /// Whether the agent shuts down for it.
    pub fn is_fatal(&self) -> bool {
        self.reach == Reach::Agent
    }

    /// What the turn ends with, if the failure goes beyond the call.
    pub(crate) fn into_turn_error(self) -> Result<Error, Self> {
        if self.reach == Reach::Call {
            return Err(self);
        }
        let fatal = self.is_fatal();
        let error = match self.source.downcast::<Error>() {
            Ok(error) if !fatal => return Ok(*error),
            Ok(error) => Error::new(ErrorKind::Tool, error.to_string()).caused_by(*error),
            Err(source) => Error::new(ErrorKind::Tool, source.to_string()).caused_by(source),
        };
        Ok(error.fatal(fatal))
    }
}

impl<E> From<E> for ToolError
where
    E: std::error::Error + Send + Sync + 'static,
{
    fn from(error: E) -> Self {
        Self { source: Box::new(error), reach: Reach::Call }
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
