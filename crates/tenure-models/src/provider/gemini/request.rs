//! What is sent to Gemini.

use super::super::answer::{arguments, in_words, kept};
use super::super::model::Call;
use super::super::options::Reasoning;
use super::super::transport::secret;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure_http::reqwest::header::HeaderMap;

/// What Google takes in the place of a signature that there cannot be, because the call was made by
/// another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn headers(call: Call<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(value) = call.route.key.as_ref().and_then(|key| secret(key.expose())) {
        headers.insert("x-goog-api-key", value);
    }
    headers
}

/// The way to the model below the provider's address. The key is no part of it.
pub(super) fn path(call: Call<'_>) -> String {
    let target = &call.route.target;
    // Addresses are also written without the version, as Google's own programs want them.
    let host = target.base_url.split_once("://").map_or(target.base_url.as_str(), |(_, rest)| rest);
    let version = if host.contains('/') { "" } else { "/v1beta" };
    let (kind, name) = match target.model.split_once('/') {
        Some((kind @ ("models" | "tunedModels"), name)) => (kind, name),
        _ => ("models", target.model.as_str()),
    };
    let method = if call.streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("{version}/{kind}/{}:{method}", escaped(name))
}

/// A name as one part of a path.
fn escaped(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

pub(super) fn body(call: Call<'_>) -> Value {
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    put("systemInstruction", system(call));
    put("contents", Some(contents(call)));
    put("tools", tools(call));
    let config = config(call);
    put("generationConfig", (!config.is_empty()).then_some(Value::Object(config)));
    Value::Object(body)
}

/// The number behind `gemini-`. A name without one (`gemini-flash-latest`) is that of a new model.
fn generation(model: &str) -> f64 {
    let name = model.rsplit('/').next().unwrap_or(model);
    let number = name.strip_prefix("gemini-").and_then(|rest| rest.split('-').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(f64::INFINITY)
}

/// Whether the schema of the answer has to be asked for in words: before its third generation,
/// Gemini refuses it as a setting beside tools.
fn schema_in_words(call: Call<'_>) -> Option<&Value> {
    let schema = call.request.params.output_schema.as_deref()?;
    let beside_tools = !call.request.tools.is_empty();
    (beside_tools && generation(&call.route.target.model) < 3.0).then_some(schema)
}

fn config(call: Call<'_>) -> Map<String, Value> {
    let said = &call.route.target.options;
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    put("temperature", call.temperature().map(Value::from));
    put("maxOutputTokens", call.max_tokens().map(Value::from));
    put("topP", said.top_p.map(Value::from));
    put("topK", said.top_k.map(Value::from));
    put("presencePenalty", said.presence_penalty.map(Value::from));
    let thinking = said.reasoning.and_then(|how| thinking(&call.route.target.model, how));
    put("thinkingConfig", thinking);
    if let Some(schema) = call.request.params.output_schema.as_deref()
        && schema_in_words(call).is_none()
    {
        put("responseMimeType", Some("application/json".into()));
        put("responseJsonSchema", Some(taken(schema)));
    }
    config
}

/// How much to think: up to the second generation by tokens, from the third on in words.
fn thinking(model: &str, reasoning: Reasoning) -> Option<Value> {
    let generation = generation(model);
    let is_pro = model.contains("pro");
    if generation < 2.5 {
        // Such a model does not think, which is all right if it need not.
        return (reasoning != Reasoning::Off && reasoning != Reasoning::Auto)
            .then(|| json!({ "thinkingBudget": budget(reasoning, is_pro) }));
    }
    if generation < 3.0 || matches!(reasoning, Reasoning::Budget(_)) {
        return Some(json!({ "thinkingBudget": budget(reasoning, is_pro) }));
    }
    let level = match reasoning {
        Reasoning::Auto | Reasoning::Budget(_) => return None,
        // The large ones cannot do with less.
        Reasoning::Off | Reasoning::Minimal if is_pro => "low",
        Reasoning::Off | Reasoning::Minimal => "minimal",
        Reasoning::Low => "low",
        Reasoning::Medium => "medium",
        Reasoning::High | Reasoning::XHigh | Reasoning::Max => "high",
    };
    Some(json!({ "thinkingLevel": level }))
}

fn budget(reasoning: Reasoning, is_pro: bool) -> i64 {
    match reasoning {
        Reasoning::Auto => -1,
        // The large ones cannot do without.
        Reasoning::Off if is_pro => 128,
        Reasoning::Off => 0,
        Reasoning::Minimal => 512,
        Reasoning::Low => 1_024,
        Reasoning::Medium => 8_192,
        Reasoning::High | Reasoning::XHigh | Reasoning::Max => 24_576,
        Reasoning::Budget(tokens) => i64::from(tokens),
    }
}

/// The instruction, and what else the system says: there is one place for both.
fn system(call: Call<'_>) -> Option<Value> {
    let said = call.request.messages.iter().filter_map(|message| match message {
        Message::System { content } => Some(content.text()),
        _ => None,
    });
    let mut texts: Vec<String> =
        call.request.instruction.as_deref().into_iter().chain(said).map(str::to_owned).collect();
    if let Some(schema) = schema_in_words(call) {
        texts.push(format!(
            "Your final answer is JSON that fits this JSON Schema, and nothing else:\n{schema}"
        ));
    }
    let text = texts.join("\n\n");
    (!text.trim().is_empty()).then(|| json!({ "parts": [{ "text": text }] }))
}

fn tools(call: Call<'_>) -> Option<Value> {
    let tools = &call.request.tools;
    let declared = |spec: &std::sync::Arc<tenure_core::tool::ToolSpec>| {
        let mut tool = json!({ "name": &*spec.name, "description": spec.description });
        // A tool without parameters must not have any.
        if spec.parameters.as_object().is_some_and(|schema| !schema.is_empty()) {
            // The other field, `parameters`, is no JSON Schema, and refuses most of it.
            tool["parametersJsonSchema"] = taken(&spec.parameters);
        }
        tool
    };
    let declared: Value = tools.iter().map(declared).collect();
    (!tools.is_empty()).then(|| json!([{ "functionDeclarations": declared }]))
}

/// A schema without the names of the dialect, which are refused.
fn taken(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(map) = schema.as_object_mut() {
        map.remove("$schema");
        map.remove("$id");
    }
    schema
}

/// Who said something, and whether it is a result.
type Side = (&'static str, bool);

/// The conversation. The results of the calls of one message are one message.
fn contents(call: Call<'_>) -> Value {
    let mut contents: Vec<(Side, Vec<Value>)> = Vec::new();
    let mut own_ids = BTreeSet::new();
    for message in call.request.messages.iter() {
        let (side, parts): (Side, _) = match message {
            Message::System { .. } => continue,
            Message::Assistant { content, calls } => {
                own_ids.extend(calls.iter().filter_map(|made| own_id(call, made)));
                (("model", false), assistant(call, content.text(), calls))
            }
            Message::Tool(result) => {
                let has_id = own_ids.contains(&*result.call_id);
                (("user", true), vec![json!({ "functionResponse": answered(result, has_id) })])
            }
            other => (("user", false), text_part(other.text()).into_iter().collect()),
        };
        if parts.is_empty() {
            continue;
        }
        match contents.last_mut() {
            Some((last, before)) if *last == side => before.extend(parts),
            _ => contents.push((side, parts)),
        }
    }
    contents.into_iter().map(|((role, _), parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Empty text is refused.
fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "text": text }))
}

fn answered(result: &ToolResult, has_id: bool) -> Value {
    let field = if result.status == ToolStatus::Ok { "output" } else { "error" };
    let mut response = Map::new();
    response.insert(field.to_owned(), in_words(result).into());
    let mut answered = json!({ "name": &*result.name, "response": response });
    if has_id {
        answered["id"] = (&*result.call_id).into();
    }
    answered
}

/// The id of a call, if the server gave it; it does not want any other.
fn own_id<'a>(call: Call<'_>, made: &'a ToolCall) -> Option<&'a str> {
    let id = kept(call, made)?.get("id")?.as_str()?;
    (*id == *made.id).then_some(id)
}

/// What the model said, and the calls that it made, each with the signature of the thoughts that
/// led to it.
fn assistant(call: Call<'_>, text: &str, calls: &[ToolCall]) -> Vec<Value> {
    let model = call.route.target.model.as_str();
    let signature = |made: &ToolCall| -> Option<Value> {
        let kept = kept(call, made)?;
        (kept.get("model")? == model).then(|| kept.get("signature").cloned())?
    };
    let signed = calls.iter().any(|made| signature(made).is_some());
    let mut parts: Vec<Value> = text_part(text).into_iter().collect();
    for (at, made) in calls.iter().enumerate() {
        let mut function = json!({ "name": &*made.name, "args": arguments(made) });
        if let Some(id) = own_id(call, made) {
            function["id"] = id.into();
        }
        let mut part = json!({ "functionCall": function });
        if let Some(signature) = signature(made) {
            part["thoughtSignature"] = signature;
        } else if at == 0 && !signed && generation(model) >= 3.0 {
            part["thoughtSignature"] = NO_SIGNATURE.into();
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_says_how_it_wants_to_be_told_to_think() {
        let cases = [
            ("gemini-2.0-flash", Reasoning::Off, None),
            ("gemini-2.5-flash", Reasoning::Off, Some(json!({ "thinkingBudget": 0 }))),
            ("gemini-2.5-pro", Reasoning::Off, Some(json!({ "thinkingBudget": 128 }))),
            ("gemini-2.5-pro", Reasoning::Auto, Some(json!({ "thinkingBudget": -1 }))),
            ("gemini-3-flash-preview", Reasoning::Off, Some(json!({ "thinkingLevel": "minimal" }))),
            ("gemini-3.1-pro-preview", Reasoning::Off, Some(json!({ "thinkingLevel": "low" }))),
            ("gemini-3.1-pro-preview", Reasoning::Auto, None),
            ("gemini-flash-latest", Reasoning::Max, Some(json!({ "thinkingLevel": "high" }))),
            ("gemini-4-argon", Reasoning::Budget(7), Some(json!({ "thinkingBudget": 7 }))),
        ];
        for (model, reasoning, wanted) in cases {
            assert_eq!(thinking(model, reasoning), wanted, "{model} {reasoning:?}");
        }
    }

    #[test]
    fn a_name_is_one_part_of_the_path() {
        assert_eq!(escaped("gemini-3.1-pro-preview"), "gemini-3.1-pro-preview");
        assert_eq!(escaped("../x?key=1#é"), "..%2Fx%3Fkey%3D1%23%C3%A9");
    }
}
