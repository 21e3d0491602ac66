//! How startup and shutdown behave.

use crate::hook::Limit;
use crate::state::StateOwnership;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// No pause between two attempts to start is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How startup and shutdown of an agent behave.
///
/// The one passed to `startup` is the one that counts, also for what happens when it fails.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::life::LifecycleConfig;
///
/// let config = LifecycleConfig::default().timeout(Duration::from_secs(5)).retries(2);
/// assert_eq!(config.max_retries, 2);
/// assert!(config.retry_on_failure);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LifecycleConfig {
    /// The most that a startup, retries included, or a shutdown may take. 30 s.
    #[doc(alias = "timeout_seconds")]
    pub timeout: Duration,
    /// Whether a failed startup is tried again.
    pub retry_on_failure: bool,
    /// How often, if so.
    pub max_retries: u32,
    /// The pause before the first of them. It doubles with each, up to 5 s, and its second half is
    /// left to chance, so that agents that failed together do not come back together. 100 ms.
    pub retry_delay: Duration,
    /// Whether a failed startup is rolled back to terminated. Otherwise the agent rests in the
    /// error state until it is shut down.
    pub cleanup_on_error: bool,
    /// Who keeps what the agent knows across runs. With [`StateOwnership::Memory`] memory is loaded
    /// at startup and flushed at shutdown if it is dirty; with anything else it is not.
    pub state_persistence: StateOwnership,
}

impl Default for LifecycleConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            retry_on_failure: false,
            max_retries: 3,
            retry_delay: Duration::from_millis(100),
            cleanup_on_error: true,
            state_persistence: StateOwnership::Memory,
        }
    }
}

impl LifecycleConfig {
    /// The most that a startup or a shutdown may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Tries a failed startup again, so often.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retry_on_failure = retries > 0;
        self.max_retries = retries;
        self
    }

    /// The pause before the first retry of a startup; zero is none.
    #[must_use]
    pub fn retry_delay(mut self, delay: Duration) -> Self {
        self.retry_delay = delay;
        self
    }

    /// Leaves a failed startup as it is, in the error state.
    #[must_use]
    pub fn keep_on_error(mut self) -> Self {
        self.cleanup_on_error = false;
        self
    }

    /// Who keeps what the agent knows across runs.
    #[must_use]
    pub fn state_persistence(mut self, owner: StateOwnership) -> Self {
        self.state_persistence = owner;
        self
    }

    /// What is wrong with it, in words.
    pub(crate) fn check(&self) -> Result<(), crate::Error> {
        Limit::new(self.timeout).map(|_| ()).map_err(|_| {
            crate::Error::invalid(
                "the lifecycle timeout is zero, so no startup could succeed; give it more than \
                 zero, or leave it out for 30 s",
            )
        })
    }

    /// The pause behind a failed attempt, counted from one.
    pub(crate) fn pause_after(&self, attempt: u32) -> Duration {
        let doubled = self.retry_delay.saturating_mul(1 << (attempt - 1).min(16));
        let half = doubled.min(LONGEST_PAUSE) / 2;
        // Every hasher of the standard library has keys of its own.
        let chance = RandomState::new().build_hasher().finish() as u32;
        half + half.mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }

    pub(crate) fn attempts(&self) -> u32 {
        if self.retry_on_failure { self.max_retries.saturating_add(1) } else { 1 }
    }
}
