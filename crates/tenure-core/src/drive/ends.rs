//! The end of a turn: its hooks, its record, and the agent ready again.

use super::points::AfterAgent;
use super::report::{TurnEnd, TurnReport};
use super::tools::settled;
use super::turn::{Continued, Turn, Work};
use crate::agent::{Arrow, Inner};
use crate::error::Error;
use crate::event::{EventKind, reason_of};
use crate::hook::{Hold, Point, Points};
use crate::kernel::{Ends, Site, sequence};
use crate::message::Message;
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::step::ScopeEnd;
use crate::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// The turn and its work, owned, so that they can move to the tracker.
pub(super) struct Run {
    pub(super) turn: Turn,
    pub(super) work: Work,
}

/// What became of the ends.
pub(super) enum Ended {
    /// The turn is over.
    Over(Box<Run>),
    /// A hook wants to go on.
    Again(Box<Run>),
}

const NEEDS_ENDS: Points = Points::NONE.with(Point::AfterAgent).with(Point::OnTransition);

impl Run {
    /// Whether the end takes more than bookkeeping.
    #[inline]
    pub(super) fn has_ends(&self) -> bool {
        let Self { turn, .. } = self;
        turn.inner.blueprint.chain.mask.intersects(NEEDS_ENDS)
            || turn.has_children()
            || turn.steps().is_some()
            || turn.inner.stop_requested()
            || self.is_fatal()
    }

    /// Why the run has to go on later, from its record, if it has. Then nothing ends.
    #[inline]
    pub(super) fn parked_by(&self) -> Option<Error> {
        self.turn.steps()?;
        // A hook may have swallowed it.
        let own = || self.work.error.clone().filter(Error::parks);
        self.turn.trouble().or_else(own)
    }

    fn is_fatal(&self) -> bool {
        self.work.error.as_ref().is_some_and(Error::is_fatal) || self.turn.inner.fatal_requested()
    }

    /// Runs `after_agent` for every entry that was passed, last to first, and takes the agent out
    /// of the turn. What few turns need is boxed, since this future moves to the tracker whole.
    pub(super) async fn end(mut self: Box<Self>) -> Ended {
        self.settle();
        if self.turn.has_children() {
            Box::pin(self.turn.children_ended()).await;
        }
        let Self { turn, work } = &mut *self;
        let inner = &turn.inner;
        let chain = &*inner.blueprint.chain;
        // A cancel does not reach the ends.
        let mut site = Site::of_turn(turn);
        site.signal = None;

        let fatal = work.error.as_ref().is_some_and(Error::is_fatal) || inner.fatal_requested();
        if fatal {
            inner.request_fatal();
        }
        if fatal {
            let made = inner.transition(Some(turn), |cell| {
                cell.go(Phase::Idle, Phase::Error)?;
                Ok::<_, Phase>(Arrow::new(cell.turn(), Phase::Error))
            });
            if let Ok(Some(telling)) = made {
                Box::pin(telling.tell(&site, Some(inner.config().limits.ends))).await;
            }
        }
        if chain.has(Point::AfterAgent) {
            let entered = turn.entered.load(Ordering::Acquire);
            let below = match work.continued {
                Continued::Yes(below) | Continued::Asked(_, below) => below,
                Continued::No => usize::MAX,
            };
            let outcome = work.outcome();
            let Work { output, error, request, continued, .. } = work;
            let end = TurnEnd {
                outcome,
                error: error.as_ref(),
                output,
                history: request.messages.history(),
                usage: turn.total_usage(),
            };
            let mut after = AfterAgent { end, continued, entered, below, place: 0, scratch: None };
            let ends = Ends::Within(inner.config().limits.ends);
            // Ends are always continued; there is nothing to fail with (G5).
            let _ = sequence(&site, chain, ends, &mut after).await;
            if let Continued::Asked(_, _) = self.work.continued {
                return Ended::Again(self);
            }
        }
        if let Some(scope) = self.turn.steps() {
            let end = ScopeEnd::of(self.work.outcome());
            let record = self.turn.record(scope);
            if let Err(error) = scope.log().end(&record, end).await {
                // The next life of the run ends it again.
                tracing::error!(agent = self.turn.inner.name(), "an end was not recorded: {error}");
                self.work.error.get_or_insert(error);
            }
        }
        self.leave().await;
        Ended::Over(self)
    }

