//! The way of a call to the thread that runs its function.

use super::{Again, Invocation, Rest, Told};
use crate::python::Style;
use crate::python::brief;
use crate::python::config::limit_text;
use crate::python::lane::Lane;
use crate::python::starts::Start;
use crate::python::worker::{Depth, Unopened, Worker};
use crate::site::Site;
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::context::Cx;
use tenure_core::hook::{FaultKind, HookError};
use tokio::time::Instant;

/// A wait that is worth an event.
const WORTH_TELLING: Duration = Duration::from_millis(100);

/// A lane that a call may use.
#[derive(Clone)]
pub(super) struct Entered {
    pub(super) worker: Arc<Worker>,
    pub(super) lane: Arc<Lane>,
    /// Whether the call has the thread for itself, as that of a plain function does.
    is_claimed: bool,
}

impl Entered {
    /// Gives back what the call had for itself.
    pub(super) fn leave(&self) {
        if self.is_claimed {
            self.lane.unclaim();
        }
    }
}

/// The outcome of looking for a thread.
enum Way {
    Open(Entered),
    /// The worker is gone, and another one has to be started.
    NoWorker,
}

/// What a function does to the thread that it runs on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A coroutine shares it.
    Shared,
    /// A plain function keeps it until it returns.
    Kept,
    /// A plain function that waits for the host has one of its own.
    Own,
}

