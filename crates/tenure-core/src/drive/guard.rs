//! The turn in the caller's future, and what happens when that is dropped.

use super::ends::{Ended, Run};
use super::input::Input;
use super::report::TurnReport;
use super::turn::{Turn, TurnOptions, Work};
use super::turn_loop;
use crate::BoxFuture;
use crate::agent::Inner;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::kernel::{Site, caught};
use crate::outcome::ExitReason;
use crate::phase::Phase;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Runs one turn of `inner`, which must be ready.
#[inline]
pub(crate) async fn drive(
    inner: &Arc<Inner>,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Result<TurnReport, Error> {
    match try_drive(inner, input, options) {
        Ok(run) => run.await,
        Err((error, _, _)) => Err(error),
    }
}

type Refused = (Error, Input, Option<Box<TurnOptions>>);

/// Claims the turn at once; the returned future runs it. Gives everything back if the agent is not
/// ready.
#[inline]
pub(crate) fn try_drive(
    inner: &Arc<Inner>,
    input: Input,
    options: Option<Box<TurnOptions>>,
) -> Result<impl Future<Output = Result<TurnReport, Error>> + use<>, Refused> {
    if let Err(phase) = inner.cell.claim_turn() {
        return Err((Error::not_ready(phase.state(), "ready"), input, options));
    }
    inner.signal.clear();
    // A stop that came between the claim and here has seen the turn, and its signal may be gone.
    if inner.cell.life() != Phase::Idle {
        inner.signal.set();
    }
    let work = Work::new(inner, input, options.as_deref());
    let turn = Turn::new(inner.clone(), options);
    Ok(Guard {
        stage: Stage::Body(Run { turn, work }),
    }
    .run())
}

/// Owns the turn. Dropping it in the middle ends the turn all the same.
struct Guard {
    stage: Stage,
}

enum Stage {
    Body(Run),
    /// Half-way through its ends; they go on wherever this future is polled.
    Ends(BoxFuture<'static, Ended>, Arc<Inner>),
    Over,
}

impl Guard {
    async fn run(mut self) -> Result<TurnReport, Error> {
        self.announce_start().await;
        loop {
            if let Stage::Body(run) = &mut self.stage {
                let Run { turn, work } = run;
                let result = {
                    let mut body = pin!(turn_loop::body(turn, work));
                    poll_fn(|cx| caught(|| body.as_mut().poll(cx))).await
                };
                work.error = match result {
                    Ok(result) => result.err(),
                    Err(panic) => Some(Error::new(ErrorKind::Panicked, panic)),
                };
            }
            let run = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Body(run) if !run.has_ends() => return close(run).await,
                Stage::Body(run) => {
                    let inner = run.turn.inner.clone();
                    self.stage = Stage::Ends(Box::pin(run.end()), inner);
                    let ended = poll_fn(|cx| match &mut self.stage {
                        Stage::Ends(ends, _) => ends.as_mut().poll(cx),
                        _ => unreachable!("the stage was set above"),
                    })
                    .await;
                    self.stage = Stage::Over;
                    ended
                }
                Stage::Ends(..) | Stage::Over => unreachable!("a turn is driven once"),
            };
            match run {
                Ended::Over(run) => return close(run).await,
                Ended::Again(run) => self.stage = Stage::Body(run),
            }
        }
    }

    #[inline]
    async fn announce_start(&mut self) {
        if let Stage::Body(run) = &self.stage {
            let site = Site::of_turn(&run.turn);
            site.emit(|| EventKind::TurnStarted);
            run.turn
                .shifted(&site, Phase::Idle, Phase::ProcessingUserInput)
                .await;
        }
    }
}

/// Closes the turn, and follows up what it asked for: a shutdown after a fatal error, or because a
/// hook wants one.
#[inline]
async fn close(run: Run) -> Result<TurnReport, Error> {
    let inner = run.turn.inner.clone();
    let result = run.close();
    if let Some(reason) = follow_up(&inner, &result) {
        Box::pin(inner.shutdown(reason, None)).await;
    }
    result
}

#[inline]
fn follow_up(inner: &Inner, result: &Result<TurnReport, Error>) -> Option<ExitReason> {
    let fatal = result.as_ref().is_err_and(Error::is_fatal) || inner.fatal_requested();
    if fatal {
        Some(ExitReason::Fatal)
    } else if inner.stop_requested() {
        Some(ExitReason::Completed)
    } else {
        None
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
                    run.turn.park();
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
        // Without a runtime the ends are dropped here, and the turn is recorded as abandoned.
        if Handle::try_current().is_ok() {
            let tracker = inner.blueprint.tracker.clone();
            tracker.spawn(detached(ends));
        }
    }
}

/// Ends that nobody waits for any more.
async fn detached(mut ends: BoxFuture<'static, Ended>) {
    loop {
        match ends.await {
            Ended::Over(run) => {
                // The report went where the future went: nobody is left to read it.
                let _ = close(run).await;
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
