//! Tool calls: one batch per response, concurrently, results in call order.

use super::batch::{BatchState, Body};
use super::recorded_call::recorded_call;
use super::turn::{Turn, Work};
use crate::BoxFuture;
use crate::agent::ToolSet;
use crate::context::{Batch, Cx, ToolCx};
use crate::error::Error;
use crate::event::{EventKind, reason_of};
use crate::hook::Point;
use crate::kernel::{Around, Bounded, Clocks, Kind, Leaf, Site, ToolKind, caught};
use crate::message::{Message, ToolCall, ToolResult, ToolStatus};
use crate::phase::Phase;
use crate::tool::{ToolError, ToolOutput, ToolRequest};
use serde_json::{Map, Value, json};
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
    let mut state =
        BatchState::new(turn.steps_made(), approved, calls.len(), config.max_parallel_tools);
    state.tools = work.tools.clone();
    let mut denied = true;
    let error = if calls.len() == 1 {
        let batch = Batch { state: &state, calls, index: 0 };
        let (result, error) = match one_call(site, turn, batch).await {
            Ok(result) => (result, None),
            Err(ended) => (ended.result(&calls[0]), Some(ended.error)),
        };
        denied = result.status == ToolStatus::Denied;
        work.request.messages.history_mut().push(Message::Tool(result));
        if error.is_none() {
            apply_patches(turn, &state, |_| true);
        }
        error
    } else {
        let (error, answered) = Box::pin(all_calls(site, turn, &state, calls)).await;
        apply_patches(turn, &state, |index| answered.contains(&index));
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
    if let Some(rare) = turn.if_rare() {
        let mut appended = std::mem::take(&mut *rare.appended.lock());
        appended.sort_by_key(|(call, _)| *call);
        let appended = appended.into_iter().flat_map(|(_, messages)| messages);
        work.request.messages.history_mut().extend(appended);
    }
    if denied {
        let here = turn.inner.cell.turn();
        if here.may_go_to(Phase::ToolDenied) {
            turn.shift_and_tell(site, Phase::ToolDenied).await?;
        }
    }
    if let Some(told) = turn.shift(site, Phase::ProcessingToolResult)? {
        told.await;
    }
    Ok(())
}

/// Runs every call at once. The first failure stops the others, unless it is a cancel, or the run
/// is given up: that reaches each of them, and each may take its grace and its ends. Says also which
/// calls were answered.
async fn all_calls(
    site: &Site<'_>,
    turn: &Turn,
    state: &BatchState,
    calls: &[ToolCall],
) -> (Option<Error>, Vec<usize>) {
    turn.rare().finished.lock().clear();
    let mut running: Vec<Option<BoxFuture<'_, Result<ToolResult, Unanswered>>>> = (0..calls.len())
        .map(|index| {
            let call = one_call(site, turn, Batch { state, calls, index });
            Some(Box::pin(call) as BoxFuture<'_, _>)
        })
        .collect();
    let mut cancelled = None;
    let mut answered = Vec::new();
    let error = poll_fn(|cx| {
        let mut failed = None;
        let mut open = false;
        for (index, slot) in running.iter_mut().enumerate() {
            let Some(call) = slot else { continue };
            match call.as_mut().poll(cx) {
                Poll::Pending => open = true,
                Poll::Ready(result) => {
                    *slot = None;
                    match result {
                        Ok(result) => {
                            answered.push(index);
                            turn.rare().finished.lock().push((index, result));
                        }
                        Err(ended) => {
                            let result = ended.result(&calls[index]);
                            turn.rare().finished.lock().push((index, result));
                            if ended.error.reaches_all() {
                                cancelled = Some(ended.error);
                            } else {
                                failed.get_or_insert(ended.error);
                            }
                        }
                    }
                }
            }
        }
        match failed {
            Some(error) => Poll::Ready(Some(error)),
            None if open => Poll::Pending,
            None => Poll::Ready(cancelled.take()),
        }
    })
    .await;
    (error, answered)
}

/// One result per call, in call order: what has finished, and a synthetic one for the rest.
pub(super) fn settled(turn: &Turn, calls: &[ToolCall], error: Option<&Error>) -> Vec<ToolResult> {
    let mut finished = std::mem::take(&mut *turn.rare().finished.lock());
    let results = calls.iter().enumerate().map(|(index, call)| {
        match finished.iter().position(|(at, _)| *at == index) {
            Some(at) => finished.swap_remove(at).1,
            None => {
                let why = match error {
                    Some(error) if !error.is_cancelled() => error.to_string(),
                    _ => "the turn was cancelled".to_owned(),
                };
                let content = format!("{why}; the call was not answered, and may have been made");
                synthetic(call, ToolStatus::Cancelled, &content)
            }
        }
    });
    results.collect()
}

/// A call that ended with the turn, and without an answer.
struct Unanswered {
    error: Error,
    /// Whether the tool was called. What it did is done, and the model has to know.
    made: bool,
}

impl Unanswered {
    fn result(&self, call: &ToolCall) -> ToolResult {
        let Self { error, made } = self;
        let content = match (made, error.is_cancelled()) {
            (true, true) => "the call was cancelled after it was made".to_owned(),
            (false, true) => "the call was cancelled before it was made".to_owned(),
            (true, false) => format!("the call was made, but its result was lost: {error}"),
            (false, false) => format!("the call was not made: {error}"),
        };
        synthetic(call, ToolStatus::Cancelled, &content)
    }
}

pub(super) fn synthetic(call: &ToolCall, status: ToolStatus, content: &str) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: content.into(),
        status,
    }
}

