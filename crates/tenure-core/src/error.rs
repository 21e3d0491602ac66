//! The one error of this crate.

use crate::drive::TurnReport;
use crate::model::ModelError;
use crate::outcome::Outcome;
use crate::phase::{AgentState, IllegalTransition};
use crate::state::StateViolation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Any error, boxed.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something that a person wrote is wrong: a limit, a name, an order.
    #[doc(alias = "AgentConfigError")]
    Invalid,
    /// The agent is not ready; [`Error::state`] says what it is.
    NotReady,
    /// The table does not allow the transition.
    IllegalTransition,
    /// Startup failed; the agent was rolled back unless configured otherwise.
    #[doc(alias = "StartupError")]
    Startup,
    /// A guard, a decision or a person said no.
    Denied,
    /// Somebody cancelled it.
    Cancelled,
    /// Its time was up.
    TimedOut,
    /// Code panicked.
    Panicked,
    /// The model did not come to an end within the allowed steps.
    MaxSteps,
    /// The agents of a chat did not come to an end within the allowed turns.
    MaxTurns,
    /// The model failed; [`Error::model_error`] says how.
    Model,
    /// A tool failed in a way that the agent cannot survive.
    Tool,
    /// A hook failed.
    Hook,
    /// State was written by somebody who does not own it.
    State,
    /// A person could not be asked.
    Ask,
    /// The record of a run and the run itself differ: the run is parked.
    Replay,
    /// The record of a run cannot be written or read: the run is parked.
    Store,
    /// The run waits for a person who is not here: it is parked until there is an answer.
    Waiting,
    /// The run was given up.
    Abandoned,
    /// Messages are not a valid history.
    History,
    /// The answer does not have the form that was asked for.
    Output,
    /// Whoever runs several agents could not go on.
    Orchestration,
}

/// Everything that can go wrong in this crate.
///
/// A turn that did not end well is one error that carries its outcome and its report:
/// [`Error::outcome`], [`Error::report`].
#[derive(Clone)]
pub struct Error(Arc<Repr>);

