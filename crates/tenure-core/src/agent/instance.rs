//! The instance scope: startup, shutdown, and what happens when nobody is left to do either.

use super::Inner;
use super::handle::WeakAgent;
use crate::BoxFuture;
use crate::cancel::Signal;
use crate::context::{Cx, InstanceCx, PhaseCx};
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Entry, HookError, Point};
use crate::kernel::{Ends, Sequence, Site, sequence};
use crate::life::protocol::{self, Lived};
use crate::life::{LifeCell, LifecycleConfig, Metrics};
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::state::StateOwnership;
use crate::sync::atomic::{AtomicUsize, Ordering};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

impl Inner {
    /// Runs the hooks of a transition that has happened, and tells whoever listens.
    pub(crate) async fn transitioned(
        self: &Arc<Self>,
        site: &Site<'_>,
        from: Phase,
        to: Phase,
        reason: Option<ExitReason>,
    ) {
        let chain = &self.blueprint.chain;
        // It has happened: if this is dropped in the middle of a hook, the event goes out then.
        let _told = site.at_last(|| EventKind::PhaseEntered { from, to, reason });
        if chain.has(Point::OnTransition) {
            let ends = Ends::Within(self.blueprint.config.limits.ends);
            // Transitions cannot fail: every policy there is `continue`.
            let _ = sequence(site, chain, ends, &mut Transition { from, to }).await;
        }
    }

    pub(crate) async fn startup(
        self: &Arc<Self>,
        config: Option<LifecycleConfig>,
    ) -> Result<(), Error> {
        let own = &self.blueprint.config.lifecycle;
        config.as_ref().unwrap_or(own).check()?;
        let budget = config.as_ref().unwrap_or(own).timeout;
        if !protocol::claim_start(self, budget).await? {
            return Ok(());
        }
        self.blueprint.started_here();
        let mut starting = Starting { inner: self, over: false };
        let result = match config {
            None => protocol::start(self, own).await,
            Some(config) => {
                *self.extra().config.lock() = Some(config.clone());
                protocol::start(self, &config).await
            }
        };
        starting.over = true;
        drop(starting);
        if result.is_ok() && self.stop_requested() {
            self.shutdown(ExitReason::Completed, None).await;
            return Err(Error::new(ErrorKind::Startup, "a hook asked for a shutdown at startup"));
        }
        result
    }

    /// An operator moved life: hooks and events, and what a hook asked for.
    pub(crate) async fn operated(self: &Arc<Self>, from: Phase, to: Phase) {
        self.moved(from, to, None).await;
        if self.stop_requested() {
            self.shutdown(ExitReason::Completed, None).await;
        }
    }

    /// Shuts down and waits for it. The work goes on by itself if the caller stops waiting.
    pub(crate) async fn shutdown(self: &Arc<Self>, reason: ExitReason, budget: Option<Duration>) {
        let budget = budget.unwrap_or_else(|| self.with_lifecycle_config(|config| config.timeout));
        let Some(from) = protocol::claim_stop(self, budget).await else { return };
        self.finish(from, reason, budget).await;
    }

    /// Why it is over: an agent that rests in the error state has its reason already.
    fn why(&self, from: Phase, reason: ExitReason) -> ExitReason {
        match (from, reason) {
            (Phase::Error, ExitReason::Completed) if self.fatal_requested() => ExitReason::Fatal,
            (Phase::Error, ExitReason::Completed) => ExitReason::StartupFailed,
            _ => reason,
        }
    }

    /// Ends a life that was claimed.
    async fn finish(self: &Arc<Self>, from: Phase, reason: ExitReason, budget: Duration) {
        let reason = self.why(from, reason);
        if self.is_quiet() && !self.cell.is_held() {
            protocol::finish(self, from, reason, budget).await;
        } else {
            let ending = Ending::new(self, Some(from)).run(from, reason, budget);
            match Handle::try_current() {
                // The hooks of the last transition have run when this returns.
                Ok(_) => drop(self.blueprint.tracker.spawn(ending).await),
                Err(_) => ending.await,
            }
        }
    }

