//! The locks and atomics of this crate, in one place so that schedules can be explored with others
//! in their stead (`explore/`).
//!
//! A poisoned lock is taken all the same: panics of hooks and tools are caught elsewhere, and no
//! lock is held while such code runs.

use std::sync::PoisonError;

#[cfg(tenure_explore)]
pub(crate) use shuttle::sync::atomic;
#[cfg(tenure_explore)]
use shuttle::sync::{Mutex as Lock, MutexGuard};
#[cfg(not(tenure_explore))]
pub(crate) use std::sync::atomic;
#[cfg(not(tenure_explore))]
use std::sync::{Mutex as Lock, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(Lock<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Lock::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
