//! The instance scope: startup, shutdown, and what happens when nobody is left to do either.

use super::handle::WeakAgent;
use super::{Arrow, Inner, Telling};
use crate::BoxFuture;
use crate::context::{Cx, InstanceCx};
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Entry, FaultKind, HookError, HookFailure, Point};
use crate::kernel::{Ends, Sequence, Site, caught, sequence};
use crate::life::protocol::{self, Lived, RollBack, StopClaim};
use crate::life::{LifecycleConfig, Own};
use crate::outcome::ExitReason;
use crate::phase::{IllegalTransition, Phase};
use crate::state::StateOwnership;
use crate::sync::atomic::{AtomicUsize, Ordering};
use serde_json::Value;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

impl Inner {
    pub(crate) async fn startup(
        self: &Arc<Self>,
        config: Option<LifecycleConfig>,
    ) -> Result<(), Error> {
        let own = &self.blueprint.config.lifecycle;
        config.as_ref().unwrap_or(own).check()?;
        if config.is_none() && self.is_unheard() && protocol::start_quietly(self) {
            return Ok(());
        }
        // On the heap, since the futures of ten thousand agents are as large as this one.
        Box::pin(self.start_up(config)).await
    }

    async fn start_up(self: &Arc<Self>, config: Option<LifecycleConfig>) -> Result<(), Error> {
        let own = &self.blueprint.config.lifecycle;
        self.check_made()?;
        let budget = config.as_ref().unwrap_or(own).timeout;
        let Some(claim) = protocol::claim_start(self, budget).await? else { return Ok(()) };
        self.blueprint.started_here();
        let mut starting = Starting { inner: self, over: false };
        let result = match config {
            None => protocol::start(self, claim, own).await,
            Some(config) => {
                *self.extra().config.lock() = Some(config.clone());
                protocol::start(self, claim, &config).await
            }
        };
        starting.over = true;
        drop(starting);
        if result.is_ok() && self.fatal_requested() {
            self.shutdown(ExitReason::Fatal, None).await;
            return Err(Error::new(ErrorKind::Startup, "a hook failed fatally at startup"));
        }
        if result.is_ok() && self.stop_requested() {
            self.shutdown(ExitReason::Completed, None).await;
            return Err(stop_at_startup());
        }
        result
    }

    /// Suspends a ready agent.
    pub(crate) async fn pause(self: &Arc<Self>) -> Result<(), Error> {
        let arrow = Arrow::new(Phase::Idle, Phase::Paused);
        let paused = self.transition(None, |cell| cell.pause().map(|()| arrow));
        self.operated(paused.map_err(|from| not_now("paused when it is ready", from, arrow.to))?)
            .await;
        Ok(())
    }