    /// Runs the hooks of the last transition. They see an idle agent; the turn is free when they
    /// are done.
    async fn leave(&self) {
        let turn = &self.turn;
        if chain_has_transitions(turn)
            && let Some(telling) = turn.settle()
        {
            let mut site = Site::of_turn(turn);
            site.signal = None;
            Box::pin(telling.tell(&site, Some(turn.inner.config().limits.ends))).await;
        }
    }

    /// Leaves the turn as it is, for another future to go on with. Its ends wait for that.
    pub(super) fn park(self: Box<Self>) {
        if chain_has_transitions(&self.turn) {
            let blueprint = self.turn.inner.blueprint.clone();
            blueprint.run_detached(async move {
                self.leave().await;
                self.turn.park();
            });
        } else {
            self.turn.park();
        }
    }

    /// Takes a wish to go on for a plain end; the entries that have not ended yet still do.
    pub(super) fn decline_to_continue(&mut self) {
        if let Continued::Asked(_, below) = self.work.continued {
            self.work.continued = Continued::Yes(below);
        }
    }

    /// Gives every tool call of the newest message its result (G8).
    fn settle(&mut self) {
        let history = self.work.request.messages.history_mut();
        let calls = history.last().map(Message::calls).unwrap_or_default();
        if !calls.is_empty() {
            let results = settled(&self.turn, calls, self.work.error.as_ref());
            history.extend(results.into_iter().map(Message::Tool));
        }
    }

    /// Commits the conversation, counts, and makes the agent ready again.
    #[inline]
    pub(super) fn close(mut self: Box<Self>) -> Closed {
        self.settle();
        let Self { turn, work } = &mut *self;
        let inner = &turn.inner;
        let outcome = work.outcome();
        let duration = turn.started.elapsed();
        let usage = turn.total_usage();
        let history = std::mem::take(work.request.messages.history_mut());
        *inner.history.lock() = history.clone();
        inner.charge(turn.usage());
        turn.count(duration, outcome.is_ok());
        let has_context = turn.context().is_some() || inner.context().is_some();
        let trace = has_context.then(|| turn.trace());
        let failures = std::mem::take(&mut *turn.data.failures.lock());
        let report = TurnReport {
            run: turn.run,
            instance: inner.id,
            outcome,
            usage,
            steps: turn.steps_made(),
            duration,
            failures,
            trace,
            output: work.output.take(),
            history,
        };
        if let Some(sink) = turn.sink()
            && outcome.is_ok()
            && inner.blueprint.chain.hold == Hold::Turn
        {
            sink.say(report.output());
        }
        announce_end(turn, &report, duration, work.error.as_ref());
        turn.release();
        let fatal = work.error.as_ref().is_some_and(Error::is_fatal) || inner.fatal_requested();
        let shutdown = if fatal {
            Some((inner.clone(), ExitReason::Fatal))
        } else if inner.stop_requested() {
            Some((inner.clone(), ExitReason::Completed))
        } else {
            None
        };
        let result = match work.error.take() {
            None => Ok(report),
            Some(error) => Err(error.with_report(report)),
        };
        Closed { result, shutdown }
    }
}

/// A turn that is over, and what it asked for: a shutdown after a fatal error, or because a hook
/// wants one.
pub(super) struct Closed {
    pub(super) result: Result<TurnReport, Error>,
    pub(super) shutdown: Option<(Arc<Inner>, ExitReason)>,
}

fn chain_has_transitions(turn: &Turn) -> bool {
    turn.inner.blueprint.chain.has(Point::OnTransition)
}

#[inline]
fn announce_end(turn: &Turn, report: &TurnReport, took: Duration, error: Option<&Error>) {
    let inner = &turn.inner;
    if let Some(bus) = inner.listening() {
        let TurnReport { outcome, usage, .. } = *report;
        let reason = error.and_then(|error| reason_of(&error.to_string()));
        bus.emit(inner, Some(turn), EventKind::TurnEnded { outcome, usage, took, reason });
        // With transition hooks the event went out behind them.
        if !chain_has_transitions(turn) {
            drop(turn.settle());
        }
    }
}
