//! What is sent to Anthropic.

use super::super::answer::{arguments, in_words, kept};
use super::super::model::Call;
use super::super::options::Reasoning;
use super::super::transport::secret;
use serde_json::{Map, Value, json};
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_http::reqwest::header::{HeaderMap, HeaderValue};

const VERSION: &str = "2023-06-01";

pub(super) fn headers(call: Call<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if let Some(value) = call.route.key.as_ref().and_then(|key| secret(key.expose())) {
        headers.insert("x-api-key", value);
    }
    headers
}

pub(super) fn body(call: Call<'_>) -> Value {
    let target = &call.route.target;
    let options = &target.options;
    let model = Model::of(&target.model);
    let thinking = options.reasoning.and_then(|reasoning| model.thinking(reasoning));
    let mut body = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    put("model", Some(target.model.clone().into()));
    put("max_tokens", Some(max_tokens(call, &model, thinking.as_ref()).into()));
    put("system", system(call));
    put("messages", Some(messages(call)));
    put("stream", Some(call.streaming.into()));
    put("tools", tools(call));
    // A model that thinks chooses its own temperature.
    let thinks = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
    put("temperature", call.temperature().filter(|_| !thinks).map(Value::from));
    put("top_p", options.top_p.map(Value::from));
    put("top_k", options.top_k.filter(|_| !thinks).map(Value::from));
    put("thinking", thinking);
    let mut output = Map::new();
    if let Some(effort) = options.reasoning.and_then(|reasoning| model.effort(reasoning)) {
        output.insert("effort".to_owned(), effort.into());
    }
    if let Some(schema) = call.request.params.output_schema.as_deref() {
        let format = json!({ "type": "json_schema", "schema": schema });
        output.insert("format".to_owned(), format);
    }
    put("output_config", (!output.is_empty()).then_some(Value::Object(output)));
    Value::Object(body)
}

/// What has to be known of a model to ask it right.
struct Model {
    /// The version behind the family's name; `None` where it stands before it.
    version: Option<(u32, u32)>,
    is_opus: bool,
    is_haiku: bool,
    /// Whether the name has the form that came before `claude-<family>-<version>`.
    is_old: bool,
}

impl Model {
    fn of(name: &str) -> Self {
        let mut words = name.split('-').skip(1);
        let family = words.next().unwrap_or_default();
        let mut number = || words.next().filter(|word| word.len() < 3)?.parse::<u32>().ok();
        let version = number().map(|major| (major, number().unwrap_or(0)));
        let is_old = family.parse::<u32>().is_ok();
        Self { version, is_opus: family == "opus", is_haiku: family == "haiku", is_old }
    }

    /// Whether it takes an effort, and decides by itself how much to think.
    fn adapts(&self) -> bool {
        let least = if self.is_haiku { (5, 0) } else { (4, 6) };
        !self.is_old && self.version.is_some_and(|version| version >= least)
    }

    fn effort(&self, reasoning: Reasoning) -> Option<&'static str> {
        if !self.adapts() {
            return None;
        }
        Some(match reasoning {
            Reasoning::Auto | Reasoning::Off | Reasoning::Budget(_) => return None,
            Reasoning::Minimal | Reasoning::Low => "low",
            Reasoning::Medium => "medium",
            Reasoning::High => "high",
            Reasoning::XHigh | Reasoning::Max => "max",
        })
    }

    fn thinking(&self, reasoning: Reasoning) -> Option<Value> {
        let budget = match reasoning {
            Reasoning::Off => return self.adapts().then(|| json!({ "type": "disabled" })),
            Reasoning::Budget(tokens) => tokens.max(1_024),
            _ if self.adapts() => return Some(json!({ "type": "adaptive" })),
            Reasoning::Minimal | Reasoning::Low => 1_024,
            Reasoning::Medium | Reasoning::Auto => 8_000,
            Reasoning::High | Reasoning::XHigh | Reasoning::Max => 24_000,
        };
        Some(json!({ "type": "enabled", "budget_tokens": budget }))
    }

    /// As much as it can write.
    fn most_tokens(&self) -> u32 {
        match (self.is_old, self.version) {
            (true, Some((0..=4, _)) | None) => 4_096,
            (true, Some(_)) => 8_192,
            (false, Some(version)) if self.is_opus && version < (4, 5) => 32_000,
            _ => 64_000,
        }
    }
}

