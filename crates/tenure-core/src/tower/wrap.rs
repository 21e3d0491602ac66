//! A tower layer as a wrap.

use super::call::{InnerService, LayerCall};
use super::drive::{Stack, drive};
use crate::BoxFuture;
use crate::context::{ToolCx, TurnCx};
use crate::error::BoxError;
use crate::hook::{AgentLifecycle, HookError, Point, Points};
use crate::kernel::{Kind, ModelKind, NextModel, NextTool, ToolKind};
use crate::model::{ModelRequest, ModelResponse};
use crate::tool::{ToolOutput, ToolRequest};
use async_trait::async_trait;
use std::fmt;
use std::future::poll_fn;
use tower_layer::Layer;
use tower_service::Service;

struct Applied<S>(S);

impl<K, S> Stack<K> for Applied<S>
where
    K: Kind,
    S: Service<LayerCall<K>, Response = K::Response> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    /// Clones, waits until the clone is ready, and calls that.
    fn call(&self, call: LayerCall<K>) -> BoxFuture<'static, Result<K::Response, BoxError>> {
        let mut service = self.0.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call(call).await.map_err(Into::into)
        })
    }
}

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident: $kind:ident;)+) => {$(
        $(#[$doc])*
        pub struct $name {
            stack: Box<dyn Stack<$kind>>,
        }

        impl $name {
            /// Applies `layer`, once and for all calls.
            pub fn new<L>(layer: L) -> Self
            where
                L: Layer<InnerService<$kind>>,
                L::Service: Service<LayerCall<$kind>, Response = <$kind as Kind>::Response>
                    + Clone + Send + Sync + 'static,
                <L::Service as Service<LayerCall<$kind>>>::Error: Into<BoxError>,
                <L::Service as Service<LayerCall<$kind>>>::Future: Send,
            {
                Self { stack: Box::new(Applied(layer.layer(InnerService::new()))) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )+};
}

layers! {
    /// A tower layer around every model call.
    ///
    /// A retry, a concurrency limit and a time-out from tower work as they are; see the tests of
    /// this module.
    ModelLayer: ModelKind;
    /// A tower layer around every tool call.
    ToolLayer: ToolKind;
}

#[async_trait]
impl AgentLifecycle for ModelLayer {
    fn points(&self) -> Points {
        Points::from(Point::WrapModelCall)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        drive(&*self.stack, *cx, None, request, next).await
    }
}

#[async_trait]
impl AgentLifecycle for ToolLayer {
    fn points(&self) -> Points {
        Points::from(Point::WrapToolCall)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        drive(&*self.stack, *cx, Some(cx.as_batch()), request, next).await
    }
}
