//! The points at which a line is written.

use super::super::seen::{bounded, failure, model_name, status};
use super::writer::Line;
use super::{Center, Level};
use crate::words::Moment;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::context::{Cx, InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError};
use tenure_core::message::ToolStatus;
use tenure_core::model::{ModelRequest, ModelResponse, Usage};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, ExitReason, NextModel, NextTool, Outcome, RunId};
use tenure_macros::lifecycle;

/// Writes what an agent does.
pub(super) struct Write {
    pub(super) center: Arc<Center>,
    /// How much of a text is told, if any.
    pub(super) content: Option<usize>,
}

/// When a turn began.
struct Began(Instant);

#[lifecycle]
impl AgentLifecycle for Write {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.center.enter(cx.instance_id())?;
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        if let Some(writer) = self.center.leave(cx.instance_id()) {
            tenure_core::blocking(move || writer.close()).await;
        }
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        cx.carry(Began(Instant::now()));
        self.line(Level::Info, "turn.started", &cx, Some(cx.run_id()), |line| {
            if cx.resumed() {
                line.insert("resumed".to_owned(), true.into());
            }
        });
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let outcome = end.outcome();
        let took = cx.carried::<Began>().map(|began| began.0.elapsed());
        self.line(level(outcome), "turn.ended", &cx, Some(cx.run_id()), |line| {
            line.insert("outcome".to_owned(), outcome.as_str().into());
            line.extend(took.map(|took| ("took_ms".to_owned(), millis(took))));
            line.insert("steps".to_owned(), cx.step_number().into());
            usage(&end.usage(), line);
            self.failed(end.error(), line);
            if let (Some(most), Some(output)) = (self.content, end.output()) {
                line.insert("output".to_owned(), bounded(output, most).into());
            }
        });
        Ok(After::Done)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let (run, step) = (Some(cx.run_id()), cx.step_number());
        self.line(Level::Info, "model.started", &cx, run, |line| {
            line.insert("model".to_owned(), model_name(&cx, request).into());
            line.insert("step".to_owned(), step.into());
            line.insert("messages".to_owned(), request.messages.len().into());
            // The newest message, as guards have left it.
            if let (Some(most), Some(last)) = (self.content, request.messages.last()) {
                line.insert("input".to_owned(), bounded(last.text(), most).into());
            }
        });
        let began = Instant::now();
        let result = next.call(request).await;
        let took = began.elapsed();
        let outcome = result.as_ref().map_or_else(Error::outcome, |_| Outcome::Ok);
        self.line(level(outcome), "model.ended", &cx, run, |line| {
            line.insert("model".to_owned(), model_name(&cx, request).into());
            line.insert("step".to_owned(), step.into());
            line.insert("outcome".to_owned(), outcome.as_str().into());
            line.insert("took_ms".to_owned(), millis(took));
            match &result {
                Ok(response) => {
                    usage(&response.usage, line);
                    line.insert("calls".to_owned(), response.calls.len().into());
                }
                Err(error) => self.failed(Some(error), line),
            }
        });
        Ok(result?)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let run = cx.run_id();
        self.line(Level::Info, "tool.started", &cx, run, |line| {
            line.insert("tool".to_owned(), request.name().into());
            line.insert("call".to_owned(), request.id().into());
            if let Some(most) = self.content {
                let arguments = bounded(&request.arguments.to_string(), most);
                line.insert("arguments".to_owned(), arguments.into());
            }
        });
        let began = Instant::now();
        let result = next.call(request).await;
        let took = began.elapsed();
        let is_ok = matches!(&result, Ok(output) if output.status == ToolStatus::Ok);
        let level = if is_ok { Level::Info } else { Level::Warn };
        self.line(level, "tool.ended", &cx, run, |line| {
            line.insert("tool".to_owned(), request.name().into());
            line.insert("call".to_owned(), request.id().into());
            line.insert("took_ms".to_owned(), millis(took));
            match &result {
                Ok(output) => {
                    line.insert("status".to_owned(), status(output.status).into());
                    if let Some(most) = self.content {
                        line.insert("result".to_owned(), bounded(&output.content, most).into());
                    }
                }
                Err(error) => self.failed(Some(error), line),
            }
        });
        Ok(result?)
    }
}

impl Write {
    fn line(
        &self,
        level: Level,
        event: &str,
        cx: &Cx<'_>,
        run: Option<RunId>,
        say: impl FnOnce(&mut Map<String, Value>),
    ) {
        if level < self.center.least {
            return;
        }
        let Some(writer) = self.center.writer() else { return };
        let mut line = Map::new();
        line.insert("time".to_owned(), Moment::now().rfc3339().into());
        line.insert("level".to_owned(), level.as_str().into());
        line.insert("event".to_owned(), event.into());
        line.insert("agent".to_owned(), cx.agent_name().into());
        line.insert("instance".to_owned(), cx.instance_id().to_string().into());
        line.extend(run.map(|run| ("run".to_owned(), run.to_string().into())));
        line.insert("trace".to_owned(), cx.trace_id().into());
        line.extend(cx.chat_id().map(|chat| ("chat".to_owned(), chat.into())));
        say(&mut line);
        writer.write(Line { level, text: Value::Object(line).to_string() });
    }

    /// Why something failed: in one word, and in as many as there are if content may be told.
    fn failed(&self, error: Option<&Error>, line: &mut Map<String, Value>) {
        let Some(error) = error else { return };
        line.insert("error".to_owned(), failure(error).into());
        if let Some(most) = self.content {
            line.insert("reason".to_owned(), bounded(&error.to_string(), most).into());
        }
    }
}

fn level(outcome: Outcome) -> Level {
    match outcome {
        Outcome::Ok => Level::Info,
        Outcome::Denied | Outcome::Cancelled => Level::Warn,
        _ => Level::Error,
    }
}

/// A time in milliseconds, with as many places as say something.
fn millis(took: Duration) -> Value {
    json!((took.as_secs_f64() * 1e6).round() / 1e3)
}

fn usage(usage: &Usage, line: &mut Map<String, Value>) {
    let mut told = json!({ "input": usage.input, "output": usage.output, "calls": usage.calls });
    if usage.cached > 0 {
        told["cached"] = usage.cached.into();
    }
    if usage.reasoning > 0 {
        told["reasoning"] = usage.reasoning.into();
    }
    if usage.cost.nano_usd() > 0 {
        told["cost_usd"] = usage.cost.usd().into();
    }
    line.insert("usage".to_owned(), told);
}