/// The limit has to be said, and has to leave room behind the thoughts.
fn max_tokens(call: Call<'_>, model: &Model, thinking: Option<&Value>) -> u32 {
    let asked = call.max_tokens().unwrap_or_else(|| model.most_tokens());
    let budget = thinking.and_then(|thinking| thinking["budget_tokens"].as_u64()).unwrap_or(0);
    let budget = u32::try_from(budget).unwrap_or(u32::MAX);
    if asked > budget { asked } else { budget.saturating_add(asked) }
}

/// The instruction, and what else the system says: there is one place for both.
fn system(call: Call<'_>) -> Option<Value> {
    let said = call.request.messages.iter().filter_map(|message| match message {
        Message::System { content } => Some(content.text()),
        _ => None,
    });
    let texts: Vec<&str> = call.request.instruction.as_deref().into_iter().chain(said).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n").into())
}

fn tools(call: Call<'_>) -> Option<Value> {
    let tools = &call.request.tools;
    let tool = |spec: &std::sync::Arc<tenure_core::tool::ToolSpec>| {
        json!({
            "name": &*spec.name,
            "description": spec.description,
            "input_schema": spec.parameters,
        })
    };
    (!tools.is_empty()).then(|| tools.iter().map(tool).collect())
}

/// The conversation, in which user and assistant take turns: what follows upon each other from the
/// same side is one message.
fn messages(call: Call<'_>) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in call.request.messages.iter() {
        let (role, blocks) = match message {
            Message::System { .. } => continue,
            Message::Assistant { content, calls } => {
                ("assistant", assistant(call, content.text(), calls))
            }
            Message::Tool(result) => {
                let is_error = result.status != ToolStatus::Ok;
                let block = json!({
                    "type": "tool_result",
                    "tool_use_id": &*result.call_id,
                    "content": in_words(result),
                    "is_error": is_error,
                });
                ("user", vec![block])
            }
            other => ("user", text_block(other.text()).into_iter().collect()),
        };
        if blocks.is_empty() {
            continue;
        }
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

/// Empty text is refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn assistant(call: Call<'_>, text: &str, calls: &[ToolCall]) -> Vec<Value> {
    let thoughts = |tool_call: &ToolCall| -> Vec<Value> {
        let blocks = kept(call, tool_call).and_then(|kept| kept.get("thoughts"));
        blocks.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut blocks = calls.first().map(thoughts).unwrap_or_default();
    blocks.extend(text_block(text));
    for (at, tool_call) in calls.iter().enumerate() {
        if at > 0 {
            blocks.extend(thoughts(tool_call));
        }
        blocks.push(json!({
            "type": "tool_use",
            "id": &*tool_call.id,
            "name": &*tool_call.name,
            "input": arguments(tool_call),
        }));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_says_how_to_ask_it() {
        let adapts = |name| Model::of(name).adapts();
        for name in ["claude-opus-4-6", "claude-sonnet-5", "claude-opus-4-8-20260101"] {
            assert!(adapts(name), "{name}");
        }
        for name in [
            "claude-sonnet-4-5",
            "claude-haiku-4-5-20251001",
            "claude-3-7-sonnet-latest",
            "claude-opus-4-20250514",
            "other",
        ] {
            assert!(!adapts(name), "{name}");
        }
        assert_eq!(Model::of("claude-opus-4-20250514").most_tokens(), 32_000);
        assert_eq!(Model::of("claude-opus-4-5").most_tokens(), 64_000);
        assert_eq!(Model::of("claude-3-haiku-20240307").most_tokens(), 4_096);
        assert_eq!(Model::of("claude-3-5-haiku-latest").most_tokens(), 8_192);
    }
}
