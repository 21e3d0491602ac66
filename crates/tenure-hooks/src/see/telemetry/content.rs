//! Messages as the conventions write them, of bounded size.

use super::super::seen::bounded;
use serde_json::{Value, json};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Messages, ModelResponse, StopReason};
use tenure_core::secret::Redactor;

/// Texts without their secrets, and of bounded size.
#[derive(Clone, Copy)]
pub(super) struct Clean<'a> {
    pub(super) redactor: &'a Redactor,
    pub(super) most: usize,
}

impl Clean<'_> {
    /// Returns a text as it may be exported. Secrets are taken out first: half of one is not known.
    pub(super) fn text(&self, text: &str) -> String {
        bounded(&self.redactor.redact(text), self.most)
    }
}

/// The conversation that a model gets, newest messages first to be kept.
pub(super) fn input(messages: &Messages, clean: &Clean<'_>) -> String {
    let mut kept: Vec<Value> = Vec::new();
    let mut left = clean.most;
    let all: Vec<&Message> = messages.iter().collect();
    for message in all.into_iter().rev() {
        if left == 0 {
            break;
        }
        let (value, size) = one(message, &Clean { most: left, ..*clean });
        left = left.saturating_sub(size);
        kept.push(value);
    }
    kept.reverse();
    Value::Array(kept).to_string()
}

/// What a model said.
pub(super) fn output(response: &ModelResponse, clean: &Clean<'_>) -> String {
    let (mut message, _) = said("assistant", response.content.text(), &response.calls, clean);
    message["finish_reason"] = finish_reason(response.stop).into();
    json!([message]).to_string()
}

/// What an agent answered.
pub(super) fn answer(text: &str, clean: &Clean<'_>) -> String {
    let (mut message, _) = said("assistant", text, &[], clean);
    message["finish_reason"] = "stop".into();
    json!([message]).to_string()
}

/// A system instruction.
pub(super) fn instruction(text: &str, clean: &Clean<'_>) -> String {
    json!([{ "type": "text", "content": clean.text(text) }]).to_string()
}

fn one(message: &Message, clean: &Clean<'_>) -> (Value, usize) {
    match message {
        Message::System { content } => said("system", content.text(), &[], clean),
        Message::User { content } => said("user", content.text(), &[], clean),
        Message::Assistant { content, calls } => said("assistant", content.text(), calls, clean),
        Message::Tool(result) => {
            let response = clean.text(result.content.text());
            let size = response.len();
            let part =
                json!({ "type": "tool_call_response", "id": result.call_id, "response": response });
            (json!({ "role": "tool", "parts": [part] }), size)
        }
        other => said("other", other.text(), &[], clean),
    }
}

fn said(role: &str, text: &str, calls: &[ToolCall], clean: &Clean<'_>) -> (Value, usize) {
    let mut parts = Vec::new();
    let mut size = 0;
    if !text.is_empty() {
        let content = clean.text(text);
        size += content.len();
        parts.push(json!({ "type": "text", "content": content }));
    }
    for call in calls {
        let rest = Clean { most: clean.most.saturating_sub(size), ..*clean };
        let arguments = rest.text(&call.arguments);
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

    fn clean(redactor: &Redactor, most: usize) -> Clean<'_> {
        Clean { redactor, most }
    }

    #[test]
    fn the_newest_messages_are_kept_within_the_bound() {
        let redactor = Redactor::new();
        let old = Message::user("o".repeat(400));
        let messages = Messages::from(vec![old, Message::assistant("fine"), Message::user("new")]);
        let text = input(&messages, &clean(&redactor, 100));
        let value: Value = serde_json::from_str(&text).unwrap();
        let last = &value[2];
        assert_eq!(
            last,
            &json!({ "role": "user", "parts": [{ "type": "text", "content": "new" }] })
        );
        assert!(text.len() < 500, "{}", text.len());
        let none = input(&messages, &clean(&redactor, 3));
        assert_eq!(serde_json::from_str::<Vec<Value>>(&none).unwrap().len(), 1);
    }

    #[test]
    fn tool_calls_and_their_results_are_parts() {
        let redactor = Redactor::new();
        let calls = vec![ToolCall::new("c1", "search", r#"{"q":"x"}"#)];
        let response = ModelResponse::calls(calls);
        let value: Value =
            serde_json::from_str(&output(&response, &clean(&redactor, 1000))).unwrap();
        let part = json!({
            "type": "tool_call", "id": "c1", "name": "search", "arguments": "{\"q\":\"x\"}",
        });
        assert_eq!(value[0]["parts"][0], part);
        assert_eq!(value[0]["finish_reason"], "tool_calls");
    }
}