    /// Makes a paused agent ready again.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<(), Error> {
        let arrow = Arrow::new(Phase::Paused, Phase::Idle);
        let resumed = self.transition(None, |cell| cell.go(arrow.from, arrow.to).map(|()| arrow));
        self.operated(
            resumed.map_err(|from| not_now("resumed when it is paused", from, arrow.to))?,
        )
        .await;
        Ok(())
    }

    /// An operator moved life: hooks and events, and what a hook asked for.
    async fn operated(self: &Arc<Self>, telling: Option<Telling>) {
        if let Some(telling) = telling {
            Box::pin(telling.tell(&Site::of_instance(self, 1), None)).await;
        }
        if self.stop_requested() {
            self.shutdown(ExitReason::Completed, None).await;
        }
    }

    /// Shuts down and waits for it. The work goes on by itself if the caller stops waiting.
    pub(crate) async fn shutdown(self: &Arc<Self>, reason: ExitReason, budget: Option<Duration>) {
        if self.is_unheard()
            && self.cell.life() == Phase::Idle
            && !self.cell.is_held()
            && let Some(claim) = protocol::try_claim_stop(self, Phase::Idle)
        {
            let reason = self.why(claim.from, reason);
            // A turn may have begun in between.
            if !self.cell.is_held() {
                return protocol::finish_quietly(self, reason);
            }
            let budget = self.stop_budget(budget);
            return Box::pin(self.finish(claim, reason, budget)).await;
        }
        Box::pin(self.shut_down(reason, budget)).await;
    }

    fn stop_budget(&self, budget: Option<Duration>) -> Duration {
        budget.unwrap_or_else(|| self.with_lifecycle_config(|config| config.timeout))
    }

    async fn shut_down(self: &Arc<Self>, reason: ExitReason, budget: Option<Duration>) {
        let budget = self.stop_budget(budget);
        let Some(claim) = protocol::claim_stop(self, budget).await else { return };
        let reason = self.why(claim.from, reason);
        self.finish(claim, reason, budget).await;
    }

    /// Why it is over: an agent that rests in the error state has its reason already.
    pub(crate) fn why(&self, from: Phase, reason: ExitReason) -> ExitReason {
        match (from, reason) {
            (Phase::Error, ExitReason::Completed) if self.fatal_requested() => ExitReason::Fatal,
            (Phase::Error, ExitReason::Completed) => ExitReason::StartupFailed,
            _ => reason,
        }
    }

    /// Ends a life that was claimed.
    async fn finish(self: &Arc<Self>, claim: StopClaim, reason: ExitReason, budget: Duration) {
        if self.is_unheard() && !self.cell.is_held() {
            protocol::finish_quietly(self, reason);
        } else {
            self.on_tracker(Ending::new(self).run(claim, reason, budget)).await;
        }
    }

    /// Runs the end of a life, which goes on by itself if the caller stops waiting.
    async fn on_tracker(&self, ending: impl Future<Output = ()> + Send + 'static) {
        match Handle::try_current() {
            // The hooks of the last transition have run when this returns.
            Ok(_) => drop(self.blueprint.tracker.spawn(ending).await),
            Err(_) => ending.await,
        }
    }

    /// Ends the agent, which no handle holds any more.
    #[inline]
    pub(crate) fn last_handle_dropped(self: &Arc<Self>) {
        if self.cell.life() != Phase::Uninitialized || self.if_extra().is_some() {
            self.end_without_handles();
        }
    }

    // Apart from its caller, so that an instance that never started does not pay for the frame of an end.
    #[inline(never)]
    fn end_without_handles(self: &Arc<Self>) {
        let from = self.cell.life();
        let has_to_end = match from {
            Phase::Idle | Phase::Paused | Phase::Error => true,
            // It was never started, but its owner may have acquired something for it.
            Phase::Uninitialized => {
                self.if_extra().is_some_and(|extra| !extra.resources.is_empty())
            }
            _ => false,
        };
        if !has_to_end {
            return;
        }
        let Some(claim) = protocol::try_claim_stop(self, from) else { return };
        if self.is_unheard() && !self.cell.is_held() {
            protocol::finish_quietly(self, self.why(claim.from, ExitReason::Completed));
            return;
        }
        self.finish_detached(claim, ExitReason::Completed);
    }

    /// Shuts down in the background, unless it is over or on its way.
    pub(crate) fn shutdown_detached(self: &Arc<Self>) {
        if !matches!(self.cell.life(), Phase::ShuttingDown | Phase::Terminated) {
            let inner = self.clone();
            let ending = async move { inner.shutdown(ExitReason::Completed, None).await };
            self.blueprint.run_detached(ending);
        }
    }

    /// Ends a life that was claimed, on the tracker.
    fn finish_detached(self: &Arc<Self>, claim: StopClaim, reason: ExitReason) {
        let reason = self.why(claim.from, reason);
        let budget = self.with_lifecycle_config(|config| config.timeout);
        // Where no runtime is left, the drop of the ending releases what it can, and says so.
        let ending = Ending::new(self).run(claim, reason, budget);
        self.blueprint.run_detached(ending);
    }

    /// Has a type of one's own stop. What it fails with is a failure of the instance.
    async fn stop_own(&self, own: &dyn Own, budget: Duration) {
        let mut stopping = own.do_shutdown(budget);
        let error = match poll_fn(|cx| caught(|| stopping.as_mut().poll(cx))).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(panic) => HookError::of_kind(FaultKind::Panicked, panic),
        };
        self.own_failed(&error);
    }

    fn own_failed(&self, error: &HookError) {
        let failure = HookFailure::new(&"do_shutdown".into(), Point::OnShutdown, error);
        tracing::warn!(agent = self.name(), instance = %self.id, "{failure}");
        self.extra().data.failures.lock().push(failure);
    }

    /// What a tear-down did not come to within its budget.
    pub(crate) fn cut_short(&self) {
        tracing::warn!(agent = self.name(), instance = %self.id, "shutdown was cut short");
        self.release_now();
    }

    /// Releases everything, last to first, deregisters, and clears the state.
    pub(crate) async fn release_all(&self) {
        if let Some(extra) = self.if_extra() {
            let limit = self.config().limits.release;
            self.leaked(extra.resources.release_all(self.name(), limit).await);
            self.release_now();
        }
    }

    /// Releases what can be released without waiting.
    fn release_now(&self) {
        if let Some(extra) = self.if_extra() {
            self.leaked(extra.resources.abandon(self.name()));
            if extra.registered.swap(false, Ordering::AcqRel)
                && let Some(registry) = self.registry()
            {
                registry.deregister(self.id);
            }
            extra.state.clear();
        }
    }

    fn leaked(&self, leaked: Vec<(Arc<str>, String)>) {
        for (resource, reason) in leaked {
            if let Some(bus) = self.listening() {
                bus.emit(self, None, EventKind::ResourceLeaked { resource, reason });
            }
        }
    }
}

