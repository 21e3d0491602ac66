//! A point handed to its entries, one after the other.

use super::bounded::{Bounded, Bounds, Cut, caught};
use super::{Clock, Site};
use crate::BoxFuture;
use crate::context::Cx;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Chain, Entry, FaultKind, FaultRecord, HookError, HookFailure, Point, Policy};
use crate::model::Usage;
use crate::outcome::Outcome;
use crate::phase::Transition;
use crate::step::{Step, StepScope, absorb, decode, encode, recorded};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

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

    /// Whether there is nothing in it to accept.
    #[inline]
    fn says_nothing(_out: &Self::Out) -> bool {
        size_of::<Self::Out>() == 0
    }

    /// Takes what the hook decided. `Break` ends the sequence.
    #[inline]
    fn accept(&mut self, _entry: &Entry, _out: Self::Out) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Whether the entry is left out this time.
    #[inline]
    fn skips(&self, _place: usize, _entry: &Entry) -> bool {
        false
    }

    /// The entry at this place has been passed: it counts as entered, and gets its end.
    #[inline]
    fn entered(&mut self, _place: usize) {}

    /// The transition that it is about, if it is about one.
    fn transition(&self) -> Option<Transition> {
        None
    }

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
    /// As ends, but for a shutdown that has no time left and cuts them.
    Transition(Duration),
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
        Ends::Within(budget) | Ends::Transition(budget) => budget,
    };
    site.shares(ends, left);
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
                fault(site, entry, seq, error)?;
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
    let attended = site.inner.is_watched() || site.steps().is_some();
    loop {
        let index = at.load(Ordering::Relaxed);
        let Some(&place) = calls.get(index) else {
            return Ok(());
        };
        let entry = &chain.entries[place as usize];
        if !seq.skips(place as usize, entry) {
            if matches!(ends, Ends::No) && site.is_cancelled() {
                return Err(Error::cancelled());
            }
            seq.entered(place as usize);
            let out = if attended {
                Box::pin(observed(site, entry, place, ends, left, seq)).await
            } else {
                let clock = Clock::default();
                let mut call = seq.call(entry, Cx::new(site, S::POINT, place, &clock));
                // A hook that has nothing to say is the usual one; what it returned is not even
                // moved then.
                let first = poll_fn(|cx| {
                    Poll::Ready(match call.as_mut().poll(cx) {
                        Poll::Ready(Ok(out)) if S::says_nothing(&out) => First::Nothing,
                        Poll::Ready(result) => First::Said(result),
                        Poll::Pending => First::Pending,
                    })
                });
                match first.await {
                    First::Nothing => {
                        at.store(index + 1, Ordering::Relaxed);
                        continue;
                    }
                    First::Said(result) => result.map_err(|error| passed(site, S::POINT, error)),
                    First::Pending => rest::<S>(call, site, entry, &clock, ends, left).await,
                }
            };
            match out {
                Ok(out) => {
                    if seq.accept(entry, out).is_break() {
                        return Ok(());
                    }
                }
                Err(Stop::Fault(error)) => fault(site, entry, seq, error)?,
                Err(Stop::Turn(error)) => return Err(error),
            }
        }
        at.store(index + 1, Ordering::Relaxed);
    }
}

/// What the first poll of a call gave.
enum First<T> {
    Nothing,
    Said(Result<T, HookError>),
    Pending,
}

enum Stop {
    /// The hook failed.
    Fault(HookError),
    /// The turn is over, which is not the hook's fault.
    Turn(Error),
}

/// One call, bounded.
async fn bounded<S: Sequence>(
    site: &Site<'_>,
    (entry, place): (&Entry, u16),
    clock: &Clock,
    ends: Ends,
    left: &mut Duration,
    seq: &mut S,
) -> Result<S::Out, Stop> {
    let mut call = seq.call(entry, Cx::new(site, S::POINT, place, clock));
    match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
        Poll::Ready(result) => result.map_err(|error| passed(site, S::POINT, error)),
        Poll::Pending => rest::<S>(call, site, entry, clock, ends, left).await,
    }
}

/// What is left for the ends that are still to come.
struct Budget<'a> {
    left: &'a mut Duration,
    since: Option<Instant>,
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            *self.left = self.left.saturating_sub(since.elapsed());
        }
    }
}

