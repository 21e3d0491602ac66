//! The points at which spans begin and end.

use super::super::seen::{bounded, failure, lock, model_name, status};
use super::calls::{self, Call, Called};
use super::content;
use super::events::handler;
use super::ids::{WITHIN, Within};
use super::names::{
    CONVERSATION, INPUT_MESSAGES, OPERATION, OUTPUT_MESSAGES, OUTPUT_TYPE, PROVIDER,
    REQUEST_MAX_TOKENS, REQUEST_MODEL, REQUEST_STREAM, REQUEST_TEMPERATURE, RESPONSE_FINISH,
    RESPONSE_FIRST_CHUNK, RESPONSE_MODEL, RESUMED, SYSTEM_INSTRUCTIONS, TOOL_ARGUMENTS, TOOL_CALL,
    TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT, TOOL_TYPE, WORKFLOW,
};
use super::pipe::{Chat, Failed, Over, Turn, outcome};
use super::{Config, Live, Pipeline};
use opentelemetry::trace::SpanKind;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, Cx, InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError};
use tenure_core::message::ToolStatus;
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, ExitReason, NextModel, NextTool};
use tenure_macros::lifecycle;

/// Watches an agent.
pub(super) struct Watch {
    pub(super) config: Arc<Config>,
    pub(super) live: Arc<Live>,
}