#[cold]
pub(crate) fn stop_at_startup() -> Error {
    Error::new(ErrorKind::Startup, "a hook asked for a shutdown at startup")
}

#[cold]
fn not_now(rule: &str, from: Phase, to: Phase) -> Error {
    let state = from.state();
    let illegal = IllegalTransition { from, to };
    let message = format!("an agent can only be {rule}, but it is {state}: {illegal}");
    Error::new(ErrorKind::IllegalTransition, message).caused_by(illegal)
}

impl Lived for Arc<Inner> {
    fn inner(&self) -> &Arc<Inner> {
        self
    }

    async fn bring_up(&self, config: &LifecycleConfig, attempt: u32) -> Result<(), Error> {
        if self.is_quiet() {
            return Ok(());
        }
        let own = self.own();
        if own.is_none() && self.extra().own.lock().is_some() {
            return Err(Error::new(
                ErrorKind::Startup,
                "the type that this agent is made of is gone; keep its `Arc` until it is shut down",
            ));
        }
        self.bring_up_with(own.as_deref(), config, attempt).await
    }

    async fn tear_down(&self, reason: ExitReason, budget: Duration) {
        if self.if_extra().is_some() {
            let own = self.own();
            self.tear_down_with(own.as_deref(), reason, budget).await;
        }
    }

    async fn roll_back(&self, rollback: RollBack) {
        self.on_tracker(Ending::new(self).roll_back(rollback)).await;
    }
}

impl Inner {
    /// The type of one's own whose life this is, if it is one's and held in an [`Arc`].
    pub(crate) fn own(&self) -> Option<Arc<dyn Own>> {
        self.if_extra()?.own.lock().as_ref()?.upgrade()
    }

    /// One attempt to start, with what `own` adds to it.
    pub(crate) async fn bring_up_with(
        self: &Arc<Self>,
        own: Option<&dyn Own>,
        config: &LifecycleConfig,
        attempt: u32,
    ) -> Result<(), Error> {
        let extra = self.extra();
        if attempt == 1 {
            self.bury_the_dead().await?;
        }
        if config.state_persistence == StateOwnership::Memory {
            self.load_memory().await?;
        }
        if let Some(registry) = self.registry() {
            registry.register(WeakAgent::of(self))?;
            extra.registered.store(true, Ordering::Release);
        }
        // Here the scope of the instance begins; what failed before has no end.
        extra.ended.store(0, Ordering::Release);
        extra.began.store(true, Ordering::Release);
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnStart) {
            let site = Site::of_instance(self, attempt);
            let mut start = OnStart { inner: self, entered: &extra.entered };
            sequence(&site, chain, Ends::No, &mut start).await?;
        }
        extra.entered.store(chain.entries.len(), Ordering::Release);
        self.recorded_as_begun(chain.entries.len()).await?;
        if let Some(own) = own {
            extra.own_began.store(true, Ordering::Release);
            own.do_startup(config).await.map_err(|error| {
                let message = error.to_string();
                Error::new(ErrorKind::Startup, message).caused_by(error.into_source())
            })?;
        }
        Ok(())
    }

    /// Undoes what was brought up, with what `own` adds to it.
    pub(crate) async fn tear_down_with(
        self: &Arc<Self>,
        own: Option<&dyn Own>,
        reason: ExitReason,
        budget: Duration,
    ) {
        let extra = self.extra();
        let started = Instant::now();
        if extra.own_began.swap(false, Ordering::AcqRel) {
            match own {
                Some(own) => self.stop_own(own, budget).await,
                None => self.own_failed(&HookError::new(
                    "the type is gone, so it was not called; keep its `Arc` until it is shut down",
                )),
            }
        }
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnShutdown) && extra.began.load(Ordering::Acquire) {
            let mut site = Site::of_instance(self, 1);
            site.signal = None;
            // Each of them is called, however little time is left.
            let ends = Ends::Within(self.blueprint.config.limits.ends.min(budget));
            let count = chain.entries.len();
            let mut end =
                OnShutdown { entered: &extra.entered, ended: &extra.ended, count, reason };
            // Ends are always continued; there is nothing to fail with.
            let _ = sequence(&site, chain, ends, &mut end).await;
        }
        extra.entered.store(0, Ordering::Release);
        extra.began.store(false, Ordering::Release);
        let persists =
            self.with_lifecycle_config(|config| config.state_persistence == StateOwnership::Memory);
        if persists {
            // What is acquired has to be released also if memory takes its time.
            self.flush_memory_within(budget.saturating_sub(started.elapsed()) / 2).await;
        }
        self.release_all().await;
    }
}

