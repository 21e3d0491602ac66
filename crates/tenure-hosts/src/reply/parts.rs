//! The values of a reply's keys, and what is said of a wrong one.

use super::keys::Expect;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::ask::Ask;
use tenure_core::hook::{HookError, JumpTarget, Limit};
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::{ModelParams, ModelRequest, ModelResponse, StopReason, Usage};
use tenure_core::tool::ToolOutput;

/// How much of what was found a message shows.
const SHOWN: usize = 200;

/// The beginning of a text, escaped.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    for (count, c) in text.chars().enumerate() {
        if count == SHOWN || out.len() > 2 * SHOWN {
            out.push('…');
            break;
        }
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as a message shows it.
pub(super) fn shown_key(key: &str) -> String {
    key.chars().take(60).flat_map(char::escape_debug).collect()
}

/// What a value is, for a message.
pub(crate) fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => format!("the number {it}"),
        Value::String(it) => format!("the text {}", shown(it)),
        Value::Array(it) => format!("a list of {}", it.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Which keys a response may have.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    TextAndCalls,
    All,
}

/// What is to be changed in a request.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RequestPatch {
    instruction: Option<Option<Arc<str>>>,
    messages: Option<Vec<Message>>,
    params: Map<String, Value>,
}

impl RequestPatch {
    /// Takes the messages out of it.
    pub(crate) fn take_messages(&mut self) -> Option<Vec<Message>> {
        self.messages.take()
    }

    /// Puts other messages into it.
    pub(crate) fn put_messages(&mut self, messages: Vec<Message>) {
        self.messages = Some(messages);
    }

    /// Changes `request`.
    pub(crate) fn apply(self, request: &mut ModelRequest) {
        if let Some(instruction) = self.instruction {
            request.instruction = instruction;
        }
        if let Some(messages) = self.messages {
            *request.messages.edit() = messages;
        }
        if !self.params.is_empty()
            && let Ok(Value::Object(mut params)) = serde_json::to_value(&request.params)
        {
            params.extend(self.params);
            // Each key was checked when it was parsed.
            if let Ok(params) = serde_json::from_value(Value::Object(params)) {
                request.params = params;
            }
        }
    }
}

/// What is to be changed in a response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ResponsePatch {
    text: Option<String>,
    calls: Option<Vec<ToolCall>>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

impl ResponsePatch {
    /// `base` with what was said changed. Why it stopped follows from whether it has calls.
    pub(crate) fn over(self, mut base: ModelResponse) -> ModelResponse {
        if let Some(text) = self.text {
            base.content.set_text(text);
        }
        if let Some(calls) = self.calls {
            base.calls = calls;
            base.stop = match (base.calls.is_empty(), base.stop) {
                (false, _) => StopReason::ToolUse,
                (true, StopReason::ToolUse) => StopReason::EndTurn,
                (true, stop) => stop,
            };
        }
        base.usage = self.usage.unwrap_or(base.usage);
        base.stop = self.stop.unwrap_or(base.stop);
        base
    }
}

/// A place in a reply.
#[derive(Clone, Copy)]
pub(super) struct Where<'a> {
    pub(super) expect: &'a Expect,
    pub(super) key: &'a str,
}