/// The rest of a call that is not ready at once. Most are, and nothing is put together to bound
/// those.
#[cold]
async fn rest<S: Sequence>(
    call: BoxFuture<'_, Result<S::Out, HookError>>,
    site: &Site<'_>,
    entry: &Entry,
    clock: &Clock,
    ends: Ends,
    left: &mut Duration,
) -> Result<S::Out, Stop> {
    let bounds = match ends {
        Ends::No => entry.bounds,
        Ends::Within(_) => Bounds::end(entry.limit(S::POINT).min(*left)),
        Ends::Transition(_) => Bounds::transition(entry.limit(S::POINT).min(*left)),
    };
    // What a call that panics took is taken off all the same.
    let mut budget = Budget { left, since: Some(Instant::now()) };
    let (out, spent) = Bounded::new(call, site, clock, &bounds).rest().await;
    budget.since = None;
    // What was waited for before the call is not its own time, and still keeps those behind it waiting.
    *budget.left = budget.left.saturating_sub(spent + clock.time_off());
    site.shares(ends, *budget.left);
    match out {
        Ok(result) => result.map_err(|error| passed(site, S::POINT, error)),
        Err(cut) => Err(cut_off(cut, S::POINT)),
    }
}

#[cold]
fn passed(site: &Site<'_>, point: Point, error: HookError) -> Stop {
    match error.into_passed() {
        // Whatever a transition's hook says, the others are called.
        Ok(error) if point == Point::OnTransition => Stop::Fault(error.into()),
        // A refusal is a decision, not a failure; ends have nothing to refuse.
        Ok(error) if error.is_denied() && !point.is_end() => Stop::Turn(error),
        // A cancelled ask, say: the hook handed on what it was told.
        Ok(error) if error.is_cancelled() && site.is_cancelled() => Stop::Turn(error),
        Ok(error) => Stop::Fault(error.into()),
        Err(own) => Stop::Fault(own),
    }
}

#[cold]
fn cut_off(cut: Cut, point: Point) -> Stop {
    match cut {
        Cut::Cancelled if point == Point::OnTransition => Stop::Fault(HookError::of_kind(
            FaultKind::TimedOut,
            "the shutdown has no time left for it",
        )),
        Cut::Limit(limit) => Stop::Fault(HookError::of_kind(
            FaultKind::TimedOut,
            format!("no answer within {limit:?}"),
        )),
        Cut::TurnLimit => Stop::Turn(Error::turn_timed_out()),
        Cut::Cancelled => Stop::Turn(Error::cancelled()),
    }
}

/// The same call with somebody watching, or with a step log to serve it from.
#[cold]
async fn observed<S: Sequence>(
    site: &Site<'_>,
    entry: &Entry,
    place: u16,
    ends: Ends,
    left: &mut Duration,
    seq: &mut S,
) -> Result<S::Out, Stop> {
    let clock = Clock::default();
    let started = Instant::now();
    let ended = |outcome| EventKind::HookEnded {
        hook: entry.name.clone(),
        point: S::POINT,
        outcome,
        took: started.elapsed().saturating_sub(clock.time_off()),
    };
    let begun = site.begun(
        || EventKind::HookStarted { hook: entry.name.clone(), point: S::POINT },
        || ended(dropped_outcome()),
    );
    let out = match site.steps() {
        Some(scope) if is_recorded::<S>(entry, scope) => {
            let name = step_name(site, entry);
            let key = scope.key(S::POINT.as_str(), &name, seq.fingerprint());
            // What is redacted is read back from the record also where it was done now.
            let mut is_done_now = false;
            let effect = async {
                is_done_now = true;
                let before = spent_beside(site);
                let out = {
                    let mut call = pin!(bounded(site, (entry, place), &clock, ends, left, seq));
                    poll_fn(|cx| caught(|| call.as_mut().poll(cx))).await
                };
                let out = out.unwrap_or_else(|panic| {
                    Err(Stop::Fault(HookError::of_kind(FaultKind::Panicked, panic)))
                });
                let record = match &out {
                    Ok(out) => encode(&Decided::Ok(seq.record(out))),
                    Err(Stop::Fault(error)) => encode(&Decided::Failed(error.to_record())),
                    // A refusal is a decision; whoever asks again might hear another one.
                    Err(Stop::Turn(error)) if error.is_denied() => encode(&Decided::denied(error)),
                    // It was cut off, and has decided nothing.
                    Err(Stop::Turn(error)) => Err(error.clone()),
                };
                let spent = spent_beside(site).since(&before);
                (record.map(|record| with_spent(record, spent)), out)
            };
            match recorded(site, scope, key, effect).await {
                Ok(Step::Fresh(out)) => out,
                Ok(Step::Recorded(record)) => {
                    match decode(take_spent(site, record, !is_done_now)) {
                        Ok(Decided::Ok(record)) => seq.replay(record).map_err(Stop::Turn),
                        Ok(Decided::Failed(record)) => Err(Stop::Fault(record.into())),
                        Ok(Decided::Denied { reason, fatal }) => {
                            Err(Stop::Turn(Error::denied(reason).fatal(fatal)))
                        }
                        Err(error) => Err(Stop::Turn(error)),
                    }
                }
                // An end that cannot be recorded skips no other.
                Err(error) if S::POINT.is_end() => Err(Stop::Fault(error.into())),
                Err(error) => Err(Stop::Turn(error)),
            }
        }
        steps => {
            let out = bounded(site, (entry, place), &clock, ends, left, seq).await;
            if steps.is_some() && entry.again {
                absorb(site);
            }
            out
        }
    };
    let outcome = match &out {
        Ok(_) => Outcome::Ok,
        Err(Stop::Fault(error)) => error.kind().outcome(),
        Err(Stop::Turn(error)) => error.outcome(),
    };
    begun.ended(|| ended(outcome));
    out
}

