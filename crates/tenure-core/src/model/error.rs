//! How a model call fails.

use crate::BoxError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What kind of failure a model call met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// Too many requests; see [`ModelError::retry_after`].
    RateLimited,
    /// The provider is overloaded.
    Overloaded,
    /// The key is missing, wrong or not allowed.
    Auth,
    /// The provider did not accept the request.
    BadRequest,
    /// The answer was cut off.
    Truncated,
    /// The answer could not be understood.
    Malformed,
    /// The provider took too long.
    Timeout,
    /// The connection failed.
    Transport,
    /// Anything else.
    Other,
}

impl ModelErrorKind {
    /// Whether the same request may well succeed later.
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimited
                | Self::Overloaded
                | Self::Truncated
                | Self::Malformed
                | Self::Timeout
                | Self::Transport
        )
    }
}

/// A model call that failed.
#[derive(Debug)]
pub struct ModelError {
    kind: ModelErrorKind,
    message: String,
    retry_after: Option<Duration>,
    status: Option<u16>,
    fatal: bool,
    source: Option<BoxError>,
}

impl ModelError {
    /// A failure of this kind.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
            status: None,
            fatal: false,
            source: None,
        }
    }

    /// The provider said when to come back.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The status of the HTTP answer that it was read from.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// What caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Marks the failure as one that the agent cannot survive: the turn fails and the agent shuts
    /// down.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ModelErrorKind {
        self.kind
    }

    /// Whether the same request may well succeed later.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable() && !self.fatal
    }

    /// Whether the agent shuts down for it.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    /// The status of the HTTP answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// How long the provider asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
