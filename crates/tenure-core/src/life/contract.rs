//! The contract as traits.

use super::protocol::{self, Lived, RollBack};
use super::{LifeCell, Lifecycle, LifecycleConfig, LifecycleMetrics};
use crate::agent::{Agent, Arrow, Inner, stop_at_startup};
use crate::error::{Error, ErrorKind};
use crate::hook::HookError;
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase};
use crate::state::StateOwnership;
use async_trait::async_trait;
use serde_json::Value;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// What every agent promises, whoever wrote it.
#[async_trait]
pub trait AgentLifecycleProtocol: Send + Sync {
    /// Starts the agent. Idempotent once it is ready; bounded; atomic: it is ready afterwards, or
    /// everything acquired so far was released and it is terminated.
    ///
    /// A terminated agent cannot be started again.
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error>;

    /// Shuts the agent down. Idempotent, bounded, and never fails. From uninitialized it runs no hooks,
    /// and releases what was acquired already. Terminated is final.
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

    /// Releases it. Called once for each call of `do_startup`, also if that failed.
    async fn do_shutdown(&self, timeout: Duration) -> Result<(), HookError>;

    /// Does the work of one request for whoever has the type as an agent ([`own_agent`]): an
    /// orchestrator, or somebody who found it in a registry. The agent is busy meanwhile; several
    /// requests may be processed at once, because a busy agent forks.
    ///
    /// A type that is only called by its own methods need not have it.
    async fn process(&self, request: &str) -> Result<String, HookError> {
        let _ = request;
        Err(HookError::new(
            "this type takes no requests as an agent; implement `ManagedAgent::process`",
        ))
    }

    /// Who owns `key`.
    ///
    /// Once the type is an agent ([`own_agent`]), this counts for every write of its state and its
    /// memory: by the agent, its hooks and its clones. The hooks of a type that is only borrowed
    /// cannot ask it; for them counts what [`Lifecycle::with_ownership`] declares.
    fn owner_of(&self, key: &str) -> StateOwnership {
        self.lifecycle().owner(key)
    }
}

/// A type of one's own as an agent: its `do_startup` and `do_shutdown` are called when the agent starts
/// and stops, whoever does that, and a request to the agent is
/// [processed](ManagedAgent::process) by the type.
///
/// The agent and the type have one life. Keep the `Arc`: the agent does not keep the type alive.
///
/// ```
/// use async_trait::async_trait;
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tenure_core::hook::HookError;
/// use tenure_core::life::{Lifecycle, LifecycleConfig, ManagedAgent, own_agent};
///
/// struct Shouter {
///     life: Lifecycle,
/// }
///
/// #[async_trait]
/// impl ManagedAgent for Shouter {
///     fn lifecycle(&self) -> &Lifecycle {
///         &self.life
///     }
///     async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
///         Ok(())
///     }
///     async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
///         Ok(())
///     }
///     async fn process(&self, request: &str) -> Result<String, HookError> {
///         Ok(request.to_uppercase())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let shouter = Arc::new(Shouter { life: Lifecycle::new("shouter") });
/// let report = own_agent(&shouter).scoped(async |agent| agent.run("hello").await).await?;
/// assert_eq!(report.output(), "HELLO");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
pub fn own_agent<T: ManagedAgent>(own: &Arc<T>) -> Agent {
    let life = own.lifecycle();
    let weak: Weak<T> = Arc::downgrade(own);
    life.bind(weak);
    life.agent().clone()
}

/// A type that is held in an [`Arc`] is an agent in full: a startup or a shutdown whose future is
/// dropped goes on in the background.
#[async_trait]
impl<T: ManagedAgent> AgentLifecycleProtocol for Arc<T> {
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error> {
        AgentLifecycleProtocol::startup(&own_agent(self), config).await
    }

    async fn shutdown(&self, timeout: Option<Duration>) {
        AgentLifecycleProtocol::shutdown(&own_agent(self), timeout).await;
    }

    async fn pause(&self) -> Result<(), Error> {
        self.lifecycle().agent().pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.lifecycle().agent().resume().await
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
        AgentLifecycleProtocol::set_state(&**self, key, value)
    }

    fn state_len(&self) -> usize {
        self.lifecycle().values().len()
    }
}

/// A type that is only borrowed. If the future of its startup is dropped it rests in the error state
/// until it is shut down; if that of its shutdown is, what can be released at once is, and it is over
/// as forced. Hold it in an [`Arc`], and both go on in the background.
#[async_trait]
impl<T: ManagedAgent> AgentLifecycleProtocol for T {
    async fn startup(&self, config: Option<LifecycleConfig>) -> Result<(), Error> {
        let inner = self.lifecycle().inner();
        inner.check_made()?;
        if inner.registry().is_some() {
            return Err(Error::invalid(format!(
                "`{}` registers, so others may use it; hold it in an `Arc`, and call `startup` of that",
                inner.name()
            )));
        }
        let config = config.unwrap_or_else(|| inner.config().lifecycle.clone());
        config.check()?;
        let Some(claim) = protocol::claim_start(inner, config.timeout).await? else {
            return Ok(());
        };
        inner.blueprint.started_here();
        let mut borrowed = Borrowed { it: self, doing: Borrowing::Start, stops: OnceLock::new() };
        *inner.extra().config.lock() = Some(config.clone());
        let started = protocol::start(&borrowed, claim, &config).await;
        borrowed.doing = Borrowing::Nothing;
        drop(borrowed);
        if started.is_ok() && (inner.stop_requested() || inner.fatal_requested()) {
            AgentLifecycleProtocol::shutdown(self, None).await;
            return Err(stop_at_startup());
        }
        started
    }

