//! What goes out at one point.

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;
use tenure_core::chat::ChatEnd;
use tenure_core::content::Content;
use tenure_core::context::{PhaseCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Messages, ModelParams, ModelRequest, ModelResponse, StopReason, Usage};
use tenure_core::phase::Phase;
use tenure_core::tool::{Effect, ToolOutput, ToolRequest, ToolSpec};
use tenure_core::{ExitReason, Outcome, RunId};

/// What a hook is called with, as its point has it. It becomes keys of the payload itself.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum At<'a> {
    /// `on_start` and `before_chat`: nothing beyond what every point has.
    Plain {},
    /// `on_shutdown`.
    Shutdown { reason: ExitReason },
    /// `after_chat` and `after_agent`.
    End {
        outcome: Outcome,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// `before_agent`.
    Input { input: &'a str, run_id: RunId },
    /// `before_model` and `wrap_model_call`.
    Request {
        request: Request<'a>,
        step: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<Response<'a>>,
    },
    /// `after_model`.
    Response { response: Response<'a>, step: usize },
    /// `wrap_tool_call`.
    Tool {
        tool: Tool<'a>,
        call_id: &'a str,
        arguments: &'a Value,
        #[serde(serialize_with = "call_list")]
        batch: &'a [ToolCall],
        approved: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a ToolOutput>,
    },
    /// A tool itself: which call of it this is.
    Call { call_id: &'a str, idempotency_key: String },
    /// `on_transition`.
    Transition { from: Phase, to: Phase },
    /// A tool hook of fast-agent's, at whatever point it is called.
    ToolHook {
        tool_hook: &'static str,
        run_id: RunId,
        iteration: usize,
        #[serde(serialize_with = "message_list")]
        messages: &'a Messages,
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<Response<'a>>,
        params: &'a ModelParams,
        usage: Usage,
    },
}

impl<'a> At<'a> {
    pub(crate) fn chat_end(end: &'a ChatEnd) -> Self {
        Self::End {
            outcome: end.outcome,
            error: end.error.as_ref().map(ToString::to_string),
            output: end.output.as_ref().map(Content::text),
            usage: None,
        }
    }

    pub(crate) fn turn_end(end: &'a TurnEnd<'_>) -> Self {
        Self::End {
            outcome: end.outcome(),
            error: end.error().map(ToString::to_string),
            output: end.output(),
            usage: Some(end.usage()),
        }
    }

    pub(crate) fn input(cx: &TurnCx<'_>, input: &'a Input) -> Self {
        Self::Input { input: input.content.text(), run_id: cx.run_id() }
    }

    pub(crate) fn request(cx: &TurnCx<'_>, request: &'a ModelRequest) -> Self {
        Self::Request { request: Request::of(request), step: cx.step_number(), response: None }
    }

    /// A model call that was made, as the second half of a wrap sees it.
    pub(crate) fn answered(
        cx: &TurnCx<'_>,
        request: &'a ModelRequest,
        response: &'a ModelResponse,
    ) -> Self {
        let response = Some(Response::of(response));
        Self::Request { request: Request::of(request), step: cx.step_number(), response }
    }

    pub(crate) fn response(cx: &TurnCx<'_>, response: &'a ModelResponse) -> Self {
        Self::Response { response: Response::of(response), step: cx.step_number() }
    }

    pub(crate) fn tool(cx: &ToolCx<'a>, request: &'a ToolRequest) -> Self {
        Self::Tool {
            tool: Tool::of(cx.tool(), request.name()),
            call_id: cx.call_id(),
            arguments: &request.arguments,
            batch: cx.batch(),
            approved: cx.approved(),
            result: None,
        }
    }

    pub(crate) fn call(cx: &ToolCx<'a>) -> Self {
        Self::Call { call_id: cx.call_id(), idempotency_key: cx.idempotency_key() }
    }

    /// A tool call that was made, as the second half of a wrap sees it.
    pub(crate) fn executed(
        cx: &ToolCx<'a>,
        request: &'a ToolRequest,
        output: &'a ToolOutput,
    ) -> Self {
        let mut at = Self::tool(cx, request);
        if let Self::Tool { result, .. } = &mut at {
            *result = Some(output);
        }
        at
    }

    pub(crate) fn transition(cx: &PhaseCx<'_>) -> Self {
        Self::Transition { from: cx.from(), to: cx.to() }
    }
}

/// A request to a model.
#[derive(Serialize)]
pub(crate) struct Request<'a> {
    instruction: Option<&'a str>,
    #[serde(serialize_with = "message_list")]
    messages: &'a Messages,
    #[serde(serialize_with = "tool_list")]
    tools: &'a [Arc<ToolSpec>],
    params: &'a ModelParams,
}

impl<'a> Request<'a> {
    fn of(request: &'a ModelRequest) -> Self {
        Self {
            instruction: request.instruction.as_deref(),
            messages: &request.messages,
            tools: &request.tools,
            params: &request.params,
        }
    }
}

fn message_list<S: Serializer>(messages: &&Messages, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(messages.len()))?;
    for message in messages.iter() {
        let message: &Message = message;
        list.serialize_element(message)?;
    }
    list.end()
}

fn tool_list<S: Serializer>(tools: &&[Arc<ToolSpec>], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Spec<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
    }
    serializer.collect_seq(tools.iter().map(|spec| Spec {
        name: &spec.name,
        description: &spec.description,
        parameters: &spec.parameters,
    }))
}

/// What a model answered.
#[derive(Serialize)]
pub(crate) struct Response<'a> {
    text: &'a str,
    #[serde(serialize_with = "call_list")]
    calls: &'a [ToolCall],
    usage: Usage,
    stop: StopReason,
}

impl<'a> Response<'a> {
    pub(crate) fn of(response: &'a ModelResponse) -> Self {
        Self {
            text: response.content.text(),
            calls: &response.calls,
            usage: response.usage,
            stop: response.stop,
        }
    }
}

fn call_list<S: Serializer>(calls: &&[ToolCall], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().map(Call::of))
}

/// A tool call. Its arguments are given as JSON where they are JSON, else as the text they are.
#[derive(Serialize)]
pub(crate) struct Call<'a> {
    id: &'a str,
    name: &'a str,
    arguments: Value,
}

impl<'a> Call<'a> {
    pub(crate) fn of(call: &'a ToolCall) -> Self {
        let arguments = serde_json::from_str(&call.arguments)
            .unwrap_or_else(|_| Value::String(call.arguments.clone()));
        Self { id: &call.id, name: &call.name, arguments }
    }
}

/// What a tool says of itself.
#[derive(Serialize)]
pub(crate) struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Option<&'a Value>,
    effect: Option<Effect>,
}

impl<'a> Tool<'a> {
    fn of(spec: Option<&'a ToolSpec>, name: &'a str) -> Self {
        Self {
            name,
            description: spec.map_or("", |spec| &spec.description),
            parameters: spec.map(|spec| &spec.parameters),
            effect: spec.map(|spec| spec.effect),
        }
    }
}