#[lifecycle]
impl AgentLifecycle for Watch {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let pipe = self.live.enter(&self.config, cx.instance_id())?;
        let bus = cx.events().filter(|_| self.config.events);
        if let Some(bus) = bus {
            pipe.pumps.attach(bus, handler(&pipe));
        }
        let being = pipe.born(&cx, bus.is_some());
        if bus.is_none() {
            // Nobody will say when it has started.
            pipe.created(&being, SystemTime::now(), true);
        }
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        if let Some(pipe) = self.live.pipe() {
            pipe.gone(cx.instance_id());
        }
        if let Some(pipe) = self.live.leave(cx.instance_id()) {
            pipe.close().await;
        }
        Ok(())
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(Flow::Continue) };
        let name = cx.variables().get("workflow_name");
        let (Some(id), Some(name)) = (cx.chat_id(), name.as_ref().and_then(|name| name.as_str()))
        else {
            return Ok(Flow::Continue);
        };
        // Every agent of the chat begins it; the first one's begin is its.
        let known = lock(&pipe.chats).get_mut(id).map(|chat| chat.agents += 1);
        if known.is_none() {
            let parent = pipe.parent(&cx);
            let chat = Chat {
                place: pipe.place(&cx, parent),
                parent,
                name: name.to_owned(),
                start: SystemTime::now(),
                began: Instant::now(),
                agents: 0,
            };
            lock(&pipe.chats).entry(id.into()).or_insert(chat).agents += 1;
        }
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let (Some(pipe), Some(id)) = (self.live.pipe(), cx.chat_id()) else { return Ok(()) };
        let ended = {
            let mut chats = lock(&pipe.chats);
            let Some(chat) = chats.get_mut(id) else { return Ok(()) };
            chat.agents = chat.agents.saturating_sub(1);
            if chat.agents > 0 { None } else { chats.remove(id) }
        };
        let Some(Chat { place, parent, name, start, began, .. }) = ended else { return Ok(()) };
        let took = began.elapsed();
        let not_ok = (!end.outcome.is_ok()).then_some(end.outcome.as_str());
        let error = not_ok.map(|kind| self.failed(end.error.as_ref(), kind));
        if let Some(meters) = &pipe.exports.meters {
            meters.workflow(&name, took, error.as_ref().map(|error| error.kind));
        }
        let attributes = vec![
            KeyValue::new(OPERATION, "invoke_workflow"),
            KeyValue::new(CONVERSATION, id.to_owned()),
            KeyValue::new(WORKFLOW, name.clone()),
            outcome(end.outcome),
        ];
        let name = format!("invoke_workflow {name}").into();
        let kind = SpanKind::Internal;
        pipe.export(Over { place, parent, kind, name, start, took, attributes, error });
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        if let Some(pipe) = self.live.pipe()
            && let Some(being) = pipe.being(cx.instance_id())
        {
            let parent = pipe.parent(&cx);
            let place = pipe.place(&cx, parent);
            pipe.began(cx.run_id(), Turn::new(place, parent, being, cx.instance_id()));
        }
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(After::Done) };
        let known = pipe.turn(cx.run_id(), |turn| {
            let when = (turn.start, turn.began.elapsed());
            (turn.place, turn.parent, when, turn.being.clone(), turn.tools)
        });
        let Some((place, parent, (start, took), being, tools)) = known else {
            return Ok(After::Done);
        };
        let not_ok = (!end.outcome().is_ok()).then_some(end.outcome().as_str());
        let error = not_ok.map(|kind| self.failed(end.error(), kind));
        if let Some(meters) = &pipe.exports.meters {
            let models = u64::try_from(cx.step_number()).unwrap_or(u64::MAX);
            let kind = error.as_ref().map(|error| error.kind);
            meters.turn(&being.name, took, kind, (models, tools));
        }
        if !place.sampled {
            pipe.settled(cx.run_id());
            return Ok(After::Done);
        }
        let mut attributes = Vec::with_capacity(10);
        attributes.push(KeyValue::new(OPERATION, "invoke_agent"));
        attributes.extend(being.attributes());
        attributes.extend(conversation(&cx));
        attributes.push(outcome(end.outcome()));
        calls::usage(&end.usage(), &mut attributes);
        if cx.resumed() {
            attributes.push(KeyValue::new(RESUMED, true));
        }
        if let (Some(most), Some(output)) = (self.config.content, end.output()) {
            attributes.push(KeyValue::new(OUTPUT_MESSAGES, content::answer(output, most)));
        }
        let name = format!("invoke_agent {}", being.name).into();
        let kind = SpanKind::Internal;
        let over = Over { place, parent, kind, name, start, took, attributes, error };
        pipe.ended(cx.run_id(), over);
        Ok(After::Done)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(next.call(request).await?) };
        let (mut call, provider, model) = self.begin_model(&pipe, &cx, request);
        let is_streaming = cx.is_streaming() && !cx.is_text_out();
        let mut first = None;
        let result = {
            let mut inner = pin!(next.call(request));
            poll_fn(|task| {
                let polled = inner.as_mut().poll(task);
                if is_streaming && first.is_none() && cx.is_text_out() {
                    first = Some(call.elapsed());
                }
                polled
            })
            .await
        };
        let response = match result {
            Ok(response) => response,
            Err(error) => {
                call.end(Some(self.failed(Some(&error), failure(&error))));
                return Err(error.into());
            }
        };
        // Somebody further in may have had another model answer.
        let (_, answered) = model_of(&cx, request);
        call.says(KeyValue::new(RESPONSE_MODEL, answered));
        let reason = StringValue::from(content::finish_reason(response.stop));
        call.says(KeyValue::new(RESPONSE_FINISH, Value::Array(Array::String(vec![reason]))));
        let mut cost = Vec::new();
        calls::usage(&response.usage, &mut cost);
        cost.into_iter().for_each(|attribute| call.says(attribute));
        if let Some(first) = first {
            call.says(KeyValue::new(RESPONSE_FIRST_CHUNK, first.as_secs_f64()));
        }
        if let Some(most) = self.config.content {
            call.says(KeyValue::new(OUTPUT_MESSAGES, content::output(&response, most)));
        }
        if let Some(meters) = &pipe.exports.meters {
            meters.answered(&provider, &model, &response.usage, first);
        }
        call.end(None);
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(next.call(request).await?) };
        let mut call = self.begin_tool(&pipe, &cx, request);
        let within = Within { place: call.place, chat: cx.chat_id().map(Into::into) };
        let result = WITHIN.scope(within, next.call(request)).await;
        let error = match &result {
            Ok(output) => {
                if let Some(most) = self.config.content {
                    call.says(KeyValue::new(TOOL_RESULT, bounded(&output.content, most)));
                }
                let is_ok = output.status == ToolStatus::Ok;
                (!is_ok).then(|| Failed { kind: status(output.status), words: String::new() })
            }
            Err(error) => Some(self.failed(Some(error), failure(error))),
        };
        call.end(error);
        Ok(result?)
    }
}

impl Watch {
    /// Why something failed: in one word, and in as many as there are if content may be told.
    fn failed(&self, error: Option<&Error>, otherwise: &'static str) -> Failed {
        let kind = error.filter(|error| error.model_error().is_some()).map_or(otherwise, failure);
        let told = self.config.content.zip(error);
        let words = told.map(|(most, error)| bounded(&error.to_string(), most));
        Failed { kind, words: words.unwrap_or_default() }
    }