    async fn shutdown(&self, timeout: Option<Duration>) {
        let inner = self.lifecycle().inner();
        let budget =
            timeout.unwrap_or_else(|| inner.with_lifecycle_config(|config| config.timeout));
        if let Some(claim) = protocol::claim_stop(inner, budget).await {
            let stops = Instant::now().into();
            let mut borrowed = Borrowed { it: self, doing: Borrowing::Stop, stops };
            let reason = inner.why(claim.from, ExitReason::Completed);
            protocol::finish(&borrowed, claim, reason, budget).await;
            borrowed.doing = Borrowing::Nothing;
        }
    }

    async fn pause(&self) -> Result<(), Error> {
        self.lifecycle().agent().pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.lifecycle().agent().resume().await
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
        self.lifecycle().inner().write_own_state(key, value, self.owner_of(key))
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

pub(crate) async fn wait_ready(cell: &LifeCell) -> Result<(), Error> {
    let never = |life| {
        matches!(life, Phase::Error | Phase::ShuttingDown | Phase::Terminated)
            || life == Phase::Uninitialized
    };
    let phase = cell.wait(|life, held| never(life) || (life == Phase::Idle && !held)).await;
    if never(phase) { Err(Error::not_ready(phase.state(), "ready")) } else { Ok(()) }
}

/// A type that its caller only borrows, seen by the protocol.
struct Borrowed<'a, T: ManagedAgent> {
    it: &'a T,
    doing: Borrowing,
    /// Since when the call ends the life, if it does.
    stops: OnceLock<Instant>,
}

/// What the call is about that borrows a type, and is the one to do it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Borrowing {
    Start,
    Stop,
    Nothing,
}

impl<T: ManagedAgent> Lived for Borrowed<'_, T> {
    fn inner(&self) -> &Arc<Inner> {
        self.it.lifecycle().inner()
    }

    async fn bring_up(&self, config: &LifecycleConfig, attempt: u32) -> Result<(), Error> {
        self.inner().bring_up_with(Some(self.it), config, attempt).await
    }

    async fn tear_down(&self, reason: ExitReason, budget: Duration) {
        self.inner().tear_down_with(Some(self.it), reason, budget).await;
    }

    async fn roll_back(&self, rollback: RollBack) {
        // There is one roll-back in a life.
        let _ = self.stops.set(rollback.since());
        rollback.run(self).await;
    }
}

/// What becomes of a life whose start or stop was dropped half way: nobody is left to run the rest,
/// so it rests in the error state, or is over.
impl<T: ManagedAgent> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        let inner = self.inner();
        let go = |from, to, reason| {
            // Dropping what is to be told tells it to listeners.
            let arrow = Arrow { from, to, reason };
            inner.transition(None, |cell| cell.go(from, to).map(|()| arrow)).is_ok()
        };
        let cut_short = |from, reason| {
            let took = self.stops.get().map_or(Duration::ZERO, Instant::elapsed);
            inner.metrics.stopped(took);
            let mut reason = reason;
            match inner.exit_reason() {
                // It was over but for its last hook, and its reason has been seen.
                Some(known) => reason = known,
                None => {
                    inner.cut_short();
                    inner.set_exit_reason(reason);
                    let _ = from == Phase::ShuttingDown || go(from, Phase::ShuttingDown, None);
                    go(Phase::ShuttingDown, Phase::Terminated, Some(reason));
                }
            }
            if inner.steps().is_some() {
                let over = inner.clone();
                inner.blueprint.run_detached(async move {
                    protocol::record_end(&over, reason, Duration::ZERO).await;
                });
            }
        };
        match self.doing {
            Borrowing::Nothing => {}
            Borrowing::Stop => cut_short(Phase::ShuttingDown, ExitReason::Forced),
            Borrowing::Start => {
                let dropped =
                    Error::new(ErrorKind::Startup, "startup was dropped before it was done");
                let _ = inner.extra().startup_error.set(dropped);
                if inner.cell.is_setting_up() {
                    // It is up, only its setup is not done; somebody else may be stopping it.
                    if inner.cell.life() == Phase::Idle {
                        cut_short(Phase::Idle, ExitReason::StartupFailed);
                    }
                    inner.cell.release_turn();
                } else if !go(Phase::Bootstrapping, Phase::Error, None)
                    && self.stops.get().is_some()
                {
                    cut_short(Phase::ShuttingDown, ExitReason::Forced);
                }
            }
        }
    }
}
