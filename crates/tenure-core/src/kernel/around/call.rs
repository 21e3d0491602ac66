//! A call of `next` in flight, and what its end means.

use super::kind::{Kind, Leaf, cut_error};
use super::next::Watcher;
use crate::context::Cx;
use crate::error::Error;
use crate::hook::{Entry, FaultKind, HookError, HookFailure, Point, Policy};
use crate::kernel::bounded::{Bounded, Cut, caught};
use crate::kernel::clock::{Clock, Paused};
use crate::kernel::site::Site;
use crate::outcome::Outcome;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A call of `next` in flight.
#[must_use = "futures do nothing unless polled"]
pub struct NextCall<'b, K: Kind> {
    pub(super) call: Call<'b, K>,
    pub(super) paused: Option<Paused<'b>>,
    pub(super) watcher: Option<&'b Watcher<'b, K>>,
}

pub(super) enum Call<'b, K: Kind> {
    /// The turn was cancelled before the call was made.
    Over,
    Wrap {
        call: Bounded<'b, Result<K::Response, HookError>>,
        entry: &'b Entry,
    },
    Leaf(Leaf<'b, K>),
}

impl<K: Kind> fmt::Debug for NextCall<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextCall").field("point", &K::POINT).finish_non_exhaustive()
    }
}

/// Nothing in it is pinned in place: the futures it holds are boxed.
impl<K: Kind> Unpin for NextCall<'_, K> {}

impl<K: Kind> Future for NextCall<'_, K> {
    type Output = Result<K::Response, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // A response passes here at every wrap, so this path does nothing else, and does not wrap
        // it up more often than need be.
        if let Call::Wrap { call, .. } = &mut this.call
            && this.watcher.is_none()
        {
            return match call.poll_caught(cx) {
                Ok(Poll::Ready(Ok(response))) => {
                    this.call = Call::Over;
                    this.paused = None;
                    Poll::Ready(Ok(response))
                }
                other => this.unanswered(other, cx),
            };
        }
        this.poll_other(cx)
    }
}

/// What polling a wrap gave.
type Polled<K> = Result<Poll<Result<<K as Kind>::Response, HookError>>, String>;

impl<K: Kind> NextCall<'_, K> {
    /// A wrap that is pending, or did not give a response.
    #[cold]
    #[inline(never)]
    fn unanswered(
        &mut self,
        polled: Polled<K>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<K::Response, Error>> {
        let Call::Wrap { call, entry } = &mut self.call else { return Poll::Pending };
        let ended = match polled {
            Ok(Poll::Ready(result)) => Ok(Ok(result)),
            Ok(Poll::Pending) => match call.pending(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(cut) => Ok(cut),
            },
            Err(panic) => Err(panic),
        };
        let result = settle(ended, entry, call.site(), call.clock(), K::POINT);
        self.over(result.map_err(Settled::into_error))
    }

    /// The effect itself, and wraps whose results are kept.
    #[inline(never)]
    fn poll_other(&mut self, cx: &mut Context<'_>) -> Poll<Result<K::Response, Error>> {
        let result = match &mut self.call {
            Call::Over => Err(Error::cancelled()),
            Call::Wrap { call, .. } => {
                let polled = call.poll_caught(cx);
                return self.unanswered(polled, cx);
            }
            Call::Leaf(Leaf::Direct(call, _)) => match caught(|| Pin::new(&mut *call).poll(cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ended) => {
                    let result = K::settle(ended);
                    if let Ok(response) = &result {
                        let cx = Cx::of_effect(call.site(), K::POINT, call.clock());
                        K::answered(cx, response);
                    }
                    result
                }
            },
            Call::Leaf(Leaf::Boxed(call)) => match caught(|| call.as_mut().poll(cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(result)) => result,
                Poll::Ready(Err(panic)) => K::settle(Err(panic)),
            },
        };
        self.over(result)
    }

    /// The effect is over, and the wrap's own time runs again, before the wrap goes on.
    fn over(&mut self, result: Result<K::Response, Error>) -> Poll<Result<K::Response, Error>> {
        self.call = Call::Over;
        self.paused = None;
        if let Err(error) = &result {
            error.mark_as_passed_on();
        }
        if let Some(watcher) = self.watcher {
            *watcher.last.lock() = Some(result.clone());
        }
        Poll::Ready(result)
    }
}

/// How a wrap did not give a response.
pub(super) enum Settled {
    /// It handed on an error that came out of `next`.
    Passed(Error),
    /// It failed itself; this is what its policy makes of that.
    Own(Error),
    /// The turn is over, which is not its fault.
    Turn(Error),
}

impl Settled {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Passed(error) | Self::Own(error) | Self::Turn(error) => error,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Passed(error) | Self::Own(error) | Self::Turn(error) => error.outcome(),
        }
    }
}

pub(super) fn settle<R>(
    result: Result<Result<Result<R, HookError>, Cut>, String>,
    entry: &Entry,
    site: &Site<'_>,
    clock: &Clock,
    point: Point,
) -> Result<R, Settled> {
    let error = match result {
        Ok(Ok(Ok(response))) => return Ok(response),
        Ok(Ok(Err(error))) => match error.into_passed() {
            // What came out of `next`, a refusal and a cancel are not the hook's failure.
            Ok(passed) if passed.was_passed_on() || passed.is_denied() => {
                return Err(Settled::Passed(passed));
            }
            Ok(passed) if passed.is_cancelled() && site.is_cancelled() => {
                return Err(Settled::Passed(passed));
            }
            Ok(own) => own.into(),
            Err(own) => own,
        },
        Ok(Err(Cut::Limit(limit))) => HookError::of_kind(
            FaultKind::TimedOut,
            format!("no answer within {limit:?} of its own time"),
        ),
        Ok(Err(cut)) => return Err(Settled::Turn(cut_error(cut, "the hook"))),
        Err(message) => HookError::of_kind(FaultKind::Panicked, message),
    };
    Err(Settled::Own(fault(error, entry, site, clock, point)))
}

#[cold]
fn fault(error: HookError, entry: &Entry, site: &Site<'_>, clock: &Clock, point: Point) -> Error {
    let failure = HookFailure::new(&entry.name, point, &error);
    site.failed(failure.clone());
    match entry.policy(point) {
        // What stood behind the guard has already happened. Its result is withheld, and that it
        // was executed is said.
        Policy::Deny if clock.effects() > 0 => {
            Error::denied(format!("{failure}; the call was executed, its result is withheld"))
                .fatal(error.is_fatal())
        }
        Policy::Deny => Error::denied(failure.to_string()).fatal(error.is_fatal()),
        policy => {
            if policy == Policy::Continue && error.is_fatal() {
                site.inner.request_fatal();
            }
            match error.into_passed() {
                Ok(own) => own,
                Err(own) => failure.to_error(own),
            }
        }
    }
}
