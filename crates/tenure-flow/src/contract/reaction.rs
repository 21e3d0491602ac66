//! What is done about a failure, decided in one place for chats and orchestrations.

use super::ErrorStrategy;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::phase::AgentState;

/// What is done about a step that failed, if the whole does not fail for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// The step is made again after this wait.
    Repeat {
        /// How long.
        after: Duration,
    },
    /// This agent makes it.
    FallBack(Arc<str>),
    /// The step stays failed, and the rest is done.
    GoOn,
}

impl ErrorStrategy {
    /// What is done about this failure of a step that was repeated so often already and has this
    /// fallback, which was not tried yet. `None`: nothing, the whole fails.
    ///
    /// A cancel is the end of the whole under every strategy. A refusal is an answer: it is not
    /// asked for again, nor asked of somebody else.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tenure_core::Error;
    /// use tenure_flow::contract::{ErrorStrategy, Reaction};
    ///
    /// let broken = Error::orchestration("it broke");
    /// let again = ErrorStrategy::RETRY.reaction(&broken, 1, None);
    /// assert_eq!(again, Some(Reaction::Repeat { after: Duration::from_secs(2) }));
    /// assert_eq!(ErrorStrategy::RETRY.reaction(&Error::denied("no"), 0, None), None);
    /// assert_eq!(ErrorStrategy::FailFast.reaction(&broken, 0, None), None);
    /// ```
    pub fn reaction(
        self,
        error: &Error,
        repeats: u32,
        fallback: Option<&Arc<str>>,
    ) -> Option<Reaction> {
        if error.is_cancelled() {
            return None;
        }
        match self {
            Self::FailFast => None,
            Self::Continue => Some(Reaction::GoOn),
            _ if error.is_denied() => None,
            Self::Retry { attempts, backoff } => {
                if repeats >= attempts || error.state() == Some(AgentState::Terminated) {
                    return None;
                }
                let after = ExponentialBackoff::new(backoff).wait(repeats, error);
                Some(Reaction::Repeat { after })
            }
            Self::Fallback => fallback.cloned().map(Reaction::FallBack),
        }
    }
}

/// Waits that double, up to a bound. There is no chance in them: the same failures wait the same.
///
/// ```
/// use std::time::Duration;
/// use tenure_flow::contract::ExponentialBackoff;
///
/// let waits: Vec<_> = (0..8).map(|n| ExponentialBackoff::default().delay(n).as_secs()).collect();
/// assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBackoff {
    base: Duration,
    max: Duration,
}

impl ExponentialBackoff {
    /// No wait is longer than this, unless the first one is.
    pub const MAX: Duration = Duration::from_secs(60);

    /// The first wait is this long.
    pub fn new(base: Duration) -> Self {
        Self { base, max: Self::MAX.max(base) }
    }

    /// The wait before this repetition, counted from 0.
    pub fn delay(&self, repeat: u32) -> Duration {
        // 2^31 times anything that can be measured is beyond the bound.
        self.base.saturating_mul(1 << repeat.min(31)).min(self.max)
    }

    /// The same, but not before a model says that it may help, within the bound.
    fn wait(&self, repeat: u32, error: &Error) -> Duration {
        let asked = error.model_error().and_then(|error| error.retry_after()).unwrap_or_default();
        self.delay(repeat).max(asked.min(self.max))
    }
}

impl Default for ExponentialBackoff {
    fn default() -> Self {
        Self::new(Duration::from_secs(1))
    }
}
