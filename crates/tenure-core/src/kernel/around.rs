//! A request handed inward through the wraps, and its response handed outward.
//!
//! A call of `next` is a plain future that holds the boxed future of the next wrap, or of the
//! effect itself; it allocates nothing of its own. The request is lent, not given, so a wrap can
//! call `next` again with it.

use super::bounded::{Bounded, Cut, caught};
use super::{Clock, Paused, Site};
use crate::BoxFuture;
use crate::context::{Batch, Cx, ToolCx, TurnCx};
use crate::drive::{Body, model_leaf, tool_leaf};
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{AgentLifecycle, Entry, FaultKind, HookError, HookFailure, Point, Policy};
use crate::model::{ModelError, ModelRequest, ModelResponse};
use crate::outcome::Outcome;
use crate::sync::Mutex;
use crate::tool::{ToolError, ToolOutput, ToolRequest};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A kind of call that can be wrapped. There are two: model calls and tool calls.
pub trait Kind: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    const POINT: Point;
    /// What goes in.
    type Request: Clone + Send + Sync;
    /// What comes out.
    type Response: Clone + Send;
    #[doc(hidden)]
    type LeafError: Send;

    #[doc(hidden)]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        batch: Option<Batch<'a>>,
        request: &'a mut Self::Request,
        next: Next<'a, Self>,
    ) -> BoxFuture<'a, Result<Self::Response, HookError>>;

    #[doc(hidden)]
    fn leaf<'a>(
        batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut Self::Request,
    ) -> Leaf<'a, Self>;

    #[doc(hidden)]
    fn settle(ended: LeafEnd<Self>) -> Result<Self::Response, Error>;
}

/// How the effect itself ended.
type LeafEnd<K> =
    Result<Result<Result<<K as Kind>::Response, <K as Kind>::LeafError>, Cut>, String>;

/// Model calls.
#[derive(Clone, Copy, Debug)]
pub struct ModelKind;

/// Tool calls.
#[derive(Clone, Copy, Debug)]
pub struct ToolKind;

impl Kind for ModelKind {
    const POINT: Point = Point::WrapModelCall;
    type Request = ModelRequest;
    type Response = ModelResponse;
    type LeafError = ModelError;

    #[inline]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        _batch: Option<Batch<'a>>,
        request: &'a mut ModelRequest,
        next: NextModel<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, HookError>> {
        hook.wrap_model_call(TurnCx::new(cx), request, next)
    }

    #[inline]
    fn leaf<'a>(
        _batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut ModelRequest,
    ) -> Leaf<'a, Self> {
        model_leaf(cx, request)
    }

    #[inline]
    fn settle(ended: LeafEnd<Self>) -> Result<ModelResponse, Error> {
        match ended {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(cut)) => Err(cut_error(cut, "the model")),
            Err(panic) => Err(Error::new(
                ErrorKind::Panicked,
                format!("the model panicked: {panic}"),
            )),
        }
    }
}

impl Kind for ToolKind {
    const POINT: Point = Point::WrapToolCall;
    type Request = ToolRequest;
    type Response = ToolOutput;
    type LeafError = ToolError;

    #[inline]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        batch: Option<Batch<'a>>,
        request: &'a mut ToolRequest,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, HookError>> {
        hook.wrap_tool_call(ToolCx::new(cx, in_batch(batch)), request, next)
    }

    #[inline]
    fn leaf<'a>(
        batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut ToolRequest,
    ) -> Leaf<'a, Self> {
        tool_leaf(in_batch(batch), cx, request)
    }

    /// A tool's failure is a result that the model gets to read, unless the agent cannot survive
    /// it.
    #[inline]
    fn settle(ended: LeafEnd<Self>) -> Result<ToolOutput, Error> {
        match ended {
            Ok(Ok(Ok(output))) => Ok(output),
            Ok(Ok(Err(error))) if error.is_fatal() => {
                Err(Error::new(ErrorKind::Tool, error.to_string())
                    .caused_by(error.into_source())
                    .fatal(true))
            }
            Ok(Ok(Err(error))) => Ok(ToolOutput::error(error.to_string())),
            Ok(Err(Cut::Limit(limit))) => Ok(ToolOutput::error(format!(
                "the tool gave no answer within {limit:?}"
            ))),
            Ok(Err(cut)) => Err(cut_error(cut, "the tool")),
            Err(panic) => Ok(ToolOutput::error(format!("the tool panicked: {panic}"))),
        }
    }
}

