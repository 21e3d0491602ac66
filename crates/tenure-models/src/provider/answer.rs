//! An answer as it came, and what has to hold before an agent gets to see it.

use super::model::Call;
use super::price;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_core::message::{ToolCall, ToolResult, ToolStatus};
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse, StopReason, Usage};
use tenure_core::tool::LongIntegers;

/// What a token written to a cache costs beyond one that is only read, as a part of the latter.
/// Every provider that takes anything for it takes this much.
pub(super) const CACHE_WRITE: f64 = 0.25;

/// An answer that has come to its end, with nothing checked yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) calls: Vec<DraftCall>,
    /// `None` if the server did not say.
    pub(super) usage: Option<Usage>,
    /// Tokens written to a cache cost more than those that are only read: how much more, in tokens
    /// that are read.
    pub(super) surcharge: f64,
    pub(super) stop: StopReason,
}

/// A tool call as the server wrote it.
#[derive(Debug, Default)]
pub(super) struct DraftCall {
    /// Empty if the server gave it none.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// Whether the server says that nothing of it is missing, also if the answer was cut.
    pub(super) complete: bool,
    pub(super) continuation: Option<Value>,
}

impl Draft {
    /// Makes a response of it, if everything holds that an agent relies on.
    pub(super) fn finish(self, call: Call<'_>) -> Result<ModelResponse, ModelError> {
        let blame = call.route.blame();
        let cut = self.stop == StopReason::MaxTokens;
        let refused = self.stop == StopReason::Refused;
        let mut calls: Vec<ToolCall> = Vec::with_capacity(self.calls.len());
        // What was withheld must not be called either.
        for draft in self.calls.into_iter().filter(|_| !refused) {
            // What is not finished must not be called. In an answer that was cut, arguments that
            // are missing are not none, and those that can be read need not be all.
            let complete = !cut || draft.complete && !draft.arguments.trim().is_empty();
            let arguments = match object(&draft.arguments) {
                Ok(arguments) if complete => arguments,
                _ if cut => {
                    let what = "the answer ran into its token limit in the middle of a tool call; \
                                raise max_tokens";
                    return Err(blame.error(ModelErrorKind::Truncated, what));
                }
                read => {
                    let why = read.err().map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(blame.malformed(&format!(
                        "the arguments of the call to `{}` are not a JSON object{why}",
                        draft.name
                    )));
                }
            };
            if draft.name.is_empty() {
                return Err(blame.malformed("a tool call names no tool"));
            }
            let twin = calls.iter().find(|other| !draft.id.is_empty() && *other.id == *draft.id);
            let id = match twin {
                // The same call told twice is made once.
                Some(twin) if *twin.name == *draft.name && twin.arguments == arguments => continue,
                Some(_) => invented_id(),
                None if draft.id.is_empty() => invented_id(),
                None => draft.id,
            };
            let mut made = ToolCall::new(id, draft.name, arguments);
            made.continuation = draft.continuation.map(Arc::new);
            calls.push(made);
        }
        let stop = match self.stop {
            StopReason::EndTurn if !calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if calls.is_empty() => StopReason::EndTurn,
            stop => stop,
        };
        let mut text = self.text;
        if call.request.params.output_schema.is_some() && calls.is_empty() && !refused {
            text = structured(text).map_err(|text| {
                if cut {
                    let what = "the JSON ran into the token limit; raise max_tokens";
                    return blame.error(ModelErrorKind::Truncated, what);
                }
                let begin: String = text.chars().take(60).collect();
                blame.malformed(&format!("JSON was asked for, and this came: {begin:?}"))
            })?;
        }
        let mut usage = self.usage.unwrap_or_else(|| Usage { calls: 1, ..Usage::default() });
        // Without token counts there is nothing to charge.
        let price = call.route.target.price.filter(|_| self.usage.is_some());
        price::charge(&mut usage, self.surcharge, price);
        Ok(ModelResponse { content: text.into(), calls, usage, stop })
    }
}

/// The arguments of a call, if they are an object. No arguments at all are an empty one.
fn object(text: &str) -> serde_json::Result<String> {
    if text.trim().is_empty() {
        return Ok("{}".to_owned());
    }
    serde_json::from_str::<Map<String, Value>>(text).map(|_| text.to_owned())
}

