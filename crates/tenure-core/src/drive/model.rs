//! A model call: the effect at the centre of the wraps.

use super::stream::Sink;
use super::turn::Turn;
use crate::context::{Batch, Cx, ModelCx};
use crate::error::Error;
use crate::event::{EventKind, reason_of};
use crate::kernel::{Bounded, Kind, Leaf, ModelKind, caught};
use crate::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use crate::outcome::Outcome;
use crate::step::{
    Print, Step, StepKey, StepScope, decode, encode, fingerprint, own_name, recordable, recorded,
};
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[inline(always)]
pub(crate) fn model_leaf<'a>(cx: Cx<'a>, request: &'a mut ModelRequest) -> Leaf<'a, ModelKind> {
    let is_plain = cx.site.turn.is_some_and(Turn::is_plain);
    if cx.site.inner.is_watched() || !is_plain && is_attended(cx) {
        return Leaf::Boxed(Box::pin(attended(cx, request)));
    }
    Leaf::Direct(bounded(cx, request), None)
}

/// Returns `true` if the call is recorded, or a reader reads along.
fn is_attended(cx: Cx<'_>) -> bool {
    cx.site.steps().is_some() || reader(cx).is_some()
}

#[inline]
fn bounded<'a>(
    cx: Cx<'a>,
    request: &'a ModelRequest,
) -> Bounded<'a, Result<ModelResponse, ModelError>> {
    let blueprint = &cx.site.inner.blueprint;
    let (model, bounds) = request.answered_by(&blueprint.model, &blueprint.model_bounds);
    Bounded::new(model.call(request, ModelCx::new(cx)), cx.site, cx.clock, bounds)
}

/// Where the text of a call goes while it is made, if somebody reads along.
#[inline]
fn reader(cx: Cx<'_>) -> Option<&Arc<Sink>> {
    cx.site.turn.filter(|_| !cx.is_quiet())?.sink()
}

/// A response that goes on with what was streamed of it. One that says something else is a failure of
/// the call: some of the first text may have been read.
fn agreed(cx: Cx<'_>, response: ModelResponse) -> Result<ModelResponse, Error> {
    match reader(cx) {
        Some(sink) if !sink.agrees(response.content.text()) => Err(ModelError::new(
            ModelErrorKind::Malformed,
            "the model streamed one text and returned another",
        )
        .into()),
        _ => Ok(response),
    }
}

/// The same with somebody watching or reading along, or with a step log to serve it from.
#[cold]
async fn attended(cx: Cx<'_>, request: &ModelRequest) -> Result<ModelResponse, Error> {
    let step = cx.site.turn.map_or(0, |turn| turn.steps_made());
    let ended = |outcome, usage, reason| EventKind::ModelEnded { step, outcome, usage, reason };
    let begun = cx.site.begun(
        || EventKind::ModelStarted { step },
        || ended(Outcome::Cancelled, Usage::default(), None),
    );
    let result = match cx.site.steps() {
        Some(scope) => {
            let name = request.model().unwrap_or(&cx.site.inner.blueprint.model).name();
            let (input, parts) = request_fingerprint(request);
            let key = scope.key("model", name, input).with_detail(parts);
            as_step(cx, scope, key, call(cx, request)).await
        }
        None => call(cx, request).await,
    };
    if let Ok(response) = &result {
        ModelKind::answered(cx, response);
    }
    begun.ended(|| match &result {
        Ok(response) => ended(Outcome::Ok, response.usage, None),
        Err(error) => ended(error.outcome(), Usage::default(), reason_of(&error.to_string())),
    });
    result
}

/// A model call as a step.
async fn as_step(
    cx: Cx<'_>,
    scope: &StepScope,
    key: StepKey,
    call: impl Future<Output = Result<ModelResponse, Error>> + Send,
) -> Result<ModelResponse, Error> {
    let effect = async {
        let result = call.await;
        let record = match &result {
            Ok(response) => {
                recordable(&response.content).and_then(|()| encode(&Recorded::Ok(response.clone())))
            }
            Err(error) => match Recorded::of_error(error) {
                Some(failed) => encode(&failed),
                None => Err(error.clone()),
            },
        };
        (record, result)
    };
    match recorded(cx.site, scope, key, effect).await? {
        Step::Fresh(result) => result,
        Step::Recorded(record) => decode(record).and_then(Recorded::into_result),
    }
}

