//! What state a chat is in.

use serde::Serialize;
use std::fmt;
use tenure_core::Outcome;

/// What state a chat is in. Six different things, in reports and in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatStatus {
    /// It goes on.
    Running,
    /// It waits for a person. As the status of a report: nobody was there to ask, or the chat is
    /// parked until somebody answers.
    Paused,
    /// It came to its end.
    Completed,
    /// It failed: an agent did, or was denied, or took too long; [`Outcome`] says which.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Its turns were used up.
    MaxTurns,
}

impl ChatStatus {
    /// The status's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::MaxTurns => "max_turns",
        }
    }
}

impl From<Outcome> for ChatStatus {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Completed,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::MaxTurns => Self::MaxTurns,
            _ => Self::Failed,
        }
    }
}

impl fmt::Display for ChatStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
