//! Startup and shutdown, once, for everything that has a life.

use super::{LifeCell, LifecycleConfig};
use crate::agent::{Arrow, Inner, Telling};
use crate::cancel::Signal;
use crate::error::{Error, ErrorKind};
use crate::hook::Point;
use crate::kernel::{Site, caught};
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Something that is started and stopped.
pub(crate) trait Lived: Send + Sync {
    /// The instance whose life it is.
    fn inner(&self) -> &Arc<Inner>;

    /// One attempt to start.
    fn bring_up(
        &self,
        config: &LifecycleConfig,
        attempt: u32,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes what was brought up, and has so long for it. It never fails; what goes wrong is
    /// recorded.
    fn tear_down(&self, reason: ExitReason, budget: Duration) -> impl Future<Output = ()> + Send;

    /// Ends a failed start: [`RollBack::run`], wherever that has to go on if the start is dropped.
    fn roll_back(&self, rollback: RollBack) -> impl Future<Output = ()> + Send;
}

/// The record of an end gets this long, however little is left of a shutdown.
const SHORTEST_RECORD: Duration = Duration::from_secs(5);

/// The time that a startup or a shutdown has, the hooks of its transitions included (G4).
#[derive(Clone, Copy)]
struct Budget {
    since: Instant,
    whole: Duration,
}

impl Budget {
    fn new(whole: Duration) -> Self {
        Self { since: Instant::now(), whole }
    }

    fn left(&self) -> Duration {
        self.whole.saturating_sub(self.since.elapsed())
    }

    /// Tells a transition with work behind it, which must not go without: half of what is left.
    async fn tell_first(&self, inner: &Arc<Inner>, telling: Option<Telling>) {
        if let Some(telling) = telling {
            tell(inner, telling, self.left() / 2).await;
        }
    }

