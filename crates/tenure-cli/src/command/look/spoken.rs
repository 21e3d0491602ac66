//! What records say, in words.

use super::entry::Entry;
use super::item::{Ended, Item, What};
use crate::terminal::text::{clean_line, count, plural};
use serde_json::Value;
use tenure_core::model::ModelResponse;
use tenure_core::step::StepKey;

/// Nobody reads more of a value in a line.
const MOST: usize = 200;

/// A hook that is called: its point, and its name.
pub(super) fn hook(entry: &Entry) -> String {
    let (hook, point) = (entry.text("hook").unwrap_or("?"), entry.text("point").unwrap_or("?"));
    format!("{point} {hook}")
}

/// How a process takes a run up.
pub(super) fn life(entry: &Entry, life: u32) -> String {
    match (life, entry.text("mode")) {
        (1, None) => "begins".to_owned(),
        (1, _) => "takes it up".to_owned(),
        (_, Some("cancel")) => "cancels it".to_owned(),
        (_, Some("abandon")) => "gives it up".to_owned(),
        _ => "goes on".to_owned(),
    }
}

/// What a run begins with that takes over a part of another one's record.
pub(super) fn forked(entry: &Entry) -> String {
    let number = |name: &str| entry.data.get(name).and_then(Value::as_u64).unwrap_or(0);
    let steps = usize::try_from(number("steps")).unwrap_or(usize::MAX);
    let (cut, from) = (number("from"), entry.cause.as_deref().unwrap_or("another run"));
    format!("begins with {} of {from}, those before record {cut}", plural(steps, "step"))
}

/// The same, once it is known how much was served from the record.
pub(super) fn served(detail: &str, served: usize) -> String {
    let begin = detail.split(';').next().unwrap_or(detail);
    format!("{begin}; {} served from the record", plural(served, "call"))
}

/// Who decided what. That it was rejected is told by how it ended.
pub(super) fn answer(entry: &Entry) -> String {
    let by = entry.text("by").map(|by| format!("by {by}")).unwrap_or_default();
    let said = match (entry.text("decision"), entry.data.pointer("/answer/value")) {
        (Some("approve"), _) => "approved".to_owned(),
        (Some("edit"), Some(value)) => format!("edited to {}", short(value)),
        (Some("respond"), Some(value)) => format!("answered \"{}\"", short(value)),
        _ => return by,
    };
    format!("{said} {by}").trim_end().to_owned()
}

/// Whether a phase says something that calls and turns do not.
pub(super) fn is_notable(phase: &str) -> bool {
    matches!(phase, "awaiting_user_input" | "paused" | "error")
}

/// What a workflow, or another layer above agents, says of itself.
pub(super) fn announced(of: &str, data: &Value) -> (String, String) {
    let told = |name: &str| data.get(name).map(short).unwrap_or_default();
    match of {
        "chat.message" => return (format!("{} says", told("speaker")), told("text")),
        "orchestrator.route" => return (format!("next is {}", told("target")), told("reason")),
        "context.changed" => {
            let from = data.get("from").map_or("nothing".to_owned(), Value::to_string);
            let to = data.get("to").map_or("nothing".to_owned(), Value::to_string);
            return (format!("{} changes", told("name")), format!("{from} → {to}"));
        }
        _ => {}
    }
    let detail = match data {
        Value::Null => String::new(),
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let told = fields.map(|(name, value)| format!("{name} {}", short(value)));
            told.collect::<Vec<_>>().join(" · ")
        }
        other => short(other),
    };
    (of.to_owned(), detail)
}

/// What a model said, as its step has it.
pub(super) fn response(data: &Value) -> Option<ModelResponse> {
    let said = data.pointer("/value/ok")?;
    serde_json::from_value(said.clone()).ok()
}

/// Whether a step is what the open line is about. `place` is where its instance is.
pub(super) fn is_step_of(key: &StepKey, item: &Item, place: &str) -> bool {
    // An instance's own place is a name; its turn is elsewhere.
    let is_here = place.is_empty() || place.starts_with('@') || *key.path == *place;
    match item.what {
        What::Hook => {
            let own = key.name.rsplit('/').next().unwrap_or(&key.name);
            let title = |name: &str| item.title == format!("{} {name}", key.kind);
            title(&key.name) || title(own) || of_agent(key, item)
        }
        What::Model => &*key.kind == "model" && is_here,
        What::Tool => {
            let (name, call) = tool_and_call(&key.name);
            let is_call = item.call.as_deref().is_none_or(|own| own == call);
            &*key.kind == "tool" && item.title == name && is_call && is_here
        }
        _ => false,
    }
}