impl Invocation<'_> {
    fn use_of_thread(&self) -> Use {
        let function = &self.entry.function;
        match function.style {
            Style::Async => Use::Shared,
            Style::Sync if function.waits || !matches!(self.rest, Rest::Nothing) => Use::Own,
            Style::Sync => Use::Kept,
        }
    }

    /// Returns the lane of the call if nothing has to be waited for, which is usual.
    pub(super) fn enter_now(&self) -> Result<Option<Entered>, HookError> {
        let Some(worker) = self.host.sitting(self.site.cx(), self.chair)? else { return Ok(None) };
        Ok(self.enter_worker(worker))
    }

    fn enter_worker(&self, worker: Arc<Worker>) -> Option<Entered> {
        let instance = self.site.cx().instance_id();
        let first = worker.first_lane(instance).filter(|lane| !lane.is_held())?;
        let needs = self.use_of_thread();
        if needs == Use::Own || first.is_blocked() {
            let lane = worker.claim_further(instance)?;
            return Some(Entered { worker, lane, is_claimed: true });
        }
        let is_claimed = needs == Use::Kept;
        if is_claimed && !first.claim() {
            return None;
        }
        Some(Entered { worker, lane: first, is_claimed })
    }

    /// Waits for a worker, for the instance to be started there, and for the thread. None of that is the
    /// function's own time.
    pub(super) async fn enter(&self) -> Result<Entered, HookError> {
        let cx = *self.site.cx();
        let since = Instant::now();
        let entered = self.find_way().await;
        let waited = since.elapsed();
        if waited >= WORTH_TELLING {
            cx.announce("python.queued", || {
                json!({
                    "hook": self.hook,
                    "waited_ms": waited.as_millis() as u64,
                    "called": entered.is_ok(),
                })
            });
        }
        entered
    }

    /// Waits for a worker, which has the limit of a start, and then for a thread of it, which has that of the
    /// queue: a short queue does not make every cold start fail.
    async fn find_way(&self) -> Result<Entered, HookError> {
        let cx = *self.site.cx();
        let limits = self.host.limits();
        let mut left = limits.queue;
        loop {
            if self.host.sitting(&cx, self.chair)?.is_none() {
                // A spare that never becomes ready is waited for before another one is started.
                let limit = limits.start.saturating_mul(2);
                let seated = off_the_clock(&cx, limit, self.host.seated(&cx, self.chair)).await;
                seated.unwrap_or_else(|| Err(self.no_worker()))?;
            }
            let since = Instant::now();
            match off_the_clock(&cx, left, self.find_thread()).await {
                Some(Ok(Way::Open(entered))) => return Ok(entered),
                Some(Ok(Way::NoWorker)) => left = left.saturating_sub(since.elapsed()),
                Some(Err(error)) => return Err(error),
                None => return Err(self.no_thread()),
            }
        }
    }

    #[cold]
    fn no_worker(&self) -> HookError {
        let limit = limit_text("start", self.host.limits().start);
        let why = format!(
            "`{}` was not called: no worker of Python was ready in time, which is {limit} for a start",
            self.hook
        );
        HookError::of_kind(FaultKind::NotStarted, why)
    }

    #[cold]
    pub(super) fn no_thread(&self) -> HookError {
        let limit = limit_text("queue", self.host.limits().queue);
        let why = format!(
            "`{}` was not called: the thread of the agent was not free within {limit}",
            self.hook
        );
        HookError::of_kind(FaultKind::TimedOut, why)
    }

    async fn find_thread(&self) -> Result<Way, HookError> {
        let cx = *self.site.cx();
        let instance = cx.instance_id();
        loop {
            let Some(worker) = self.host.sitting(&cx, self.chair)? else {
                return Ok(Way::NoWorker);
            };
            let Some(first) = worker.first_lane(instance) else {
                self.open_first(&worker).await?;
                continue;
            };
            let mut changed = pin!(first.changed.notified());
            changed.as_mut().enable();
            if let Some(entered) = self.enter_worker(worker.clone()) {
                return Ok(Way::Open(entered));
            }
            if first.is_held() || !first.is_open() {
                if first.is_open() {
                    changed.await;
                }
                continue;
            }
            if self.use_of_thread() != Use::Own && !first.is_blocked() {
                // A plain function has the thread.
                changed.await;
                continue;
            }
            if let Some(lane) = self.open_lane(&worker, Depth::Further)? {
                return Ok(Way::Open(Entered { worker, lane, is_claimed: true }));
            }
        }
    }

    /// Opens a lane; `None` is that the next look at the worker finds another way.
    fn open_lane(
        &self,
        worker: &Arc<Worker>,
        depth: Depth,
    ) -> Result<Option<Arc<Lane>>, HookError> {
        let cx = self.site.cx();
        match worker.open_lane(cx.instance_id(), brief::about(cx), depth, self.chair) {
            Ok(lane) => Ok(lane),
            Err(Unopened::NotSent) => {
                worker.abandon("the worker took no more calls", self.host.tracker());
                Ok(None)
            }
            Err(Unopened::Here(error)) => {
                let why = format!("`{}` was not called: no pipe could be made: {error}", self.hook);
                Err(HookError::of_kind(FaultKind::NotStarted, why))
            }
        }
    }

    /// Opens the first lane of the instance. One that lived in another worker, or on a thread that was given
    /// up, is started again first.
    async fn open_first(&self, worker: &Arc<Worker>) -> Result<(), HookError> {
        let cx = self.site.cx();
        let instance = cx.instance_id();
        let Some(lane) = self.open_lane(worker, Depth::First)? else { return Ok(()) };
        let setup = Setup { worker, lane: &lane, is_done: false };
        let again = self.host.starts().again(instance, self.chair);
        if again.is_empty() || self.start_again(worker, &lane, &again).await? == Started::Yes {
            setup.done();
        }
        Ok(())
    }

    async fn start_again(
        &self,
        worker: &Arc<Worker>,
        lane: &Arc<Lane>,
        again: &[Arc<Start>],
    ) -> Result<Started, HookError> {
        let cx = *self.site.cx();
        for start in again {
            let invocation = Invocation {
                host: self.host,
                entry: &start.entry,
                site: Site::Plain(cx),
                hook: &start.hook,
                rest: Rest::Nothing,
                chair: self.chair,
            };
            let entered = Entered { worker: worker.clone(), lane: lane.clone(), is_claimed: false };
            let (repeat, result) = Box::pin(invocation.call(entered, Told::StartAgain)).await;
            if let Err(failed) = result {
                if repeat != Again::No {
                    return Ok(Started::NotHere);
                }
                let fault = failed.into_fault();
                // A turn that was cancelled, or whose time is up, says nothing of the start: the next call tries it
                // again.
                if fault.downcast_ref::<Error>().is_some() {
                    return Err(fault);
                }
                self.host.starts().fail(cx.instance_id());
                let why = format!(
                    "`{}` could not start the agent again after its worker was replaced: {fault}",
                    start.hook
                );
                return Err(HookError::new(why).fatal());
            }
        }
        cx.announce("python.worker_replaced", || {
            let hooks: Vec<_> = again.iter().map(|start| &*start.hook).collect();
            json!({ "reason": brief::WORKER_REPLACED, "on_start": hooks })
        });
        Ok(Started::Yes)
    }
}

/// Whether an instance was started again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Started {
    Yes,
    /// Another call took the worker down; it is tried in the next.
    NotHere,
}

/// The setup of an instance on a lane, which later calls wait for. If it comes to nothing, the lane is not
/// used.
struct Setup<'a> {
    worker: &'a Worker,
    lane: &'a Arc<Lane>,
    is_done: bool,
}

impl Setup<'_> {
    fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Setup<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.worker.close_lane(self.lane);
        }
        self.lane.let_go();
    }
}

/// Waits for something that is not the function's own time, until the call is cancelled. `None`: it took
/// longer than the limit, or at an end, than all of them may together.
pub(super) async fn off_the_clock<T>(
    cx: &Cx<'_>,
    limit: Duration,
    wait: impl Future<Output = Result<T, HookError>>,
) -> Option<Result<T, HookError>> {
    let left = cx.may_wait().filter(|left| *left < limit);
    let _paused = cx.pause_limit();
    tokio::select! {
        biased;
        ended = wait => Some(ended),
        () = cx.cancelled() => Some(Err(Error::cancelled().into())),
        () = tokio::time::sleep(left.unwrap_or(limit)) => {
            let is_turn_over = left.is_some() && !cx.hook_type().is_end();
            is_turn_over.then(|| Err(Error::turn_timed_out().into()))
        }
    }
}
