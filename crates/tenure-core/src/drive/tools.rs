//! Tool calls: one batch per response, concurrently, results in call order.

use super::batch::{BatchState, Body};
use super::turn::{Turn, Work};
use crate::BoxFuture;
use crate::agent::ToolSet;
use crate::context::{Batch, Cx, ToolCx};
use crate::error::Error;
use crate::event::EventKind;
use crate::hook::Point;
use crate::kernel::{Around, Bounded, Clocks, Kind, Leaf, Site, ToolKind, caught};
use crate::message::{Message, ToolCall, ToolResult, ToolStatus};
use crate::phase::Phase;
use crate::step::{decode, encode, fingerprint};
use crate::tool::{ToolError, ToolOutput, ToolRequest};
use serde_json::{Map, Value};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Calls the tools of the newest message and commits their results: each call gets exactly one,
/// whatever happens (G8).
pub(super) async fn call_tools(
    site: &Site<'_>,
    turn: &Turn,
    work: &mut Work,
    approved: bool,
) -> Result<(), Error> {
    let config = turn.inner.config();
    let history = work.request.messages.history();
    let calls = history.last().map(Message::calls).unwrap_or_default();
    let state = BatchState::new(
        turn.steps_made(),
        approved,
        calls.len(),
        config.max_parallel_tools,
    );
    let mut denied = true;
    let error = if calls.len() == 1 {
        let batch = Batch {
            state: &state,
            calls,
            index: 0,
        };
        let (result, error) = match one_call(site, turn, batch).await {
            Ok(result) => (result, None),
            Err(error) => (unfinished(&calls[0], &error), Some(error)),
        };
        denied = result.status == ToolStatus::Denied;
        work.request
            .messages
            .history_mut()
            .push(Message::Tool(result));
        error
    } else {
        let error = all_calls(site, turn, &state, calls).await;
        let results = settled(turn, calls, error.as_ref());
        let history = work.request.messages.history_mut();
        for result in results {
            denied &= result.status == ToolStatus::Denied;
            history.push(Message::Tool(result));
        }
        error
    };
    if let Some(error) = error {
        return Err(error);
    }
    work.request
        .messages
        .history_mut()
        .extend(std::mem::take(&mut *turn.appended.lock()));
    apply_patches(turn, &state);
    if denied {
        let here = turn.inner.cell.turn();
        if here.may_go_to(Phase::ToolDenied) {
            turn.shift(site, Phase::ToolDenied).await?;
        }
    }
    turn.shift(site, Phase::ProcessingToolResult).await
}

/// Runs every call at once. The first failure that is not a cancel stops the others.
async fn all_calls(
    site: &Site<'_>,
    turn: &Turn,
    state: &BatchState,
    calls: &[ToolCall],
) -> Option<Error> {
    turn.finished.lock().clear();
    let mut running: Vec<Option<BoxFuture<'_, Result<ToolResult, Error>>>> = (0..calls.len())
        .map(|index| {
            let call = one_call(
                site,
                turn,
                Batch {
                    state,
                    calls,
                    index,
                },
            );
            Some(Box::pin(call) as BoxFuture<'_, _>)
        })
        .collect();
    poll_fn(|cx| {
        let mut first_error = None;
        let mut open = false;
        for (index, slot) in running.iter_mut().enumerate() {
            let Some(call) = slot else { continue };
            match call.as_mut().poll(cx) {
                Poll::Pending => open = true,
                Poll::Ready(result) => {
                    *slot = None;
                    match result {
                        Ok(result) => turn.finished.lock().push((index, result)),
                        Err(error) => {
                            first_error.get_or_insert(error);
                        }
                    }
                }
            }
        }
        match first_error {
            Some(error) => Poll::Ready(Some(error)),
            None if open => Poll::Pending,
            None => Poll::Ready(None),
        }
    })
    .await
}

/// One result per call, in call order: what has finished, and a synthetic one for the rest.
pub(super) fn settled(turn: &Turn, calls: &[ToolCall], error: Option<&Error>) -> Vec<ToolResult> {
    let mut finished = std::mem::take(&mut *turn.finished.lock());
    let results = calls.iter().enumerate().map(|(index, call)| {
        match finished.iter().position(|(at, _)| *at == index) {
            Some(at) => finished.swap_remove(at).1,
            None => match error {
                Some(error) => unfinished(call, error),
                None => synthetic(call, ToolStatus::Cancelled, "the call was cancelled"),
            },
        }
    });
    results.collect()
}

fn unfinished(call: &ToolCall, error: &Error) -> ToolResult {
    if error.is_cancelled() {
        synthetic(call, ToolStatus::Cancelled, "the call was cancelled")
    } else {
        synthetic(
            call,
            ToolStatus::Cancelled,
            &format!("the turn ended before the call: {error}"),
        )
    }
}

pub(super) fn synthetic(call: &ToolCall, status: ToolStatus, content: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: content.to_owned(),
        status,
    }
}

/// What the calls wanted written, in call order.
fn apply_patches(turn: &Turn, state: &BatchState) {
    let mut patches = std::mem::take(&mut *state.patches.lock());
    patches.sort_by_key(|(index, _)| *index);
    for (_, patch) in patches {
        // Every key was checked when the tool wrote it.
        if let Err(error) = turn.inner.write_state(patch) {
            tracing::error!(
                agent = turn.inner.name(),
                "a tool's state was lost: {error}"
            );
        }
    }
}

