//! Which failures concern the hooks around calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tenure_core::model::{ModelError, ModelErrorKind};
use tenure_core::{Error, ErrorKind};

/// The model's failure, if it is one: not a refusal, not a cancel, not the end of the turn's time,
/// and not what parks a run.
pub(super) fn of_model(error: &Error) -> Option<&ModelError> {
    match error.kind() {
        ErrorKind::Model | ErrorKind::TimedOut => error.model_error(),
        _ => None,
    }
}

/// A failure that a hook of ours has made up, so that the model was not even asked: it says nothing
/// of the model.
#[derive(Debug)]
enum NotAsked {
    /// Its circuit is open.
    Shut,
    /// A limit of ours is reached.
    Limited,
}

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the model was not asked")
    }
}

impl std::error::Error for NotAsked {}

/// A failure of a model that was not asked, because a limit of ours is reached.
pub(super) fn limited(kind: ModelErrorKind, message: String, after: Option<Duration>) -> Error {
    let error = ModelError::new(kind, message).with_source(NotAsked::Limited);
    let error = match after {
        Some(after) => error.with_retry_after(after),
        None => error,
    };
    Error::from(error).of_the_call()
}

/// A failure of a model that was not asked, because its circuit is open for another time.
pub(super) fn shut(message: String, left: Duration) -> Error {
    let error = ModelError::new(ModelErrorKind::Overloaded, message).with_source(NotAsked::Shut);
    Error::from(error.with_retry_after(left)).of_the_call()
}

/// A time that a person reads: to the millisecond, and never too short.
pub(super) fn rounded(time: Duration) -> Duration {
    let millis = time.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

fn why_not_asked(error: &ModelError) -> Option<&NotAsked> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Whether the model itself failed.
pub(super) fn was_asked(error: &ModelError) -> bool {
    why_not_asked(error).is_none()
}

/// For how long the model is not asked, if that is because its circuit is open.
pub(super) fn shut_for(error: &ModelError) -> Option<Duration> {
    match why_not_asked(error)? {
        NotAsked::Shut => error.retry_after(),
        NotAsked::Limited => None,
    }
}

/// A kind of failure, as files write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    /// Too many requests.
    RateLimited,
    /// The provider is overloaded, or a breaker is open.
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
    /// Anything else; a refusal too.
    Other,
}

impl Failure {
    pub(super) const ALL: [Self; 9] = [
        Self::RateLimited,
        Self::Overloaded,
        Self::Auth,
        Self::BadRequest,
        Self::Truncated,
        Self::Malformed,
        Self::Timeout,
        Self::Transport,
        Self::Other,
    ];

    pub(super) const fn kind(self) -> ModelErrorKind {
        match self {
            Self::RateLimited => ModelErrorKind::RateLimited,
            Self::Overloaded => ModelErrorKind::Overloaded,
            Self::Auth => ModelErrorKind::Auth,
            Self::BadRequest => ModelErrorKind::BadRequest,
            Self::Truncated => ModelErrorKind::Truncated,
            Self::Malformed => ModelErrorKind::Malformed,
            Self::Timeout => ModelErrorKind::Timeout,
            Self::Transport => ModelErrorKind::Transport,
            Self::Other => ModelErrorKind::Other,
        }
    }

    /// Those that `wanted` says.
    pub(super) fn which(wanted: impl Fn(ModelErrorKind) -> bool) -> Vec<Self> {
        Self::ALL.into_iter().filter(|failure| wanted(failure.kind())).collect()
    }

    pub(super) fn kinds(failures: &[Self]) -> Vec<ModelErrorKind> {
        failures.iter().map(|failure| failure.kind()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_was_made_up_is_told_from_one_of_the_model() {
        let after = Some(Duration::from_secs(2));
        let made_up = limited(ModelErrorKind::Overloaded, "full".to_owned(), after);
        let own = of_model(&made_up).expect("it is a failure of a model");
        assert_eq!((own.kind(), own.retry_after()), (ModelErrorKind::Overloaded, after));
        assert_eq!((was_asked(own), shut_for(own)), (false, None));
        let open = shut("open".to_owned(), Duration::from_secs(3));
        let open = of_model(&open).expect("it is a failure of a model");
        assert_eq!((was_asked(open), shut_for(open)), (false, Some(Duration::from_secs(3))));
        assert!(was_asked(&ModelError::new(ModelErrorKind::Overloaded, "busy")));
        assert!(was_asked(&ModelError::new(ModelErrorKind::Transport, "cut").with_source("reset")));
    }

    #[test]
    fn what_is_no_failure_of_a_model_is_left_alone() {
        let cause = || Error::from(ModelError::new(ModelErrorKind::Overloaded, "busy"));
        assert!(of_model(&cause()).is_some());
        assert!(of_model(&Error::denied("no").because(Error::denied("no"))).is_none());
        for error in [
            Error::cancelled(),
            Error::waiting("for a person"),
            Error::store("full"),
            Error::replay("differs"),
            Error::abandoned(),
            Error::denied("no"),
        ] {
            assert!(of_model(&error).is_none(), "{error}");
        }
    }
}
