//! What an instance acquires: released last to first, on every way out, within a bound.

mod stack;

pub(crate) use stack::RELEASE_LIMIT;
pub use stack::{ResourceHandle, ResourceStack};

use crate::agent::Inner;
use crate::error::BoxError;
use std::fmt;
use std::sync::Arc;

/// Where an instance registers what it acquires: connections, temporary files, background tasks.
#[derive(Clone, Copy)]
pub struct Resources<'a> {
    inner: &'a Inner,
}

impl<'a> Resources<'a> {
    pub(crate) fn new(inner: &'a Inner) -> Self {
        Self { inner }
    }

    /// Registers something with the way to release it. At shutdown, or when startup is rolled back,
    /// everything is released, last to first; what cannot be is reported as leaked.
    pub fn register<F, Fut>(&self, name: impl Into<Arc<str>>, release: F) -> ResourceHandle
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.inner.extra().resources.register(name, release)
    }

    /// Runs `task` in the background for as long as the instance lives. At release it is aborted.
    pub fn spawn<Fut>(&self, name: impl Into<Arc<str>>, task: Fut) -> ResourceHandle
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        let task = self.inner.blueprint.tracker.spawn(task);
        self.register(name, move || async move {
            task.abort();
            match task.await {
                Err(error) if error.is_panic() => Err("the task had panicked".into()),
                _ => Ok(()),
            }
        })
    }
}

impl fmt::Debug for Resources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources").field("agent", &self.inner.name()).finish()
    }
}
