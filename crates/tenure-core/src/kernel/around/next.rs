//! The rest of the chain, as a wrap sees it.

use super::call::{Call, NextCall, Settled, settle};
use super::kind::{Kind, Leaf, ModelKind, ToolKind};
use crate::BoxFuture;
use crate::context::{Batch, Cx};
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Entry, Policy};
use crate::kernel::bounded::{Bounded, caught};
use crate::kernel::clock::{Clocks, Paused};
use crate::kernel::site::Site;
use crate::outcome::Outcome;
use crate::sync::Mutex;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;

/// The effect once more, for the same call.
#[cold]
fn again<'a, K: Kind>(
    batch: Option<Batch<'a>>,
    cx: Cx<'a>,
    request: &'a mut K::Request,
) -> Leaf<'a, K> {
    match K::begins_anew(cx) {
        Ok(()) => K::leaf(batch, cx, request),
        Err(error) => Leaf::Boxed(Box::pin(async { Err(error) })),
    }
}

/// One call on its way through the wraps.
pub(crate) struct Around<'a, K: Kind> {
    pub(crate) site: &'a Site<'a>,
    pub(crate) entries: &'a [Entry],
    pub(crate) wraps: &'a [u16],
    pub(crate) clocks: &'a Clocks,
    /// Whether anybody listens to what happens here.
    pub(crate) watched: bool,
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
        Next::<K> { around: self, at: 0, watcher: None }.start(request, None)
    }
}

/// The rest of the chain: the wraps further in, and at last the effect itself.
///
/// Call it as often as needed: not at all, once, again after a failure, or twice at the same time.
/// It is `Copy`.
pub struct Next<'a, K: Kind> {
    around: &'a Around<'a, K>,
    at: u16,
    watcher: Option<&'a Watcher<'a, K>>,
}

/// What is kept for a wrap that may be passed over.
pub(super) struct Watcher<'a, K: Kind> {
    /// What `next` last gave it.
    pub(super) last: Mutex<Option<Result<K::Response, Error>>>,
    /// What `next` is called with, whatever it says: it only observes.
    request: Option<&'a K::Request>,
}

/// What a `wrap_model_call` calls.
#[doc(alias = "call_with_model_wrapper")]
pub type NextModel<'a> = Next<'a, ModelKind>;
/// What a `wrap_tool_call` calls.
#[doc(alias = "call_with_tool_wrapper")]
pub type NextTool<'a> = Next<'a, ToolKind>;

impl<K: Kind> Clone for Next<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Kind> Copy for Next<'_, K> {}

impl<K: Kind> fmt::Debug for Next<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("point", &K::POINT).field("at", &self.at).finish()
    }
}

impl<'a, K: Kind> Next<'a, K> {
    /// A `next` for a hook that stands alone before what is inside `around`.
    pub(crate) fn into_inside(around: &'a Around<'a, K>) -> Self {
        Self { around, at: 1, watcher: None }
    }