    /// Tells a transition that ends the work.
    async fn tell_last(&self, inner: &Arc<Inner>, telling: Option<Telling>) {
        if let Some(telling) = telling {
            tell(inner, telling, self.left()).await;
        }
    }
}

#[cold]
async fn tell(inner: &Arc<Inner>, telling: Telling, left: Duration) {
    Box::pin(telling.tell(&Site::of_instance(inner, 1), Some(left))).await;
}

/// Moves life.
fn go(inner: &Arc<Inner>, from: Phase, to: Phase) -> Result<Option<Telling>, Phase> {
    inner.transition(None, |cell| cell.go(from, to).map(|()| Arrow::new(from, to)))
}

/// The right to start an instance, and its first transition, which is still to be told.
pub(crate) struct StartClaim(Option<Telling>);

/// Claims the start. `None` if the agent is up already, or came up while this waited. Whoever waited
/// for a startup that fails gets its error.
pub(crate) async fn claim_start(
    inner: &Arc<Inner>,
    timeout: Duration,
) -> Result<Option<StartClaim>, Error> {
    let cell = &inner.cell;
    let is_starting =
        |life| life == Phase::Bootstrapping || (life == Phase::Idle && cell.is_setting_up());
    let phase = match cell.life() {
        Phase::Uninitialized => match go(inner, Phase::Uninitialized, Phase::Bootstrapping) {
            Ok(telling) => return Ok(Some(StartClaim(telling))),
            Err(phase) => phase,
        },
        phase => phase,
    };
    if !is_starting(phase) {
        return already(phase).map(|()| None);
    }
    // What is rolled back is over when its starter is told.
    let is_over = |life| !is_starting(life) && life != Phase::ShuttingDown;
    let mut ended = within(|| timeout, None, cell.wait(|life, _| is_over(life))).await;
    if !matches!(ended, Within::Done(_)) {
        // Both may have had the same time, and the other one its last moment still to come.
        yield_once().await;
        if is_over(cell.life()) {
            ended = Within::Done(cell.phase());
        }
    }
    let cause = inner.if_extra().and_then(|extra| extra.startup_error.get());
    match (ended, cause) {
        (Within::Done(phase), _) if is_up(phase) => Ok(None),
        (_, Some(cause)) => Err(cause.clone()),
        (Within::Done(phase), None) => already(phase).map(|()| None),
        _ => Err(Error::new(
            ErrorKind::Startup,
            format!("the startup that is under way did not end within {timeout:?}"),
        )),
    }
}

/// Starts an agent that has nothing to bring up and nobody to tell. `false` if it was started before.
#[inline]
pub(crate) fn start_quietly(inner: &Inner) -> bool {
    if inner.cell.go(Phase::Uninitialized, Phase::Bootstrapping).is_err() {
        return false;
    }
    inner.blueprint.started_here();
    inner.metrics.started(Duration::ZERO);
    // A stop waits for it, unless it has no time at all.
    let is_up = inner.cell.go(Phase::Bootstrapping, Phase::Idle).is_ok();
    inner.cell.notify();
    is_up
}

/// Ends a life that was claimed, where there is nothing to tear down and nobody to tell.
#[inline]
pub(crate) fn finish_quietly(inner: &Inner, reason: ExitReason) {
    inner.metrics.stopped(Duration::ZERO);
    inner.set_exit_reason(reason);
    let _ = inner.cell.go(Phase::ShuttingDown, Phase::Terminated);
    inner.cell.notify();
}

/// Starts what [`claim_start`] claimed. On failure everything is rolled back, unless the
/// configuration says otherwise.
pub(crate) async fn start<L: Lived>(
    it: &L,
    claim: StartClaim,
    config: &LifecycleConfig,
) -> Result<(), Error> {
    let inner = it.inner();
    let budget = Budget::new(config.timeout);
    budget.tell_first(inner, claim.0).await;
    let error = match attempts(it, config, &budget).await {
        Ok(()) => return come_up(inner, &budget).await,
        Err(error) => error,
    };
    // Of two failures, a drop and this one, the first is the cause.
    let _ = inner.extra().startup_error.set(error.clone());
    if config.cleanup_on_error || inner.signal.is_set() {
        let budget = Budget::new(config.timeout);
        if let Ok(telling) = go(inner, Phase::Bootstrapping, Phase::ShuttingDown) {
            it.roll_back(RollBack { budget, telling }).await;
        }
    } else if let Ok(telling) = go(inner, Phase::Bootstrapping, Phase::Error) {
        budget.tell_last(inner, telling).await;
    }
    Err(error)
}

/// Brings it up, as often as it may be tried.
async fn attempts<L: Lived>(
    it: &L,
    config: &LifecycleConfig,
    budget: &Budget,
) -> Result<(), Error> {
    let signal = &it.inner().signal;
    let attempts = config.attempts();
    for attempt in 1.. {
        // A shutdown that did not wait any longer may have ended it.
        if signal.is_set() || it.inner().cell.life() != Phase::Bootstrapping {
            return Err(interrupted());
        }
        let left = || budget.left();
        let brought = within(left, Some(signal), pin!(it.bring_up(config, attempt))).await;
        let error = match brought {
            _ if signal.is_set() => return Err(interrupted()),
            Within::Done(Ok(())) => return Ok(()),
            Within::Stopped => return Err(interrupted()),
            Within::Done(Err(error)) => {
                Error::new(ErrorKind::Startup, format!("startup failed: {error}")).caused_by(error)
            }
            Within::Panicked(message) => {
                Error::new(ErrorKind::Startup, format!("startup panicked: {message}"))
            }
            Within::TimedOut => {
                return Err(Error::new(
                    ErrorKind::Startup,
                    format!("startup did not end within {:?}", config.timeout),
                ));
            }
        };
        if attempt >= attempts || budget.left().is_zero() {
            return Err(error);
        }
        // Each attempt is undone before the next begins.
        undo(it, budget.left()).await;
        let pause = config.pause_after(attempt);
        if pause >= budget.left() {
            return Err(error);
        }
        if !pause.is_zero()
            && let Within::Stopped = within(|| pause, Some(signal), pending::<()>()).await
        {
            return Err(interrupted());
        }
    }
    unreachable!("the last attempt returns")
}

/// Makes an agent ready that was brought up. While the hooks of this transition run, which may set
/// something up, it can be stopped, but nothing can be asked of it.
async fn come_up(inner: &Arc<Inner>, budget: &Budget) -> Result<(), Error> {
    let cell = &inner.cell;
    // Whoever sees a ready agent sees its numbers.
    inner.metrics.started(budget.since.elapsed());
    let sets_up = inner.blueprint.chain.has(Point::OnTransition);
    if sets_up {
        cell.hold_for_setup();
    }
    let made = go(inner, Phase::Bootstrapping, Phase::Idle);
    if let Ok(telling) = made {
        budget.tell_last(inner, telling).await;
    }
    let result = match cell.life() {
        Phase::ShuttingDown | Phase::Terminated => {
            // A shutdown did not wait any longer, and has taken over.
            let error = interrupted();
            let _ = inner.extra().startup_error.set(error.clone());
            Err(error)
        }
        _ => Ok(()),
    };
    if sets_up {
        inner.metrics.started(budget.since.elapsed());
        cell.release_turn();
    }
    result
}

#[cold]
fn interrupted() -> Error {
    Error::new(ErrorKind::Startup, "startup was interrupted by a shutdown")
}

/// The end of a failed start that is shutting down already.
pub(crate) struct RollBack {
    budget: Budget,
    /// The transition to shutting down, which is still to be told.
    telling: Option<Telling>,
}

impl RollBack {
    /// When it began.
    pub(crate) fn since(&self) -> Instant {
        self.budget.since
    }

