//! A call that is in flight, and what becomes of it when nobody waits for it any more.

use super::Invocation;
use crate::python::worker::Worker;
use std::sync::Arc;
use tenure_core::event::LogStream;
use tokio::runtime::Handle;

/// A call between its begin and its end. Dropped before its end, it takes the function with it.
pub(super) struct InFlight<'a> {
    invocation: &'a Invocation<'a>,
    pub(super) worker: &'a Arc<Worker>,
    pub(super) id: u64,
    is_done: bool,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(invocation: &'a Invocation<'a>, worker: &'a Arc<Worker>) -> Self {
        Self { invocation, worker, id: worker.desk().open(), is_done: false }
    }

    /// Says that the function does not run any more, or never did.
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let (worker, hook) = (self.worker, self.invocation.hook);
        let cx = self.invocation.site.cx();
        for line in worker.take_stray() {
            cx.log(hook, LogStream::Stderr, &line);
        }
        if self.is_done || worker.is_gone() {
            return worker.desk().close(self.id);
        }
        match Handle::try_current() {
            Ok(runtime) if cx.is_cancelled() => {
                let (worker, id) = (worker.clone(), self.id);
                let hook = hook.to_owned();
                let cancel = async move {
                    worker.cancel(id, &hook).await;
                    worker.desk().close(id);
                };
                drop(self.invocation.host.tracker().spawn_on(cancel, &runtime));
            }
            _ => {
                worker.desk().close(self.id);
                worker.kill(&format!("the worker was killed because `{hook}` took too long"));
            }
        }
    }
}
