//! A model that repeats what it is told.

use crate::words;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tenure_core::context::ModelCx;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason,
};

const CALL_TOOL: &str = "***CALL_TOOL";
const FIXED_RESPONSE: &str = "***FIXED_RESPONSE";

/// Repeats what it is told, and calls a tool if told to.
///
/// What it answers depends on the newest message:
///
/// - An assistant message is returned as it is.
/// - Tool results are returned joined with a space; an empty one reads `<empty>`.
/// - `***CALL_TOOL name {"some": "json"}` asks for that tool, with the id `correlationId<N>`, N
///   counted from 0 per model. The JSON may be left out. The text is echoed beside the call. One
///   call per message.
/// - `***FIXED_RESPONSE some text` makes `some text` the answer now and from here on, except to
///   tool results. Without a text it takes the fixed answer back.
/// - Anything else is echoed; several user messages at the end are joined with a newline.
///
/// A command that cannot be understood is an error of the kind
/// [`BadRequest`](ModelErrorKind::BadRequest).
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::tool::{FnTool, ToolSpec};
/// use tenure_models::Passthrough;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let shout = FnTool::new(ToolSpec::new("shout", "Says it louder"), |arguments| {
///     Ok(arguments["what"].as_str().unwrap_or_default().to_uppercase().into())
/// });
/// let agent = Agent::builder("loud").model(Passthrough::new()).tool(shout).build()?;
/// agent.startup().await?;
/// let report = agent.run(r#"***CALL_TOOL shout {"what": "hello"}"#).await?;
/// assert_eq!(report.output(), "HELLO");
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
#[doc(alias = "PassthroughLLM")]
pub struct Passthrough {
    calls: AtomicU64,
    fixed: Mutex<Option<String>>,
}

impl Passthrough {
    /// A model that has no fixed answer and has called nothing.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn answer(&self, request: &ModelRequest) -> Result<ModelResponse, ModelError> {
        match request.messages.last() {
            Some(Message::Assistant { content, calls }) => Ok(ModelResponse {
                content: content.clone(),
                calls: calls.clone(),
                stop: if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse },
                ..ModelResponse::default()
            }),
            Some(Message::Tool(_)) => Ok(ModelResponse::text(tool_results(request))),
            Some(message) => self.obey(request, message.text()),
            None => Ok(ModelResponse::default()),
        }
    }

    /// Does what the newest message says, or echoes it.
    fn obey(&self, request: &ModelRequest, newest: &str) -> Result<ModelResponse, ModelError> {
        let calls =
            if newest.starts_with(CALL_TOOL) { vec![self.parse_call(newest)?] } else { Vec::new() };
        let mut fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = newest.strip_prefix(FIXED_RESPONSE) {
            let text = text.trim();
            *fixed = (!text.is_empty()).then(|| text.to_owned());
        }
        let text = fixed.clone().unwrap_or_else(|| echo(request));
        drop(fixed);
        if calls.is_empty() {
            Ok(ModelResponse::text(text))
        } else {
            Ok(ModelResponse { content: text.into(), ..ModelResponse::calls(calls) })
        }
    }

    fn parse_call(&self, command: &str) -> Result<ToolCall, ModelError> {
        let mut parts = command.splitn(3, ' ');
        let name = parts.nth(1).map(str::trim).unwrap_or_default();
        if name.is_empty() {
            return Err(ModelError::new(
                ModelErrorKind::BadRequest,
                "Invalid format. Expected '***CALL_TOOL <tool_name> [arguments_json]'",
            ));
        }
        let arguments = match parts.next() {
            None => "{}",
            Some(text) => {
                serde_json::from_str::<Value>(text).map_err(|error| {
                    let message = format!("Invalid JSON arguments: {text}");
                    ModelError::new(ModelErrorKind::BadRequest, message).with_source(error)
                })?;
                text
            }
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(ToolCall::new(format!("correlationId{number}"), name, arguments))
    }
}

/// The tool results at the end of the conversation.
fn tool_results(request: &ModelRequest) -> String {
    at_the_end(request, |message| matches!(message, Message::Tool(_)))
        .into_iter()
        .map(|text| if text.is_empty() { "<empty>" } else { text })
        .collect::<Vec<_>>()
        .join(" ")
}

/// What the user said last, in however many messages.
fn echo(request: &ModelRequest) -> String {
    at_the_end(request, |message| matches!(message, Message::User { .. })).join("\n")
}

fn at_the_end(request: &ModelRequest, wanted: impl Fn(&Message) -> bool) -> Vec<&str> {
    let mut texts = Vec::new();
    for message in request.messages.iter() {
        if wanted(message) {
            texts.push(message.text());
        } else {
            texts.clear();
        }
    }
    texts
}

#[async_trait]
impl Model for Passthrough {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let response = self.answer(request)?;
        words::say(cx, response.content.text());
        let usage = words::usage(request, &response);
        Ok(response.with_usage(usage))
    }

    fn name(&self) -> &str {
        "passthrough"
    }
}
