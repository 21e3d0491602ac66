//! The way of a call to the thread that runs its function.

use super::{Again, Invocation, Rest, Told};
use crate::python::Style;
use crate::python::brief;
use crate::python::lane::{Lane, NotSent};
use crate::python::starts::Start;
use crate::python::worker::{Depth, Worker};
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
        let entered = off_the_clock(&cx, self.host.limits().queue, self.find_way()).await;
        let waited = since.elapsed();
        let entered = entered.unwrap_or_else(|| {
            Err(HookError::of_kind(
                FaultKind::TimedOut,
                format!(
                    "`{}` was not called: the thread of the agent was not free within {:?}",
                    self.hook,
                    self.host.limits().queue
                ),
            ))
        });
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

    async fn find_way(&self) -> Result<Entered, HookError> {
        let cx = *self.site.cx();
        let instance = cx.instance_id();
        loop {
            let worker = match self.host.sitting(&cx, self.chair)? {
                Some(worker) => worker,
                None => self.host.seated(&cx, self.chair).await?,
            };
            let Some(first) = worker.first_lane(instance) else {
                self.open_first(&worker).await?;
                continue;
            };
            let mut changed = pin!(first.changed.notified());
            changed.as_mut().enable();
            if let Some(entered) = self.enter_worker(worker.clone()) {
                return Ok(entered);
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
            match worker.open_lane(instance, brief::about(&cx), Depth::Further).await {
                Ok(Some(lane)) => return Ok(Entered { worker, lane, is_claimed: true }),
                Ok(None) => {}
                Err(NotSent) => {
                    worker.abandon("the worker took no more calls", self.host.tracker())
                }
            }
        }
    }

    /// Opens the first lane of the instance. One that lived in another worker, or on a thread that was given
    /// up, is started again first.
    async fn open_first(&self, worker: &Arc<Worker>) -> Result<(), HookError> {
        let cx = self.site.cx();
        let instance = cx.instance_id();
        let opened = worker.open_lane(instance, brief::about(cx), Depth::First).await;
        let lane = match opened {
            Ok(Some(lane)) => lane,
            Ok(None) => return Ok(()),
            Err(NotSent) => {
                worker.abandon("the worker took no more calls", self.host.tracker());
                return Ok(());
            }
        };
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
                if repeat == Again::Yes {
                    return Ok(Started::NotHere);
                }
                self.host.starts().fail(cx.instance_id());
                return Err(HookError::new(format!(
                    "`{}` could not start the agent again after its worker was replaced: {}",
                    start.hook,
                    failed.into_fault()
                ))
                .fatal());
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
/// longer than the limit, or than the turn may.
pub(super) async fn off_the_clock<T>(
    cx: &Cx<'_>,
    limit: Duration,
    wait: impl Future<Output = Result<T, HookError>>,
) -> Option<Result<T, HookError>> {
    let _paused = cx.pause_limit();
    let turn = cx.deadline().map(|at| at.saturating_duration_since(std::time::Instant::now()));
    let limit = turn.map_or(limit, |left| left.min(limit));
    tokio::select! {
        biased;
        ended = wait => Some(ended),
        () = cx.cancelled() => Some(Err(Error::cancelled().into())),
        () = tokio::time::sleep(limit) => None,
    }
}
