//! Whose time is running.

use std::sync::atomic::{AtomicU32, Ordering};

/// What one call keeps track of: whether its own time stands still, and how often it called
/// `next`.
#[derive(Default)]
pub(crate) struct Clock {
    pauses: AtomicU32,
    calls: AtomicU32,
}

impl Clock {
    /// Own time stands still while a `next` or an ask is in flight.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.pauses.fetch_add(1, Ordering::Relaxed);
        Paused(self)
    }

    #[inline]
    pub(crate) fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// How often `next` was called.
    #[inline]
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// Own time runs again when this is dropped.
pub(crate) struct Paused<'a>(&'a Clock);

impl Drop for Paused<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.pauses.fetch_sub(1, Ordering::Relaxed);
    }
}