    /// Nobody holds the agent any more.
    pub(crate) fn last_handle_dropped(self: &Arc<Self>) {
        let from = self.cell.life();
        let resting = matches!(from, Phase::Idle | Phase::Paused | Phase::Error);
        if !resting {
            return;
        }
        let Some(from) = protocol::try_claim_stop(self, from) else { return };
        if self.is_quiet() && !self.cell.is_held() && !self.is_watched() {
            // Nothing to run and nobody to tell: it is over here and now.
            self.set_exit_reason(ExitReason::Completed);
            let _ = self.cell.go(Phase::ShuttingDown, Phase::Terminated);
            return;
        }
        self.finish_detached(from, ExitReason::Completed);
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
    pub(crate) fn finish_detached(self: &Arc<Self>, from: Phase, reason: ExitReason) {
        let reason = self.why(from, reason);
        let budget = self.with_lifecycle_config(|config| config.timeout);
        // Where no runtime is left, the drop of the ending releases what it can, and says so.
        let ending = Ending::new(self, Some(from)).run(from, reason, budget);
        self.blueprint.run_detached(ending);
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

impl Lived for Arc<Inner> {
    fn cell(&self) -> &LifeCell {
        &self.cell
    }

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn signal(&self) -> &Signal {
        &self.signal
    }

    async fn bring_up(&self, config: &LifecycleConfig, attempt: u32) -> Result<(), Error> {
        if self.is_quiet() {
            return Ok(());
        }
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
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnStart) {
            let site = Site::of_instance(self, attempt);
            let mut start = OnStart { inner: self, entered: &extra.entered };
            sequence(&site, chain, Ends::No, &mut start).await?;
        }
        extra.entered.store(chain.entries.len(), Ordering::Release);
        self.recorded_as_begun(chain.entries.len()).await
    }

    async fn tear_down(&self, reason: ExitReason, budget: Duration) {
        let Some(extra) = self.if_extra() else { return };
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnShutdown) {
            let mut site = Site::of_instance(self, 1);
            site.signal = None;
            // Each of them is called, however little time is left.
            let ends = Ends::Within(self.blueprint.config.limits.ends.min(budget));
            let mut end = OnShutdown { entered: &extra.entered, reason };
            // Ends are always continued; there is nothing to fail with.
            let _ = sequence(&site, chain, ends, &mut end).await;
        }
        extra.entered.store(0, Ordering::Release);
        let persists =
            self.with_lifecycle_config(|config| config.state_persistence == StateOwnership::Memory);
        if persists && let Err(error) = self.flush_memory().await {
            tracing::error!(agent = self.name(), instance = %self.id, "{error}");
        }
        self.leaked(extra.resources.release_all(self.name(), self.config().limits.release).await);
        self.release_now();
    }

    fn rolling_back(&self) {
        self.extra().rolling_back.store(true, Ordering::Release);
    }

    fn cut_short(&self) {
        tracing::warn!(agent = self.name(), instance = %self.id, "shutdown was cut short");
        self.release_now();
    }

    fn ending(&self, reason: ExitReason) {
        self.set_exit_reason(reason);
    }

    async fn moved(&self, from: Phase, to: Phase, reason: Option<ExitReason>) {
        if self.blueprint.chain.has(Point::OnTransition) || self.is_watched() {
            let mut site = Site::of_instance(self, 1);
            site.signal = None;
            Box::pin(self.transitioned(&site, from, to, reason)).await;
        }
        if let Some(reason) = reason.filter(|_| to == Phase::Terminated) {
            self.recorded_as_ended(reason).await;
        }
    }
}

/// A startup whose future is dropped half way is rolled back on the tracker.
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
        if let Some(from) = protocol::try_claim_stop(inner, Phase::Bootstrapping) {
            inner.finish_detached(from, ExitReason::StartupFailed);
        } else if inner.if_extra().is_some_and(|it| it.rolling_back.load(Ordering::Acquire)) {
            inner.blueprint.run_detached(Ending::new(inner, None).roll_back());
        }
    }
}

/// The end of a life, on its way. If it is dropped before it is over, what can be released at once
/// is, and the end is recorded as crashed.
struct Ending {
    inner: Arc<Inner>,
    /// Where it comes from, until that was told.
    untold: Option<Phase>,
    over: bool,
}

impl Ending {
    fn new(inner: &Arc<Inner>, untold: Option<Phase>) -> Self {
        Self { inner: inner.clone(), untold, over: false }
    }

    async fn run(mut self, from: Phase, reason: ExitReason, budget: Duration) {
        self.untold = None;
        protocol::finish(&self.inner, from, reason, budget).await;
        self.over = true;
    }

    async fn roll_back(mut self) {
        let budget = self.inner.with_lifecycle_config(|config| config.timeout);
        protocol::roll_back(&self.inner, budget).await;
        self.over = true;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let inner = &self.inner;
        let told = |from: Phase, to: Phase, reason: Option<ExitReason>| {
            if let Some(bus) = inner.listening() {
                bus.emit(inner, None, EventKind::PhaseEntered { from, to, reason });
            }
        };
        if let Some(from) = self.untold.take() {
            told(from, Phase::ShuttingDown, None);
        }
        inner.release_now();
        if inner.cell.life() != Phase::Terminated {
            inner.set_exit_reason(ExitReason::Crashed);
        }
        if inner.cell.go(Phase::ShuttingDown, Phase::Terminated).is_ok() {
            inner.metrics.life_moved(2);
            told(Phase::ShuttingDown, Phase::Terminated, Some(ExitReason::Crashed));
        }
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

/// Counts down as it goes, so that an end that was interrupted goes on where it stopped, and no
/// entry is ended twice.
pub(super) struct OnShutdown<'a> {
    pub(super) entered: &'a AtomicUsize,
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

    fn skips(&self, place: usize, _entry: &Entry) -> bool {
        place >= self.entered.load(Ordering::Acquire)
    }

    fn entered(&mut self, place: usize) {
        self.entered.store(place, Ordering::Release);
    }

    fn replay(&mut self, _record: Value) -> Result<(), Error> {
        Ok(())
    }
}

struct Transition {
    from: Phase,
    to: Phase,
}

impl Sequence for Transition {
    const POINT: Point = Point::OnTransition;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.on_transition(PhaseCx::new(cx, self.from, self.to))
    }

    fn skips(&self, _place: usize, entry: &Entry) -> bool {
        !entry.wants_transition(self.from, self.to)
    }
}
