//! What a compatible server answers, in one piece and piece by piece.

use super::super::answer::{CACHE_WRITE, Draft, DraftCall, count, exact, keep};
use super::super::model::Call;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;
use tenure_core::model::{ModelError, StopReason, Usage};

/// A piece of an answer.
#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Value>,
    error: Option<Value>,
    x_groq: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    finish_reason: Option<String>,
    /// Why the answer ended, where its reason is that something failed.
    error: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Words,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    /// The same by another name. It is not sent back, but it shows that the model is at work.
    reasoning: Option<Value>,
    reasoning_details: Option<Vec<Value>>,
    tool_calls: Option<Vec<Part>>,
}

/// A piece of a tool call.
#[derive(Deserialize)]
struct Part {
    index: Option<u32>,
    id: Option<String>,
    #[serde(default)]
    function: Function,
    extra_content: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

/// Text, which some servers send as a list of parts.
#[derive(Default)]
struct Words(String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Words, E> {
                Ok(Words(text))
            }

            fn visit_unit<E>(self) -> Result<Words, E> {
                Ok(Words::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Words, A::Error> {
                let mut words = Words::default();
                while let Some(part) = parts.next_element::<Value>()? {
                    words.0.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
                }
                Ok(words)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// An answer that is being put together.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    thought: String,
    details: Vec<Value>,
    /// With the number that the server gave each.
    calls: Vec<(Option<u32>, DraftCall)>,
    usage: Option<(Usage, f64)>,
    stop: Option<StopReason>,
    refused: bool,
}

impl Delta {
    /// Whether it holds anything of the answer.
    fn is_filled(&self) -> bool {
        let texts = [Some(&self.content.0), self.refusal.as_ref(), self.reasoning_content.as_ref()];
        let thinks = match &self.reasoning {
            Some(Value::String(text)) => !text.is_empty(),
            other => other.is_some(),
        };
        thinks
            || texts.into_iter().flatten().any(|text| !text.is_empty())
            || self.reasoning_details.as_ref().is_some_and(|details| !details.is_empty())
            || self.tool_calls.as_ref().is_some_and(|parts| !parts.is_empty())
    }
}

impl Assembly {
    /// Takes a piece, and hands its text on. Says whether it held anything of the answer.
    pub(super) fn take(&mut self, call: Call<'_>, data: &[u8]) -> Result<bool, ModelError> {
        let blame = call.route.blame();
        let chunk: Chunk = serde_json::from_slice(&exact(data)).map_err(|error| {
            blame.malformed(&format!("a piece of the answer cannot be read: {error}"))
        })?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(blame.reported(&error));
        }
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.get("usage"));
        if let Some(usage) = chunk.usage.as_ref().or(groq).and_then(usage) {
            self.usage = Some(usage);
        }
        let mut went_on = false;
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                went_on |= delta.is_filled();
                self.add(call, delta);
            }
            self.end(call, choice.finish_reason, choice.error)?;
        }
        Ok(went_on)
    }

    /// Takes why the answer ended, if that is said. Some servers say nothing by an empty reason.
    fn end(
        &mut self,
        call: Call<'_>,
        reason: Option<String>,
        error: Option<Value>,
    ) -> Result<(), ModelError> {
        let blame = call.route.blame();
        if let Some(error) = error.filter(|error| !error.is_null()) {
            return Err(blame.reported(&error));
        }
        let Some(reason) = reason.filter(|reason| !reason.is_empty()) else { return Ok(()) };
        match ending(&reason) {
            Ending::Stop(stop) => self.stop = Some(stop),
            Ending::Unreadable => {
                let what = format!("the model wrote a tool call that cannot be read ({reason})");
                return Err(blame.malformed(&what));
            }
            Ending::Failed => {
                let said = format!("the answer ended for the reason `{reason}`");
                return Err(blame.reported(&json!({ "type": reason, "message": said })));
            }
        }
        Ok(())
    }

    fn add(&mut self, call: Call<'_>, delta: Delta) {
        self.refused |= delta.refusal.as_ref().is_some_and(|refusal| !refusal.is_empty());
        for text in [delta.content.0, delta.refusal.unwrap_or_default()] {
            if !text.is_empty() {
                call.cx.delta(&text);
                self.text.push_str(&text);
            }
        }
        self.thought.push_str(&delta.reasoning_content.unwrap_or_default());
        self.details.extend(delta.reasoning_details.unwrap_or_default());
        for part in delta.tool_calls.unwrap_or_default() {
            self.add_part(call, part);
        }
    }

