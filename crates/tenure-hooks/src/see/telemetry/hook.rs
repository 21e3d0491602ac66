//! The points at which spans begin and end.

use super::super::seen::{failure, model_name, status};
use super::calls::{Call, Called, Chosen, Ended, Said, conversation};
use super::content::{self, Clean};
use super::events::handler;
use super::ids::{WITHIN, Within};
use super::names::{CONVERSATION, OPERATION, WORKFLOW};
use super::pipe::Turn;
use super::records::{Asked, AskedContent, TurnSaid};
use super::span::{Failed, outcome};
use super::{Config, KIND, Live, Pipeline};
use opentelemetry::KeyValue;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, Cx, InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::LogStream;
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
            // It is nobody's failure, and still somebody should know.
            if let Some(lost) = pipe.close().await {
                cx.log(KIND, LogStream::Host, &lost);
            }
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
        pipe.begin_chat(&cx, id, name);
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let (Some(pipe), Some(id)) = (self.live.pipe(), cx.chat_id()) else { return Ok(()) };
        let name = cx.variables().get("workflow_name");
        let Some(name) = name.as_ref().and_then(|name| name.as_str()) else { return Ok(()) };
        let not_ok = (!end.outcome.is_ok()).then_some(end.outcome.as_str());
        let error = not_ok.map(|kind| self.failed(&cx, end.error.as_ref(), kind));
        let attributes = vec![
            KeyValue::new(OPERATION, "invoke_workflow"),
            KeyValue::new(CONVERSATION, id.to_owned()),
            KeyValue::new(WORKFLOW, name.to_owned()),
            outcome(end.outcome),
        ];
        pipe.end_chat(id, attributes, error);
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        if let Some(pipe) = self.live.pipe()
            && let Some(being) = pipe.being(cx.instance_id())
        {
            let parent = pipe.parent(&cx);
            let place = pipe.place(&cx, Some(cx.run_id()), parent);
            pipe.began(cx.run_id(), Turn::new(place, parent, being, cx.instance_id()));
        }
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(After::Done) };
        let not_ok = (!end.outcome().is_ok()).then_some(end.outcome().as_str());
        let error = not_ok.map(|kind| self.failed(&cx, end.error(), kind));
        let models = u64::try_from(cx.step_number()).unwrap_or(u64::MAX);
        let told = self.clean(&cx).zip(end.output());
        let said = TurnSaid {
            outcome: end.outcome(),
            usage: end.usage(),
            resumed: cx.resumed(),
            conversation: conversation(&cx).map(str::to_owned),
            output: told.map(|(clean, output)| content::answer(output, &clean)),
        };
        pipe.ended(cx.run_id(), models, error, said);
        Ok(After::Done)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(next.call(request).await?) };
        let call = self.begin_model(pipe, &cx, request);
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
                let failed = Some(self.failed(&cx, Some(&error), failure(&error)));
                call.end(Ended { error: failed, ..Ended::default() });
                return Err(error.into());
            }
        };
        let told = self.clean(&cx).filter(|_| call.place.sampled);
        // Somebody further in may have had another model answer.
        let answer = Some(Said {
            model: model_name(&cx, request),
            wanted: request.params.model.clone(),
            stop: response.stop,
            usage: response.usage,
            first,
            output: told.map(|clean| content::output(&response, &clean)),
        });
        call.end(Ended { answer, ..Ended::default() });
        Ok(response)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let Some(pipe) = self.live.pipe() else { return Ok(next.call(request).await?) };
        let call = self.begin_tool(pipe, &cx, request);
        let within = Within { place: call.place, chat: cx.chat_id().map(Into::into) };
        let result = WITHIN.scope(within, next.call(request)).await;
        let mut ended = Ended::default();
        match &result {
            Ok(output) => {
                let told = self.clean(&cx).filter(|_| call.place.sampled);
                ended.result = told.map(|clean| clean.text(output.content.text()));
                if output.status != ToolStatus::Ok {
                    let kind = status(output.status);
                    ended.error = Some(Failed { kind, words: String::new() });
                }
            }
            Err(error) => ended.error = Some(self.failed(&cx, Some(error), failure(error))),
        }
        call.end(ended);
        Ok(result?)
    }
}

impl Watch {
    /// Makes texts such as they may be exported, if they may be at all.
    fn clean<'a>(&self, cx: &Cx<'a>) -> Option<Clean<'a>> {
        let most = self.config.content?;
        Some(Clean { redactor: cx.redactor(), most })
    }

    /// Why something failed: in one word, and in as many as there are if content may be told.
    fn failed(&self, cx: &Cx<'_>, error: Option<&Error>, otherwise: &'static str) -> Failed {
        let kind = error.filter(|error| error.model_error().is_some()).map_or(otherwise, failure);
        let told = self.clean(cx).zip(error);
        let words = told.map(|(clean, error)| clean.text(&error.to_string()));
        Failed { kind, words: words.unwrap_or_default() }
    }

    fn begin_model<'a>(&self, pipe: Pipeline, cx: &TurnCx<'a>, request: &ModelRequest) -> Call<'a> {
        let run = Some(cx.run_id());
        let parent = pipe.place_of(run, cx.instance_id());
        let place = pipe.place(cx, run, parent);
        let params = &request.params;
        let mut asked = Asked {
            max_tokens: params.max_tokens,
            temperature: params.temperature,
            has_schema: params.output_schema.is_some(),
            is_streaming: cx.is_streaming(),
            resumed: cx.resumed(),
            ..Asked::default()
        };
        if let Some(clean) = self.clean(cx).filter(|_| place.sampled) {
            let instruction = request.instruction.as_ref();
            asked.content = Some(Box::new(AskedContent {
                messages: content::input(&request.messages, &clean),
                instruction: instruction.map(|text| content::instruction(text, &clean)),
            }));
        }
        let (model, wanted) = (Chosen::of(cx, request), params.model.clone());
        Call::new(pipe, **cx, Called::Model { model, wanted, asked }, (place, parent))
    }

    fn begin_tool<'a>(&self, pipe: Pipeline, cx: &ToolCx<'a>, request: &ToolRequest) -> Call<'a> {
        let (run, instance) = (cx.run_id(), cx.instance_id());
        let of_turn = run.and_then(|run| {
            pipe.turn(run, |turn| {
                turn.tools += 1;
                turn.place
            })
        });
        let parent = of_turn.or_else(|| pipe.place_of(None, instance));
        let place = pipe.place(cx, run, parent);
        let told = self.clean(cx).filter(|_| place.sampled);
        let called = Called::Tool {
            call: &cx.batch()[cx.index()],
            description: cx.tool().map_or("", |spec| &*spec.description),
            arguments: told.map(|clean| clean.text(&request.arguments.to_string())),
        };
        Call::new(pipe, **cx, called, (place, parent))
    }
}
