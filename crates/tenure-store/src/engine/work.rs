//! One run's work: done, stopped or killed, and its panic caught.

use crate::run::RunLog;
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tenure_core::engine::{RunCx, RunInfo, Runnable};
use tenure_core::{CancelToken, Error};
use tokio::sync::Semaphore;

/// How the work came to its end.
enum Done {
    Result(Result<serde_json::Value, Error>),
    Panicked(String),
    Killed,
    Stopped,
}

/// Does a run's work, and records what came of it. None if the engine stops: the run goes on later.
pub(super) async fn drive(
    runnable: &dyn Runnable,
    log: &RunLog,
    room: &Semaphore,
    stop: &CancelToken,
) -> Option<Result<RunInfo, Error>> {
    let done = work(runnable, log, room, stop).await;
    match done {
        Done::Result(result) => Some(log.finish(result).await),
        Done::Panicked(panic) => Some(log.finish_panicked(&panic).await),
        Done::Killed => Some(log.finish(Err(Error::abandoned())).await),
        Done::Stopped => None,
    }
}

/// The work's future is dropped when this returns, whatever it came to.
async fn work(runnable: &dyn Runnable, log: &RunLog, room: &Semaphore, stop: &CancelToken) -> Done {
    let cx = RunCx::new(log.input().clone(), Arc::new(log.clone()), log.cancel());
    let killed = log.killed();
    let mut work = pin!(async {
        let _room = room.acquire().await;
        runnable.run(cx).await
    });
    let (mut killed, mut stop) = (pin!(killed.cancelled()), pin!(stop.cancelled()));
    poll_fn(|task| {
        if stop.as_mut().poll(task).is_ready() {
            return Poll::Ready(Done::Stopped);
        }
        if killed.as_mut().poll(task).is_ready() {
            return Poll::Ready(Done::Killed);
        }
        // What panicked is not polled again.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(task))) {
            Ok(poll) => poll.map(Done::Result),
            Err(panic) => Poll::Ready(Done::Panicked(said(&*panic))),
        }
    })
    .await
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("something that is no text").to_owned()
}