    /// A piece belongs to the call of its number. Some servers count from one, some give every call
    /// the same number and another id, and some do not count.
    fn add_part(&mut self, call: Call<'_>, part: Part) {
        let id = part.id.unwrap_or_default();
        let name = part.function.name.unwrap_or_default();
        let at = match part.index {
            Some(_) => self.calls.iter().rposition(|(index, _)| *index == part.index),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|(_, other)| other.id == id),
        };
        let at = at.filter(|at| {
            let other = &self.calls[*at].1;
            let another = !id.is_empty() && !other.id.is_empty() && other.id != id;
            !another || name.is_empty()
        });
        let at = at.unwrap_or_else(|| {
            self.calls.push((part.index, DraftCall::default()));
            self.calls.len() - 1
        });
        let draft = &mut self.calls[at].1;
        if draft.id.is_empty() {
            draft.id = id;
        }
        if draft.name.is_empty() {
            draft.name = name;
        }
        match part.function.arguments {
            Some(Value::String(piece)) => draft.arguments.push_str(&piece),
            Some(Value::Null) | None => {}
            Some(whole) => draft.arguments = whole.to_string(),
        }
        if let Some(extra) = part.extra_content {
            let mut what = Map::new();
            what.insert("extra_content".to_owned(), extra);
            draft.continuation = keep(call, what);
        }
    }

    /// The answer after its last piece. A call without a reason to stop may lack its end.
    pub(super) fn finish(self, call: Call<'_>) -> Result<Draft, ModelError> {
        if self.stop.is_none() && !self.calls.is_empty() && !self.refused {
            return Err(call.route.blame().truncated());
        }
        let mut calls: Vec<DraftCall> = self.calls.into_iter().map(|(_, call)| call).collect();
        if let Some(first) = calls.first_mut() {
            let mut what = Map::new();
            if !self.thought.is_empty() {
                what.insert("reasoning_content".to_owned(), self.thought.into());
            }
            if !self.details.is_empty() {
                what.insert("reasoning_details".to_owned(), self.details.into());
            }
            if let Some(Value::Object(kept)) = first.continuation.take() {
                what.extend(kept);
            }
            first.continuation = keep(call, what);
        }
        let stop = if self.refused { StopReason::Refused } else { self.stop.unwrap_or_default() };
        let (usage, surcharge) = self.usage.unzip();
        Ok(Draft { text: self.text, calls, usage, surcharge: surcharge.unwrap_or(0.0), stop })
    }
}

/// An answer in one piece.
pub(super) fn whole(call: Call<'_>, body: &Value) -> Result<Draft, ModelError> {
    let blame = call.route.blame();
    if body.pointer("/choices/0/message").is_none_or(Value::is_null) {
        return Err(blame.malformed("the server's answer holds no message"));
    }
    let read: Chunk = Chunk::deserialize(body)
        .map_err(|error| blame.malformed(&format!("the answer cannot be read: {error}")))?;
    let mut assembly =
        Assembly { usage: read.usage.as_ref().and_then(usage), ..Assembly::default() };
    let quiet = Call { cx: call.cx.quiet(), ..call };
    if let Some(choice) = read.choices.into_iter().next() {
        assembly.end(call, choice.finish_reason, choice.error)?;
        // In one piece, calls are told apart by their places.
        let mut delta = choice.delta.unwrap_or_default();
        for (at, part) in delta.tool_calls.iter_mut().flatten().enumerate() {
            part.index = u32::try_from(at).ok();
        }
        assembly.add(quiet, delta);
    }
    assembly.finish(call)
}

/// What a reason to stop stands for.
enum Ending {
    Stop(StopReason),
    /// The model's own mistake.
    Unreadable,
    /// The server's.
    Failed,
}

fn ending(reason: &str) -> Ending {
    let reason = reason.to_ascii_lowercase();
    // Reasons of servers that fail: `error`, `server_error`, `abort`, and so on.
    let failed = ["error", "fail", "abort", "cancel", "timeout", "insufficient_system_resource"];
    match reason.as_str() {
        "length" | "max_tokens" | "model_length" => Ending::Stop(StopReason::MaxTokens),
        "tool_calls" | "function_call" => Ending::Stop(StopReason::ToolUse),
        "refusal" => Ending::Stop(StopReason::Refused),
        // Some say behind it what was filtered.
        filter if filter.starts_with("content_filter") => Ending::Stop(StopReason::Refused),
        unreadable if unreadable.contains("malformed") => Ending::Unreadable,
        other if failed.iter().any(|word| other.contains(word)) => Ending::Failed,
        _ => Ending::Stop(StopReason::EndTurn),
    }
}

/// What was read and written, and the surcharge for what went into a cache.
fn usage(value: &Value) -> Option<(Usage, f64)> {
    if !value.is_object() {
        return None;
    }
    let at = |path: &str| count(value.pointer(path));
    let cached = at("/prompt_tokens_details/cached_tokens").max(at("/prompt_cache_hit_tokens"));
    let reasoning = at("/completion_tokens_details/reasoning_tokens");
    let written = at("/prompt_tokens_details/cache_write_tokens").min(at("/prompt_tokens"));
    let counted = Usage::new(at("/prompt_tokens"), at("/completion_tokens"));
    Some((Usage { cached, reasoning, ..counted }, written as f64 * CACHE_WRITE))
}
