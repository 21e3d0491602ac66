//! A conversation as a list of `{role, name, content}`, and back.

use serde_json::{Value, json};
use tenure_core::content::Content;
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure_core::model::Messages;

/// The person, and whoever is not known by name.
const USER: &str = "user";

/// Whose conversation it is, and who else speaks in it.
pub(super) struct Speakers<'a> {
    pub(super) agent: &'a str,
    pub(super) others: Vec<&'a str>,
}

impl<'a> Speakers<'a> {
    pub(super) fn new(agent: &'a str, all: impl Iterator<Item = &'a str>) -> Self {
        Self { agent, others: all.filter(|name| *name != agent && *name != USER).collect() }
    }

    /// Who said it, and what. An agent reads what others said with their names before it.
    fn split<'t>(&self, text: &'t str) -> (&'a str, &'t str) {
        let said = |name: &&'a str| Some((*name, text.strip_prefix(*name)?.strip_prefix(": ")?));
        self.others.iter().find_map(said).unwrap_or((USER, text))
    }

    /// The same as the agent reads it.
    fn join(&self, name: Option<&str>, text: String) -> String {
        match name.filter(|name| self.others.contains(name)) {
            Some(name) => format!("{name}: {text}"),
            None => text,
        }
    }
}

/// The conversation as functions see it.
pub(super) fn told(messages: &Messages, speakers: &Speakers<'_>) -> Vec<Value> {
    let agent = speakers.agent;
    messages
        .iter()
        .map(|message| match message {
            Message::Assistant { content, calls } if calls.is_empty() => {
                json!({ "role": "assistant", "name": agent, "content": content.text() })
            }
            Message::Assistant { content, calls } => {
                let (text, calls) = (content.text(), calls.iter().map(tool_call));
                let calls: Vec<_> = calls.collect();
                json!({ "role": "assistant", "name": agent, "content": text, "tool_calls": calls })
            }
            Message::Tool(result) => json!({
                "role": "tool",
                "name": result.name,
                "content": result.content.text(),
                "tool_call_id": result.call_id,
            }),
            Message::System { content } => {
                json!({ "role": "system", "name": "system", "content": content.text() })
            }
            other => {
                let (name, text) = speakers.split(other.text());
                json!({ "role": "user", "name": name, "content": text })
            }
        })
        .collect()
}

/// Returns the content of this text. Functions see texts only, so what a message has beside a text
/// that is as it was stays with it.
fn content(text: String, before: &Messages) -> Content {
    let mut known = before.iter().map(Message::content).filter(|content| !content.is_text());
    known.find(|content| content.text() == text).cloned().unwrap_or_else(|| text.into())
}

fn tool_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": call.arguments },
    })
}

/// The conversation that a function returned. What it does not say of a tool call or of a result is
/// taken from `before`.
pub(super) fn heard(
    list: &[Value],
    before: &Messages,
    speakers: &Speakers<'_>,
) -> Result<Vec<Message>, String> {
    list.iter().enumerate().map(|(at, message)| one(at, message, before, speakers)).collect()
}

fn one(
    at: usize,
    message: &Value,
    before: &Messages,
    speakers: &Speakers<'_>,
) -> Result<Message, String> {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null if message.get("tool_calls").is_some() => String::new(),
        other => {
            return Err(format!("message {at} that it returned has no text as `content`: {other}"));
        }
    };
    match message["role"].as_str() {
        Some("system") => Ok(Message::system(content(text, before))),
        Some("user") => {
            let text = speakers.join(message["name"].as_str(), text);
            Ok(Message::user(content(text, before)))
        }
        Some("assistant") => {
            let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            let calls: Result<Vec<_>, _> =
                calls.iter().map(|call| called(at, call, before)).collect();
            Ok(Message::Assistant { content: content(text, before), calls: calls? })
        }
        Some("tool") => {
            let id = message["tool_call_id"]
                .as_str()
                .ok_or_else(|| format!("message {at} that it returned has no `tool_call_id`"))?;
            let known = before.iter().find_map(|message| match message {
                Message::Tool(result) if *result.call_id == *id => Some(result.clone()),
                _ => None,
            });
            Ok(Message::Tool(match known {
                Some(mut known) => {
                    known.content.set_text(text);
                    known
                }
                None => ToolResult {
                    call_id: id.into(),
                    name: message["name"].as_str().unwrap_or_default().into(),
                    content: text.into(),
                    status: ToolStatus::Ok,
                },
            }))
        }
        other => Err(format!(
            "message {at} that it returned has the role {}; there are system, user, assistant and \
             tool",
            other.map_or_else(|| message["role"].to_string(), |role| format!("`{role}`"))
        )),
    }
}

fn called(at: usize, call: &Value, before: &Messages) -> Result<ToolCall, String> {
    let function = &call["function"];
    let (Some(id), Some(name), Some(arguments)) =
        (call["id"].as_str(), function["name"].as_str(), function["arguments"].as_str())
    else {
        return Err(format!(
            "message {at} that it returned has a tool call without an id, a name or arguments"
        ));
    };
    let made = ToolCall::new(id, name, arguments);
    let known = before.iter().flat_map(Message::calls).find(|known| *known.id == *id);
    Ok(match known {
        Some(known) => ToolCall { continuation: known.continuation.clone(), ..made },
        None => made,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_conversation_comes_back_as_it_was_and_nonsense_is_named() {
        let call = ToolCall::new("1", "look", "{}");
        let result = ToolResult {
            call_id: "1".into(),
            name: "look".into(),
            content: "no".into(),
            status: ToolStatus::Error,
        };
        let all = vec![
            Message::system("be brief"),
            Message::user("hello"),
            Message::user("critic: too long"),
            Message::user("writer: too short"),
            Message::Assistant { content: "".into(), calls: vec![call] },
            Message::Tool(result),
            Message::assistant("done"),
        ];
        let messages = Messages::from(all.clone());
        let speakers = Speakers::new("writer", ["writer", "critic", "user"].into_iter());
        let list = told(&messages, &speakers);
        assert_eq!(list[1], json!({ "role": "user", "name": "user", "content": "hello" }));
        assert_eq!(list[2], json!({ "role": "user", "name": "critic", "content": "too long" }));
        // An agent does not hear itself, so somebody else wrote that.
        let quoted = json!({ "role": "user", "name": "user", "content": "writer: too short" });
        assert_eq!(list[3], quoted);
        assert_eq!(list[6]["name"], "writer");
        assert_eq!(heard(&list, &messages, &speakers), Ok(all));
        for (message, part) in [
            (json!({ "role": "user" }), "no text as `content`"),
            (json!({ "role": "boss", "content": "x" }), "role `boss`"),
            (json!({ "content": "x" }), "role null"),
            (json!({ "role": "tool", "content": "x" }), "tool_call_id"),
            (json!({ "role": "assistant", "tool_calls": [{}] }), "a tool call without"),
        ] {
            let error = heard(&[message], &messages, &speakers).expect_err("nonsense");
            assert!(error.contains(part), "{error}");
        }
    }
}
