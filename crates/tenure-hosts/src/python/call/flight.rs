//! A call that is in flight, and its end when its future is dropped.

use super::Invocation;
use super::enter::Entered;
use crate::python::desk::CallId;
use crate::python::lane::Lane;
use crate::python::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::event::LogStream;
use tokio::runtime::Handle;

/// A call between its begin and its end. Dropped before its end, it is cancelled.
pub(super) struct InFlight<'a> {
    invocation: &'a Invocation<'a>,
    entered: Entered,
    pub(super) id: CallId,
    /// Whether the function runs, as far as that is known.
    has_begun: AtomicBool,
    is_done: bool,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(invocation: &'a Invocation<'a>, entered: Entered) -> Self {
        entered.lane.life().took_off();
        let id = entered.lane.desk().open();
        Self { invocation, entered, id, has_begun: AtomicBool::new(false), is_done: false }
    }

    pub(super) fn worker(&self) -> &Worker {
        &self.entered.worker
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.entered.lane
    }

    pub(super) fn set_begun(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Says that the function does not run any more, or never did.
    pub(super) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let (lane, id, hook) = (&self.entered.lane, self.id, self.invocation.hook);
        lane.life().landed();
        for line in self.entered.worker.take_stray() {
            self.invocation.site.cx().log(hook, LogStream::Stderr, &line);
        }
        if self.is_done || !lane.is_open() {
            lane.desk().close(id);
            return self.entered.leave();
        }
        let Ok(runtime) = Handle::try_current() else {
            lane.desk().close(id);
            return self.entered.worker.kill("no runtime was left to cancel a call");
        };
        // Held from now on: the instance's next call comes after this one.
        lane.hold();
        // Before the task: others that are dropped with this one are cut by then.
        let cut = self.entered.worker.cut(lane, id);
        let entered = self.entered.clone();
        let hook = hook.to_owned();
        let end = async move {
            let Entered { worker, lane, .. } = &entered;
            worker.end_call(lane, cut, &hook).await;
            lane.desk().close(id);
            entered.leave();
            lane.let_go();
        };
        drop(self.invocation.host.tracker().spawn_on(end, &runtime));
    }
}