/// A startup whose future is dropped half way is rolled back on the tracker. A roll-back that has
/// begun is there already.
struct Starting<'a> {
    inner: &'a Arc<Inner>,
    over: bool,
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let inner = self.inner;
        let error = Error::new(ErrorKind::Startup, "startup was dropped before it was done");
        let _ = inner.extra().startup_error.set(error);
        // It may be up already, and only its setup not done.
        let is_setting_up = inner.cell.is_setting_up();
        let from = if is_setting_up { Phase::Idle } else { Phase::Bootstrapping };
        let claim = protocol::try_claim_stop(inner, from);
        if is_setting_up {
            inner.cell.release_turn();
        }
        if let Some(claim) = claim {
            inner.finish_detached(claim, ExitReason::StartupFailed);
        }
    }
}

/// The end of a life, on its way. If it is dropped before it is over, what can be released at once
/// is, and the end is recorded as crashed.
struct Ending {
    inner: Arc<Inner>,
    /// The type of one's own whose life it is: it has to be there for its `do_shutdown`.
    _own: Option<Arc<dyn Own>>,
    over: bool,
}

impl Ending {
    fn new(inner: &Arc<Inner>) -> Self {
        Self { inner: inner.clone(), _own: inner.own(), over: false }
    }

    async fn run(mut self, claim: StopClaim, reason: ExitReason, budget: Duration) {
        protocol::finish(&self.inner, claim, reason, budget).await;
        self.over = true;
    }

    async fn roll_back(mut self, rollback: RollBack) {
        rollback.run(&self.inner).await;
        self.over = true;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let inner = &self.inner;
        inner.release_now();
        if inner.cell.life() != Phase::Terminated {
            inner.set_exit_reason(ExitReason::Crashed);
        }
        let (from, to) = (Phase::ShuttingDown, Phase::Terminated);
        let reason = Some(ExitReason::Crashed);
        // Dropping what is to be told tells it to listeners, and no hook can be run any more.
        let _ =
            inner.transition(None, |cell| cell.go(from, to).map(|()| Arrow { from, to, reason }));
    }
}

struct OnStart<'a> {
    inner: &'a Arc<Inner>,
    entered: &'a AtomicUsize,
}

impl Sequence for OnStart<'_> {
    const POINT: Point = Point::OnStart;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        if self.inner.steps().is_none() {
            return entry.hook.on_start(InstanceCx::new(cx));
        }
        // If the process dies in the middle of it, the next life of the run has to know.
        let (inner, entered) = (self.inner, self.entered.load(Ordering::Acquire));
        Box::pin(async move {
            inner.recorded_as_begun(entered).await?;
            entry.hook.on_start(InstanceCx::new(cx)).await
        })
    }

    fn entered(&mut self, place: usize) {
        self.entered.store(place + 1, Ordering::Release);
    }
}

/// Counts as it goes, so that an end that was interrupted goes on where it stopped, and no entry is
/// ended twice.
pub(super) struct OnShutdown<'a> {
    pub(super) entered: &'a AtomicUsize,
    /// How many entries have ended, from the last one on.
    pub(super) ended: &'a AtomicUsize,
    /// How many there are.
    pub(super) count: usize,
    pub(super) reason: ExitReason,
}

impl Sequence for OnShutdown<'_> {
    const POINT: Point = Point::OnShutdown;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.on_shutdown(InstanceCx::new(cx), self.reason)
    }

    fn skips(&self, place: usize, entry: &Entry) -> bool {
        let has_ended = place + self.ended.load(Ordering::Acquire) >= self.count;
        has_ended || !entry.was_entered(place, self.entered.load(Ordering::Acquire), Point::OnStart)
    }

    fn entered(&mut self, place: usize) {
        self.ended.store(self.count - place, Ordering::Release);
    }

    fn replay(&mut self, _record: Value) -> Result<(), Error> {
        Ok(())
    }
}
