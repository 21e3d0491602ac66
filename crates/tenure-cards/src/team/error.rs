//! How a team fails.

use std::fmt;
use tenure_core::{Error, Outcome};

/// What went wrong, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TeamErrorKind {
    /// An agent could not be started; those that were have been stopped again.
    Start,
    /// The team is not running.
    NotRunning,
    /// The agent that was named is not there, or none was named and several could be meant.
    Choice,
    /// The run did not end well; [`TeamError::error`] says how, with its report.
    Run,
    /// A tool server could not do what it was asked for.
    Server,
}

/// Everything that can go wrong with a team.
#[derive(Clone, Debug)]
pub struct TeamError {
    kind: TeamErrorKind,
    message: String,
    error: Option<Error>,
}

impl TeamError {
    /// Something could not be started, for the reason that `message` gives.
    pub fn start(message: impl Into<String>, error: Option<Error>) -> Self {
        Self { kind: TeamErrorKind::Start, message: message.into(), error }
    }

    pub(super) fn not_running(message: impl Into<String>) -> Self {
        Self { kind: TeamErrorKind::NotRunning, message: message.into(), error: None }
    }

    pub(super) fn choice(message: impl Into<String>) -> Self {
        Self { kind: TeamErrorKind::Choice, message: message.into(), error: None }
    }

    pub(super) fn server(message: impl Into<String>) -> Self {
        Self { kind: TeamErrorKind::Server, message: message.into(), error: None }
    }

    pub(super) fn run(error: Error) -> Self {
        Self { kind: TeamErrorKind::Run, message: error.to_string(), error: Some(error) }
    }

    /// What went wrong, in one word.
    pub fn kind(&self) -> TeamErrorKind {
        self.kind
    }

    /// The error of the start or of the run, with its report if a turn had begun.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The outcome that this means for the run.
    pub fn outcome(&self) -> Outcome {
        match (self.kind, &self.error) {
            (TeamErrorKind::Run, Some(error)) => error.outcome(),
            (TeamErrorKind::Start, Some(error)) if was_denied(error) => Outcome::Denied,
            _ => Outcome::Failed,
        }
    }
}

/// Whether a hook refused what failed.
fn was_denied(error: &Error) -> bool {
    let mut cause = Some(error as &(dyn std::error::Error + 'static));
    while let Some(error) = cause {
        if error.downcast_ref::<Error>().is_some_and(Error::is_denied) {
            return true;
        }
        cause = error.source();
    }
    false
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TeamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| error as _)
    }
}
