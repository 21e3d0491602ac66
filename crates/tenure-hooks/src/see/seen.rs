//! What the hooks that watch have in common: names of models, of failures, of users.

#[cfg(feature = "telemetry")]
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::Error;
use tenure_core::context::Cx;
use tenure_core::hook::Registration;
use tenure_core::message::ToolStatus;
use tenure_core::model::{ModelErrorKind, ModelRequest};

/// What a watcher stands around, so that it sees a call as the agent does: once, with all of its
/// attempts, and with what guards made of it.
const AROUND: [&str; 19] = [
    "critic",
    "cache",
    "fallback",
    "refusal",
    "retry",
    "breaker",
    "rate_limit",
    "concurrency",
    "timeout",
    "tool_errors",
    "approval",
    "audit",
    "call_limit",
    "tool_retry",
    "result_schema",
    "pii",
    "permissions",
    "dry_run",
    "emulate_tools",
];

/// Has a watcher stand around every hook whose work it sees.
pub(super) fn around(registration: Registration) -> Registration {
    AROUND.into_iter().fold(registration.observes(), Registration::outside)
}

/// The lock of something that stays whole if its holder panics.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of the model that is to answer: another one that a hook or the parameters chose, else
/// the agent's own.
pub(super) fn model_name<'a>(cx: &Cx<'a>, request: &'a ModelRequest) -> &'a str {
    match request.model() {
        Some(model) => model.name(),
        None => cx.agent().model().name(),
    }
}

/// The user whom a call is for, if anybody says.
pub(super) fn user(cx: &Cx<'_>) -> Option<String> {
    let in_chat = cx.chat_variables().and_then(|variables| variables.get("user_id"));
    let user = match in_chat {
        Some(Value::String(user)) => user,
        Some(Value::Null) | None => cx.context()?.user_id().to_owned(),
        Some(other) => other.to_string(),
    };
    (!user.is_empty()).then_some(user)
}

/// What kind of failure it is, in one word, of a set that does not grow.
pub(super) fn failure(error: &Error) -> &'static str {
    match error.model_error() {
        Some(error) => kind_of(error.kind()),
        None => error.outcome().as_str(),
    }
}

/// The same of a model's failure.
fn kind_of(kind: ModelErrorKind) -> &'static str {
    match kind {
        ModelErrorKind::RateLimited => "rate_limited",
        ModelErrorKind::Overloaded => "overloaded",
        ModelErrorKind::Auth => "auth",
        ModelErrorKind::BadRequest => "bad_request",
        ModelErrorKind::Truncated => "truncated",
        ModelErrorKind::Malformed => "malformed",
        ModelErrorKind::Timeout => "timeout",
        ModelErrorKind::Transport => "transport",
        _ => "model",
    }
}

/// An attempt of a model call that failed, and was made good: by another one, or by another model.
#[cfg(feature = "telemetry")]
pub(super) struct Failed<'e> {
    /// The model that was asked.
    pub(super) model: &'e str,
    /// What kind of failure it was.
    pub(super) kind: &'static str,
}

/// The attempt that an announced event tells of, if it is one of `retry` or `fallback`.
#[cfg(feature = "telemetry")]
pub(super) fn failed_attempt<'e>(name: &str, data: &'e Value) -> Option<Failed<'e>> {
    let model = match name {
        "retry" => "model",
        "fallback" => "from",
        _ => return None,
    };
    // Others may announce events of these names, and say what they like.
    let (model, kind) = (data.get(model)?.as_str()?, data.get("kind")?);
    Some(Failed { model, kind: kind_of(ModelErrorKind::deserialize(kind).ok()?) })
}

/// The name of a tool call's status.
pub(super) fn status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Error => "error",
        ToolStatus::Denied => "denied",
        ToolStatus::Cancelled => "cancelled",
        ToolStatus::NotExecuted => "not_executed",
        _ => "other",
    }
}

/// As much of a text as fits into so many bytes, and whether that is all of it.
pub(super) fn cut(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, true);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], false)
}

/// A text of bounded length.
pub(super) fn bounded(text: &str, most: usize) -> String {
    match cut(text, most) {
        (whole, true) => whole.to_owned(),
        (part, false) => format!("{part}…"),
    }
}