fn in_batch(batch: Option<Batch<'_>>) -> Batch<'_> {
    batch.expect("a tool call is always part of a batch")
}

/// The effect itself, at the centre of the wraps.
pub enum Leaf<'a, K: Kind> {
    /// One bounded call.
    #[doc(hidden)]
    Direct(
        Bounded<'a, Result<K::Response, K::LeafError>>,
        Option<Body<'a>>,
    ),
    /// Anything that takes more than that.
    #[doc(hidden)]
    Boxed(BoxFuture<'a, Result<K::Response, Error>>),
}

#[cold]
pub(crate) fn cut_error(cut: Cut, what: &str) -> Error {
    match cut {
        Cut::Limit(limit) => Error::new(
            ErrorKind::TimedOut,
            format!("{what} gave no answer within {limit:?}"),
        ),
        Cut::TurnLimit => Error::new(ErrorKind::TimedOut, "the turn's time is up"),
        Cut::Cancelled => Error::cancelled(),
    }
}

/// One clock per wrap and one for the effect. A few of them need no allocation.
pub(crate) enum Clocks {
    Few([Clock; 4]),
    Many(Box<[Clock]>),
}

impl Clocks {
    #[inline]
    pub(crate) fn for_wraps(wraps: usize) -> Self {
        if wraps < 4 {
            Self::Few(Default::default())
        } else {
            Self::Many((0..=wraps).map(|_| Clock::default()).collect())
        }
    }

    #[inline]
    fn get(&self, at: usize) -> &Clock {
        match self {
            Self::Few(clocks) => &clocks[at],
            Self::Many(clocks) => &clocks[at],
        }
    }
}

/// One call on its way through the wraps.
pub(crate) struct Around<'a, K: Kind> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) entries: &'a [Entry],
    pub(crate) wraps: &'a [u16],
    pub(crate) clocks: &'a Clocks,
    /// Which call of which batch it is, for tools.
    pub(crate) batch: Option<Batch<'a>>,
    /// Somebody else's idea of the effect: what a tower layer has inside it.
    pub(crate) inside: Option<&'a dyn Inside<K>>,
}

/// An effect that is not the agent's own.
pub(crate) trait Inside<K: Kind>: Send + Sync {
    fn call<'a>(&'a self, request: &'a mut K::Request)
    -> BoxFuture<'a, Result<K::Response, Error>>;
}

impl<'a, K: Kind> Around<'a, K> {
    /// Makes the call, through every wrap.
    #[inline]
    pub(crate) fn call<'b>(&'b self, request: &'b mut K::Request) -> NextCall<'b, K> {
        Next::<K> {
            around: self,
            at: 0,
            stash: None,
        }
        .start(request, None)
    }
}

/// The rest of the chain: the wraps further in, and at last the effect itself.
///
/// Call it as often as needed: not at all, once, again after a failure, or twice at the same time.
/// It is `Copy`.
pub struct Next<'a, K: Kind> {
    around: &'a Around<'a, K>,
    at: u16,
    stash: Option<&'a Stash<K::Response>>,
}

/// What a `wrap_model_call` calls.
pub type NextModel<'a> = Next<'a, ModelKind>;
/// What a `wrap_tool_call` calls.
pub type NextTool<'a> = Next<'a, ToolKind>;

type Stash<R> = Mutex<Option<Result<R, Error>>>;

impl<K: Kind> Clone for Next<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kind> Copy for Next<'_, K> {}

impl<K: Kind> fmt::Debug for Next<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next")
            .field("point", &K::POINT)
            .field("at", &self.at)
            .finish()
    }
}

