//! The instance scope: startup, shutdown, and what happens when nobody is left to do either.

use super::Inner;
use super::handle::WeakAgent;
use crate::BoxFuture;
use crate::cancel::Signal;
use crate::context::{Cx, InstanceCx, PhaseCx};
use crate::error::Error;
use crate::event::EventKind;
use crate::hook::{Entry, HookError, Point};
use crate::kernel::{Ends, Sequence, Site, sequence};
use crate::life::protocol::{self, Lived};
use crate::life::{LifeCell, LifecycleConfig, Metrics};
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::state::StateOwnership;
use crate::sync::atomic::{AtomicUsize, Ordering};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

impl Inner {
    fn site(self: &Arc<Self>, attempt: u32) -> Site<'_> {
        Site {
            inner: self,
            turn: None,
            chat: None,
            signal: Some(&self.signal),
            data: &self.extra().data,
            attempt,
        }
    }

    /// Runs the hooks of a transition that has happened, and tells whoever listens.
    pub(crate) async fn transitioned(
        self: &Arc<Self>,
        site: &Site<'_>,
        from: Phase,
        to: Phase,
        reason: Option<ExitReason>,
    ) {
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnTransition) {
            let ends = Ends::Within(self.blueprint.config.limits.ends);
            // Transitions cannot fail: every policy there is `continue`.
            let _ = sequence(site, chain, ends, &mut Transition { from, to }).await;
        }
        site.emit(|| EventKind::PhaseEntered { from, to, reason });
    }

    pub(crate) async fn startup(
        self: &Arc<Self>,
        config: Option<LifecycleConfig>,
    ) -> Result<(), Error> {
        let own = &self.blueprint.config.lifecycle;
        config.as_ref().unwrap_or(own).check()?;
        if !protocol::claim_start(self).await? {
            return Ok(());
        }
        let mut starting = Starting {
            inner: self,
            over: false,
        };
        let result = match config {
            None => protocol::start(self, own).await,
            Some(config) => {
                *self.extra().config.lock() = Some(config.clone());
                protocol::start(self, &config).await
            }
        };
        starting.over = true;
        result
    }

    /// Shuts down and waits for it. The work goes on by itself if the caller stops waiting.
    pub(crate) async fn shutdown(self: &Arc<Self>, reason: ExitReason, budget: Option<Duration>) {
        let Some(from) = protocol::claim_stop(self).await else {
            return;
        };
        self.finish(from, reason, budget).await;
    }

    /// Ends a life that was claimed.
    async fn finish(self: &Arc<Self>, from: Phase, reason: ExitReason, budget: Option<Duration>) {
        let budget = budget.unwrap_or_else(|| self.with_lifecycle_config(|config| config.timeout));
        if self.is_quiet() && self.cell.turn() == Phase::Idle {
            protocol::finish(self, from, reason, budget).await;
        } else {
            let ending = Ending {
                inner: self.clone(),
                over: false,
            };
            match Handle::try_current() {
                Ok(_) => {
                    self.blueprint
                        .tracker
                        .spawn(ending.run(from, reason, budget));
                    self.cell.wait(|life, _| life == Phase::Terminated).await;
                }
                Err(_) => ending.run(from, reason, budget).await,
            }
        }
    }

    /// Nobody holds the agent any more.
    pub(crate) fn last_handle_dropped(self: &Arc<Self>) {
        let from = self.cell.life();
        let resting = matches!(from, Phase::Idle | Phase::Paused | Phase::Error);
        if !resting || !protocol::try_claim_stop(self, from) {
            return;
        }
        self.finish_detached(from, ExitReason::Completed);
    }

    /// Ends a life that was claimed, on the tracker.
    pub(crate) fn finish_detached(self: &Arc<Self>, from: Phase, reason: ExitReason) {
        let ending = Ending {
            inner: self.clone(),
            over: false,
        };
        if Handle::try_current().is_ok() {
            let budget = self.with_lifecycle_config(|config| config.timeout);
            self.blueprint
                .tracker
                .spawn(ending.run(from, reason, budget));
        }
        // Without a runtime the drop of `ending` releases what it can, and says so.
    }

    /// Releases what can be released without waiting.
    fn release_now(&self) {
        if let Some(extra) = self.if_extra() {
            self.leaked(extra.resources.abandon(self.name()));
            extra.state.clear();
            if extra.registered.swap(false, Ordering::AcqRel)
                && let Some(registry) = self.registry()
            {
                registry.deregister(self.id);
            }
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
        if config.state_persistence == StateOwnership::Memory {
            self.load_memory().await?;
        }
        if let Some(registry) = self.registry() {
            registry.register(WeakAgent::of(self))?;
            extra.registered.store(true, Ordering::Release);
        }
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnStart) {
            let site = self.site(attempt);
            let mut start = OnStart {
                entered: &extra.entered,
            };
            sequence(&site, chain, Ends::No, &mut start).await?;
        }
        extra.entered.store(chain.entries.len(), Ordering::Release);
        Ok(())
    }

    async fn tear_down(&self, reason: ExitReason) {
        let Some(extra) = self.if_extra() else { return };
        // Taken, so that no entry can be ended twice.
        let entered = extra.entered.swap(0, Ordering::AcqRel);
        let chain = &self.blueprint.chain;
        if chain.has(Point::OnShutdown) {
            let mut site = self.site(1);
            site.signal = None;
            let ends = Ends::Within(self.blueprint.config.limits.ends);
            let mut end = OnShutdown { entered, reason };
            // Ends are always continued; there is nothing to fail with.
            let _ = sequence(&site, chain, ends, &mut end).await;
        }
        let persists =
            self.with_lifecycle_config(|config| config.state_persistence == StateOwnership::Memory);
        if persists && let Err(error) = self.flush_memory().await {
            tracing::error!(agent = self.name(), instance = %self.id, "{error}");
        }
        self.leaked(extra.resources.release_all(self.name()).await);
        self.release_now();
    }

    fn cut_short(&self) {
        tracing::warn!(agent = self.name(), instance = %self.id, "shutdown was cut short");
        self.release_now();
    }

    async fn moved(&self, from: Phase, to: Phase, reason: Option<ExitReason>) {
        if let Some(reason) = reason {
            self.set_exit_reason(reason);
        }
        if self.blueprint.chain.has(Point::OnTransition) || self.is_watched() {
            let mut site = self.site(1);
            site.signal = None;
            self.transitioned(&site, from, to, reason).await;
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
        if !self.over && protocol::try_claim_stop(self.inner, Phase::Bootstrapping) {
            self.inner
                .finish_detached(Phase::Bootstrapping, ExitReason::StartupFailed);
        }
    }
}

