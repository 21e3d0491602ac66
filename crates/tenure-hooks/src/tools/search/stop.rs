//! When a search is over though it has not seen all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Says when to stop. Clones are one.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    given_up: Arc<AtomicBool>,
    ends: Instant,
}

impl Stop {
    pub(super) fn within(limit: Duration) -> Self {
        Self { given_up: Arc::default(), ends: Instant::now() + limit }
    }

    /// Whether the time is up, or nobody waits any more.
    pub(super) fn is_over(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || Instant::now() >= self.ends
    }

    /// Stops the search when it is dropped.
    pub(super) fn on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

pub(super) struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.given_up.store(true, Ordering::Relaxed);
    }
}
