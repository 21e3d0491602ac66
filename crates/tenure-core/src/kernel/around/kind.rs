//! The two kinds of calls, and the effect at the centre of each.

use super::Next;
use super::next::{NextModel, NextTool};
use crate::BoxFuture;
use crate::context::{Batch, Cx, ToolCx, TurnCx};
use crate::drive::{Body, model_leaf, tool_leaf};
use crate::error::{Error, ErrorKind};
use crate::hook::{AgentLifecycle, HookError, Point};
use crate::kernel::bounded::{Bounded, Cut};
use crate::model::{ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use crate::tool::{ToolError, ToolOutput, ToolRequest};

/// A kind of call that can be wrapped. There are two: model calls and tool calls.
pub trait Kind: Sized + Send + Sync + 'static {
    #[doc(hidden)]
    const POINT: Point;
    /// What goes in.
    type Request: Clone + Send + Sync;
    /// What comes out.
    type Response: Clone + Send;
    #[doc(hidden)]
    type LeafError: Send;

    #[doc(hidden)]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        batch: Option<Batch<'a>>,
        request: &'a mut Self::Request,
        next: Next<'a, Self>,
    ) -> BoxFuture<'a, Result<Self::Response, HookError>>;

    #[doc(hidden)]
    fn leaf<'a>(
        batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut Self::Request,
    ) -> Leaf<'a, Self>;

    #[doc(hidden)]
    fn settle(ended: LeafEnd<Self>) -> Result<Self::Response, Error>;

    /// The effect is to be had once more by the same call.
    #[doc(hidden)]
    fn begins_anew(_cx: Cx<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// A wrap that works on a copy of the request is over: what was decided further in and whoever
    /// stands around it may want to know.
    #[doc(hidden)]
    fn tells(_request: &mut Self::Request, _copy: &Self::Request) {}

    /// The effect itself has answered; a wrap may still throw the answer away.
    #[doc(hidden)]
    #[inline]
    fn answered(_cx: Cx<'_>, _response: &Self::Response) {}
}

/// How the effect itself ended.
pub(super) type LeafEnd<K> =
    Result<Result<Result<<K as Kind>::Response, <K as Kind>::LeafError>, Cut>, String>;

/// Model calls.
#[derive(Clone, Copy, Debug)]
pub struct ModelKind;

/// Tool calls.
#[derive(Clone, Copy, Debug)]
pub struct ToolKind;

impl Kind for ModelKind {
    const POINT: Point = Point::WrapModelCall;
    type Request = ModelRequest;
    type Response = ModelResponse;
    type LeafError = ModelError;

    #[inline]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        _batch: Option<Batch<'a>>,
        request: &'a mut ModelRequest,
        next: NextModel<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, HookError>> {
        hook.wrap_model_call(TurnCx::new(cx), request, next)
    }

    #[inline]
    fn leaf<'a>(
        _batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut ModelRequest,
    ) -> Leaf<'a, Self> {
        model_leaf(cx, request)
    }

    #[inline]
    fn tells(request: &mut ModelRequest, copy: &ModelRequest) {
        request.choose_as(copy);
    }

    fn settle(ended: LeafEnd<Self>) -> Result<ModelResponse, Error> {
        match ended {
            Ok(Ok(Ok(response))) => Ok(response),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(cut @ Cut::Limit(_))) => {
                let error = cut_error(cut, "the model");
                let timeout = ModelError::new(ModelErrorKind::Timeout, error.to_string());
                Err(error.caused_by(timeout))
            }
            Ok(Err(cut)) => Err(cut_error(cut, "the model")),
            Err(panic) => {
                Err(Error::new(ErrorKind::Panicked, format!("the model panicked: {panic}")))
            }
        }
    }

    fn begins_anew(cx: Cx<'_>) -> Result<(), Error> {
        cx.site.turn.and_then(|turn| turn.sink()).map_or(Ok(()), |sink| sink.begin_anew())
    }

    /// Every answer costs, whatever becomes of it.
    #[inline]
    fn answered(cx: Cx<'_>, response: &ModelResponse) {
        cx.clock.count_effect();
        if let Some(turn) = cx.site.turn {
            turn.charge(response.usage);
        }
    }
}

impl Kind for ToolKind {
    const POINT: Point = Point::WrapToolCall;
    type Request = ToolRequest;
    type Response = ToolOutput;
    type LeafError = ToolError;

    #[inline]
    fn wrap<'a>(
        hook: &'a dyn AgentLifecycle,
        cx: Cx<'a>,
        batch: Option<Batch<'a>>,
        request: &'a mut ToolRequest,
        next: NextTool<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, HookError>> {
        hook.wrap_tool_call(ToolCx::new(cx, in_batch(batch)), request, next)
    }

    #[inline]
    fn leaf<'a>(
        batch: Option<Batch<'a>>,
        cx: Cx<'a>,
        request: &'a mut ToolRequest,
    ) -> Leaf<'a, Self> {
        tool_leaf(in_batch(batch), cx, request)
    }

    /// A tool's failure is a result that the model gets to read, unless it goes further
    /// than the call.
    #[inline]
    fn settle(ended: LeafEnd<Self>) -> Result<ToolOutput, Error> {
        match ended {
            Ok(Ok(Ok(output))) => Ok(output),
            Ok(Ok(Err(error))) => match error.into_turn_error() {
                Ok(error) => Err(error),
                Err(own) => Ok(ToolOutput::error(own.to_string())),
            },
            Ok(Err(Cut::Limit(limit))) => {
                Ok(ToolOutput::error(format!("the tool gave no answer within {limit:?}")))
            }
            Ok(Err(cut)) => Err(cut_error(cut, "the tool")),
            Err(panic) => Ok(ToolOutput::error(format!("the tool panicked: {panic}"))),
        }
    }
}

fn in_batch(batch: Option<Batch<'_>>) -> Batch<'_> {
    batch.expect("a tool call is always part of a batch")
}

/// The effect itself, at the centre of the wraps.
pub enum Leaf<'a, K: Kind> {
    /// One bounded call.
    #[doc(hidden)]
    Direct(Bounded<'a, Result<K::Response, K::LeafError>>, Option<Body<'a>>),
    /// Anything that takes more than that.
    #[doc(hidden)]
    Boxed(BoxFuture<'a, Result<K::Response, Error>>),
}

#[cold]
pub(super) fn cut_error(cut: Cut, what: &str) -> Error {
    match cut {
        Cut::Limit(limit) => {
            Error::new(ErrorKind::TimedOut, format!("{what} gave no answer within {limit:?}"))
        }
        Cut::TurnLimit => Error::turn_timed_out(),
        Cut::Cancelled => Error::cancelled(),
    }
}
