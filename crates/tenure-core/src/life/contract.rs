//! The contract as traits.

use super::protocol::{self, Lived};
use super::{LifeCell, Lifecycle, LifecycleConfig, LifecycleMetrics, Metrics};
use crate::agent::Agent;
use crate::cancel::Signal;
use crate::error::Error;
use crate::hook::HookError;
use crate::kernel::caught;
use crate::outcome::ExitReason;
use crate::phase::{AgentState, IllegalTransition, Phase};
use crate::resource::RELEASE_LIMIT;
use crate::state::StateOwnership;
use crate::sync::atomic::{AtomicBool, Ordering};
use async_trait::async_trait;
use serde_json::Value;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What every agent promises, whoever wrote it.
#[async_trait]
pub trait AgentLifecycleProtocol: Send + Sync {
    /// Starts the agent. Idempotent once it is ready; bounded; atomic: it is ready afterwards, or
    /// everything acquired so far was released and it is terminated.
    ///
    /// A terminated agent cannot be started again.
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error>;

    /// Shuts the agent down. Idempotent, bounded, and never fails; from uninitialized it runs no
    /// hooks. Terminated is final.
    async fn shutdown(&self, timeout: Option<Duration>);

    /// Suspends a ready agent. While it is busy this is a typed error.
    async fn pause(&self) -> Result<(), Error>;

    /// Makes a paused agent ready again.
    async fn resume(&self) -> Result<(), Error>;

    /// The state it is in. Callable from any thread.
    #[doc(alias = "get_state")]
    fn state(&self) -> AgentState;

    /// Its numbers so far.
    #[doc(alias = "get_metrics")]
    fn metrics(&self) -> LifecycleMetrics;

    /// Who owns `key`.
    fn owns_state(&self, key: &str) -> StateOwnership;

    /// Writes a value that the agent owns, or that its declaration lets it write.
    fn set_state(&self, key: &str, value: Value) -> Result<(), Error>;

    /// How many values the agent itself holds. None after shutdown.
    fn state_len(&self) -> usize;
}

/// Gives the whole contract to a type of one's own: it says how to start and how to stop, the rest
/// is provided by [`AgentLifecycleProtocol`].
///
/// ```
/// use async_trait::async_trait;
/// use std::time::Duration;
/// use tenure_core::hook::HookError;
/// use tenure_core::life::{AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent};
///
/// struct Worker {
///     life: Lifecycle,
/// }
///
/// #[async_trait]
/// impl ManagedAgent for Worker {
///     fn lifecycle(&self) -> &Lifecycle {
///         &self.life
///     }
///     async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
///         Ok(())
///     }
///     async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let worker = Worker { life: Lifecycle::new("worker") };
/// worker.startup(None).await?;
/// worker.shutdown(None).await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[async_trait]
pub trait ManagedAgent: Send + Sync + 'static {
    /// The life in one of the type's fields.
    fn lifecycle(&self) -> &Lifecycle;

    /// Acquires what the agent needs. Called once per attempt.
    async fn do_startup(&self, config: &LifecycleConfig) -> Result<(), HookError>;

    /// Releases it. Called once per attempt to start, also if that attempt failed.
    async fn do_shutdown(&self, timeout: Duration) -> Result<(), HookError>;

    /// Who owns `key`.
    fn owner_of(&self, key: &str) -> StateOwnership {
        self.lifecycle().owner(key)
    }
}

#[async_trait]
impl<T: ManagedAgent> AgentLifecycleProtocol for T {
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error> {
        let life = self.lifecycle();
        let config = config.unwrap_or_else(|| life.config.clone());
        config.check()?;
        let it = Managed::new(self);
        if !protocol::claim_start(&it, config.timeout).await? {
            return Ok(());
        }
        it.owns.store(true, Ordering::Relaxed);
        *life.active.lock() = Some(config.clone());
        protocol::start(&it, &config).await
    }

