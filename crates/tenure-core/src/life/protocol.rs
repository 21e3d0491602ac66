//! Startup and shutdown, once, for everything that has a life.

use super::{LifeCell, LifecycleConfig, Metrics};
use crate::cancel::Signal;
use crate::error::{Error, ErrorKind};
use crate::kernel::caught;
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Something that is started and stopped.
pub(crate) trait Lived: Send + Sync {
    fn cell(&self) -> &LifeCell;
    fn metrics(&self) -> &Metrics;
    /// Set when somebody wants to stop what is going on.
    fn signal(&self) -> &Signal;

    /// One attempt to start.
    fn bring_up(
        &self,
        config: &LifecycleConfig,
        attempt: u32,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes what was brought up, and has so long for it. It never fails; what goes wrong is
    /// recorded.
    fn tear_down(&self, reason: ExitReason, budget: Duration) -> impl Future<Output = ()> + Send;

    /// What `tear_down` did not come to within its budget.
    fn cut_short(&self);

    /// A failed start is about to be undone for good; from here on the starter stops it.
    fn rolling_back(&self) {}

    /// It is about to be over, for this reason.
    fn ending(&self, reason: ExitReason);

    /// Life moved: hooks and events.
    fn moved(
        &self,
        from: Phase,
        to: Phase,
        reason: Option<ExitReason>,
    ) -> impl Future<Output = ()> + Send;
}

/// Moves life and tells. `false` if life is somewhere else by now.
///
/// `moves` is how many moves to count: the one that was claimed before, and this one.
async fn enter<L: Lived>(
    it: &L,
    from: Phase,
    to: Phase,
    reason: Option<ExitReason>,
    moves: u64,
) -> bool {
    if let Some(reason) = reason {
        // Whoever sees the end sees its reason.
        it.ending(reason);
    }
    let moved = it.cell().go(from, to).is_ok();
    if moved {
        it.metrics().life_moved(moves);
        it.moved(from, to, reason).await;
    }
    moved
}

/// Claims the start. `false` if the agent is up already, or came up while this waited.
pub(crate) async fn claim_start<L: Lived>(it: &L, budget: Duration) -> Result<bool, Error> {
    loop {
        match it.cell().go(Phase::Uninitialized, Phase::Bootstrapping) {
            Ok(()) => return Ok(true),
            Err(Phase::Bootstrapping) => {
                let started = it.cell().wait(|life, _| life != Phase::Bootstrapping);
                if !matches!(within(budget, None, started).await, Within::Done(_)) {
                    return Err(Error::new(
                        ErrorKind::Startup,
                        format!("the startup that is under way did not end within {budget:?}"),
                    ));
                }
            }
            Err(phase) => return already(phase).map(|()| false),
        }
    }
}

/// Starts what [`claim_start`] claimed. On failure everything is rolled back, unless the
/// configuration says otherwise.
pub(crate) async fn start<L: Lived>(it: &L, config: &LifecycleConfig) -> Result<(), Error> {
    let started = Instant::now();
    it.moved(Phase::Uninitialized, Phase::Bootstrapping, None).await;

    let attempts = config.attempts();
    let mut attempt = 1;
    let error = loop {
        let left = config.timeout.saturating_sub(if attempt == 1 {
            Duration::ZERO
        } else {
            started.elapsed()
        });
        let brought = within(left, Some(it.signal()), pin!(it.bring_up(config, attempt))).await;
        let error = match brought {
            Within::Done(Ok(())) if !it.signal().is_set() => {
                it.metrics().started(started.elapsed());
                if enter(it, Phase::Bootstrapping, Phase::Idle, None, 2).await {
                    return Ok(());
                }
                // A shutdown did not wait any longer, and has taken over.
                return Err(interrupted());
            }
            Within::Done(Ok(())) | Within::Stopped => break interrupted(),
            Within::Done(Err(_)) if it.signal().is_set() => break interrupted(),
            Within::Done(Err(error)) => {
                Error::new(ErrorKind::Startup, format!("startup failed: {error}")).caused_by(error)
            }
            Within::Panicked(message) => {
                Error::new(ErrorKind::Startup, format!("startup panicked: {message}"))
            }
            Within::TimedOut => {
                break Error::new(
                    ErrorKind::Startup,
                    format!("startup did not end within {:?}", config.timeout),
                );
            }
        };
        if attempt >= attempts || started.elapsed() >= config.timeout {
            break error;
        }
        // Each attempt is undone before the next begins.
        undo(it, config.timeout.saturating_sub(started.elapsed())).await;
        if started.elapsed() >= config.timeout {
            break error;
        }
        attempt += 1;
    };
    if config.cleanup_on_error || it.signal().is_set() {
        it.rolling_back();
        if enter(it, Phase::Bootstrapping, Phase::ShuttingDown, None, 2).await {
            roll_back(it, config.timeout).await;
        }
    } else {
        enter(it, Phase::Bootstrapping, Phase::Error, None, 2).await;
    }
    Err(error)
}

#[cold]
fn interrupted() -> Error {
    Error::new(ErrorKind::Startup, "startup was interrupted by a shutdown")
}

/// Ends a failed start that is shutting down already.
pub(crate) async fn roll_back<L: Lived>(it: &L, budget: Duration) {
    undo(it, budget).await;
    let reason = Some(ExitReason::StartupFailed);
    enter(it, Phase::ShuttingDown, Phase::Terminated, reason, 1).await;
}

async fn undo<L: Lived>(it: &L, budget: Duration) {
    let torn_down =
        within(budget, None, pin!(it.tear_down(ExitReason::StartupFailed, budget))).await;
    if !matches!(torn_down, Within::Done(())) {
        it.cut_short();
    }
}

#[cold]
fn already(phase: Phase) -> Result<(), Error> {
    match phase.state() {
        AgentState::Ready | AgentState::Busy | AgentState::Paused => Ok(()),
        state => Err(Error::not_ready(state, "uninitialized")),
    }
}

/// Takes life to the point where only the caller may end it. `None` if somebody else has, or is
/// about to; it is over when this returns, or `budget` was spent waiting for it.
pub(crate) async fn claim_stop<L: Lived>(it: &L, budget: Duration) -> Option<Phase> {
    let cell = it.cell();
    loop {
        match cell.life() {
            Phase::Terminated => return None,
            Phase::ShuttingDown => {
                within(budget, None, cell.wait(|life, _| life == Phase::Terminated)).await;
                return None;
            }
            // Whoever starts rolls back, and is done then; unless nobody polls it any more.
            from @ Phase::Bootstrapping => {
                it.signal().set();
                let started = cell.wait(|life, _| life != Phase::Bootstrapping);
                let waited = within(budget, None, started).await;
                if !matches!(waited, Within::Done(_))
                    && let Some(seen) = try_claim_stop(it, from)
                {
                    return Some(seen);
                }
            }
            from => {
                if let Some(seen) = try_claim_stop(it, from) {
                    return Some(seen);
                }
            }
        }
    }
}

/// The same without waiting, for whoever knows where life is. Says where the agent was to whoever
/// looked: in its turn, if it had one.
pub(crate) fn try_claim_stop<L: Lived>(it: &L, from: Phase) -> Option<Phase> {
    it.cell().go(from, Phase::ShuttingDown).ok()?;
    Some(if from == Phase::Idle { it.cell().turn() } else { from })
}

/// Ends a life that [`claim_stop`] claimed: cancels the turn and lets its ends run, tears down, and
/// terminates. Bounded; whatever happens, the agent is terminated afterwards.
pub(crate) async fn finish<L: Lived>(it: &L, from: Phase, reason: ExitReason, budget: Duration) {
    let started = Instant::now();
    it.moved(from, Phase::ShuttingDown, None).await;
    let mut reason = reason;
    let mut left = budget;
    // From Uninitialized nothing was acquired, and no hook has anything to end.
    if from != Phase::Uninitialized {
        if it.cell().is_held() {
            it.signal().set();
            let ended = it.cell().wait(|_, held| !held);
            if !matches!(within(budget, None, ended).await, Within::Done(_)) {
                reason = ExitReason::Forced;
            }
            left = budget.saturating_sub(started.elapsed());
        }
        if !matches!(within(left, None, pin!(it.tear_down(reason, left))).await, Within::Done(())) {
            it.cut_short();
            reason = ExitReason::Forced;
        }
    }
    let took = started.elapsed();
    // Hooks that were cut off by the budget ended all the same.
    if from != Phase::Uninitialized && took >= budget && !budget.is_zero() {
        reason = ExitReason::Forced;
    }
    it.metrics().stopped(took);
    enter(it, Phase::ShuttingDown, Phase::Terminated, Some(reason), 2).await;
}

enum Within<T> {
    Done(T),
    Panicked(String),
    TimedOut,
    Stopped,
}

/// Runs `future` for at most so long. The timer is armed when it is pending for the first time; a
/// future that is ready at once gets its say even with no time left.
async fn within<T>(
    limit: Duration,
    signal: Option<&Signal>,
    future: impl Future<Output = T>,
) -> Within<T> {
    let mut future = pin!(future);
    let mut timer = None;
    poll_fn(|cx| {
        match caught(|| future.as_mut().poll(cx)) {
            Poll::Ready(Ok(value)) => return Poll::Ready(Within::Done(value)),
            Poll::Ready(Err(message)) => return Poll::Ready(Within::Panicked(message)),
            Poll::Pending => {}
        }
        if signal.is_some_and(|signal| signal.register(cx.waker())) {
            return Poll::Ready(Within::Stopped);
        }
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        timer.as_mut().poll(cx).map(|()| Within::TimedOut)
    })
    .await
}