    /// Makes the call. While it is in flight the wrap's own time stands still.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call it stands for. After the turn was cancelled it yields
    /// an error for which [`Error::is_cancelled`] holds, at once.
    #[inline(always)]
    pub fn call<'b>(&self, request: &'b mut K::Request) -> NextCall<'b, K>
    where
        'a: 'b,
    {
        let clock = self.around.clocks.get(self.at as usize - 1);
        if let Some(original) = self.watcher.and_then(|watcher| watcher.request) {
            request.clone_from(original);
        }
        self.start(request, Some(clock.pause()))
    }

    /// Whether an effect has begun inside this wrap: a hook that fails before that may be tried
    /// again, and one that fails after it has let something happen.
    pub fn has_run(&self) -> bool {
        self.around.clocks.get(self.at as usize - 1).effects() > 0
    }

    /// How often an effect was begun inside this wrap so far: with a retry further in, its attempts.
    pub fn runs(&self) -> u32 {
        self.around.clocks.get(self.at as usize - 1).effects()
    }

    #[inline(always)]
    fn start<'b>(self, request: &'b mut K::Request, paused: Option<Paused<'b>>) -> NextCall<'b, K>
    where
        'a: 'b,
    {
        let Around { site, entries, wraps, clocks, watched, batch, inside } = *self.around;
        let at = self.at as usize;
        let clock = clocks.get(at);
        let call = if site.is_cancelled() {
            Call::Over
        } else if let Some(&place) = wraps.get(at) {
            let entry = &entries[place as usize];
            if entry.policy(K::POINT) == Policy::Continue || watched {
                Call::Leaf(Leaf::Boxed(Box::pin(self.attended(entry, place, request))))
            } else {
                let next = Next { around: self.around, at: self.at + 1, watcher: None };
                let cx = Cx::new(site, K::POINT, place, clock);
                let hook = K::wrap(&*entry.hook, cx, batch, request, next);
                Call::Wrap { call: Bounded::new(hook, site, clock, &entry.bounds), entry }
            }
        } else if let Some(inside) = inside {
            Call::Leaf(Leaf::Boxed(inside.call(request)))
        } else {
            for outer in 0..at {
                clocks.get(outer).count_effect();
            }
            let cx = Cx::of_effect(site, K::POINT, clock);
            match at > 0 && clocks.get(0).effects() > 1 {
                false => Call::Leaf(K::leaf(batch, cx, request)),
                true => Call::Leaf(again::<K>(batch, cx, request)),
            }
        };
        NextCall { call, paused, watcher: self.watcher }
    }

    /// A wrap that is watched, or whose failure is passed over: it works on a copy of the request,
    /// and what `next` last gave it is kept.
    #[cold]
    async fn attended<'b>(
        self,
        entry: &'b Entry,
        place: u16,
        request: &'b mut K::Request,
    ) -> Result<K::Response, Error>
    where
        'a: 'b,
    {
        let site = self.around.site;
        let clock = self.around.clocks.get(self.at as usize);
        let passes = entry.policy(K::POINT) == Policy::Continue;
        let started = tokio::time::Instant::now();
        let ended = |outcome| EventKind::HookEnded {
            hook: entry.name.clone(),
            point: K::POINT,
            outcome,
            took: started.elapsed().saturating_sub(clock.time_off()),
        };
        let begun = site.begun(
            || EventKind::HookStarted { hook: entry.name.clone(), point: K::POINT },
            || ended(Outcome::Cancelled),
        );
        let mut copy = passes.then(|| request.clone());
        let (result, last) = {
            let (own, request) = match &mut copy {
                Some(copy) => (copy, entry.observes.then_some(&*request)),
                None => (&mut *request, None),
            };
            let watcher = Watcher { last: Mutex::default(), request };
            let kept = passes.then_some(&watcher);
            let next = Next { around: self.around, at: self.at + 1, watcher: kept };
            let cx = Cx::new(site, K::POINT, place, clock);
            let hook = K::wrap(&*entry.hook, cx, self.around.batch, own, next);
            let mut call = Bounded::new(hook, site, clock, &entry.bounds);
            let result = poll_fn(|cx| caught(|| Pin::new(&mut call).poll(cx))).await;
            let result = settle::<K::Response>(result, entry, site, clock, K::POINT);
            drop(call);
            let last = watcher.last.lock().take();
            (result, last)
        };
        begun.ended(|| ended(result.as_ref().map_or_else(Settled::outcome, |_| Outcome::Ok)));
        if let (Some(copy), Some(_)) = (&copy, &last) {
            K::tells(request, copy);
        }
        match result {
            Ok(response) if !entry.observes => Ok(response),
            Err(Settled::Passed(error)) if !entry.observes => Err(error),
            Err(Settled::Turn(error)) => Err(error),
            Err(Settled::Own(error)) if !passes => Err(error),
            // It only watched, or it failed and that is passed over: what `next` gave it counts,
            // and if it never called `next`, that is done now. A call that it began and gave up
            // is not made again: it may have had its effect.
            result => match (last, result) {
                (Some(last), _) => last,
                (None, Err(settled)) if clock.effects() > 0 => Err(settled.into_error()),
                (None, Ok(_)) if clock.effects() > 0 => Err(Error::new(
                    ErrorKind::Hook,
                    format!("hook `{}` only observes, but it gave up the call", entry.name),
                )),
                (None, _) => {
                    let inner = Next { around: self.around, at: self.at + 1, watcher: None };
                    inner.start(request, Some(clock.pause())).await
                }
            },
        }
    }
}