    fn begin_model(
        &self,
        pipe: &Pipeline,
        cx: &TurnCx<'_>,
        request: &ModelRequest,
    ) -> (Call, Arc<str>, Arc<str>) {
        let (provider, model) = model_of(cx, request);
        let parent = pipe.place_of(Some(cx.run_id()), cx.instance_id());
        let place = pipe.place(cx, parent);
        let mut attributes = Vec::with_capacity(16);
        if place.sampled {
            attributes.push(KeyValue::new(OPERATION, "chat"));
            attributes.push(KeyValue::new(PROVIDER, provider.clone()));
            attributes.push(KeyValue::new(REQUEST_MODEL, model.clone()));
            attributes.extend(conversation(cx));
            let params = &request.params;
            if let Some(tokens) = params.max_tokens {
                attributes.push(KeyValue::new(REQUEST_MAX_TOKENS, i64::from(tokens)));
            }
            if let Some(temperature) = params.temperature {
                attributes.push(KeyValue::new(REQUEST_TEMPERATURE, f64::from(temperature)));
            }
            if params.output_schema.is_some() {
                attributes.push(KeyValue::new(OUTPUT_TYPE, "json"));
            }
            if cx.is_streaming() {
                attributes.push(KeyValue::new(REQUEST_STREAM, true));
            }
            if cx.resumed() {
                attributes.push(KeyValue::new(RESUMED, true));
            }
            if let Some(most) = self.config.content {
                let messages = content::input(&request.messages, most);
                attributes.push(KeyValue::new(INPUT_MESSAGES, messages));
                if let Some(instruction) = &request.instruction {
                    let instruction = content::instruction(instruction, most);
                    attributes.push(KeyValue::new(SYSTEM_INSTRUCTIONS, instruction));
                }
            }
        }
        let called = Called::Model { provider: provider.clone(), model: model.clone() };
        (Call::new(pipe.clone(), called, (place, parent), attributes), provider, model)
    }

    fn begin_tool(&self, pipe: &Pipeline, cx: &ToolCx<'_>, request: &ToolRequest) -> Call {
        let name: Arc<str> = request.name().into();
        if let Some(run) = cx.run_id() {
            pipe.turn(run, |turn| turn.tools += 1);
        }
        let parent = pipe.place_of(cx.run_id(), cx.instance_id());
        let place = pipe.place(cx, parent);
        let mut attributes = Vec::with_capacity(8);
        if place.sampled {
            attributes.push(KeyValue::new(OPERATION, "execute_tool"));
            attributes.push(KeyValue::new(TOOL_NAME, name.clone()));
            attributes.push(KeyValue::new(TOOL_CALL, request.id().to_owned()));
            attributes.push(KeyValue::new(TOOL_TYPE, "function"));
            if let Some(spec) = cx.tool().filter(|spec| !spec.description.is_empty()) {
                attributes.push(KeyValue::new(TOOL_DESCRIPTION, spec.description.clone()));
            }
            if let Some(most) = self.config.content {
                let arguments = bounded(&request.arguments.to_string(), most);
                attributes.push(KeyValue::new(TOOL_ARGUMENTS, arguments));
            }
        }
        Call::new(pipe.clone(), Called::Tool(name), (place, parent), attributes)
    }
}

/// Which conversation a turn is part of, as far as anybody says.
fn conversation(cx: &Cx<'_>) -> Option<KeyValue> {
    let said = cx.context().map(|context| context.conversation_id()).filter(|id| !id.is_empty());
    said.or_else(|| cx.chat_id()).map(|id| KeyValue::new(CONVERSATION, id.to_owned()))
}

/// Who provides the model that is to answer, and which one it is.
fn model_of(cx: &Cx<'_>, request: &ModelRequest) -> (Arc<str>, Arc<str>) {
    let name = model_name(cx, request);
    let (provider, model) = match name.split_once('.') {
        Some(("gemini", model)) => ("gcp.gemini", model),
        Some((provider, model)) => (provider, model),
        // One that no provider has: a script, a recording.
        None => ("tenure", name),
    };
    let model = request.params.model.clone().unwrap_or_else(|| model.into());
    (provider.into(), model)
}
