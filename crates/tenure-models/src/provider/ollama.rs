//! Ollama's own language: a JSON object on each line.

use super::answer::{Draft, DraftCall, arguments, count, exact, in_words, is_filled, written};
use super::model::Call;
use super::options::Reasoning;
use super::transport::{Form, post, secret};
use serde_json::{Map, Value, json};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{ModelError, StopReason, Usage};
use tenure_http::reqwest::header::{AUTHORIZATION, HeaderMap};

pub(super) async fn call(call: Call<'_>) -> Result<Draft, ModelError> {
    let blame = call.route.blame();
    let mut headers = HeaderMap::new();
    let key = call.route.key.as_ref();
    if let Some(value) = key.and_then(|key| secret(&format!("Bearer {}", key.expose()))) {
        headers.insert(AUTHORIZATION, value);
    }
    let reply = post(call, "/api/chat", headers, body(call)).await?;
    let asked = if call.streaming { Form::Stream } else { Form::Whole };
    let mut draft = Draft::default();
    if !call.streaming {
        reply.form(asked)?;
        return match take(call, &mut draft, &reply.json().await?)? {
            Progress::Ended => Ok(draft),
            _ => Err(blame.truncated()),
        };
    }
    reply.form(asked)?;
    let mut lines = reply.lines();
    while let Some(line) = lines.next().await? {
        if line.is_empty() {
            continue;
        }
        let frame: Value = serde_json::from_slice(&exact(line)).map_err(|error| {
            lines.blame().malformed(&format!("a piece of the answer cannot be read: {error}"))
        })?;
        match take(call, &mut draft, &frame)? {
            Progress::Ended => {
                lines.linger().await;
                return Ok(draft);
            }
            Progress::WentOn => lines.went_on(),
            Progress::Nothing => {}
        }
    }
    // The last line may lack its end; if it was cut, it is no JSON.
    if let Ok(frame) = serde_json::from_slice::<Value>(&exact(lines.rest()))
        && let Progress::Ended = take(call, &mut draft, &frame)?
    {
        return Ok(draft);
    }
    Err(blame.truncated())
}

enum Progress {
    /// The piece held nothing of the answer: a sign of life.
    Nothing,
    WentOn,
    Ended,
}

/// Takes a piece of an answer, and hands its text on.
fn take(call: Call<'_>, draft: &mut Draft, frame: &Value) -> Result<Progress, ModelError> {
    let blame = call.route.blame();
    if frame.get("error").is_some_and(|error| !error.is_null()) {
        return Err(blame.reported(frame));
    }
    let Some(message) = frame.get("message").filter(|message| message.is_object()) else {
        if frame.get("done").and_then(Value::as_bool) != Some(true) {
            return Err(blame.malformed("a piece of the answer holds no message"));
        }
        end(draft, frame);
        return Ok(Progress::Ended);
    };
    if let Some(text) =
        message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty())
    {
        call.cx.delta(text);
        draft.text.push_str(text);
    }
    for made in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let text = |path: &str| made.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let arguments = made.pointer("/function/arguments");
        // A call comes in one piece. Whether one without arguments was to have some is not said.
        let complete = arguments.is_some_and(is_filled);
        let arguments = written(arguments.cloned());
        draft.calls.push(DraftCall {
            id: text("/id").to_owned(),
            name: text("/function/name").to_owned(),
            arguments,
            complete,
            continuation: None,
        });
    }
    if frame.get("done").and_then(Value::as_bool) != Some(true) {
        let held = |key: &str| match message.get(key) {
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            _ => false,
        };
        let went_on = held("content") || held("thinking") || held("tool_calls");
        return Ok(if went_on { Progress::WentOn } else { Progress::Nothing });
    }
    end(draft, frame);
    Ok(Progress::Ended)
}

fn end(draft: &mut Draft, frame: &Value) {
    draft.stop = match frame.get("done_reason").and_then(Value::as_str) {
        Some("length") => StopReason::MaxTokens,
        _ => StopReason::EndTurn,
    };
    if frame.get("eval_count").is_some() || frame.get("prompt_eval_count").is_some() {
        let input = count(frame.get("prompt_eval_count"));
        draft.usage = Some(Usage {
            cached: count(frame.get("prompt_eval_cached_count")),
            ..Usage::new(input, count(frame.get("eval_count")))
        });
    }
}

fn body(call: Call<'_>) -> Value {
    let said = &call.route.target.options;
    let mut options = Map::new();
    let mut option = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(key.to_owned(), value);
        }
    };
    option("temperature", call.temperature().map(Value::from));
    option("num_predict", call.max_tokens().map(Value::from));
    option("top_p", said.top_p.map(Value::from));
    option("top_k", said.top_k.map(Value::from));
    option("min_p", said.min_p.map(Value::from));
    option("presence_penalty", said.presence_penalty.map(Value::from));
    option("repeat_penalty", said.repetition_penalty.map(Value::from));
    let mut body = json!({
        "model": call.route.target.model,
        "messages": messages(call),
        "stream": call.streaming,
    });
    if !options.is_empty() {
        body["options"] = Value::Object(options);
    }
    if let Some(think) = said.reasoning.map(think) {
        body["think"] = think;
    }
    if let Some(schema) = call.request.params.output_schema.as_deref() {
        body["format"] = schema.clone();
    }
    if !call.request.tools.is_empty() {
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
        body["tools"] = call.request.tools.iter().map(tool).collect();
    }
    body
}

fn think(reasoning: Reasoning) -> Value {
    match reasoning {
        Reasoning::Off => false.into(),
        Reasoning::Minimal | Reasoning::Low => "low".into(),
        Reasoning::Medium => "medium".into(),
        Reasoning::High | Reasoning::XHigh | Reasoning::Max => "high".into(),
        Reasoning::Auto | Reasoning::Budget(_) => true.into(),
    }
}

fn messages(call: Call<'_>) -> Value {
    let instruction = call.request.instruction.as_deref();
    let system = instruction.map(|text| json!({ "role": "system", "content": text }));
    let rest = call.request.messages.iter().map(|message| match message {
        Message::System { content } => json!({ "role": "system", "content": content.text() }),
        Message::Assistant { content, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": content.text() })
        }
        Message::Assistant { content, calls } => {
            let made = |call: &ToolCall| {
                json!({ "function": { "name": &*call.name, "arguments": arguments(call) } })
            };
            let made: Value = calls.iter().map(made).collect();
            json!({ "role": "assistant", "content": content.text(), "tool_calls": made })
        }
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_name": &*result.name,
            "content": in_words(result),
        }),
        other => json!({ "role": "user", "content": other.text() }),
    });
    system.into_iter().chain(rest).collect()
}
