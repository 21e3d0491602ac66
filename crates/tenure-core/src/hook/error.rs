//! How hooks fail.

use super::Point;
use crate::error::{BoxError, Error, ErrorKind};
use crate::outcome::Outcome;
use crate::phase::Transition;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The ways in which a hook can fail. They are told apart, and each meets the declared policy (G3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// The hook returned an error.
    Failed,
    /// The hook panicked, or its process crashed.
    Panicked,
    /// The hook took longer than its limit.
    TimedOut,
    /// The hook answered something that makes no sense.
    BadReply,
    /// The hook's process ended with a failure.
    Exited,
    /// The hook's process could not be started.
    NotStarted,
}

impl FaultKind {
    /// The kind's name as events and reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
            Self::BadReply => "bad_reply",
            Self::Exited => "exited",
            Self::NotStarted => "not_started",
        }
    }

    /// The outcome that a hook call with this fault has.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Panicked => Outcome::Panicked,
            Self::TimedOut => Outcome::TimedOut,
            _ => Outcome::Failed,
        }
    }
}

/// What a hook returns when it fails.
///
/// Every error converts into it, so `?` works in a hook's body; an [`Error`] that came out of
/// `next` goes on outward as it is.
///
/// ```
/// use tenure_core::hook::HookError;
///
/// fn read() -> Result<u32, HookError> {
///     Ok("12".parse::<u32>()?)
/// }
/// # assert_eq!(read().unwrap(), 12);
/// ```
pub struct HookError {
    kind: FaultKind,
    fatal: bool,
    source: BoxError,
}

impl HookError {
    /// A failure with this message.
    pub fn new(message: impl Into<BoxError>) -> Self {
        Self { kind: FaultKind::Failed, fatal: false, source: message.into() }
    }

    /// A failure of another kind, for hooks that live in another process.
    pub fn of_kind(kind: FaultKind, message: impl Into<BoxError>) -> Self {
        Self { kind, fatal: false, source: message.into() }
    }

    /// A failure that the agent cannot survive: the turn fails and the agent shuts down.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    /// How it failed.
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Whether the hook itself failed: not a refusal, not a cancel, and not an error that came out
    /// of `next` and only passes through.
    pub fn is_own(&self) -> bool {
        self.source.downcast_ref::<Error>().is_none_or(|error| {
            !error.was_passed_on() && !error.is_denied() && !error.is_cancelled()
        })
    }

    /// What is behind it, if that is an error of this type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.fatal || self.source.downcast_ref::<Error>().is_some_and(Error::is_fatal)
    }

    pub(crate) fn into_source(self) -> BoxError {
        self.source
    }

    /// The error that passed through the hook, if that is what this is; else the hook's own.
    pub(crate) fn into_passed(self) -> Result<Error, HookError> {
        match self.source.downcast::<Error>() {
            Ok(error) => Ok(error.fatal(self.fatal)),
            Err(source) => Err(Self { source, ..self }),
        }
    }
}

impl<E> From<E> for HookError
where
    E: std::error::Error + Send + Sync + 'static,
{
    #[cold]
    fn from(error: E) -> Self {
        Self { kind: FaultKind::Failed, fatal: false, source: Box::new(error) }
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookError")
            .field("kind", &self.kind)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// A hook's failure, as step logs keep it.
#[derive(Serialize, Deserialize)]
pub(crate) struct FaultRecord {
    kind: FaultKind,
    message: String,
    fatal: bool,
    /// What kind of error it was, where it was one of this crate's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorKind>,
}

impl HookError {
    pub(crate) fn to_record(&self) -> FaultRecord {
        FaultRecord {
            kind: self.kind,
            message: self.to_string(),
            fatal: self.is_fatal(),
            error: self.source.downcast_ref::<Error>().map(Error::kind),
        }
    }
}

impl From<FaultRecord> for HookError {
    fn from(record: FaultRecord) -> Self {
        let FaultRecord { kind, message, fatal, error } = record;
        let source = match error {
            Some(kind) => Error::new(kind, message).fatal(fatal).into(),
            None => message.into(),
        };
        Self { kind, fatal, source }
    }
}

/// A hook call that failed, as reports keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookFailure {
    /// The hook's name.
    pub hook: Arc<str>,
    /// The point it failed at.
    pub point: Box<str>,
    /// The transition that it failed at, if the point is `on_transition`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition: Option<Transition>,
    /// How it failed.
    pub kind: FaultKind,
    /// What it said.
    pub message: String,
}

impl HookFailure {
    pub(crate) fn new(hook: &Arc<str>, point: Point, error: &HookError) -> Self {
        Self {
            hook: hook.clone(),
            point: point.as_str().into(),
            transition: None,
            kind: error.kind,
            message: error.to_string(),
        }
    }
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FaultKind::Failed => "failed",
            FaultKind::Panicked => "panicked",
            FaultKind::TimedOut => "timed out",
            FaultKind::BadReply => "gave a bad reply",
            FaultKind::Exited => "exited with a failure",
            FaultKind::NotStarted => "could not be started",
        };
        write!(f, "hook `{}` {what} at {}", self.hook, self.point)?;
        if let Some(transition) = self.transition {
            write!(f, " ({transition})")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl HookFailure {
    /// The error that this failure means for the turn under the `abort` policy.
    #[cold]
    pub(crate) fn to_error(&self, error: HookError) -> Error {
        let kind = match self.kind {
            FaultKind::Panicked => ErrorKind::Panicked,
            FaultKind::TimedOut => ErrorKind::TimedOut,
            _ => ErrorKind::Hook,
        };
        let fatal = error.fatal;
        Error::new(kind, self.to_string()).caused_by(error.source).fatal(fatal)
    }
}
