//! How startup and shutdown behave.

use crate::hook::Limit;
use crate::state::StateOwnership;
use std::time::Duration;

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

    pub(crate) fn attempts(&self) -> u32 {
        if self.retry_on_failure { self.max_retries.saturating_add(1) } else { 1 }
    }
}