/// What the calls that were answered wanted written, in call order.
fn apply_patches(turn: &Turn, state: &BatchState, answered: impl Fn(usize) -> bool) {
    let mut patches = std::mem::take(&mut *state.patches.lock());
    patches.retain(|(index, _)| answered(*index));
    patches.sort_by_key(|(index, _)| *index);
    for (_, patch) in patches {
        // Every key was checked when the tool wrote it.
        if let Err(error) = turn.inner.write_state(patch) {
            tracing::error!(agent = turn.inner.name(), "a tool's state was lost: {error}");
        }
    }
}

/// One call, through its wraps. A tool's own failure is a result; an `Err` ends the turn.
async fn one_call(
    site: &Site<'_>,
    turn: &Turn,
    batch: Batch<'_>,
) -> Result<ToolResult, Unanswered> {
    let call = &batch.calls[batch.index];
    let blueprint = &turn.inner.blueprint;
    let begun = site.begun(
        || EventKind::ToolStarted { call: call.id.clone(), tool: call.name.clone() },
        || ended(call, ToolStatus::Cancelled, ""),
    );
    let output = match prepare(batch.tools(site), call, batch.index) {
        Ok(mut request) => {
            let wraps = blueprint.chain.calls(Point::WrapToolCall);
            let clocks = Clocks::for_wraps(wraps.len());
            let around = Around::<ToolKind> {
                site,
                entries: &blueprint.chain.entries,
                wraps,
                clocks: &clocks,
                watched: site.inner.is_watched(),
                batch: Some(batch),
                inside: None,
            };
            match around.call(&mut request).await {
                Ok(output) => {
                    begun.ended(|| ended(call, output.status, output.content.text()));
                    let ToolRequest { id, name, .. } = request;
                    let ToolOutput { content, status, .. } = output;
                    return Ok(ToolResult { call_id: id, name, content, status });
                }
                Err(error) if error.is_denied() && !error.is_fatal() => {
                    ToolOutput::denied(error.to_string())
                }
                Err(error) => {
                    begun.ended(|| ended(call, ToolStatus::Cancelled, &error.to_string()));
                    let made = wraps.is_empty() || clocks.get(0).effects() > 0;
                    return Err(Unanswered { error, made });
                }
            }
        }
        Err(message) => ToolOutput::error(message),
    };
    begun.ended(|| ended(call, output.status, output.content.text()));
    Ok(ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: output.content,
        status: output.status,
    })
}

/// `content` is what the call came to; of one that did not end well it is the reason.
fn ended(call: &ToolCall, status: ToolStatus, content: &str) -> EventKind {
    let reason = if status == ToolStatus::Ok { None } else { reason_of(content) };
    EventKind::ToolEnded { call: call.id.clone(), tool: call.name.clone(), status, reason }
}

/// Finds the tool and reads the arguments. What is wrong is for the model to read.
#[inline]
fn prepare(tools: &ToolSet, call: &ToolCall, index: usize) -> Result<ToolRequest, String> {
    let Some(tool) = tools.place(&call.name) else {
        return Err(tools.unknown(&call.name));
    };
    // A parser passes over blanks by itself; that there is nothing else is seen at the first byte.
    let arguments = if call.arguments.bytes().all(|byte| byte.is_ascii_whitespace()) {
        Value::Object(Map::new())
    } else {
        match serde_json::from_str(&call.arguments) {
            Ok(Value::String(text)) if is_agent(tools, tool) => message(&text),
            Ok(arguments) => arguments,
            // What begins like JSON was to be JSON, and has been cut off or is wrong.
            Err(_)
                if is_agent(tools, tool)
                    && !call.arguments.trim_start().starts_with(['{', '[']) =>
            {
                message(&call.arguments)
            }
            Err(error) => {
                return Err(format!("the arguments of `{}` are not JSON: {error}", call.name));
            }
        }
    };
    if !arguments.is_object() {
        return Err(format!(
            "the arguments of `{}` must be a JSON object, but they are {}",
            call.name,
            kind_of(&arguments)
        ));
    }
    Ok(ToolRequest { id: call.id.clone(), arguments, name: call.name.clone(), index, tool })
}

fn is_agent(tools: &ToolSet, place: usize) -> bool {
    tools.at(place).0.is_composite()
}

/// Returns the arguments of a task without any form: a model that delegates may write it alone.
fn message(text: &str) -> Value {
    json!({ "message": text })
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
    let (tool, bounds) = batch.tools(cx.site).at(request.tool);
    let call = tool.call(ToolCx::new(cx, batch), &request.arguments);
    Bounded::new(call, cx.site, cx.clock, bounds)
}

/// The same with somebody watching, with a step log to serve it from, or with others in the way.
#[cold]
async fn attended_call(
    batch: Batch<'_>,
    cx: Cx<'_>,
    request: &ToolRequest,
) -> Result<ToolOutput, Error> {
    let composite = batch.tools(cx.site).at(request.tool).0.is_composite();
    match cx.site.steps() {
        // The steps of a child agent are its own.
        Some(scope) if !composite => {
            let body = body(batch, cx, request);
            recorded_call(batch, cx, request, scope, body).await
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
    site.emit(|| EventKind::ToolExecuting { call: request.id.clone(), tool: request.name.clone() });
    let mut call = bounded(batch, cx, request);
    let result = poll_fn(|task| caught(|| Pin::new(&mut call).poll(task))).await;
    running.end(site).await;
    ToolKind::settle(result)
}
