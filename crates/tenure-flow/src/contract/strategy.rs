//! What the failure of a step means for the whole.

use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// What the failure of a step means for the whole. A cancel always ends it, and a refusal is never
/// repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[doc(alias = "ErrorPropagation")]
pub enum ErrorStrategy {
    /// It fails at once.
    #[default]
    FailFast,
    /// The step is recorded as failed, and the rest is done.
    Continue,
    /// The step is made again, so often at most, after a wait that doubles; then it fails.
    Retry {
        /// How often at most, beside the first time.
        attempts: u32,
        /// The wait before the first repetition.
        backoff: Duration,
    },
    /// The step is given to the fallback of its routing decision; if that fails too, it fails.
    Fallback,
}

impl ErrorStrategy {
    /// Three repetitions, the first after a second.
    pub const RETRY: ErrorStrategy =
        ErrorStrategy::Retry { attempts: 3, backoff: Duration::from_secs(1) };

    /// The strategy's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::Continue => "continue",
            Self::Retry { .. } => "retry",
            Self::Fallback => "fallback",
        }
    }

    /// The strategy of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "fail_fast" => Some(Self::FailFast),
            "continue" => Some(Self::Continue),
            "retry" => Some(Self::RETRY),
            "fallback" => Some(Self::Fallback),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
