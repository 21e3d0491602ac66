//! A point handed to its entries, one after the other.

use super::bounded::{Bounded, Cut, caught};
use super::{Clock, Site};
use crate::BoxFuture;
use crate::context::Cx;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Chain, Entry, FaultKind, HookError, HookFailure, Point, Policy};
use crate::outcome::Outcome;
use serde_json::Value;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What one point does with each of its entries.
pub(crate) trait Sequence: Send {
    const POINT: Point;
    type Out: Send;

    /// Calls the hook.
    fn call<'a>(
        &'a mut self,
        entry: &'a Entry,
        cx: Cx<'a>,
    ) -> BoxFuture<'a, Result<Self::Out, HookError>>;

    /// Takes what the hook decided. `Break` ends the sequence.
    fn accept(&mut self, entry: &Entry, out: Self::Out) -> ControlFlow<()>;

    /// Whether the entry is left out this time.
    #[inline]
    fn skips(&self, _place: usize, _entry: &Entry) -> bool {
        false
    }

    /// The entry at this place has been passed: it counts as entered, and gets its end.
    #[inline]
    fn entered(&mut self, _place: usize) {}

    /// What to write down of a decision, where this point's decisions are steps (G7).
    fn record(&self, _out: &Self::Out) -> Value {
        Value::Null
    }

    /// A hash of what the decision is about.
    fn fingerprint(&self) -> u64 {
        0
    }

    /// What the hook decided the first time.
    fn replay(&mut self, _record: Value) -> Result<Self::Out, Error> {
        Err(Error::new(ErrorKind::Replay, "this point keeps no record"))
    }
}

/// Whether the calls are ends: not cut off by a cancel, and bounded together.
#[derive(Clone, Copy)]
pub(crate) enum Ends {
    No,
    Within(Duration),
}

/// Runs `seq` over the entries of its point, in calling order.
///
/// An `Err` is what a failing hook means under its policy: abort or deny. Under `continue` the
/// failure is recorded and the sequence goes on; ends are always continued.
pub(crate) async fn sequence<S: Sequence>(
    site: &Site<'_>,
    chain: &Chain,
    ends: Ends,
    seq: &mut S,
) -> Result<(), Error> {
    let calls = chain.calls(S::POINT);
    let mut left = match ends {
        Ends::No => Duration::MAX,
        Ends::Within(budget) => budget,
    };
    // One catch around the whole chain: `at` tells whose panic it was, and the loop goes on
    // behind it.
    let at = AtomicUsize::new(0);
    loop {
        let caught_run = {
            let mut run = pin!(run(site, chain, calls, &at, ends, &mut left, seq));
            poll_fn(|cx| caught(|| run.as_mut().poll(cx))).await
        };
        match caught_run {
            Ok(result) => return result,
            Err(message) => {
                let place = at.fetch_add(1, Ordering::Relaxed);
                let entry = &chain.entries[calls[place] as usize];
                let error = HookError::of_kind(FaultKind::Panicked, message);
                announce::<S>(site, entry, None, Outcome::Panicked);
                fault::<S>(site, entry, error)?;
            }
        }
    }
}

async fn run<S: Sequence>(
    site: &Site<'_>,
    chain: &Chain,
    calls: &[u16],
    at: &AtomicUsize,
    ends: Ends,
    left: &mut Duration,
    seq: &mut S,
) -> Result<(), Error> {
    loop {
        let index = at.load(Ordering::Relaxed);
        let Some(&place) = calls.get(index) else {
            return Ok(());
        };
        let place = place as usize;
        let entry = &chain.entries[place];
        if !seq.skips(place, entry) {
            if matches!(ends, Ends::No) && site.is_cancelled() {
                return Err(Error::cancelled());
            }
            seq.entered(place);
            let out = if site.inner.is_watched() || site.steps().is_some() {
                observed(site, entry, place, ends, left, seq).await
            } else {
                bounded(site, entry, place, ends, left, seq).await
            };
            match out {
                Ok(out) => {
                    if seq.accept(entry, out).is_break() {
                        return Ok(());
                    }
                }
                Err(Stop::Fault(error)) => fault::<S>(site, entry, error)?,
                Err(Stop::Turn(error)) => return Err(error),
            }
        }
        at.store(index + 1, Ordering::Relaxed);
    }
}

enum Stop {
    /// The hook failed.
    Fault(HookError),
    /// The turn is over, which is not the hook's fault.
    Turn(Error),
}