impl<'a, K: Kind> Next<'a, K> {
    /// A `next` for a hook that stands alone before what is inside `around`.
    pub(crate) fn into_inside(around: &'a Around<'a, K>) -> Self {
        Self {
            around,
            at: 1,
            stash: None,
        }
    }

    /// Makes the call. While it is in flight the wrap's own time stands still.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call it stands for. After the turn was cancelled it yields
    /// an error for which [`Error::is_cancelled`] holds, at once.
    #[inline]
    pub fn call<'b>(&self, request: &'b mut K::Request) -> NextCall<'b, K>
    where
        'a: 'b,
    {
        let clock = self.around.clocks.get(self.at as usize - 1);
        clock.count_call();
        self.start(request, Some(clock.pause()))
    }

    #[inline]
    fn start<'b>(self, request: &'b mut K::Request, paused: Option<Paused<'b>>) -> NextCall<'b, K>
    where
        'a: 'b,
    {
        let Around {
            site,
            entries,
            wraps,
            clocks,
            batch,
            inside,
        } = *self.around;
        let at = self.at as usize;
        let clock = clocks.get(at);
        let call = if site.is_cancelled() {
            Call::Over
        } else if let Some(&place) = wraps.get(at) {
            let entry = &entries[place as usize];
            if entry.policy(K::POINT) == Policy::Continue || site.inner.is_watched() {
                Call::Leaf(Leaf::Boxed(Box::pin(self.attended(
                    entry,
                    place as usize,
                    request,
                ))))
            } else {
                let next = Next {
                    around: self.around,
                    at: self.at + 1,
                    stash: None,
                };
                let cx = Cx::new(site, K::POINT, place as usize, clock);
                let hook = K::wrap(&*entry.hook, cx, batch, request, next);
                let limit = Some(entry.limit(K::POINT));
                Call::Wrap {
                    call: Bounded::new(hook, site, clock, limit),
                    entry,
                    site,
                    clock,
                }
            }
        } else if let Some(inside) = inside {
            Call::Leaf(Leaf::Boxed(inside.call(request)))
        } else {
            let cx = Cx::new(site, K::POINT, usize::MAX, clock);
            Call::Leaf(K::leaf(batch, cx, request))
        };
        NextCall {
            call,
            paused,
            stash: self.stash,
        }
    }

    /// A wrap that is watched, or whose failure is passed over: it works on a copy of the request,
    /// and what `next` last gave it is kept.
    #[cold]
    async fn attended<'b>(
        self,
        entry: &'b Entry,
        place: usize,
        request: &'b mut K::Request,
    ) -> Result<K::Response, Error>
    where
        'a: 'b,
    {
        let site = self.around.site;
        let clock = self.around.clocks.get(self.at as usize);
        let passes = entry.policy(K::POINT) == Policy::Continue;
        let started = tokio::time::Instant::now();
        site.emit(|| EventKind::HookStarted {
            hook: entry.name.clone(),
            point: K::POINT,
        });
        let stash = Stash::<K::Response>::default();
        let mut copy = passes.then(|| request.clone());
        let result = {
            let own = copy.as_mut().unwrap_or(&mut *request);
            let kept = passes.then_some(&stash);
            let next = Next {
                around: self.around,
                at: self.at + 1,
                stash: kept,
            };
            let cx = Cx::new(site, K::POINT, place, clock);
            let hook = K::wrap(&*entry.hook, cx, self.around.batch, own, next);
            let mut call = Bounded::new(hook, site, clock, Some(entry.limit(K::POINT)));
            let result = poll_fn(|cx| caught(|| Pin::new(&mut call).poll(cx))).await;
            settle::<K::Response>(result, entry, site, clock, K::POINT)
        };
        site.emit(|| EventKind::HookEnded {
            hook: entry.name.clone(),
            point: K::POINT,
            outcome: result
                .as_ref()
                .map_or_else(Settled::outcome, |_| Outcome::Ok),
            took: started.elapsed(),
        });
        match result {
            Ok(response) if !entry.observes => Ok(response),
            Err(Settled::Passed(error)) if !entry.observes => Err(error),
            Err(Settled::Turn(error)) => Err(error),
            Err(Settled::Own(error)) if !passes => Err(error),
            // It only watched, or it failed and that is passed over: what `next` gave it counts,
            // and if it never called `next`, that is done now.
            _ => {
                let last = stash.lock().take();
                match last {
                    Some(result) => result,
                    None => {
                        let inner = Next {
                            around: self.around,
                            at: self.at + 1,
                            stash: None,
                        };
                        inner.start(request, Some(clock.pause())).await
                    }
                }
            }
        }
    }
}