    /// Undoes what was brought up, and terminates.
    pub(crate) async fn run<L: Lived>(self, it: &L) {
        let Self { budget, telling } = self;
        budget.tell_first(it.inner(), telling).await;
        undo(it, budget.left()).await;
        terminate(it.inner(), ExitReason::StartupFailed, &budget, budget.since.elapsed()).await;
    }
}

async fn undo<L: Lived>(it: &L, budget: Duration) {
    let tear_down = it.tear_down(ExitReason::StartupFailed, budget);
    let torn_down = within(|| budget, None, pin!(tear_down)).await;
    if !matches!(torn_down, Within::Done(())) {
        it.inner().cut_short();
    }
}

/// The last transition, and the last record of the life.
async fn terminate(inner: &Arc<Inner>, reason: ExitReason, budget: &Budget, took: Duration) {
    inner.metrics.stopped(took);
    // Whoever sees the end sees its reason.
    inner.set_exit_reason(reason);
    let (from, to) = (Phase::ShuttingDown, Phase::Terminated);
    let made = inner.transition(None, |cell| {
        cell.go(from, to).map(|()| Arrow { from, to, reason: Some(reason) })
    });
    if let Ok(telling) = made {
        if telling.is_some() {
            budget.tell_last(inner, telling).await;
            inner.metrics.stopped(budget.since.elapsed());
        }
        record_end(inner, reason, budget.left()).await;
    }
}

/// Puts on record that a life is over.
pub(crate) async fn record_end(inner: &Inner, reason: ExitReason, left: Duration) {
    let left = left.max(SHORTEST_RECORD);
    let recorded = within(|| left, None, inner.recorded_as_ended(reason)).await;
    if !matches!(recorded, Within::Done(())) {
        tracing::error!(agent = inner.name(), "an end was not recorded within {left:?}");
    }
}

fn is_up(phase: Phase) -> bool {
    matches!(phase.state(), AgentState::Ready | AgentState::Busy | AgentState::Paused)
}

#[cold]
fn already(phase: Phase) -> Result<(), Error> {
    if is_up(phase) { Ok(()) } else { Err(Error::not_ready(phase.state(), "uninitialized")) }
}

/// The right to end a life.
pub(crate) struct StopClaim {
    /// Where the agent was to whoever looked: in its turn, if it had one.
    pub(crate) from: Phase,
    /// The transition to shutting down, which is still to be told.
    telling: Option<Telling>,
}

/// Takes life to the point where only the caller may end it. `None` if somebody else has, or is
/// about to; it is over when this returns, or `timeout` was spent waiting for it.
pub(crate) async fn claim_stop(inner: &Arc<Inner>, timeout: Duration) -> Option<StopClaim> {
    let cell = &inner.cell;
    loop {
        match cell.life() {
            Phase::Terminated => return None,
            Phase::ShuttingDown => {
                within(|| timeout, None, cell.wait(|life, _| life == Phase::Terminated)).await;
                return None;
            }
            // Whoever starts rolls back, and is done then; unless nobody polls it any more.
            from @ Phase::Bootstrapping => {
                inner.signal.set();
                let started = cell.wait(|life, _| life != Phase::Bootstrapping);
                let waited = within(|| timeout, None, started).await;
                if !matches!(waited, Within::Done(_))
                    && let Some(claim) = try_claim_stop(inner, from)
                {
                    return Some(claim);
                }
            }
            from => {
                if let Some(claim) = try_claim_stop(inner, from) {
                    return Some(claim);
                }
            }
        }
    }
}

/// The same without waiting, for whoever knows where life is.
pub(crate) fn try_claim_stop(inner: &Arc<Inner>, from: Phase) -> Option<StopClaim> {
    let mut seen = from;
    let telling = inner.transition(None, |cell: &LifeCell| {
        cell.go(from, Phase::ShuttingDown)?;
        if from == Phase::Idle {
            seen = cell.turn();
        }
        Ok::<_, Phase>(Arrow::new(seen, Phase::ShuttingDown))
    });
    Some(StopClaim { from: seen, telling: telling.ok()? })
}

/// Ends a life that was claimed: cancels the turn and lets its ends run, tears down, and terminates.
/// Bounded; whatever happens, the agent is terminated afterwards.
pub(crate) async fn finish<L: Lived>(
    it: &L,
    claim: StopClaim,
    reason: ExitReason,
    timeout: Duration,
) {
    let inner = it.inner();
    let StopClaim { from, telling } = claim;
    let budget = Budget::new(timeout);
    let mut reason = reason;
    // The clock is looked at only where time may have passed.
    let mut left = timeout;
    if telling.is_some() {
        budget.tell_first(inner, telling).await;
        left = budget.left();
    }
    let torn_down = if from == Phase::Uninitialized {
        // No hook has anything to end, but its owner may have acquired something for it.
        within(|| left, None, pin!(inner.release_all())).await
    } else {
        if inner.cell.is_held() {
            inner.signal.set();
            let ended = || inner.cell.wait(|_, held| !held);
            if !matches!(within(|| left / 2, None, ended()).await, Within::Done(_)) {
                // What a hook of a transition still does is not worth the rest.
                inner.hurry();
                if !matches!(within(|| budget.left(), None, ended()).await, Within::Done(_)) {
                    reason = ExitReason::Forced;
                }
                inner.take_time();
            }
            left = budget.left();
        }
        within(|| left, None, pin!(it.tear_down(reason, left))).await
    };
    if !matches!(torn_down, Within::Done(())) {
        inner.cut_short();
        reason = ExitReason::Forced;
    }
    let took = budget.since.elapsed();
    // Hooks that were cut off by the budget ended all the same.
    if from != Phase::Uninitialized && took >= timeout && !timeout.is_zero() {
        reason = ExitReason::Forced;
    }
    terminate(inner, reason, &budget, took).await;
}

async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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
    limit: impl Fn() -> Duration,
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
        let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit())));
        timer.as_mut().poll(cx).map(|()| Within::TimedOut)
    })
    .await
}