struct Repr {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    report: Option<TurnReport>,
    fatal: bool,
    /// Whether it came out of a `next`, and so is not the failure of the hook that has it now.
    passed_on: AtomicBool,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Repr {
            kind,
            message: message.into(),
            source: None,
            report: None,
            fatal: false,
            passed_on: AtomicBool::new(false),
        }))
    }

    /// Something that a person wrote is wrong. The message says what, and what to do.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// A refusal, as a guard or a person gives it.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, reason)
    }

    /// The end of a turn whose time is up.
    pub fn turn_timed_out() -> Self {
        Self::new(ErrorKind::TimedOut, "the turn did not end within its limit")
    }

    /// What ends a chat whose time is up.
    pub fn chat_timed_out() -> Self {
        Self::new(ErrorKind::TimedOut, "the chat did not end within its limit")
    }

    /// What ends something that somebody cancelled.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the turn was cancelled")
    }

    /// The end of a chat whose turns are used up.
    pub fn max_turns(turns: usize) -> Self {
        let message = format!("the chat did not come to an end within {turns} turns (max_turns)");
        Self::new(ErrorKind::MaxTurns, message)
    }

    /// A failure of whoever runs several agents: nobody could be routed to, a plan could not be
    /// made. The message says what, and what to do.
    pub fn orchestration(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Orchestration, message)
    }

    /// The record of a run and the run itself differ. The message names the step that does.
    pub fn replay(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Replay, message)
    }

    /// The record of a run cannot be written or read. The message says why, and what to do.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Store, message)
    }

    /// A run waits for a person who is not here.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Waiting, message)
    }

    /// What ends a run that is given up.
    pub fn abandoned() -> Self {
        Self::new(ErrorKind::Abandoned, "the run was given up")
    }

    /// The same failure with what led to it. A refusal stays one, a cancel too, and so on.
    #[must_use]
    pub fn because(self, cause: Error) -> Self {
        self.change(|repr| repr.kind = cause.0.kind).caused_by(cause)
    }

    /// Changes an error that nobody else holds; a shared one becomes the cause of a new one.
    fn change(mut self, change: impl FnOnce(&mut Repr)) -> Self {
        if Arc::get_mut(&mut self.0).is_none() {
            let mut outer = Self::new(self.0.kind, self.0.message.clone()).fatal(self.0.fatal);
            if let Some(repr) = Arc::get_mut(&mut outer.0) {
                repr.source = Some(Box::new(self));
            }
            self = outer;
        }
        if let Some(repr) = Arc::get_mut(&mut self.0) {
            change(repr);
        }
        self
    }

    #[must_use]
    pub(crate) fn caused_by(self, source: impl Into<BoxError>) -> Self {
        self.change(|repr| repr.source = Some(source.into()))
    }

    #[must_use]
    pub(crate) fn fatal(self, fatal: bool) -> Self {
        if fatal && !self.0.fatal { self.change(|repr| repr.fatal = true) } else { self }
    }

    #[must_use]
    pub(crate) fn with_report(self, report: TurnReport) -> Self {
        self.change(|repr| repr.report = Some(report))
    }

    /// Says that this is the failure of the call, and not of the wrap that returns it: the wrap speaks
    /// for a model that it did not ask, or did not wait for.
    #[must_use]
    pub fn of_the_call(self) -> Self {
        self.mark_as_passed_on();
        self
    }

    pub(crate) fn mark_as_passed_on(&self) {
        self.0.passed_on.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_passed_on(&self) -> bool {
        self.0.passed_on.load(Ordering::Relaxed)
    }

    pub(crate) fn not_ready(state: AgentState, wanted: &str) -> Self {
        let while_busy = "; wait for ready(), or use handle() for concurrent requests";
        Self::not_ready_with(state, wanted, while_busy)
    }

    /// The same for something that does not fork: a type of one's own.
    pub(crate) fn not_ready_alone(state: AgentState, wanted: &str) -> Self {
        Self::not_ready_with(state, wanted, "; wait for ready()")
    }

    fn not_ready_with(state: AgentState, wanted: &str, while_busy: &str) -> Self {
        let help = match state {
            AgentState::Uninitialized => "; call startup() first",
            AgentState::Initializing => "; wait for ready()",
            AgentState::Busy => while_busy,
            AgentState::Paused => "; call resume() first",
            AgentState::Error | AgentState::ShuttingDown | AgentState::Terminated => {
                "; build a new instance"
            }
            AgentState::Ready => "",
        };
        Self::new(
            ErrorKind::NotReady,
            format!("agent must be in {wanted} state, but it is {state}{help}"),
        )
        .caused_by(NotReady(state))
    }

    /// What went wrong, in one word.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The outcome that this error means for a turn or a scope.
    pub fn outcome(&self) -> Outcome {
        match self.0.kind {
            ErrorKind::Denied => Outcome::Denied,
            ErrorKind::Cancelled => Outcome::Cancelled,
            ErrorKind::TimedOut => Outcome::TimedOut,
            ErrorKind::Panicked => Outcome::Panicked,
            ErrorKind::MaxSteps => Outcome::MaxSteps,
            ErrorKind::MaxTurns => Outcome::MaxTurns,
            ErrorKind::Abandoned => Outcome::Abandoned,
            _ => Outcome::Failed,
        }
    }

    /// The report of the turn that ended with this error.
    pub fn report(&self) -> Option<&TurnReport> {
        self.0.report.as_ref()
    }

    /// The report of the turn that ended with this error.
    pub fn into_report(self) -> Option<TurnReport> {
        match Arc::try_unwrap(self.0) {
            Ok(repr) => repr.report,
            Err(shared) => shared.report.clone(),
        }
    }

    /// The model's own error, if a model failed.
    pub fn model_error(&self) -> Option<&ModelError> {
        self.cause()
    }

    /// The state the agent was in, if it was not ready.
    pub fn state(&self) -> Option<AgentState> {
        self.cause::<NotReady>().map(|not_ready| not_ready.0)
    }

    /// The transition that the table did not allow.
    pub fn illegal_transition(&self) -> Option<&IllegalTransition> {
        self.cause()
    }

    /// The write that was refused.
    pub fn state_violation(&self) -> Option<&StateViolation> {
        self.cause()
    }

    /// Whether the same call may well succeed later. Cancelled, denied and timed-out turns, and
    /// whatever a person has to mend, are not retryable.
    pub fn is_retryable(&self) -> bool {
        !self.0.fatal && self.model_error().is_some_and(ModelError::is_retryable)
    }

    /// Whether the agent shuts down for it.
    #[doc(alias = "FatalError")]
    #[doc(alias = "RecoverableError")]
    pub fn is_fatal(&self) -> bool {
        self.0.fatal
    }

    /// Whether a guard, a decision or a person said no.
    pub fn is_denied(&self) -> bool {
        self.0.kind == ErrorKind::Denied
    }

    /// Whether somebody cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.0.kind == ErrorKind::Cancelled
    }

    /// Whether it parks a recorded run: nothing ends, and the run goes on later from its record.
    pub fn parks(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Replay | ErrorKind::Store | ErrorKind::Waiting)
    }

    /// Whether what ends one part of a run ends every other part by itself, each in good order.
    pub(crate) fn reaches_all(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Cancelled | ErrorKind::Abandoned)
    }

    /// Whether its time was up.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::TimedOut
    }

    /// The first cause of type `T`.
    fn cause<T: std::error::Error + 'static>(&self) -> Option<&T> {
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind).field("message", &self.0.message);
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<ModelError> for Error {
    #[cold]
    fn from(error: ModelError) -> Self {
        let fatal = error.is_fatal();
        Error::new(ErrorKind::Model, error.to_string()).caused_by(error).fatal(fatal)
    }
}

impl From<IllegalTransition> for Error {
    #[cold]
    fn from(error: IllegalTransition) -> Self {
        Error::new(ErrorKind::IllegalTransition, error.to_string()).caused_by(error)
    }
}

impl From<StateViolation> for Error {
    #[cold]
    fn from(error: StateViolation) -> Self {
        Error::new(ErrorKind::State, error.to_string()).caused_by(error)
    }
}

#[derive(Debug)]
struct NotReady(AgentState);

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent is {}", self.0)
    }
}

impl std::error::Error for NotReady {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelErrorKind;

    #[test]
    fn an_error_is_one_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn the_model_error_is_found_behind_other_causes() {
        let model = ModelError::new(ModelErrorKind::RateLimited, "slow down");
        let error = Error::new(ErrorKind::Hook, "hook failed").caused_by(Error::from(model));
        assert_eq!(error.model_error().map(ModelError::kind), Some(ModelErrorKind::RateLimited));
        assert!(error.is_retryable());
    }

    #[test]
    fn not_ready_names_the_state_and_what_to_do() {
        let error = Error::not_ready(AgentState::Uninitialized, "ready");
        assert_eq!(error.state(), Some(AgentState::Uninitialized));
        assert_eq!(
            error.to_string(),
            "agent must be in ready state, but it is uninitialized; call startup() first"
        );
    }
}
