//! Messages as JSON: a list of `{role, content}`, or an object that holds it as `messages`.

use super::{Parsed, Problem};
use crate::source::{Source, Span};
use serde_json::Value;
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};

const SHAPE: &str =
    "a history is a list of messages such as {\"role\": \"user\", \"content\": \"hello\"}";

pub(super) fn parse(source: &Source) -> Parsed {
    let text = source.text().trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let line = source.line_span(error.line());
        let at = line.start as usize + error.column().saturating_sub(1);
        let message = error.to_string();
        let said = message.split(" at line ").next().unwrap_or_default();
        Problem::new(Span::at(at), format!("the history is not JSON: {said}"), SHAPE)
    })?;
    let list = match &value {
        Value::Array(list) => Some(list),
        Value::Object(map) => map.get("messages").and_then(Value::as_array),
        _ => None,
    };
    let whole = || Span::at(0);
    let list = list
        .ok_or_else(|| Problem::new(whole(), "the file does not hold a list of messages", SHAPE))?;
    let mut messages = Vec::new();
    for (at, item) in list.iter().enumerate() {
        message(item, &mut messages)
            .map_err(|why| Problem::new(whole(), format!("message {}: {why}", at + 1), SHAPE))?;
    }
    Ok(messages)
}

fn message(item: &Value, messages: &mut Vec<Message>) -> Result<(), String> {
    let map = item.as_object().ok_or("it is not an object with role and content")?;
    let role = map.get("role").and_then(Value::as_str).ok_or("its role is missing")?;
    let text = match map.get("content") {
        Some(content) => content_text(content)?,
        None => String::new(),
    };
    let entries = |name: &str| {
        map.get(name).and_then(Value::as_object).into_iter().flatten().map(|(id, it)| (&**id, it))
    };
    match role {
        "user" => {
            for (id, result) in entries("tool_results") {
                let name = messages
                    .iter()
                    .rev()
                    .flat_map(Message::calls)
                    .find(|call| &*call.id == id)
                    .map_or_else(|| "tool".into(), |call| call.name.clone());
                let failed = ["isError", "is_error"]
                    .iter()
                    .any(|key| result.get(key).and_then(Value::as_bool) == Some(true));
                let content = match result.get("content") {
                    Some(content) => content_text(content)?,
                    None => String::new(),
                };
                let status = if failed { ToolStatus::Error } else { ToolStatus::Ok };
                messages.push(Message::Tool(ToolResult {
                    call_id: id.into(),
                    name,
                    content: content.into(),
                    status,
                }));
            }
            if !text.is_empty() {
                messages.push(Message::user(text));
            }
        }
        "assistant" => {
            let mut calls = Vec::new();
            for (id, call) in entries("tool_calls") {
                let params = call.get("params").unwrap_or(call);
                let name = params.get("name").and_then(Value::as_str);
                let name = name.ok_or_else(|| format!("the tool call `{id}` has no name"))?;
                let arguments = params.get("arguments").filter(|it| !it.is_null());
                let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
                calls.push(ToolCall::new(id, name, arguments));
            }
            messages.push(Message::Assistant { content: text.into(), calls });
        }
        other => return Err(format!("its role is `{other}`, but must be user or assistant")),
    }
    Ok(())
}

fn content_text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let parts: Result<Vec<String>, String> = parts.iter().map(content_text).collect();
            Ok(parts?.join("\n"))
        }
        Value::Object(part) => {
            let text = part
                .get("text")
                .or_else(|| part.get("resource").and_then(|resource| resource.get("text")))
                .and_then(Value::as_str);
            let kind = part.get("type").and_then(Value::as_str).unwrap_or("unknown");
            text.map(str::to_owned)
                .ok_or_else(|| format!("its content is of type `{kind}`, but only text is taken"))
        }
        _ => Err("its content is neither text nor a list of parts".to_owned()),
    }
}
