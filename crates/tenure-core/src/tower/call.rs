//! A call as tower services see it.

use super::drive::{Job, Link};
use crate::BoxFuture;
use crate::error::{BoxError, Error};
use crate::kernel::{Kind, ModelKind, ToolKind};
use std::fmt;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tower_service::Service;

/// A call on its way through a tower stack. It can be cloned, and so retried.
pub struct LayerCall<K: Kind> {
    /// What is asked for. Layers may change it.
    pub request: K::Request,
    pub(super) link: Link<K>,
}

/// A model call on its way through a tower stack.
pub type ModelCall = LayerCall<ModelKind>;
/// A tool call on its way through a tower stack.
pub type ToolCall = LayerCall<ToolKind>;

impl<K: Kind> Clone for LayerCall<K> {
    fn clone(&self) -> Self {
        Self { request: self.request.clone(), link: self.link.clone() }
    }
}

impl<K: Kind> fmt::Debug for LayerCall<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerCall").field("point", &K::POINT).finish_non_exhaustive()
    }
}

/// What a layer is applied to: the rest of the chain.
pub struct InnerService<K: Kind> {
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Kind> InnerService<K> {
    pub(super) fn new() -> Self {
        Self { kind: std::marker::PhantomData }
    }
}

impl<K: Kind> Clone for InnerService<K> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<K: Kind> fmt::Debug for InnerService<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InnerService").field("point", &K::POINT).finish()
    }
}

impl<K: Kind> Service<LayerCall<K>> for InnerService<K> {
    type Response = K::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<K::Response, BoxError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: LayerCall<K>) -> Self::Future {
        let (reply, answer) = oneshot::channel();
        let sent = call.link.send(Job::Next { request: call.request, reply });
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            Ok(answer.await.map_err(|_| gone())??)
        })
    }
}

/// The call that this belonged to is over.
pub(super) fn gone() -> Error {
    Error::cancelled()
}