async fn call(cx: Cx<'_>, request: &ModelRequest) -> Result<ModelResponse, Error> {
    let mut call = bounded(cx, request);
    let ended = poll_fn(|task| caught(|| Pin::new(&mut call).poll(task))).await;
    agreed(cx, ModelKind::settle(ended)?)
}

/// A model call that a hook makes beside the agent's own: nobody reads along, it is a step of the
/// hook's, and what it costs is part of the turn.
pub(crate) async fn call_beside(
    cx: Cx<'_>,
    batch: Option<Batch<'_>>,
    name: &str,
    model: &Arc<dyn Model>,
    mut request: ModelRequest,
) -> Result<ModelResponse, Error> {
    request.use_model(model.clone());
    let quiet = cx.quiet();
    let result = match cx.site.steps() {
        Some(scope) => {
            let (input, parts) = request_fingerprint(&request);
            let name = own_name(cx, batch, &format!("{name}:{}", model.name()));
            let key = scope.key("model", &name, input).with_detail(parts);
            as_step(cx, scope, key, call(quiet, &request)).await
        }
        None => call(quiet, &request).await,
    };
    let usage = result.as_ref().map(|response| response.usage).unwrap_or_default();
    if let Some(turn) = cx.site.turn {
        turn.charge_beside(usage);
    }
    cx.site.inner.charge(usage);
    cx.announce("hook.model_called", || {
        let failed = result.as_ref().err().and_then(|error| reason_of(&error.to_string()));
        serde_json::json!({ "for": name, "model": model.name(), "usage": usage, "error": failed })
    });
    result
}

/// A hash of what a model call depends on, and its parts with a hash each.
fn request_fingerprint(request: &ModelRequest) -> (u64, String) {
    let instruction = request.instruction.as_deref().unwrap_or_default();
    let (messages, params) = (request.messages.print(), fingerprint(&request.params));
    let (mut print, mut of_instruction, mut of_tools) = (Print::new(), Print::new(), Print::new());
    print.text(instruction);
    of_instruction.text(instruction);
    print.number(messages);
    for tool in &*request.tools {
        print.text(&tool.name);
        of_tools.text(&tool.name);
    }
    print.number(params);
    let parts = format!(
        "instruction={:08x} messages={:08x}/{} tools={:08x} params={:08x}",
        of_instruction.finish() >> 32,
        messages >> 32,
        request.messages.len(),
        of_tools.finish() >> 32,
        params >> 32,
    );
    (print.finish(), parts)
}

/// A model call that completed, well or not. One that was cut off has not, and is made again.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Recorded {
    Ok(ModelResponse),
    Failed {
        kind: ModelErrorKind,
        message: String,
        retry_after: Option<Duration>,
        #[serde(default)]
        status: Option<u16>,
        fatal: bool,
    },
}

impl Recorded {
    fn of_error(error: &Error) -> Option<Self> {
        let error = error.model_error()?;
        Some(Self::Failed {
            kind: error.kind(),
            message: error.to_string(),
            retry_after: error.retry_after(),
            status: error.status(),
            fatal: error.is_fatal(),
        })
    }

    fn into_result(self) -> Result<ModelResponse, Error> {
        match self {
            Self::Ok(response) => Ok(response),
            Self::Failed { kind, message, retry_after, status, fatal } => {
                let mut error = ModelError::new(kind, message);
                if let Some(after) = retry_after {
                    error = error.with_retry_after(after);
                }
                if let Some(status) = status {
                    error = error.with_status(status);
                }
                if fatal {
                    error = error.fatal();
                }
                Err(error.into())
            }
        }
    }
}
