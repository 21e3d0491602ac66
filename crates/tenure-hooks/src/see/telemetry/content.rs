//! Messages as the conventions write them, of bounded size.

use super::super::seen::bounded;
use serde_json::{Value, json};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Messages, ModelResponse, StopReason};

/// The conversation that a model gets, newest messages first to be kept.
pub(super) fn input(messages: &Messages, most: usize) -> String {
    let mut kept: Vec<Value> = Vec::new();
    let mut left = most;
    let all: Vec<&Message> = messages.iter().collect();
    for message in all.into_iter().rev() {
        if left == 0 {
            break;
        }
        let (value, size) = one(message, left);
        left = left.saturating_sub(size);
        kept.push(value);
    }
    kept.reverse();
    Value::Array(kept).to_string()
}

/// What a model said.
pub(super) fn output(response: &ModelResponse, most: usize) -> String {
    let (mut message, _) = said("assistant", &response.text, &response.calls, most);
    message["finish_reason"] = finish_reason(response.stop).into();
    json!([message]).to_string()
}

/// What an agent answered.
pub(super) fn answer(text: &str, most: usize) -> String {
    let (mut message, _) = said("assistant", text, &[], most);
    message["finish_reason"] = "stop".into();
    json!([message]).to_string()
}

/// A system instruction.
pub(super) fn instruction(text: &str, most: usize) -> String {
    json!([{ "type": "text", "content": bounded(text, most) }]).to_string()
}

fn one(message: &Message, most: usize) -> (Value, usize) {
    match message {
        Message::System { text } => said("system", text, &[], most),
        Message::User { text } => said("user", text, &[], most),
        Message::Assistant { text, calls } => said("assistant", text, calls, most),
        Message::Tool(result) => {
            let response = bounded(&result.content, most);
            let size = response.len();
            let part =
                json!({ "type": "tool_call_response", "id": result.call_id, "response": response });
            (json!({ "role": "tool", "parts": [part] }), size)
        }
        other => said("other", other.text(), &[], most),
    }
}

fn said(role: &str, text: &str, calls: &[ToolCall], most: usize) -> (Value, usize) {
    let mut parts = Vec::new();
    let mut size = 0;
    if !text.is_empty() {
        let content = bounded(text, most);
        size += content.len();
        parts.push(json!({ "type": "text", "content": content }));
    }
    for call in calls {
        let arguments = bounded(&call.arguments, most.saturating_sub(size));
        size += arguments.len();
        let (id, name) = (&call.id, &call.name);
        parts.push(json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments }));
    }
    (json!({ "role": role, "parts": parts }), size)
}

/// Why a model stopped, as the conventions call it.
pub(super) fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        _ => "content_filter",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_are_kept_within_the_bound() {
        let old = Message::user("o".repeat(400));
        let messages = Messages::from(vec![old, Message::assistant("fine"), Message::user("new")]);
        let text = input(&messages, 100);
        let value: Value = serde_json::from_str(&text).unwrap();
        let last = &value[2];
        assert_eq!(
            last,
            &json!({ "role": "user", "parts": [{ "type": "text", "content": "new" }] })
        );
        assert!(text.len() < 500, "{}", text.len());
        let none = input(&messages, 3);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&none).unwrap().len(), 1);
    }

    #[test]
    fn tool_calls_and_their_results_are_parts() {
        let calls = vec![ToolCall::new("c1", "search", r#"{"q":"x"}"#)];
        let response = ModelResponse::calls(calls);
        let value: Value = serde_json::from_str(&output(&response, 1000)).unwrap();
        let part = json!({
            "type": "tool_call", "id": "c1", "name": "search", "arguments": "{\"q\":\"x\"}",
        });
        assert_eq!(value[0]["parts"][0], part);
        assert_eq!(value[0]["finish_reason"], "tool_calls");
    }
}