/// A call of `next` in flight.
#[must_use = "futures do nothing unless polled"]
pub struct NextCall<'b, K: Kind> {
    call: Call<'b, K>,
    paused: Option<Paused<'b>>,
    stash: Option<&'b Stash<K::Response>>,
}

enum Call<'b, K: Kind> {
    /// The turn was cancelled before the call was made.
    Over,
    Wrap {
        call: Bounded<'b, Result<K::Response, HookError>>,
        entry: &'b Entry,
        site: &'b Site<'b>,
        clock: &'b Clock,
    },
    Leaf(Leaf<'b, K>),
}

impl<K: Kind> fmt::Debug for NextCall<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextCall")
            .field("point", &K::POINT)
            .finish_non_exhaustive()
    }
}

/// Nothing in it is pinned in place: the futures it holds are boxed.
impl<K: Kind> Unpin for NextCall<'_, K> {}

impl<K: Kind> Future for NextCall<'_, K> {
    type Output = Result<K::Response, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let result = match &mut this.call {
            Call::Over => Err(Error::cancelled()),
            Call::Wrap {
                call,
                entry,
                site,
                clock,
            } => match caught(|| Pin::new(call).poll(cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Ok(Ok(response)))) => Ok(response),
                Poll::Ready(failed) => {
                    settle(failed, entry, site, clock, K::POINT).map_err(Settled::into_error)
                }
            },
            Call::Leaf(Leaf::Direct(call, _)) => match caught(|| Pin::new(call).poll(cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(ended) => K::settle(ended),
            },
            Call::Leaf(Leaf::Boxed(call)) => match caught(|| call.as_mut().poll(cx)) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(result)) => result,
                Poll::Ready(Err(panic)) => K::settle(Err(panic)),
            },
        };
        // The effect is over, and the wrap's own time runs again, before the wrap goes on.
        this.call = Call::Over;
        this.paused = None;
        if let Some(stash) = this.stash {
            *stash.lock() = Some(result.clone());
        }
        Poll::Ready(result)
    }
}

/// How a wrap did not give a response.
enum Settled {
    /// It handed on an error that came out of `next`.
    Passed(Error),
    /// It failed itself; this is what its policy makes of that.
    Own(Error),
    /// The turn is over, which is not its fault.
    Turn(Error),
}

impl Settled {
    fn into_error(self) -> Error {
        match self {
            Self::Passed(error) | Self::Own(error) | Self::Turn(error) => error,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Passed(error) | Self::Own(error) | Self::Turn(error) => error.outcome(),
        }
    }
}

fn settle<R>(
    result: Result<Result<Result<R, HookError>, Cut>, String>,
    entry: &Entry,
    site: &Site<'_>,
    clock: &Clock,
    point: Point,
) -> Result<R, Settled> {
    let error = match result {
        Ok(Ok(Ok(response))) => return Ok(response),
        Ok(Ok(Err(error))) => match error.into_passed() {
            Ok(passed) => return Err(Settled::Passed(passed)),
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
        Policy::Deny if clock.calls() > 0 => Error::denied(format!(
            "{failure}; the call was executed, its result is withheld"
        ))
        .fatal(error.is_fatal()),
        Policy::Deny => Error::denied(failure.to_string()).fatal(error.is_fatal()),
        Policy::Abort | Policy::Continue => failure.to_error(error),
    }
}