impl Where<'_> {
    #[cold]
    fn wrong(&self, found: impl std::fmt::Display, expected: &str) -> HookError {
        let key = self.key;
        self.expect.bad(format!("the key `{key}` is {found}; expected {expected}"))
    }

    #[cold]
    fn unknown(&self, key: &str, legal: &str) -> HookError {
        let (outer, key) = (self.key, shown_key(key));
        self.expect.bad(format!("the key `{outer}.{key}` is unknown; `{outer}` may have {legal}"))
    }

    fn below<T>(
        &self,
        key: &str,
        body: impl FnOnce(Where<'_>) -> Result<T, HookError>,
    ) -> Result<T, HookError> {
        let key = format!("{}.{key}", self.key);
        body(Where { expect: self.expect, key: &key })
    }

    pub(super) fn text(&self, value: Value) -> Result<String, HookError> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(found(&other), "a text")),
        }
    }

    pub(super) fn flag(&self, value: Value) -> Result<bool, HookError> {
        match value {
            Value::Bool(flag) => Ok(flag),
            other => Err(self.wrong(found(&other), "true or false")),
        }
    }

    /// A key that can only be `true`.
    pub(super) fn yes<T>(&self, value: Value, otherwise: &str, yes: T) -> Result<T, HookError> {
        match value {
            Value::Bool(true) => Ok(yes),
            other => Err(self.wrong(found(&other), &format!("true ({otherwise})"))),
        }
    }

    pub(super) fn object(&self, value: Value) -> Result<Map<String, Value>, HookError> {
        match value {
            Value::Object(object) => Ok(object),
            other => Err(self.wrong(found(&other), "an object")),
        }
    }

    fn list(&self, value: Value) -> Result<Vec<Value>, HookError> {
        match value {
            Value::Array(list) => Ok(list),
            other => Err(self.wrong(found(&other), "a list")),
        }
    }

    pub(super) fn jump(&self, value: Value) -> Result<JumpTarget, HookError> {
        match value.as_str() {
            Some("model") => Ok(JumpTarget::Model),
            Some("end") => Ok(JumpTarget::End),
            _ => Err(self.wrong(found(&value), "\"model\" or \"end\"")),
        }
    }

    /// A tool's result: a text, or an object.
    pub(super) fn output(&self, value: Value) -> Result<ToolOutput, HookError> {
        let object = match value {
            Value::String(text) => return Ok(ToolOutput::text(text)),
            Value::Object(object) => object,
            other => {
                return Err(self.wrong(found(&other), "a text, or an object with `content`"));
            }
        };
        let mut content = None;
        let mut status = ToolStatus::Ok;
        for (key, value) in object {
            match key.as_str() {
                "content" => content = Some(self.below("content", |at| at.text(value))?),
                "status" => {
                    status = self.below("status", |at| {
                        let what = found(&value);
                        serde_json::from_value(value).map_err(|_| {
                            at.wrong(what, "ok, error, denied, cancelled or not_executed")
                        })
                    })?;
                }
                _ => return Err(self.unknown(&key, "content, status")),
            }
        }
        match content {
            Some(content) => Ok(ToolOutput::new(content, status)),
            None => Err(self.wrong("an object without `content`", "a text, or one with it")),
        }
    }

    pub(super) fn request(&self, value: Value) -> Result<RequestPatch, HookError> {
        let mut patch = RequestPatch::default();
        for (key, value) in self.object(value)? {
            match key.as_str() {
                "instruction" if value.is_null() => patch.instruction = Some(None),
                "instruction" => {
                    let text = self.below("instruction", |at| at.text(value))?;
                    patch.instruction = Some(Some(text.into()));
                }
                "messages" => {
                    patch.messages = Some(self.below("messages", |at| at.messages(value))?);
                }
                "params" => patch.params = self.below("params", |at| at.params(value))?,
                _ => return Err(self.unknown(&key, "instruction, messages, params")),
            }
        }
        Ok(patch)
    }

    pub(super) fn messages(&self, value: Value) -> Result<Vec<Message>, HookError> {
        let list = self.list(value)?;
        let message = |(index, value): (usize, Value)| {
            let key = format!("{}[{index}]", self.key);
            Where { expect: self.expect, key: &key }.message(value)
        };
        list.into_iter().enumerate().map(message).collect()
    }

    fn message(&self, mut value: Value) -> Result<Message, HookError> {
        // Arguments are taken as JSON too, as calls have them elsewhere.
        if let Some(Value::Array(calls)) = value.get_mut("calls") {
            for call in calls {
                if let Some(arguments) = call.get_mut("arguments")
                    && !arguments.is_string()
                {
                    *arguments = Value::String(arguments.to_string());
                }
            }
        }
        let what = found(&value);
        serde_json::from_value(value).map_err(|error| {
            let expected = "a message: {\"role\": \"system\" or \"user\", \"text\"}, {\"role\": \
                            \"assistant\", \"text\", \"calls\"} or {\"role\": \"tool\", \
                            \"call_id\", \"name\", \"content\", \"status\"}";
            self.wrong(format!("{what} ({error})"), expected)
        })
    }

    fn params(&self, value: Value) -> Result<Map<String, Value>, HookError> {
        let params = self.object(value)?;
        for (key, value) in &params {
            let expected = match key.as_str() {
                "model" => "a text or null",
                "temperature" => "a number or null",
                "max_tokens" => "a whole number from 0 on, or null",
                "output_schema" | "extra" => "JSON",
                _ => {
                    let legal = "model, temperature, max_tokens, output_schema, extra";
                    return Err(self.unknown(key, legal));
                }
            };
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            if serde_json::from_value::<ModelParams>(Value::Object(alone)).is_err() {
                return self.below(key, |at| Err(at.wrong(found(value), expected)));
            }
        }
        Ok(params)
    }

    pub(super) fn response(&self, value: Value, keys: Keys) -> Result<ResponsePatch, HookError> {
        let mut patch = ResponsePatch::default();
        for (key, value) in self.object(value)? {
            match (key.as_str(), keys) {
                ("text", _) => patch.text = Some(self.below("text", |at| at.text(value))?),
                ("calls", _) => patch.calls = Some(self.below("calls", |at| at.calls(value))?),
                ("usage", Keys::All) => {
                    let what = found(&value);
                    let usage = serde_json::from_value(value).map_err(|error| {
                        self.wrong(format!("one whose `usage` is {what} ({error})"), "counts")
                    })?;
                    patch.usage = Some(usage);
                }
                ("stop", Keys::All) => {
                    let what = found(&value);
                    let stop = serde_json::from_value(value).map_err(|_| {
                        let expected = "end_turn, tool_use, max_tokens or refused";
                        self.wrong(format!("one whose `stop` is {what}"), expected)
                    })?;
                    patch.stop = Some(stop);
                }
                (_, Keys::All) => return Err(self.unknown(&key, "text, calls, usage, stop")),
                (_, Keys::TextAndCalls) => return Err(self.unknown(&key, "text, calls")),
            }
        }
        Ok(patch)
    }

    fn calls(&self, value: Value) -> Result<Vec<ToolCall>, HookError> {
        let list = self.list(value)?;
        let call = |(index, value): (usize, Value)| {
            let key = format!("{}[{index}]", self.key);
            Where { expect: self.expect, key: &key }.call(value)
        };
        list.into_iter().enumerate().map(call).collect()
    }

    fn call(&self, value: Value) -> Result<ToolCall, HookError> {
        let (mut id, mut name, mut arguments) = (None, None, "{}".to_owned());
        for (key, value) in self.object(value)? {
            match key.as_str() {
                "id" => id = Some(self.below("id", |at| at.text(value))?),
                "name" => name = Some(self.below("name", |at| at.text(value))?),
                "arguments" => {
                    arguments = match value {
                        Value::String(text) => text,
                        Value::Object(_) => value.to_string(),
                        other => {
                            return self.below("arguments", |at| {
                                Err(at.wrong(found(&other), "an object"))
                            });
                        }
                    };
                }
                _ => return Err(self.unknown(&key, "id, name, arguments")),
            }
        }
        match (id, name) {
            (Some(id), Some(name)) => Ok(ToolCall::new(id, name, arguments)),
            _ => Err(self.wrong("an object without `id` or `name`", "one with both")),
        }
    }

    pub(super) fn ask(&self, value: Value) -> Result<Ask, HookError> {
        let (mut prompt, mut action, mut schema, mut expires) = (None, None, None, None);
        for (key, value) in self.object(value)? {
            match key.as_str() {
                "prompt" => prompt = Some(self.below("prompt", |at| at.text(value))?),
                "action" => action = Some(value).filter(|it| !it.is_null()),
                "schema" => schema = Some(value).filter(|it| !it.is_null()),
                "expires" => expires = Some(self.below("expires", |at| at.time(value))?),
                _ => return Err(self.unknown(&key, "prompt, action, schema, expires")),
            }
        }
        let Some(prompt) = prompt else {
            return Err(self.wrong("an object without `prompt`", "one with the question in it"));
        };
        let mut ask = match action {
            Some(action) => Ask::approval(prompt, action),
            None => Ask::input(prompt),
        };
        ask.schema = schema;
        ask.expires_after = expires;
        Ok(ask)
    }

    fn time(&self, value: Value) -> Result<Duration, HookError> {
        let what = found(&value);
        let text = self.text(value)?;
        let limit: Limit = text
            .parse()
            .map_err(|error| self.wrong(what, &format!("a time as `30s` ({error})")))?;
        Ok(limit.duration())
    }
}