/// Splits the name of a tool's step into the tool and the id of the call.
pub(super) fn tool_and_call(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or((name, ""))
}

/// In a chat's own place, the name of a hook's step begins with the agent's.
fn of_agent(key: &StepKey, item: &Item) -> bool {
    let rest = key.name.strip_prefix(&*item.agent).and_then(|rest| rest.strip_prefix('/'));
    rest.is_some_and(|hook| item.title == format!("{} {hook}", key.kind))
}

/// A step that nobody said anything else of.
pub(super) fn lone_step(kind: &str, name: &str) -> (What, String) {
    match kind {
        "model" => (What::Model, name.to_owned()),
        "tool" => (What::Tool, tool_and_call(name).0.to_owned()),
        "step" => {
            // Where and by whom it is taken stands before its own name.
            let own = name.rsplit('/').next().unwrap_or(name);
            (What::Step, own.to_owned())
        }
        point => (What::Hook, format!("{point} {name}")),
    }
}

/// Puts what came of a step on its line.
pub(super) fn result(item: &mut Item, data: &Value) {
    let value = data.get("value").unwrap_or(data);
    match item.what {
        What::Model => match response(data) {
            Some(said) => item.detail = of_model(&said),
            None => failed(item, value),
        },
        What::Tool => {
            let content = value.get("content").map(short);
            let content = content.unwrap_or_else(|| short(value));
            let before = std::mem::take(&mut item.detail);
            item.detail = match (before.is_empty(), content.is_empty()) {
                (_, true) => before,
                (true, false) => format!("→ {content}"),
                (false, false) => format!("{} → {content}", shortened(&before, MOST / 2)),
            };
        }
        What::Hook => match (value.get("ok"), value.get("failed")) {
            (Some(decision), _) => item.detail = decided(decision),
            (None, Some(_)) => failed(item, value),
            (None, None) => item.detail = decided(value),
        },
        _ => item.detail = format!("→ {}", short(value)),
    }
    let changed = ["variables", "state", "memory"];
    let changed: Vec<String> = changed.iter().filter_map(|what| changes(data, what)).collect();
    if !changed.is_empty() {
        let gap = if item.detail.is_empty() { "" } else { " · " };
        item.detail = format!("{}{gap}{}", item.detail, changed.join(" · "));
    }
}

/// What was written beside a step.
fn changes(data: &Value, what: &str) -> Option<String> {
    let fields = data.get(what)?.as_object()?;
    let names: Vec<&str> = fields.keys().map(String::as_str).take(6).collect();
    let more = if fields.len() > names.len() { ", …" } else { "" };
    (!names.is_empty()).then(|| format!("sets {what} {}{more}", names.join(", ")))
}

fn failed(item: &mut Item, value: &Value) {
    let why = value.pointer("/failed/message").or_else(|| value.pointer("/failed/0/message"));
    let why = why.and_then(Value::as_str).map(str::to_owned);
    item.reason = why.or_else(|| value.get("failed").map(short));
    if item.ended == Ended::Moment {
        item.ended = Ended::Other("failed".to_owned());
    }
}

fn of_model(said: &ModelResponse) -> String {
    let usage = format!("{} in, {} out", count(said.usage.input), count(said.usage.output));
    let calls: Vec<&str> = said.calls.iter().map(|call| &*call.name).collect();
    let text = short(&Value::from(said.content.text()));
    let what = match (calls.is_empty(), text.is_empty()) {
        (true, true) => "says nothing".to_owned(),
        (true, false) => format!("\"{text}\""),
        (false, true) => format!("calls {}", calls.join(", ")),
        (false, false) => format!("calls {}, says \"{text}\"", calls.join(", ")),
    };
    match said.usage.total() {
        0 => what,
        _ => format!("{usage} · {what}"),
    }
}

/// A decision, if it is one: most hooks have nothing to say.
fn decided(decision: &Value) -> String {
    match decision {
        Value::Null => String::new(),
        Value::Bool(_) => String::new(),
        Value::String(word) if matches!(&**word, "continue" | "done") => String::new(),
        Value::String(word) => word.clone(),
        Value::Object(fields) => {
            let told = fields.iter().filter_map(|(name, value)| match decided(value) {
                text if text.is_empty() => None,
                text => Some(format!("{name}: {text}")),
            });
            told.collect::<Vec<_>>().join(" · ")
        }
        Value::Array(items) if items.is_empty() => String::new(),
        other => short(other),
    }
}

/// A value in one line that is not too long.
pub(super) fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => clean_line(text.trim()),
        Value::Null => String::new(),
        other => clean_line(&other.to_string()),
    };
    shortened(&text, MOST)
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