/// What a server wrote, with the arguments of calls as texts where they hold an integer of more than
/// 64 bits: read as values, such integers would lose their last digits.
pub(super) fn exact(data: &[u8]) -> Cow<'_, [u8]> {
    let rewritten = || {
        let text = std::str::from_utf8(data).ok()?;
        let long = LongIntegers::of(text)?;
        let mut value = serde_json::from_str(text).ok()?;
        quote(&mut value, &long);
        serde_json::to_vec(&value).ok()
    };
    rewritten().map_or(Cow::Borrowed(data), Cow::Owned)
}

fn quote(value: &mut Value, long: &LongIntegers<'_>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let Some(long) = long.key(key) else { continue };
                match key.as_str() {
                    "arguments" | "args" | "input" => *inner = long.json(inner).into(),
                    _ => quote(inner, long),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(long) = long.item(at) {
                    quote(item, long);
                }
            }
        }
        _ => {}
    }
}

/// The arguments of a call that a server writes as an object, as a text.
pub(super) fn written(arguments: Option<Value>) -> String {
    match arguments {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(arguments) => arguments.to_string(),
    }
}

/// Whether the arguments of a call are an object that holds something, or the text of one.
pub(super) fn is_filled(arguments: &Value) -> bool {
    match arguments {
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => {
            serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|fields| !fields.is_empty())
        }
        _ => false,
    }
}

/// The JSON of an answer, also where the model put it between fences.
fn structured(text: String) -> Result<String, String> {
    let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if is_json(&text) {
        return Ok(text);
    }
    let inner = text.trim().strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.map(|inner| inner.strip_prefix("json").unwrap_or(inner).trim());
    match inner.filter(|inner| is_json(inner)) {
        Some(inner) => Ok(inner.to_owned()),
        None => Err(text),
    }
}

/// An id for a call that came without one of its own. Unique for as long as a conversation may
/// live, so that histories can be joined.
fn invented_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("call_t{:x}_{}", now.as_micros(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A count of tokens, of which some servers make a negative number or a fraction.
pub(super) fn count(value: Option<&Value>) -> u64 {
    let Some(value) = value else { return 0 };
    value.as_u64().unwrap_or_else(|| value.as_f64().map_or(0, |number| number.max(0.0) as u64))
}

/// The arguments of an earlier call, as an object.
pub(super) fn arguments(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::Object(Map::new()))
}

/// What a result says to a model whose language has no field for how the call ended.
pub(super) fn in_words(result: &ToolResult) -> String {
    let ended = match result.status {
        ToolStatus::Ok => return result.content.text().to_owned(),
        ToolStatus::Denied => "The call was denied",
        ToolStatus::Cancelled => "The call was cancelled",
        ToolStatus::NotExecuted => "The call was not made",
        _ => "The call failed",
    };
    if result.content.is_empty() {
        format!("{ended}.")
    } else {
        format!("{ended}: {}", result.content.text())
    }
}

/// Keeps what a provider wants back beside a call; only the same provider gets it.
pub(super) fn keep(call: Call<'_>, what: Map<String, Value>) -> Option<Value> {
    if what.is_empty() {
        return None;
    }
    let mut kept = Map::new();
    kept.insert("provider".to_owned(), call.route.target.provider.clone().into());
    kept.extend(what);
    Some(Value::Object(kept))
}

/// What was kept beside a call, if it came from the provider that is asked now.
pub(super) fn kept<'a>(call: Call<'_>, tool_call: &'a ToolCall) -> Option<&'a Value> {
    let kept = tool_call.continuation.as_deref()?;
    (kept.get("provider")?.as_str()? == call.route.target.provider).then_some(kept)
}

/// Adds what the user wants sent beyond what is sent anyway; theirs wins, objects are joined.
pub(super) fn merge(body: &mut Value, extra: &Value) {
    match (body, extra) {
        (Value::Object(body), Value::Object(extra)) => {
            for (key, value) in extra {
                merge(body.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (body, extra) => *body = extra.clone(),
    }
}