/// One call, through its wraps. A tool's own failure is a result; an `Err` ends the turn.
async fn one_call(site: &Site<'_>, turn: &Turn, batch: Batch<'_>) -> Result<ToolResult, Error> {
    let call = &batch.calls[batch.index];
    let blueprint = &turn.inner.blueprint;
    site.emit(|| EventKind::ToolStarted {
        call: call.id.clone(),
        tool: call.name.clone(),
    });
    let output = match prepare(&blueprint.tools, call, batch.index) {
        Ok(mut request) => {
            let wraps = blueprint.chain.calls(Point::WrapToolCall);
            let clocks = Clocks::for_wraps(wraps.len());
            let around = Around::<ToolKind> {
                site,
                entries: &blueprint.chain.entries,
                wraps,
                clocks: &clocks,
                batch: Some(batch),
                inside: None,
            };
            match around.call(&mut request).await {
                Ok(output) => output,
                Err(error) if error.is_denied() && !error.is_fatal() => {
                    ToolOutput::denied(error.to_string())
                }
                Err(error) => {
                    let status = ToolStatus::Cancelled;
                    site.emit(|| ended(call, status));
                    return Err(error);
                }
            }
        }
        Err(message) => ToolOutput::error(message),
    };
    site.emit(|| ended(call, output.status));
    Ok(ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: output.content,
        status: output.status,
    })
}

fn ended(call: &ToolCall, status: ToolStatus) -> EventKind {
    EventKind::ToolEnded {
        call: call.id.clone(),
        tool: call.name.clone(),
        status,
    }
}

/// Finds the tool and reads the arguments. What is wrong is for the model to read.
#[inline]
fn prepare(tools: &ToolSet, call: &ToolCall, index: usize) -> Result<ToolRequest, String> {
    let Some((spec, _)) = tools.find(&call.name) else {
        return Err(tools.unknown(&call.name));
    };
    let text = call.arguments.trim();
    let arguments = if text.is_empty() {
        Value::Object(Map::new())
    } else {
        serde_json::from_str(text)
            .map_err(|error| format!("the arguments of `{}` are not JSON: {error}", call.name))?
    };
    if !arguments.is_object() {
        return Err(format!(
            "the arguments of `{}` must be a JSON object, but they are {}",
            call.name,
            kind_of(&arguments)
        ));
    }
    Ok(ToolRequest {
        id: call.id.clone(),
        arguments,
        name: spec.name.clone(),
        index,
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The effect at the centre of the wraps.
#[inline]
pub(crate) fn tool_leaf<'a>(
    batch: Batch<'a>,
    cx: Cx<'a>,
    request: &'a mut ToolRequest,
) -> Leaf<'a, ToolKind> {
    let inner = cx.site.inner;
    let attended = cx.site.steps().is_some()
        || inner.is_watched()
        || inner.blueprint.chain.has(Point::OnTransition)
        || batch.state.permits.is_some();
    if attended {
        return Leaf::Boxed(Box::pin(attended_call(batch, cx, request)));
    }
    let call = bounded(batch, cx, request);
    Leaf::Direct(call, Some(Body::begin_quietly(batch.state, cx.site.turn)))
}

#[inline]
fn bounded<'a>(
    batch: Batch<'a>,
    cx: Cx<'a>,
    request: &'a ToolRequest,
) -> Bounded<'a, Result<ToolOutput, ToolError>> {
    let blueprint = &cx.site.inner.blueprint;
    let (spec, tool) = blueprint
        .tools
        .find(&request.name)
        .expect("a request is only made for a tool that is there");
    let limit = spec.limit.or(blueprint.config.limits.tool);
    let call = tool.call(ToolCx::new(cx, batch), &request.arguments);
    Bounded::new(call, cx.site, cx.clock, limit).with_grace(tool.cancel_grace())
}

/// The same with somebody watching, with a step log to serve it from, or with others in the way.
#[cold]
async fn attended_call(
    batch: Batch<'_>,
    cx: Cx<'_>,
    request: &ToolRequest,
) -> Result<ToolOutput, Error> {
    let composite = {
        let tools = &cx.site.inner.blueprint.tools;
        tools
            .find(&request.name)
            .is_some_and(|(_, tool)| tool.is_composite())
    };
    match (cx.site.steps(), cx.site.turn) {
        // The steps of a child agent are its own.
        (Some(log), Some(turn)) if !composite => {
            let name = format!("{}:{}", request.name, request.id);
            let key = turn.step_key("tool", &name, fingerprint(&request.arguments));
            let mut fresh = None;
            let effect = async {
                let output = body(batch, cx, request).await?;
                let record = encode(&output)?;
                fresh = Some(output);
                Ok(record)
            };
            let record = log.step(key, Box::pin(effect)).await?;
            match fresh {
                Some(output) => Ok(output),
                None => decode(record),
            }
        }
        _ => body(batch, cx, request).await,
    }
}

async fn body(batch: Batch<'_>, cx: Cx<'_>, request: &ToolRequest) -> Result<ToolOutput, Error> {
    let site = cx.site;
    let _permit = match &batch.state.permits {
        Some(permits) => {
            let mut wait = std::pin::pin!(permits.acquire());
            let permit = poll_fn(|task| {
                if let Poll::Ready(permit) = wait.as_mut().poll(task) {
                    return Poll::Ready(permit.ok());
                }
                match site.signal {
                    Some(signal) if signal.register(task.waker()) => Poll::Ready(None),
                    _ => Poll::Pending,
                }
            })
            .await;
            match permit {
                Some(permit) => Some(permit),
                None => return Err(Error::cancelled()),
            }
        }
        None => None,
    };
    let running = Body::begin(batch.state, site).await;
    site.emit(|| EventKind::ToolExecuting {
        call: request.id.clone(),
        tool: request.name.clone(),
    });
    let mut call = bounded(batch, cx, request);
    let result = poll_fn(|task| caught(|| Pin::new(&mut call).poll(task))).await;
    running.end(site).await;
    ToolKind::settle(result)
}
