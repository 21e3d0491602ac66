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

    /// Undoes what was brought up. It never fails; what goes wrong is recorded.
    fn tear_down(&self, reason: ExitReason) -> impl Future<Output = ()> + Send;

    /// What `tear_down` did not come to within its budget.
    fn cut_short(&self);

    /// Life moved: hooks and events. Whoever is over is told why.
    fn moved(
        &self,
        from: Phase,
        to: Phase,
        reason: Option<ExitReason>,
    ) -> impl Future<Output = ()> + Send;
}

/// Moves life and tells.
async fn enter<L: Lived>(it: &L, from: Phase, to: Phase, reason: Option<ExitReason>) {
    if it.cell().go(from, to).is_ok() {
        it.metrics().life_moved();
        it.moved(from, to, reason).await;
    }
}

/// Claims the start. `false` if the agent is up already, or came up while this waited.
pub(crate) async fn claim_start<L: Lived>(it: &L) -> Result<bool, Error> {
    loop {
        match it.cell().go(Phase::Uninitialized, Phase::Bootstrapping) {
            Ok(()) => return Ok(true),
            Err(Phase::Bootstrapping) => {
                it.cell().wait(|life, _| life != Phase::Bootstrapping).await;
            }
            Err(phase) => return already(phase).map(|()| false),
        }
    }
}

/// Starts what [`claim_start`] claimed. On failure everything is rolled back, unless the
/// configuration says otherwise.
pub(crate) async fn start<L: Lived>(it: &L, config: &LifecycleConfig) -> Result<(), Error> {
    it.metrics().life_moved();
    let started = Instant::now();
    it.moved(Phase::Uninitialized, Phase::Bootstrapping, None)
        .await;

    let attempts = config.attempts();
    let mut attempt = 1;
    let error = loop {
        let left = config.timeout.saturating_sub(if attempt == 1 {
            Duration::ZERO
        } else {
            started.elapsed()
        });
        let brought = within(left, Some(it.signal()), it.bring_up(config, attempt)).await;
        let error = match brought {
            Within::Done(Ok(())) if !it.signal().is_set() => {
                it.metrics().started(started.elapsed());
                enter(it, Phase::Bootstrapping, Phase::Idle, None).await;
                return Ok(());
            }
            Within::Done(Ok(())) | Within::Stopped => {
                break Error::new(ErrorKind::Startup, "startup was interrupted by a shutdown");
            }
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
        undo(it, config, ExitReason::StartupFailed).await;
        attempt += 1;
    };
    if config.cleanup_on_error || it.signal().is_set() {
        enter(it, Phase::Bootstrapping, Phase::ShuttingDown, None).await;
        undo(it, config, ExitReason::StartupFailed).await;
        enter(
            it,
            Phase::ShuttingDown,
            Phase::Terminated,
            Some(ExitReason::StartupFailed),
        )
        .await;
    } else {
        enter(it, Phase::Bootstrapping, Phase::Error, None).await;
    }
    Err(error)
}

async fn undo<L: Lived>(it: &L, config: &LifecycleConfig, reason: ExitReason) -> bool {
    match within(config.timeout, None, it.tear_down(reason)).await {
        Within::Done(()) => true,
        _ => {
            it.cut_short();
            false
        }
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
/// about to; it is over when this returns.
pub(crate) async fn claim_stop<L: Lived>(it: &L) -> Option<Phase> {
    let cell = it.cell();
    loop {
        match cell.life() {
            Phase::Terminated => return None,
            Phase::ShuttingDown => {
                cell.wait(|life, _| life == Phase::Terminated).await;
                return None;
            }
            // Whoever starts rolls back, and is done then.
            Phase::Bootstrapping => {
                it.signal().set();
                cell.wait(|life, _| life != Phase::Bootstrapping).await;
            }
            from => {
                if try_claim_stop(it, from) {
                    return Some(from);
                }
            }
        }
    }
}

/// The same without waiting, for whoever knows where life is.
pub(crate) fn try_claim_stop<L: Lived>(it: &L, from: Phase) -> bool {
    let claimed = it.cell().go(from, Phase::ShuttingDown).is_ok();
    if claimed {
        it.metrics().life_moved();
    }
    claimed
}

/// Ends a life that [`claim_stop`] claimed: cancels the turn and lets its ends run, tears down, and
/// terminates. Bounded; whatever happens, the agent is terminated afterwards.
pub(crate) async fn finish<L: Lived>(it: &L, from: Phase, reason: ExitReason, budget: Duration) {
    let started = Instant::now();
    it.moved(from, Phase::ShuttingDown, None).await;
    let mut reason = reason;
    // From Uninitialized nothing was acquired, and no hook has anything to end.
    if from != Phase::Uninitialized {
        if it.cell().turn() != Phase::Idle {
            it.signal().set();
            let ended = it.cell().wait(|_, turn| turn == Phase::Idle);
            if !matches!(within(budget, None, ended).await, Within::Done(_)) {
                reason = ExitReason::Forced;
            }
        }
        let left = budget.saturating_sub(started.elapsed());
        if !matches!(
            within(left, None, it.tear_down(reason)).await,
            Within::Done(())
        ) {
            it.cut_short();
            reason = ExitReason::Forced;
        }
    }
    it.metrics().stopped(started.elapsed());
    enter(it, Phase::ShuttingDown, Phase::Terminated, Some(reason)).await;
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
