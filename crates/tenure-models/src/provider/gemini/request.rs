//! What is asked, in the words of `genai`.

use super::super::answer::{arguments, in_words, kept};
use super::super::model::Call;
use super::super::options::Reasoning;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatFrameSink, ChatMessage, ChatOptions, ChatRequest, ContentPart, JsonSpec, MessageContent,
    ReasoningEffort, Tool, ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{ModelIden, ServiceTarget};
use serde_json::Value;
use std::sync::Arc;
use tenure_core::message::{self, Message};
use tenure_core::model::{ModelError, ModelErrorKind as Kind};

pub(super) fn target(call: Call<'_>) -> ServiceTarget {
    let target = &call.route.target;
    let key = call.route.key.as_ref().map(|key| key.expose()).unwrap_or_default();
    ServiceTarget {
        endpoint: Endpoint::from_owned(format!("{}/", target.base_url)),
        auth: AuthData::from_single(key),
        model: ModelIden::new(AdapterKind::Gemini, target.model.as_str()),
    }
}

pub(super) fn options(
    call: Call<'_>,
    sink: Arc<dyn ChatFrameSink>,
) -> Result<ChatOptions, ModelError> {
    let said = &call.route.target.options;
    let timeouts = &call.route.timeouts;
    let mut options = ChatOptions::default()
        .with_capture_content(true)
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_stream_header_timeout(timeouts.head)
        .with_raw_frame_sink_arc(sink);
    options.stream_read_timeout = timeouts.idle;
    options.temperature = call.temperature();
    options.max_tokens = call.max_tokens();
    options.top_p = said.top_p;
    options.reasoning_effort = said.reasoning.and_then(effort);
    if let Some(schema) = call.request.params.output_schema.as_deref() {
        options = options.with_response_format(JsonSpec::new("answer", schema.clone()));
    }
    if let Some(extra) = call.request.params.extra.as_deref() {
        if !extra.is_object() {
            let what = "what is to be sent beyond the request is not a JSON object";
            return Err(call.route.blame().error(Kind::BadRequest, what));
        }
        options = options.with_extra_body(extra.clone());
    }
    Ok(options)
}

fn effort(reasoning: Reasoning) -> Option<ReasoningEffort> {
    Some(match reasoning {
        Reasoning::Auto => return None,
        Reasoning::Off => ReasoningEffort::Budget(0),
        Reasoning::Minimal => ReasoningEffort::Minimal,
        Reasoning::Low => ReasoningEffort::Low,
        Reasoning::Medium => ReasoningEffort::Medium,
        Reasoning::High | Reasoning::XHigh | Reasoning::Max => ReasoningEffort::High,
        Reasoning::Budget(tokens) => ReasoningEffort::Budget(tokens),
    })
}

pub(super) fn chat(call: Call<'_>) -> ChatRequest {
    let request = call.request;
    let messages = request.messages.iter().map(|message| said(call, message)).collect();
    let mut chat = ChatRequest::new(messages);
    if let Some(instruction) = request.instruction.as_deref() {
        chat = chat.with_system(instruction);
    }
    if !request.tools.is_empty() {
        let tool = |spec: &Arc<tenure_core::tool::ToolSpec>| {
            Tool::new(spec.name.to_string())
                .with_description(spec.description.clone())
                .with_schema(spec.parameters.clone())
        };
        chat = chat.with_tools(request.tools.iter().map(tool).collect::<Vec<_>>());
    }
    chat
}

fn said(call: Call<'_>, message: &Message) -> ChatMessage {
    match message {
        Message::System { text } => ChatMessage::system(text.clone()),
        Message::Assistant { text, calls } => {
            let mut parts = Vec::with_capacity(calls.len() + 1);
            if !text.is_empty() || calls.is_empty() {
                parts.push(ContentPart::Text(text.clone()));
            }
            parts.extend(calls.iter().map(|made| ContentPart::ToolCall(again(call, made))));
            ChatMessage::assistant(MessageContent::from_parts(parts))
        }
        Message::Tool(result) => {
            // There is no field for how a call ended, so that the words have to say it.
            let response = ToolResponse::new(result.call_id.to_string(), in_words(result));
            ChatMessage::tool(response.with_fn_name(result.name.to_string()))
        }
        other => ChatMessage::user(other.text().to_owned()),
    }
}

/// A call as the model once made it, with the signature of the thoughts that led to it.
fn again(call: Call<'_>, made: &message::ToolCall) -> ToolCall {
    let signatures = kept(call, made).and_then(|kept| kept.get("signatures")?.as_array());
    let signatures = signatures
        .map(|signatures| signatures.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    ToolCall {
        call_id: made.id.to_string(),
        fn_name: made.name.to_string(),
        fn_arguments: arguments(made),
        thought_signatures: signatures,
    }
}
