//! How a team fails.

use std::fmt;
use tenure_core::{Error, ErrorKind, Outcome};

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
    /// The recorded run cannot go on here and now, and has not ended: it goes on from its record.
    /// [`TeamError::error`] says why.
    Parked,
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
        let kind = match error.as_ref().is_some_and(parks) {
            true => TeamErrorKind::Parked,
            false => TeamErrorKind::Start,
        };
        Self { kind, message: message.into(), error }
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
        let kind = if error.parks() { TeamErrorKind::Parked } else { TeamErrorKind::Run };
        Self { kind, message: error.to_string(), error: Some(error) }
    }

    /// What went wrong, in one word.
    pub fn kind(&self) -> TeamErrorKind {
        self.kind
    }

    /// Whether the recorded run is parked: nothing of it has ended, and it goes on from its record.
    pub fn is_parked(&self) -> bool {
        self.kind == TeamErrorKind::Parked
    }

    /// Whether it is parked because it waits for a person.
    pub fn is_waiting(&self) -> bool {
        self.is_parked() && self.error.as_ref().is_some_and(|it| it.kind() == ErrorKind::Waiting)
    }

    /// The error of the start or of the run, with its report if a turn had begun.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// The outcome that this means for the run.
    pub fn outcome(&self) -> Outcome {
        match (self.kind, &self.error) {
            (TeamErrorKind::Run | TeamErrorKind::Parked, Some(error)) => error.outcome(),
            (TeamErrorKind::Start, Some(error)) if was_denied(error) => Outcome::Denied,
            _ => Outcome::Failed,
        }
    }
}

/// Whether a hook refused what failed.
fn was_denied(error: &Error) -> bool {
    any_cause(error, Error::is_denied)
}

/// Whether a recorded run goes on later, from where this stopped it.
fn parks(error: &Error) -> bool {
    any_cause(error, Error::parks)
}

fn any_cause(error: &Error, is_it: fn(&Error) -> bool) -> bool {
    let mut cause = Some(error as &(dyn std::error::Error + 'static));
    while let Some(error) = cause {
        if error.downcast_ref::<Error>().is_some_and(is_it) {
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
