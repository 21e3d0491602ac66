//! One bounded call.

use super::Clock;
use super::site::Site;
use crate::BoxFuture;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Why a call was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its own limit.
    Limit(Duration),
    /// The turn's limit.
    TurnLimit,
    /// The turn was cancelled.
    Cancelled,
}

/// What a call is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How much of its own time it may take.
    pub(crate) limit: Option<Duration>,
    /// How long it may go on after a cancel. `None`: a cancel does not cut it.
    pub(crate) grace: Option<Duration>,
    /// Whether the turn's own limit cuts it.
    pub(crate) in_turn: bool,
}

impl Bounds {
    /// For a begin or a wrap: a cancel cuts it at once.
    pub(crate) const fn begin(limit: Duration) -> Self {
        Self { limit: Some(limit), grace: Some(Duration::ZERO), in_turn: true }
    }

    /// For an end: a cancel does not cut it.
    pub(crate) const fn end(limit: Duration) -> Self {
        Self { limit: Some(limit), grace: None, in_turn: false }
    }

    /// For a transition: only a shutdown that has no time left cuts it.
    pub(crate) const fn transition(limit: Duration) -> Self {
        Self { limit: Some(limit), grace: Some(Duration::ZERO), in_turn: false }
    }

    /// For an effect: a cancel cuts it at once, and it need not have a limit.
    pub(crate) const fn effect(limit: Option<Duration>) -> Self {
        Self { limit, grace: Some(Duration::ZERO), in_turn: true }
    }
}

/// A call with a limit on its own time, cut off when the turn is cancelled or over time.
///
/// Nothing is armed until the call is pending for the first time; a call that is ready at once
/// costs one poll.
pub struct Bounded<'f, T> {
    future: BoxFuture<'f, T>,
    clock: &'f Clock,
    site: &'f Site<'f>,
    bounds: &'f Bounds,
    timer: Option<Box<Timer>>,
}

struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// What `sleep` stands for.
    cut: Cut,
    spent: Duration,
    running_since: Option<Instant>,
    cancelled_at: Option<Instant>,
}

impl<'f, T> Bounded<'f, T> {
    #[inline]
    pub(crate) fn new(
        future: BoxFuture<'f, T>,
        site: &'f Site<'f>,
        clock: &'f Clock,
        bounds: &'f Bounds,
    ) -> Self {
        Self { future, clock, site, bounds, timer: None }
    }

    /// Waits for the rest of a call that was pending just now, without polling it again first.
    pub(crate) async fn rest(mut self) -> (Result<T, Cut>, Duration) {
        let mut polled = true;
        let result = poll_fn(|cx| {
            if std::mem::take(&mut polled) {
                self.pending(cx)
            } else {
                Pin::new(&mut self).poll(cx)
            }
        })
        .await;
        let spent = self.spent();
        (result, spent)
    }

    /// Polls the call itself. If it is pending, [`Bounded::pending`] has to be asked.
    #[inline]
    pub(super) fn poll_caught(&mut self, cx: &mut Context<'_>) -> Result<Poll<T>, String> {
        catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(cx)))
            .map_err(|panic| panic_message(&*panic))
    }

    pub(super) fn site(&self) -> &'f Site<'f> {
        self.site
    }

    pub(super) fn clock(&self) -> &'f Clock {
        self.clock
    }

    /// How much of its own time the call took, as far as it was measured.
    fn spent(&self) -> Duration {
        self.timer.as_ref().map_or(Duration::ZERO, |timer| {
            timer.spent + timer.running_since.map_or(Duration::ZERO, |since| since.elapsed())
        })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Cut>> {
        // While a `next` or an ask is in flight own time stands still, and whoever is inside hears
        // of a cancel, and answers.
        if self.clock.is_paused() {
            if let Some(timer) = &mut self.timer
                && let Some(since) = timer.running_since.take()
            {
                timer.spent += since.elapsed();
            }
            return Poll::Pending;
        }
        let Bounds { limit, grace, in_turn } = *self.bounds;
        let cancelled =
            grace.is_some() && self.site.signal.is_some_and(|signal| signal.register(cx.waker()));
        if cancelled && grace == Some(Duration::ZERO) {
            return Poll::Ready(Err(Cut::Cancelled));
        }
        let turn_deadline = if in_turn { self.site.deadline() } else { None };
        if limit.is_none() && turn_deadline.is_none() && !cancelled {
            return Poll::Pending;
        }
        let timer = self.timer.get_or_insert_with(|| {
            Box::new(Timer {
                sleep: Box::pin(sleep_until(Instant::now())),
                cut: Cut::Cancelled,
                spent: Duration::ZERO,
                running_since: None,
                cancelled_at: None,
            })
        });
        if timer.running_since.is_none() || (cancelled && timer.cancelled_at.is_none()) {
            let now = Instant::now();
            let running_since = *timer.running_since.get_or_insert(now);
            let mut first: Option<(Instant, Cut)> = None;
            let mut bound = |at: Instant, cut: Cut| {
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, cut));
                }
            };
            if let Some(limit) = limit {
                bound(later(running_since, limit.saturating_sub(timer.spent)), Cut::Limit(limit));
            }
            if let Some(deadline) = turn_deadline {
                bound(deadline, Cut::TurnLimit);
            }
            if cancelled {
                let since = *timer.cancelled_at.get_or_insert(now);
                bound(later(since, grace.unwrap_or_default()), Cut::Cancelled);
            }
            if let Some((at, cut)) = first {
                timer.cut = cut;
                timer.sleep.as_mut().reset(at);
            }
        }
        loop {
            if timer.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            // The turn's deadline moves while somebody waits for a person.
            match self.site.deadline() {
                Some(later) if timer.cut == Cut::TurnLimit && later > Instant::now() => {
                    timer.sleep.as_mut().reset(later);
                }
                _ => return Poll::Ready(Err(timer.cut)),
            }
        }
    }
}

impl<T> Future for Bounded<'_, T> {
    type Output = Result<T, Cut>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Ok(value)),
            Poll::Pending => self.pending(cx),
        }
    }
}

/// A limit may be so long that no clock can tell when it is over.
pub(crate) fn later(from: Instant, by: Duration) -> Instant {
    const A_LIFETIME: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 30);
    from.checked_add(by).unwrap_or_else(|| from + A_LIFETIME)
}

/// Polls `poll` and turns a panic into its message.
#[inline]
pub(crate) fn caught<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, String>> {
    match catch_unwind(AssertUnwindSafe(poll)) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(panic_message(&*panic))),
    }
}

#[cold]
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