    async fn shutdown(&self, timeout: Option<Duration>) {
        let it = Managed::new(self);
        let life = self.lifecycle();
        let configured = life.active.lock().as_ref().map(|config| config.timeout);
        let budget = timeout.or(configured).unwrap_or(life.config.timeout);
        if let Some(from) = protocol::claim_stop(&it, budget).await {
            it.owns.store(true, Ordering::Relaxed);
            let reason = match from {
                Phase::Error => ExitReason::StartupFailed,
                _ => ExitReason::Completed,
            };
            protocol::finish(&it, from, reason, budget).await;
        }
    }

    async fn pause(&self) -> Result<(), Error> {
        let life = self.lifecycle();
        pause(&life.cell, &life.metrics)?;
        Managed::new(self).moved(Phase::Idle, Phase::Paused, None).await;
        Ok(())
    }

    async fn resume(&self) -> Result<(), Error> {
        let life = self.lifecycle();
        resume(&life.cell, &life.metrics)?;
        Managed::new(self).moved(Phase::Paused, Phase::Idle, None).await;
        Ok(())
    }

    fn state(&self) -> AgentState {
        self.lifecycle().state()
    }

    fn metrics(&self) -> LifecycleMetrics {
        self.lifecycle().metrics()
    }

    fn owns_state(&self, key: &str) -> StateOwnership {
        self.owner_of(key)
    }

    fn set_state(&self, key: &str, value: Value) -> Result<(), Error> {
        let life = self.lifecycle();
        // What is written now would outlive the clearing at shutdown.
        if life.phase() == Phase::Terminated {
            return Err(Error::not_ready(AgentState::Terminated, "ready"));
        }
        let owner = self.owner_of(key);
        if matches!(owner, StateOwnership::Memory | StateOwnership::Orchestrator) {
            let actor = StateOwnership::Agent;
            let violation = crate::state::StateViolation { key: key.to_owned(), owner, actor };
            return Err(violation.into());
        }
        life.state.write(&life.ownership, vec![(key.to_owned(), value)])?;
        Ok(())
    }

    fn state_len(&self) -> usize {
        self.lifecycle().values().len()
    }
}

#[async_trait]
impl AgentLifecycleProtocol for Agent {
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error> {
        match config {
            Some(config) => Agent::startup_with(self, config).await,
            None => Agent::startup(self).await,
        }
    }

    async fn shutdown(&self, timeout: Option<Duration>) {
        match timeout {
            Some(timeout) => Agent::shutdown_within(self, timeout).await,
            None => Agent::shutdown(self).await,
        }
    }

    async fn pause(&self) -> Result<(), Error> {
        Agent::pause(self).await
    }

    async fn resume(&self) -> Result<(), Error> {
        Agent::resume(self).await
    }

    fn state(&self) -> AgentState {
        Agent::state(self)
    }

    fn metrics(&self) -> LifecycleMetrics {
        Agent::metrics(self)
    }

    fn owns_state(&self, key: &str) -> StateOwnership {
        Agent::owns_state(self, key)
    }

    fn set_state(&self, key: &str, value: Value) -> Result<(), Error> {
        Agent::set_state(self, key, value)
    }

    fn state_len(&self) -> usize {
        self.state_values().len()
    }
}

/// Starts `agent`, runs `body` with it and shuts it down, whatever the body returns. A panic of the
/// body goes on behind the shutdown.
///
/// # Cancel safety
///
/// The agent is only borrowed, so if the future is dropped nobody is left to shut it down: it stays
/// as it is until `shutdown` is called. [`Agent::scoped`] does better.
pub async fn agent_lifecycle<A, T, E>(
    agent: &A,
    config: Option<LifecycleConfig>,
    body: impl AsyncFnOnce(&A) -> Result<T, E>,
) -> Result<T, E>
where
    A: AgentLifecycleProtocol + ?Sized,
    E: From<Error>,
{
    agent.startup(config).await?;
    let result = {
        let mut body = pin!(body(agent));
        poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        })
        .await
    };
    agent.shutdown(None).await;
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

pub(crate) fn pause(cell: &LifeCell, metrics: &Metrics) -> Result<(), Error> {
    match cell.pause() {
        Ok(()) => {
            metrics.life_moved(1);
            Ok(())
        }
        Err(from) => Err(not_now("paused when it is ready", from, Phase::Paused)),
    }
}

