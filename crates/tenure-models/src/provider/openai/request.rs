//! What is sent to a compatible server.

use super::super::answer::{in_words, kept};
use super::super::model::Call;
use super::super::options::Reasoning;
use super::super::transport::secret;
use serde_json::{Map, Value, json};
use tenure_core::message::{Message, ToolCall};
use tenure_http::reqwest::header::{AUTHORIZATION, HeaderMap};

pub(super) fn headers(call: Call<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let key = call.route.key.as_ref();
    if let Some(value) = key.and_then(|key| secret(&format!("Bearer {}", key.expose()))) {
        headers.insert(AUTHORIZATION, value);
    }
    headers
}

pub(super) fn body(call: Call<'_>) -> Value {
    let target = &call.route.target;
    let options = &target.options;
    let is_openai = target.provider == "openai";
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    put("model", Some(target.model.clone().into()));
    put("messages", Some(messages(call)));
    put("stream", Some(call.streaming.into()));
    put("stream_options", call.streaming.then(|| json!({ "include_usage": true })));
    put("tools", tools(call));
    let limit =
        if wants_completion_tokens(&target.model) { "max_completion_tokens" } else { "max_tokens" };
    put(limit, call.max_tokens().map(Value::from));
    put("temperature", call.temperature().map(Value::from));
    put("top_p", options.top_p.map(Value::from));
    put("presence_penalty", options.presence_penalty.map(Value::from));
    put("reasoning_effort", options.reasoning.and_then(effort).map(Value::from));
    put("verbosity", options.verbosity.clone().map(Value::from));
    put("service_tier", options.service_tier.as_deref().map(tier).map(Value::from));
    // OpenAI refuses what it does not know; the others have had these for years.
    if !is_openai {
        put("top_k", options.top_k.map(Value::from));
        put("min_p", options.min_p.map(Value::from));
        put("repetition_penalty", options.repetition_penalty.map(Value::from));
    }
    put("response_format", call.request.params.output_schema.as_deref().map(response_format));
    Value::Object(body)
}

/// Models that reason count what they think, too, and want the limit by another name.
fn wants_completion_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let reasoning = ["o1", "o3", "o4"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    reasoning || name.starts_with("gpt-5") || name.starts_with("gpt-6")
}

fn effort(reasoning: Reasoning) -> Option<&'static str> {
    match reasoning {
        Reasoning::Budget(0..=2_048) => Some("low"),
        Reasoning::Budget(2_049..=8_192) => Some("medium"),
        Reasoning::Budget(_) => Some("high"),
        other => other.effort(),
    }
}

fn tier(name: &str) -> &str {
    if name == "fast" { "priority" } else { name }
}

fn tools(call: Call<'_>) -> Option<Value> {
    let tools = &call.request.tools;
    let tool = |spec: &std::sync::Arc<tenure_core::tool::ToolSpec>| {
        json!({
            "type": "function",
            "function": {
                "name": &*spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        })
    };
    (!tools.is_empty()).then(|| tools.iter().map(tool).collect())
}

fn response_format(schema: &Value) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": { "name": "answer", "schema": schema, "strict": is_strict(schema) },
    })
}

/// Whether a schema fits what OpenAI takes as strict: each object names all that it may hold, and
/// all of it must be there. Any other schema would be refused as such.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let closed =
                map.get("properties").and_then(Value::as_object).is_none_or(|properties| {
                    let required = map.get("required").and_then(Value::as_array);
                    map.get("additionalProperties") == Some(&Value::Bool(false))
                        && required.is_some_and(|required| required.len() == properties.len())
                });
            let open = map.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
            closed && !open && map.values().all(is_strict)
        }
        Value::Array(list) => list.iter().all(is_strict),
        _ => true,
    }
}

fn messages(call: Call<'_>) -> Value {
    let instruction = call.request.instruction.as_deref();
    let system = instruction.map(|text| json!({ "role": "system", "content": text }));
    let rest = call.request.messages.iter().map(|message| match message {
        Message::System { content } => json!({ "role": "system", "content": content.text() }),
        Message::Assistant { content, calls } => assistant(call, content.text(), calls),
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": &*result.call_id,
            "content": in_words(result),
        }),
        other => json!({ "role": "user", "content": other.text() }),
    });
    system.into_iter().chain(rest).collect()
}

fn assistant(call: Call<'_>, text: &str, calls: &[ToolCall]) -> Value {
    let mut message = json!({ "role": "assistant", "content": text });
    if calls.is_empty() {
        return message;
    }
    if text.is_empty() {
        message["content"] = Value::Null;
    }
    let made = |tool_call: &ToolCall| {
        let mut made = json!({
            "id": &*tool_call.id,
            "type": "function",
            "function": { "name": &*tool_call.name, "arguments": tool_call.arguments },
        });
        if let Some(extra) = kept(call, tool_call).and_then(|kept| kept.get("extra_content")) {
            made["extra_content"] = extra.clone();
        }
        made
    };
    message["tool_calls"] = calls.iter().map(made).collect();
    // Whoever thinks aloud before a call wants to hear it again with the result.
    for field in ["reasoning_content", "reasoning_details"] {
        let thought = calls.iter().find_map(|tool_call| kept(call, tool_call)?.get(field));
        if let Some(thought) = thought {
            message[field] = thought.clone();
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_schema_is_sent_as_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false});
        assert!(is_strict(&closed));
        let mut open = closed.clone();
        open["additionalProperties"] = Value::Bool(true);
        let mut optional = closed.clone();
        optional["required"] = json!([]);
        let nested = json!({"type": "array", "items": open});
        for schema in [open, optional, nested] {
            assert!(!is_strict(&schema), "{schema}");
        }
    }

    #[test]
    fn models_that_reason_get_their_limit_by_the_name_they_know() {
        for model in ["o1", "o3-mini", "gpt-5.1", "openai/gpt-5"] {
            assert!(wants_completion_tokens(model), "{model}");
        }
        for model in ["gpt-4o", "o1x", "llama3", "olmo"] {
            assert!(!wants_completion_tokens(model), "{model}");
        }
    }
}
