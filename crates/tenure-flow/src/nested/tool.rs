//! The tool that runs a chat of another flow.

use super::child_context;
use super::failed::InnerFailed;
use crate::chat::{ChatReport, ChatRequest, ChatStatus, Questions, is_final};
use crate::flow::Flow;
use crate::wait::with_cancel;
use async_trait::async_trait;
use futures_util::future::{Either, select};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tenure_core::context::{ExecutionContext, ToolCx};
use tenure_core::message::ToolStatus;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_core::{CancelToken, Outcome};

/// Runs a chat of a flow. The call is over when the chat is.
pub(super) struct FlowTool {
    flow: Flow,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl FlowTool {
    pub(super) fn new(flow: Flow, inputs: Vec<String>, outputs: Vec<String>) -> Self {
        Self { flow, inputs, outputs }
    }

    pub(super) fn name(&self) -> String {
        let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        format!("workflow_{}", self.flow.name().chars().map(legal).collect::<String>())
    }

    async fn run(&self, cx: &ToolCx<'_>, message: &str) -> ChatReport {
        // Where there is no chat around it, the instance is the only one of its name.
        let steps = cx.own_steps();
        let outer = match (cx.chat_id(), &steps) {
            (Some(chat), _) => chat.to_owned(),
            (None, Some(steps)) => steps.log().run_id().to_string(),
            (None, None) => cx.instance_id().to_string(),
        };
        // The turns of one instance are numbered, so the same script gives the same ids.
        let number = cx.agent().metrics().total_requests;
        let context = match cx.context() {
            Some(context) => child_context(context, cx.agent_name()),
            None => child_context(&ExecutionContext::unique(), cx.agent_name()),
        };
        let token = CancelToken::new();
        let mut request = self
            .flow
            .chat()
            .id(format!("{outer}/{}/{number}", cx.agent_name()))
            .message(message)
            .context(context)
            .cancel_on(&token);
        if let Some(steps) = &steps {
            request = request.recorded(steps);
        }
        if let Some(variables) = cx.chat_variables() {
            let text = |name: &str| match variables.get(name) {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            request = request.app(text("app_id")).user(text("user_id"));
            for name in &self.inputs {
                if let Some(value) = variables.get(name) {
                    request = request.variable(name, value);
                }
            }
        }
        let cancel = || token.cancel_for(cx.cancel_cause().unwrap_or_default());
        with_cancel(pin!(Self::follow(cx, request)), cx.cancelled(), cancel).await
    }

    /// Runs the chat. While it waits for a person, so does the call: its time stands still, and the
    /// outer chat is one that waits.
    async fn follow(cx: &ToolCx<'_>, request: ChatRequest) -> ChatReport {
        let questions = Questions::none();
        let mut chat = pin!(request.questions(&questions).run());
        loop {
            let asked = pin!(questions.asked());
            if let Either::Left((report, _)) = select(chat.as_mut(), asked).await {
                return report;
            }
            let settled = pin!(questions.settled());
            let waited = cx.wait_for_person(select(chat.as_mut(), settled)).await;
            if let Either::Left((report, _)) = waited {
                return report;
            }
        }
    }

    /// Hands out what the outer chat is to have of the inner one.
    fn hand_out(&self, cx: &ToolCx<'_>, report: &ChatReport) -> Result<(), ToolError> {
        let Some(variables) = cx.chat_variables() else { return Ok(()) };
        let given = self.outputs.iter().filter_map(|name| {
            report.variables.get(name).map(|value| (name.clone(), value.clone()))
        });
        let given: Vec<_> = given.collect();
        if given.is_empty() {
            return Ok(());
        }
        variables.update(given).map_err(ToolError::ends_turn)
    }
}

/// Whether a chat came to no end of its own.
fn is_cut_off(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Cancelled | Outcome::TimedOut)
}

#[async_trait]
impl Tool for FlowTool {
    fn spec(&self) -> ToolSpec {
        let description = format!("Run the workflow {}", self.flow.name());
        ToolSpec::new(self.name(), description).parameters(json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "What the user says first" },
            },
            "required": ["message"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let Some(message) = arguments["message"].as_str() else {
            return Err(ToolError::new("argument `message` is missing, or not a string"));
        };
        let report = self.run(&cx, message).await;
        cx.charge(report.usage);
        match report.status {
            ChatStatus::Completed => {
                self.hand_out(&cx, &report)?;
                Ok(ToolOutput::text(report.output))
            }
            _ if cx.is_cancelled() && is_cut_off(report.outcome) => {
                let content = "the workflow was cancelled".to_owned();
                Ok(ToolOutput::new(content, ToolStatus::Cancelled))
            }
            // What parks or gives up the inner chat does so to the whole run.
            _ => Err(match report.error {
                Some(error) if is_final(&error) && !error.is_cancelled() => {
                    ToolError::ends_turn(error)
                }
                _ => ToolError::ends_turn(InnerFailed::new(&report)),
            }),
        }
    }

    /// As long as its agents may take to end: their ends and their shutdowns.
    fn cancel_grace(&self) -> Duration {
        self.flow.longest_end()
    }

    /// What the chat does is recorded, at the place of the call.
    fn is_composite(&self) -> bool {
        true
    }
}
