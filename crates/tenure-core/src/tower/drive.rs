//! What runs a tower stack beside the rest of the chain.
//!
//! Services live for ever and `next` is borrowed, so the two cannot meet directly: the innermost
//! service posts a job, and the wrap, which has `next`, does it and replies.

use super::call::LayerCall;
use crate::BoxFuture;
use crate::context::{Batch, Cx};
use crate::error::{BoxError, Error};
use crate::hook::{AgentLifecycle, FaultKind, HookError};
use crate::kernel::{Around, Clocks, Inside, Kind, Next};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{mpsc, oneshot};

pub(super) type Link<K> = mpsc::UnboundedSender<Job<K>>;
type Reply<K> = oneshot::Sender<Result<<K as Kind>::Response, Error>>;

/// What a service inside the stack wants done.
pub(super) enum Job<K: Kind> {
    /// Call the rest of the chain.
    Next { request: K::Request, reply: Reply<K> },
    /// Call a hook, with a service as its `next`.
    Wrap {
        hook: Arc<dyn AgentLifecycle>,
        request: K::Request,
        inside: Box<dyn Inside<K>>,
        reply: Reply<K>,
    },
}

/// A layer, applied.
pub(super) trait Stack<K: Kind>: Send + Sync {
    fn call(&self, call: LayerCall<K>) -> BoxFuture<'static, Result<K::Response, BoxError>>;
}

/// Runs one call through `stack`.
pub(super) async fn drive<'a, K: Kind>(
    stack: &dyn Stack<K>,
    cx: Cx<'a>,
    batch: Option<Batch<'a>>,
    request: &K::Request,
    next: Next<'a, K>,
) -> Result<K::Response, HookError> {
    let (link, mut posted) = mpsc::unbounded_channel();
    let mut outer = stack.call(LayerCall { request: request.clone(), link });
    let mut jobs: Vec<BoxFuture<'_, ()>> = Vec::new();
    let result = poll_fn(|task| {
        loop {
            if let Poll::Ready(result) = outer.as_mut().poll(task) {
                return Poll::Ready(result);
            }
            let mut progress = false;
            while let Poll::Ready(Some(job)) = posted.poll_recv(task) {
                jobs.push(Box::pin(run_job(job, cx, batch, next)));
                progress = true;
            }
            let before = jobs.len();
            jobs.retain_mut(|job| job.as_mut().poll(task).is_pending());
            if !progress && jobs.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    result.map_err(to_hook_error)
}

async fn run_job<'a, K: Kind>(
    job: Job<K>,
    cx: Cx<'a>,
    batch: Option<Batch<'a>>,
    next: Next<'a, K>,
) {
    match job {
        Job::Next { mut request, mut reply } => {
            let result = {
                let mut call = next.call(&mut request);
                until_closed(&mut reply, &mut call).await
            };
            if let Some(result) = result {
                // Nobody waits any more if the stack gave the call up.
                let _ = reply.send(result);
            }
        }
        Job::Wrap { hook, mut request, inside, mut reply } => {
            let clocks = Clocks::for_wraps(1);
            let around = Around {
                site: cx.site,
                entries: &[],
                wraps: &[],
                clocks: &clocks,
                watched: false,
                batch,
                inside: Some(&*inside),
            };
            let mut call =
                pin!(K::wrap(&*hook, cx, batch, &mut request, Next::into_inside(&around)));
            if let Some(result) = until_closed(&mut reply, &mut call).await {
                let _ = reply.send(result.map_err(to_error));
            }
        }
    }
}

/// Runs `call` for as long as anybody waits for its reply: a layer that times out drops the wait,
/// and with it the call.
async fn until_closed<T, R>(
    reply: &mut oneshot::Sender<R>,
    call: &mut (impl Future<Output = T> + Unpin),
) -> Option<T> {
    poll_fn(|task| {
        if reply.poll_closed(task).is_ready() {
            return Poll::Ready(None);
        }
        std::pin::Pin::new(&mut *call).poll(task).map(Some)
    })
    .await
}

fn to_error(error: HookError) -> Error {
    match error.into_passed() {
        Ok(passed) => passed,
        Err(own) => {
            let message = own.to_string();
            Error::new(crate::ErrorKind::Hook, message).caused_by(own.into_source())
        }
    }
}

/// What a stack failed with: an error of the chain passes through as it is, a time-out is one.
fn to_hook_error(error: BoxError) -> HookError {
    match error.downcast::<Error>() {
        Ok(error) => (*error).into(),
        Err(error) if error.is::<tower::timeout::error::Elapsed>() => {
            HookError::of_kind(FaultKind::TimedOut, error)
        }
        Err(error) => HookError::new(error),
    }
}
