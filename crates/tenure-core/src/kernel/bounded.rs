//! One bounded call.

use super::Clock;
use super::site::Site;
use crate::BoxFuture;
use std::any::Any;
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

/// A call with a limit on its own time, cut off when the turn is cancelled or over time.
///
/// Nothing is armed until the call is pending for the first time; a call that is ready at once
/// costs one poll.
pub struct Bounded<'f, T> {
    future: BoxFuture<'f, T>,
    clock: &'f Clock,
    site: &'f Site<'f>,
    limit: Option<Duration>,
    /// How long the call may go on after a cancel. `None`: a cancel does not cut it.
    grace: Option<Duration>,
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
        limit: Option<Duration>,
    ) -> Self {
        Self {
            future,
            clock,
            site,
            limit,
            grace: Some(Duration::ZERO),
            timer: None,
        }
    }

    /// The call is not cut off by a cancel. For ends.
    #[inline]
    pub(crate) fn uncancellable(mut self) -> Self {
        self.grace = None;
        self
    }

    /// After a cancel the call may go on for so long.
    #[inline]
    pub(crate) fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// How much of its own time the call took, as far as it was measured.
    pub(crate) fn spent(&self) -> Duration {
        self.timer.as_ref().map_or(Duration::ZERO, |timer| {
            timer.spent
                + timer
                    .running_since
                    .map_or(Duration::ZERO, |since| since.elapsed())
        })
    }

    #[cold]
    #[inline(never)]
    fn pending(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Cut>> {
        let paused = self.clock.is_paused();
        let cancelled = self.grace.is_some()
            && self
                .site
                .signal
                .is_some_and(|signal| signal.register(cx.waker()));
        // While a `next` is in flight the inner call hears of the cancel, and answers.
        if cancelled && !paused && self.grace == Some(Duration::ZERO) {
            return Poll::Ready(Err(Cut::Cancelled));
        }
        let turn_deadline = if self.grace.is_some() {
            self.site.deadline()
        } else {
            None
        };
        if self.limit.is_none() && turn_deadline.is_none() && !cancelled {
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
        if paused {
            if let Some(since) = timer.running_since.take() {
                timer.spent += since.elapsed();
            }
            return Poll::Pending;
        }
        if timer.running_since.is_none() || (cancelled && timer.cancelled_at.is_none()) {
            let now = Instant::now();
            let running_since = *timer.running_since.get_or_insert(now);
            let mut first: Option<(Instant, Cut)> = None;
            let mut bound = |at: Instant, cut: Cut| {
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, cut));
                }
            };
            if let Some(limit) = self.limit {
                bound(
                    running_since + limit.saturating_sub(timer.spent),
                    Cut::Limit(limit),
                );
            }
            if let Some(deadline) = turn_deadline {
                bound(deadline, Cut::TurnLimit);
            }
            if cancelled {
                let since = *timer.cancelled_at.get_or_insert(now);
                bound(since + self.grace.unwrap_or_default(), Cut::Cancelled);
            }
            if let Some((at, cut)) = first {
                timer.cut = cut;
                timer.sleep.as_mut().reset(at);
            }
        }
        timer.sleep.as_mut().poll(cx).map(|()| Err(timer.cut))
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
