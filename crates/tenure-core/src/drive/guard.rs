//! The turn in the caller's future, and what happens when that is dropped.

use super::ends::{Ended, Run};
use super::input::Input;
use super::report::TurnReport;
use super::turn::{Turn, TurnOptions, Work};
use super::turn_loop;
use crate::BoxFuture;
use crate::agent::Inner;
use crate::error::{Error, ErrorKind};
use crate::kernel::caught;
use crate::phase::Phase;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

/// Runs one turn of `inner`, which must be ready.
#[inline]
pub(crate) async fn drive(
    inner: &Arc<Inner>,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Result<TurnReport, Error> {
    match claim(inner, input, options) {
        Ok(guard) => guard.run().await,
        Err((error, _, _)) => Err(error),
    }
}

type Refused = (Error, Input, Option<Box<TurnOptions>>);

/// Claims the turn. Gives everything back if the agent is not ready.
#[inline]
pub(crate) fn claim(
    inner: &Arc<Inner>,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Result<Guard, Refused> {
    if inner.tells_transitions() {
        return claim_aloud(inner, input, options);
    }
    match inner.claim_turn() {
        Ok(()) => Ok(begin(inner, input, options)),
        Err(phase) => Err(refused(inner, phase, input, options)),
    }
}

/// The same where hooks or listeners are told that the turn begins.
#[cold]
fn claim_aloud(
    inner: &Arc<Inner>,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Result<Guard, Refused> {
    let begun = match inner.claim_aloud() {
        Ok(begun) => begun,
        Err(phase) => return Err(refused(inner, phase, input, options)),
    };
    let guard = begin(inner, input, options);
    if let (Some(begun), Stage::Body(run)) = (begun, &guard.stage) {
        begun.is_of(&run.turn);
        *run.turn.rare().begun.lock() = Some(begun);
    }
    Ok(guard)
}

#[cold]
fn refused(
    inner: &Inner,
    phase: Phase,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Refused {
    inner.cell.notify();
    (Error::not_ready(phase.state(), "ready"), input, options)
}

/// Begins a turn that is claimed.
#[inline]
fn begin(inner: &Arc<Inner>, input: Input, options: Option<Box<TurnOptions>>) -> Guard {
    inner.metrics.took_on();
    let work = Work::new(inner, input, options.as_deref());
    let turn = Turn::new(inner.clone(), options);
    Guard { stage: Stage::Body(Box::new(Run { turn, work })) }
}

/// Owns the turn. Dropping it in the middle ends the turn all the same.
pub(crate) struct Guard {
    stage: Stage,
}

/// The run is boxed: the guard moves between the caller, its future and the tracker.
enum Stage {
    Body(Box<Run>),
    /// Half-way through its ends; they go on wherever this future is polled.
    Ends(BoxFuture<'static, Ended>, Arc<Inner>),
    Over,
}

impl Guard {
    pub(crate) async fn run(mut self) -> Result<TurnReport, Error> {
        let closed = loop {
            if let Stage::Body(run) = &mut self.stage {
                let Run { turn, work } = &mut **run;
                let result = {
                    let mut body = pin!(turn_loop::body(turn, work));
                    poll_fn(|cx| caught(|| body.as_mut().poll(cx))).await
                };
                work.error = match result {
                    Ok(result) => result.err(),
                    Err(panic) => Some(Error::new(ErrorKind::Panicked, panic)),
                };
                if turn.inner.signal.is_late()
                    && work.error.as_ref().is_some_and(Error::is_cancelled)
                {
                    work.error = Some(Error::turn_timed_out());
                }
            }
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Body(run) if run.parked_by().is_some() => {
                    let error = run.parked_by().unwrap_or_else(Error::cancelled);
                    run.park();
                    return Err(error);
                }
                Stage::Body(run) if !run.has_ends() => break run.close(),
                Stage::Body(run) => {
                    let inner = run.turn.inner.clone();
                    self.stage = Stage::Ends(Box::pin(run.end()), inner);
                }
                Stage::Ends(..) | Stage::Over => unreachable!("a turn is driven once"),
            }
            let ended = poll_fn(|cx| match &mut self.stage {
                Stage::Ends(ends, _) => ends.as_mut().poll(cx),
                _ => unreachable!("the stage was set above"),
            })
            .await;
            self.stage = Stage::Over;
            match ended {
                Ended::Over(run) => break run.close(),
                Ended::Again(run) => self.stage = Stage::Body(run),
            }
        };
        if let Some((inner, reason)) = closed.shutdown {
            Box::pin(async move { inner.shutdown(reason, None).await }).await;
        }
        closed.result
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (ends, inner) = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Ends(ends, inner) => (ends, inner),
            Stage::Body(mut run) => {
                let inner = run.turn.inner.clone();
                // With a log, whoever drops the future parks the run: it goes on elsewhere, and
                // its ends wait for that.
                if run.turn.steps().is_some() && !inner.signal.is_set() {
                    run.park();
                    return;
                }
                run.work.error = Some(Error::cancelled());
                if !run.has_ends() {
                    // The error went where the future went: nobody is left to read it.
                    let _ = run.close();
                    return;
                }
                (Box::pin(run.end()) as BoxFuture<'static, Ended>, inner)
            }
        };
        // Nobody waits for what the ends may ask.
        inner.signal.set();
        // Where no runtime is left the ends are dropped, and the turn is recorded as abandoned.
        inner.blueprint.run_detached(detached(ends));
    }
}

/// Ends that nobody waits for any more.
async fn detached(mut ends: BoxFuture<'static, Ended>) {
    loop {
        match ends.await {
            Ended::Over(run) => {
                // The report went where the future went: nobody is left to read it.
                if let Some((inner, reason)) = run.close().shutdown {
                    inner.shutdown(reason, None).await;
                }
                return;
            }
            // Nobody waits for a continuation either: what is left to end ends now.
            Ended::Again(mut run) => {
                run.decline_to_continue();
                ends = Box::pin(run.end());
            }
        }
    }
}