/// What a hook spent on models of its own is part of its decision: it is not spent again, and counts
/// in every life of the run.
const SPENT: &str = "spent";

fn spent_beside(site: &Site<'_>) -> Usage {
    site.turn.map(|turn| turn.spent_beside()).unwrap_or_default()
}

fn with_spent(mut record: Value, spent: Usage) -> Value {
    if spent != Usage::default()
        && let (Value::Object(fields), Ok(spent)) = (&mut record, encode(&spent))
    {
        fields.insert(SPENT.to_owned(), spent);
    }
    record
}

fn take_spent(site: &Site<'_>, mut record: Value, charge: bool) -> Value {
    let spent = record.as_object_mut().and_then(|fields| fields.remove(SPENT));
    if let Some(spent) = spent.and_then(|spent| decode::<Usage>(spent).ok())
        && let Some(turn) = site.turn.filter(|_| charge)
    {
        turn.charge_beside(spent);
        site.inner.charge(spent);
    }
    record
}

/// How a call ended that is dropped half way: it panicked, or nobody waits for it any more.
fn dropped_outcome() -> Outcome {
    if std::thread::panicking() { Outcome::Panicked } else { Outcome::Cancelled }
}

/// A hook's decision as it is recorded. A failure is one too: what its policy made of it was used.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decided {
    Ok(Value),
    Failed(FaultRecord),
    Denied { reason: String, fatal: bool },
}

impl Decided {
    fn denied(error: &Error) -> Self {
        Self::Denied { reason: error.to_string(), fatal: error.is_fatal() }
    }
}

/// Whether the call is a step. What a hook does that is called again in every life is not; and an
/// instance is shut down also where that cannot be recorded: what its `on_start` opened is in this
/// process.
fn is_recorded<S: Sequence>(entry: &Entry, scope: &StepScope) -> bool {
    match S::POINT {
        Point::OnShutdown => scope.log().records_ends(),
        point => records(point) && (point.is_end() || !entry.again),
    }
}

/// What an entry's step is called. Every agent of a chat writes in the chat's own place.
pub(crate) fn step_name(site: &Site<'_>, entry: &Entry) -> String {
    match (site.turn, site.chat) {
        (None, Some(_)) => format!("{}/{}", site.inner.name(), entry.name),
        _ => entry.name.to_string(),
    }
}

/// Which decisions are steps: begins, what follows a model call, and the delivery of ends. What
/// `on_start` does is done anew in every life of a run.
fn records(point: Point) -> bool {
    matches!(
        point,
        Point::BeforeChat
            | Point::BeforeAgent
            | Point::BeforeModel
            | Point::AfterModel
            | Point::AfterAgent
            | Point::AfterChat
            | Point::OnShutdown
    )
}

/// What a failure means.
#[cold]
fn fault<S: Sequence>(
    site: &Site<'_>,
    entry: &Entry,
    seq: &S,
    error: HookError,
) -> Result<(), Error> {
    let mut failure = HookFailure::new(&entry.name, S::POINT, &error);
    failure.transition = seq.transition();
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
