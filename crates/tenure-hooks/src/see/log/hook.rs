//! The points at which a line is written.

use super::super::seen::{failure, model_name, status};
use super::line::{End, Event, Failure, Line, Lines};
use super::{Center, Level};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use tenure_core::context::{Cx, InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError};
use tenure_core::message::ToolStatus;
use tenure_core::model::{ModelRequest, ModelResponse};
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

/// Which line it is.
struct Heading {
    at: Instant,
    level: Level,
    run: Option<RunId>,
}

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
        let at = Instant::now();
        cx.carry(Began(at));
        let resumed = cx.resumed();
        let heading = Heading { at, level: Level::Info, run: Some(cx.run_id()) };
        self.line(heading, &cx, |_| Event::TurnStarted { resumed });
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let at = Instant::now();
        let outcome = end.outcome();
        let took = cx.carried::<Began>().map(|began| at.saturating_duration_since(began.0));
        let (usage, steps) = (end.usage(), cx.step_number());
        let error = end.error().map(|error| self.failed(&cx, error));
        let told = self.content.zip(end.output()).map(|(most, text)| (most, clean(&cx, text)));
        let heading = Heading { at, level: level(outcome), run: Some(cx.run_id()) };
        self.line(heading, &cx, |lines| {
            let failure = error.as_ref().map(|error| lines.failure(error));
            let output = told.map(|(most, output)| lines.texts.keep_bounded(&output, most));
            Event::TurnEnded { outcome, took, steps, end: End { usage, failure, output } }
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
        let began = Instant::now();
        let heading = Heading { at: began, level: Level::Info, run };
        let (name, messages) = (model_name(&cx, request), request.messages.len());
        // The newest message, as guards have left it.
        let told = self.content.zip(request.messages.last());
        let told = told.map(|(most, last)| (most, clean(&cx, last.text())));
        self.line(heading, &cx, |lines| Event::ModelStarted {
            model: lines.texts.keep(name),
            step,
            messages,
            input: told.map(|(most, text)| lines.texts.keep_bounded(&text, most)),
        });
        let result = next.call(request).await;
        let at = Instant::now();
        let took = at.saturating_duration_since(began);
        let outcome = result.as_ref().map_or_else(Error::outcome, |_| Outcome::Ok);
        let ended = match &result {
            Ok(response) => Ok((response.usage, response.calls.len())),
            Err(error) => Err(self.failed(&cx, error)),
        };
        let name = model_name(&cx, request);
        self.line(Heading { at, level: level(outcome), run }, &cx, |lines| {
            let model = lines.texts.keep(name);
            let end = ended.map_err(|error| lines.failure(&error));
            Event::ModelEnded { model, step, outcome, took, end }
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
        let began = Instant::now();
        let told = self
            .content
            .map(|most| (most, clean(&cx, &request.arguments.to_string()).into_owned()));
        self.line(Heading { at: began, level: Level::Info, run }, &cx, |lines| {
            let (tool, call) = (lines.texts.keep(request.name()), lines.texts.keep(request.id()));
            let arguments = told.map(|(most, text)| lines.texts.keep_bounded(&text, most));
            Event::ToolStarted { tool, call, arguments }
        });
        let result = next.call(request).await;
        let at = Instant::now();
        let took = at.saturating_duration_since(began);
        let is_ok = matches!(&result, Ok(output) if output.status == ToolStatus::Ok);
        let level = if is_ok { Level::Info } else { Level::Warn };
        let told = |output: &ToolOutput| {
            let most = self.content?;
            Some((most, clean(&cx, output.content.text()).into_owned()))
        };
        let ended = match &result {
            Ok(output) => Ok((status(output.status), told(output))),
            Err(error) => Err(self.failed(&cx, error)),
        };
        self.line(Heading { at, level, run }, &cx, |lines| {
            let (tool, call) = (lines.texts.keep(request.name()), lines.texts.keep(request.id()));
            let end = match ended {
                Ok((status, told)) => {
                    let keep =
                        |(most, text): (usize, String)| lines.texts.keep_bounded(&text, most);
                    Ok((status, told.map(keep)))
                }
                Err(error) => Err(lines.failure(&error)),
            };
            Event::ToolEnded { tool, call, took, end }
        });
        Ok(result?)
    }
}

/// Why something failed, and in words if content may be told.
struct Failed {
    kind: &'static str,
    reason: Option<(usize, String)>,
}

impl Lines {
    fn failure(&mut self, failed: &Failed) -> Failure {
        let keep = |(most, text): &(usize, String)| self.texts.keep_bounded(text, *most);
        Failure { kind: failed.kind, reason: failed.reason.as_ref().map(keep) }
    }
}

impl Write {
    /// Leaves a line. Others wait while `say` keeps its texts, so it does nothing else.
    fn line(&self, heading: Heading, cx: &Cx<'_>, say: impl FnOnce(&mut Lines) -> Event) {
        let Heading { at, level, run } = heading;
        if level < self.center.least {
            return;
        }
        let (name, instance) = (cx.agent_name(), cx.instance_id());
        // Without a context a trace is called after its run, which is written there anyway.
        let (trace, chat) = (cx.context().map(|context| context.trace_id()), cx.chat_id());
        self.center.write(level, |lines| Line {
            at,
            level,
            agent: lines.texts.keep(name),
            instance,
            run,
            trace: trace.map(|trace| lines.texts.keep(trace)),
            chat: chat.map(|chat| lines.texts.keep(chat)),
            event: say(lines),
        });
    }

    fn failed(&self, cx: &Cx<'_>, error: &Error) -> Failed {
        let said = || clean(cx, &error.to_string()).into_owned();
        let reason = self.content.map(|most| (most, said()));
        Failed { kind: failure(error), reason }
    }
}

/// A text as it may be told. It is cut later: half of a secret is not known for one.
fn clean<'t>(cx: &Cx<'_>, text: &'t str) -> Cow<'t, str> {
    cx.redactor().redact(text)
}

fn level(outcome: Outcome) -> Level {
    match outcome {
        Outcome::Ok => Level::Info,
        Outcome::Denied | Outcome::Cancelled => Level::Warn,
        _ => Level::Error,
    }
}