pub(crate) fn resume(cell: &LifeCell, metrics: &Metrics) -> Result<(), Error> {
    match cell.go(Phase::Paused, Phase::Idle) {
        Ok(()) => {
            metrics.life_moved(1);
            Ok(())
        }
        Err(from) => Err(not_now("resumed when it is paused", from, Phase::Idle)),
    }
}

#[cold]
fn not_now(rule: &str, from: Phase, to: Phase) -> Error {
    let state = from.state();
    let illegal = IllegalTransition { from, to };
    let message = format!("an agent can only be {rule}, but it is {state}: {illegal}");
    Error::new(crate::ErrorKind::IllegalTransition, message).caused_by(illegal)
}

pub(crate) async fn wait_ready(cell: &LifeCell) -> Result<(), Error> {
    let never = |life| {
        matches!(life, Phase::Error | Phase::ShuttingDown | Phase::Terminated)
            || life == Phase::Uninitialized
    };
    let phase = cell.wait(|life, held| never(life) || (life == Phase::Idle && !held)).await;
    if never(phase) { Err(Error::not_ready(phase.state(), "ready")) } else { Ok(()) }
}

/// A managed agent seen by the protocol.
struct Managed<'a, T: ManagedAgent> {
    it: &'a T,
    /// Whether this call is the one that starts or stops it.
    owns: AtomicBool,
}

impl<'a, T: ManagedAgent> Managed<'a, T> {
    fn new(it: &'a T) -> Self {
        Self { it, owns: AtomicBool::new(false) }
    }
}

impl<T: ManagedAgent> Lived for Managed<'_, T> {
    fn cell(&self) -> &LifeCell {
        &self.it.lifecycle().cell
    }

    fn metrics(&self) -> &Metrics {
        &self.it.lifecycle().metrics
    }

    fn signal(&self) -> &Signal {
        &self.it.lifecycle().signal
    }

    async fn bring_up(&self, config: &LifecycleConfig, _attempt: u32) -> Result<(), Error> {
        self.it.do_startup(config).await.map_err(|error| {
            let message = error.to_string();
            Error::new(crate::ErrorKind::Startup, message).caused_by(error.into_source())
        })
    }

    async fn tear_down(&self, _reason: ExitReason, budget: Duration) {
        let life = self.it.lifecycle();
        let mut shutdown = self.it.do_shutdown(budget);
        match poll_fn(|cx| caught(|| shutdown.as_mut().poll(cx))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(agent = life.name, "shutdown failed: {error}"),
            Err(panic) => tracing::warn!(agent = life.name, "shutdown panicked: {panic}"),
        }
        life.resources.release_all(&life.name, RELEASE_LIMIT).await;
        life.state.clear();
    }

    fn cut_short(&self) {
        let life = self.it.lifecycle();
        tracing::warn!(agent = life.name, "shutdown was cut short");
        life.resources.abandon(&life.name);
        life.state.clear();
    }

    fn ending(&self, reason: ExitReason) {
        *self.it.lifecycle().exit.lock() = Some(reason);
    }

    async fn moved(&self, from: Phase, to: Phase, reason: Option<ExitReason>) {
        let life = self.it.lifecycle();
        if (from, to) == (Phase::Bootstrapping, Phase::Idle) {
            self.owns.store(false, Ordering::Relaxed);
        }
        life.announce(from, to, reason);
    }
}

/// What becomes of a life whose start or stop was dropped half way: nobody is left to run the rest,
/// so it rests in the error state, or is over.
impl<T: ManagedAgent> Drop for Managed<'_, T> {
    fn drop(&mut self) {
        let life = self.it.lifecycle();
        match (life.cell.life(), self.owns.load(Ordering::Relaxed)) {
            (from @ Phase::Bootstrapping, true) if life.cell.go(from, Phase::Error).is_ok() => {
                life.metrics.life_moved(2);
                life.announce(from, Phase::Error, None);
            }
            (from @ Phase::ShuttingDown, true) => {
                self.cut_short();
                self.ending(ExitReason::Forced);
                if life.cell.go(from, Phase::Terminated).is_ok() {
                    life.metrics.life_moved(2);
                    life.announce(from, Phase::Terminated, Some(ExitReason::Forced));
                }
            }
            _ => {}
        }
    }
}