#[inline]
async fn bounded<S: Sequence>(
    site: &Site<'_>,
    entry: &Entry,
    place: usize,
    ends: Ends,
    left: &mut Duration,
    seq: &mut S,
) -> Result<S::Out, Stop> {
    let clock = Clock::default();
    let limit = entry.limit(S::POINT).min(*left);
    let call = seq.call(entry, Cx::new(site, S::POINT, place, &clock));
    let mut call = Bounded::new(call, site, &clock, Some(limit));
    if let Ends::Within(_) = ends {
        call = call.uncancellable();
    }
    let out = (&mut call).await;
    if let Ends::Within(_) = ends {
        *left = left.saturating_sub(call.spent());
    }
    match out {
        Ok(Ok(out)) => Ok(out),
        Ok(Err(error)) => Err(passed(error)),
        Err(cut) => Err(cut_off(cut)),
    }
}

#[cold]
fn passed(error: HookError) -> Stop {
    match error.into_passed() {
        // A cancelled ask, say: the hook handed on what it was told.
        Ok(error) if error.is_cancelled() => Stop::Turn(error),
        Ok(error) => Stop::Fault(error.into()),
        Err(own) => Stop::Fault(own),
    }
}

#[cold]
fn cut_off(cut: Cut) -> Stop {
    match cut {
        Cut::Limit(limit) => Stop::Fault(HookError::of_kind(
            FaultKind::TimedOut,
            format!("no answer within {limit:?}"),
        )),
        Cut::TurnLimit => Stop::Turn(Error::new(ErrorKind::TimedOut, "the turn's time is up")),
        Cut::Cancelled => Stop::Turn(Error::cancelled()),
    }
}

/// The same call with somebody watching, or with a step log to serve it from.
#[cold]
async fn observed<S: Sequence>(
    site: &Site<'_>,
    entry: &Entry,
    place: usize,
    ends: Ends,
    left: &mut Duration,
    seq: &mut S,
) -> Result<S::Out, Stop> {
    let started = tokio::time::Instant::now();
    site.emit(|| EventKind::HookStarted {
        hook: entry.name.clone(),
        point: S::POINT,
    });
    let out = match (site.steps(), site.turn) {
        (Some(log), Some(turn)) if records(S::POINT) => {
            let key = turn.step_key(S::POINT.as_str(), &entry.name, seq.fingerprint());
            let (mut fresh, mut stopped) = (None, None);
            let effect = async {
                match bounded(site, entry, place, ends, left, seq).await {
                    Ok(out) => {
                        let record = seq.record(&out);
                        fresh = Some(out);
                        Ok(record)
                    }
                    Err(stop) => {
                        stopped = Some(stop);
                        Err(Error::new(ErrorKind::Hook, "the hook failed"))
                    }
                }
            };
            let record = log.step(key, Box::pin(effect)).await;
            match (fresh, stopped, record) {
                (_, Some(stop), _) => Err(stop),
                (_, None, Err(error)) => Err(Stop::Turn(error)),
                (Some(out), None, Ok(_)) => Ok(out),
                (None, None, Ok(record)) => seq.replay(record).map_err(Stop::Turn),
            }
        }
        _ => bounded(site, entry, place, ends, left, seq).await,
    };
    let outcome = match &out {
        Ok(_) => Outcome::Ok,
        Err(Stop::Fault(error)) => error.kind().outcome(),
        Err(Stop::Turn(error)) => error.outcome(),
    };
    announce::<S>(site, entry, Some(started.elapsed()), outcome);
    out
}

/// Which decisions are steps.
fn records(point: Point) -> bool {
    matches!(
        point,
        Point::BeforeAgent | Point::BeforeModel | Point::AfterModel | Point::BeforeChat
    )
}

fn announce<S: Sequence>(site: &Site<'_>, entry: &Entry, took: Option<Duration>, outcome: Outcome) {
    site.emit(|| EventKind::HookEnded {
        hook: entry.name.clone(),
        point: S::POINT,
        outcome,
        took: took.unwrap_or_default(),
    });
}

/// What a failure means.
#[cold]
fn fault<S: Sequence>(site: &Site<'_>, entry: &Entry, error: HookError) -> Result<(), Error> {
    let failure = HookFailure::new(&entry.name, S::POINT, &error);
    site.failed(failure.clone());
    match entry.policy(S::POINT) {
        Policy::Continue if error.is_fatal() => {
            site.inner.request_fatal();
            Ok(())
        }
        Policy::Continue => Ok(()),
        Policy::Deny => Err(Error::denied(failure.to_string()).fatal(error.is_fatal())),
        Policy::Abort => Err(match error.into_passed() {
            Ok(passed) => passed,
            Err(own) => failure.to_error(own),
        }),
    }
}
