//! A wrap as a tower layer.

use super::call::{LayerCall, gone};
use super::drive::Job;
use crate::BoxFuture;
use crate::error::{BoxError, Error, ErrorKind};
use crate::hook::AgentLifecycle;
use crate::kernel::{Inside, Kind};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tower_layer::Layer;
use tower_service::Service;

/// A hook's wrap as a tower layer, to stand in the stack of a
/// [`ModelLayer`](super::ModelLayer) or a [`ToolLayer`](super::ToolLayer).
#[derive(Clone)]
pub struct HookLayer {
    hook: Arc<dyn AgentLifecycle>,
}

impl HookLayer {
    /// A layer that calls the wraps of `hook`.
    pub fn new(hook: impl AgentLifecycle) -> Self {
        Self { hook: Arc::new(hook) }
    }
}

impl fmt::Debug for HookLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookLayer").field("hook", &self.hook.name()).finish()
    }
}

impl<S> Layer<S> for HookLayer {
    type Service = HookService<S>;

    fn layer(&self, inner: S) -> HookService<S> {
        HookService { hook: self.hook.clone(), inner }
    }
}

/// The service that a [`HookLayer`] makes.
#[derive(Clone)]
pub struct HookService<S> {
    hook: Arc<dyn AgentLifecycle>,
    inner: S,
}

impl<S> fmt::Debug for HookService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookService").field("hook", &self.hook.name()).finish_non_exhaustive()
    }
}

impl<K, S> Service<LayerCall<K>> for HookService<S>
where
    K: Kind,
    S: Service<LayerCall<K>, Response = K::Response> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = K::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<K::Response, BoxError>>;

    /// The inner service is waited for when the hook calls `next`, which it may do never or often.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: LayerCall<K>) -> Self::Future {
        let (reply, answer) = oneshot::channel();
        let inside = InsideService { service: self.inner.clone(), link: call.link.clone() };
        let job = Job::Wrap {
            hook: self.hook.clone(),
            request: call.request,
            inside: Box::new(inside),
            reply,
        };
        let sent = call.link.send(job);
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            Ok(answer.await.map_err(|_| gone())??)
        })
    }
}

struct InsideService<K: Kind, S> {
    service: S,
    link: super::drive::Link<K>,
}

impl<K, S> Inside<K> for InsideService<K, S>
where
    K: Kind,
    S: Service<LayerCall<K>, Response = K::Response> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn call<'a>(
        &'a self,
        request: &'a mut K::Request,
    ) -> BoxFuture<'a, Result<K::Response, Error>> {
        Box::pin(async move {
            let mut service = self.service.clone();
            let call = LayerCall { request: request.clone(), link: self.link.clone() };
            let result = async {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
                service.call(call).await.map_err(Into::into)
            };
            result.await.map_err(|error: BoxError| match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(error) => {
                    let message = error.to_string();
                    Error::new(ErrorKind::Hook, message).caused_by(error)
                }
            })
        })
    }
}
