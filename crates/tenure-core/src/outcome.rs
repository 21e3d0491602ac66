//! How things ended, and why an agent left.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a scope or a hook call ended. Everything that began has exactly one (G1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// It did what it was asked.
    Ok,
    /// A guard or a decision said no.
    Denied,
    /// It failed.
    Failed,
    /// Somebody cancelled it, dropped it or shut the agent down.
    Cancelled,
    /// Its time was up.
    TimedOut,
    /// Code panicked.
    Panicked,
    /// The model did not come to an end within the allowed steps.
    MaxSteps,
    /// The agents of a chat did not come to an end within the allowed turns.
    MaxTurns,
    /// Nobody was left to end it: the process died, or no runtime was left.
    Abandoned,
}

impl Outcome {
    /// The outcome's name as events and reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::MaxSteps => "max_steps",
            Self::MaxTurns => "max_turns",
            Self::Abandoned => "abandoned",
        }
    }

    /// Whether this is [`Outcome::Ok`].
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an agent is terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExitReason {
    /// An ordinary shutdown.
    Completed,
    /// Startup failed: it was rolled back, or cleaned up by the shutdown that followed.
    StartupFailed,
    /// A fatal error in a turn.
    Fatal,
    /// The shutdown budget was exceeded; what was left was cut off.
    Forced,
    /// The process died, or no runtime was left to end it properly.
    Crashed,
}

impl ExitReason {
    /// Every reason.
    pub const ALL: [ExitReason; 5] =
        [Self::Completed, Self::StartupFailed, Self::Fatal, Self::Forced, Self::Crashed];

    /// The reason's name as events spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::StartupFailed => "startup_failed",
            Self::Fatal => "fatal",
            Self::Forced => "forced",
            Self::Crashed => "crashed",
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