/// The end of a life, on its way. If it is dropped before it is over, what can be released at once
/// is, and the end is recorded as crashed.
struct Ending {
    inner: Arc<Inner>,
    over: bool,
}

impl Ending {
    async fn run(mut self, from: Phase, reason: ExitReason, budget: Duration) {
        protocol::finish(&self.inner, from, reason, budget).await;
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
        if inner
            .cell
            .go(Phase::ShuttingDown, Phase::Terminated)
            .is_ok()
        {
            inner.metrics.life_moved();
            inner.set_exit_reason(ExitReason::Crashed);
            if let Some(bus) = inner.listening() {
                let (from, to) = (Phase::ShuttingDown, Phase::Terminated);
                let reason = Some(ExitReason::Crashed);
                bus.emit(inner, None, EventKind::PhaseEntered { from, to, reason });
            }
        }
    }
}

struct OnStart<'a> {
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
        entry.hook.on_start(InstanceCx::new(cx))
    }

    fn accept(&mut self, _entry: &Entry, (): ()) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn entered(&mut self, place: usize) {
        self.entered.store(place + 1, Ordering::Release);
    }
}

struct OnShutdown {
    entered: usize,
    reason: ExitReason,
}

impl Sequence for OnShutdown {
    const POINT: Point = Point::OnShutdown;
    type Out = ();

    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        entry.hook.on_shutdown(InstanceCx::new(cx), self.reason)
    }

    fn accept(&mut self, _entry: &Entry, (): ()) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn skips(&self, place: usize, _entry: &Entry) -> bool {
        place >= self.entered
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
        entry
            .hook
            .on_transition(PhaseCx::new(cx, self.from, self.to))
    }

    fn accept(&mut self, _entry: &Entry, (): ()) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn skips(&self, _place: usize, entry: &Entry) -> bool {
        !entry.wants_transition(self.from, self.to)
    }
}
