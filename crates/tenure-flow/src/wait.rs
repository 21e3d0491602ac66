//! Waiting for something, and for a cancel at the same time.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use tenure_core::{CancelToken, Error};

/// Runs `work` to its end, and calls `cancel` once as soon as `cancelled` is over.
///
/// It is pinned where it is made: a future that is handed in is kept twice, and chats are many.
pub(crate) async fn with_cancel<T>(
    mut work: impl Future<Output = T> + Unpin,
    cancelled: impl Future<Output = ()>,
    cancel: impl FnOnce(),
) -> T {
    let mut cancelled = pin!(cancelled);
    let mut cancel = Some(cancel);
    poll_fn(|task| {
        if cancel.is_some()
            && cancelled.as_mut().poll(task).is_ready()
            && let Some(cancel) = cancel.take()
        {
            cancel();
        }
        Pin::new(&mut work).poll(task)
    })
    .await
}

/// Runs `work` until `token` is cancelled; it is dropped then, and there is no result. While `holds`
/// says so it is not dropped: something is under way in it that has to end in good order.
pub(crate) async fn unless_cancelled<T>(
    mut work: impl Future<Output = T> + Unpin,
    token: &CancelToken,
    holds: impl Fn() -> bool,
) -> Option<T> {
    let mut cancelled = pin!(token.cancelled());
    let mut is_cancelled = false;
    poll_fn(|task| {
        if let Poll::Ready(value) = Pin::new(&mut work).poll(task) {
            return Poll::Ready(Some(value));
        }
        // The wait for it is over once and for all.
        is_cancelled = is_cancelled || cancelled.as_mut().poll(task).is_ready();
        if is_cancelled && !holds() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}

/// Runs `work` until `stopped` says why it is not to go on; it is dropped then. While `holds` says so
/// it is not dropped.
pub(crate) async fn unless<T>(
    mut work: impl Future<Output = T> + Unpin,
    stopped: impl Future<Output = Error>,
    holds: impl Fn() -> bool,
) -> Result<T, Error> {
    let mut stopped = pin!(stopped);
    let mut why = None;
    poll_fn(|task| {
        if let Poll::Ready(value) = Pin::new(&mut work).poll(task) {
            return Poll::Ready(Ok(value));
        }
        if why.is_none()
            && let Poll::Ready(error) = stopped.as_mut().poll(task)
        {
            why = Some(error);
        }
        match &why {
            Some(why) if !holds() => Poll::Ready(Err(why.clone())),
            _ => Poll::Pending,
        }
    })
    .await
}
