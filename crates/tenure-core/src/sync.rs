//! The locks and atomics of this crate, in one place so that schedules can be explored with others
//! in their stead.
//!
//! A poisoned lock is taken all the same: panics of hooks and tools are caught elsewhere, and no
//! lock is held while such code runs.

use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};

pub(crate) use std::sync::atomic;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(StdMutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(StdMutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
