//! What the agents of the scenarios are made of. All of it follows from its input alone, and writes
//! down in the ledger that it was at work.

use crate::crash::ledger::{Deed, Ledger};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::ask::{Answer, Ask};
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, Cx, InstanceCx, ModelCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookAction, HookError};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolRequest, ToolSpec};
use tenure_core::{Error, ExitReason, NextModel, NextTool};
use tokio::time::sleep;

/// How long everything takes, so that kills land in the middle of it.
const PAUSE: Duration = Duration::from_millis(4);

/// Something that no other call in any life gives.
fn mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

type Replies = Box<dyn Fn(usize, &str) -> Option<ModelResponse> + Send + Sync>;

/// A model that knows by the conversation what to say. When its replies are used up, it says what
/// all tools of the turn have said.
pub(super) struct Plan {
    ledger: Ledger,
    replies: Replies,
}

impl Plan {
    /// `replies` is called with the number of the call in its turn and what the user said.
    pub(super) fn new(
        ledger: &Ledger,
        replies: impl Fn(usize, &str) -> Option<ModelResponse> + Send + Sync + 'static,
    ) -> Self {
        Self { ledger: ledger.clone(), replies: Box::new(replies) }
    }
}

#[async_trait]
impl Model for Plan {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let (mut said, mut input, mut results) = (0, "", Vec::new());
        for message in request.messages.iter() {
            match message {
                Message::User { content } => {
                    (said, input, results) = (0, content.text(), Vec::new())
                }
                Message::Assistant { .. } => said += 1,
                Message::Tool(result) => results.push(result.content.text()),
                _ => {}
            }
        }
        sleep(PAUSE).await;
        self.ledger.write(Deed::Model { turn: cx.delivery_id(), call: said });
        sleep(PAUSE).await;
        let rest = || ModelResponse::text(format!("{input} -> {}", results.join("; ")));
        Ok((self.replies)(said, input).unwrap_or_else(rest))
    }
}

/// Calls of these tools at once, each with its name and what to do. Ids are unique in a turn.
pub(super) fn calls(step: usize, tools: &[(&str, &str)]) -> ModelResponse {
    let call = |(index, (tool, what)): (usize, &(&str, &str))| {
        let arguments = json!({ "message": what }).to_string();
        ToolCall::new(format!("s{step}c{index}"), *tool, arguments)
    };
    ModelResponse::calls(tools.iter().enumerate().map(call))
}

/// A tool that does one thing: it writes that it was here.
pub(super) struct Act {
    name: &'static str,
    class: Effect,
    ledger: Ledger,
    does: Does,
}

/// What a tool does beside.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    /// Takes a step of its own.
    Step,
    /// Asks a person what to say.
    Ask,
    /// Sets a context variable.
    Set,
}

impl Act {
    pub(super) fn new(name: &'static str, class: Effect, ledger: &Ledger) -> Self {
        Self { name, class, ledger: ledger.clone(), does: Does::Nothing }
    }

    pub(super) fn with_step(mut self) -> Self {
        self.does = Does::Step;
        self
    }

    pub(super) fn asking(mut self) -> Self {
        self.does = Does::Ask;
        self
    }

    pub(super) fn setting(mut self) -> Self {
        self.does = Does::Set;
        self
    }
}

/// What a tool says that was told `what`: a person who is asked what came of a call says the same.
pub(crate) fn result_of(tool: &str, what: &str) -> String {
    format!("{tool} did {what}")
}

#[async_trait]
impl Tool for Act {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name, "Writes that it was here").effect(self.class)
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let what = arguments["message"].as_str().unwrap_or_default();
        let key = cx.idempotency_key();
        if self.does == Does::Step {
            let label = format!("{key}/before");
            let _: String = cx.step("before", noted(&self.ledger, label)).await?;
        }
        sleep(PAUSE).await;
        self.ledger.write(Deed::Tool {
            tool: self.name.to_owned(),
            call: cx.call_id().to_owned(),
            key: key.clone(),
            class: self.class,
        });
        sleep(PAUSE).await;
        let result = result_of(self.name, what);
        match self.does {
            Does::Nothing => {}
            Does::Step => {
                let label = format!("{key}/after");
                let _: String = cx.step("after", noted(&self.ledger, label)).await?;
            }
            Does::Ask => {
                let answer = cx.ask(Ask::input(format!("What does {what} mean?"))).await?;
                return match answer {
                    Answer::Respond(text) => Ok(format!("{result}, which means {text}").into()),
                    other => Err(ToolError::new(format!("an answer like {other:?}"))),
                };
            }
            Does::Set => {
                let variables = cx.chat_variables().ok_or_else(|| ToolError::new("no chat"))?;
                variables.set(format!("by_{}", cx.call_id()), what)?;
            }
        }
        Ok(result.into())
    }
}

/// The body of a step: what it gives is in the ledger.
async fn noted(ledger: &Ledger, label: String) -> Result<String, Error> {
    sleep(PAUSE / 2).await;
    let mark = mark();
    ledger.write(Deed::Step { label, mark: mark.clone() });
    sleep(PAUSE / 2).await;
    Ok(mark)
}

/// A hook at every point.
pub(super) struct Witness {
    name: &'static str,
    ledger: Ledger,
}

impl Witness {
    pub(super) fn new(name: &'static str, ledger: &Ledger) -> Self {
        Self { name, ledger: ledger.clone() }
    }

    async fn saw(&self, cx: &Cx<'_>, of: String, outcome: Option<String>) {
        sleep(PAUSE / 4).await;
        self.ledger.write(Deed::Hook {
            point: cx.hook_type().as_str().to_owned(),
            hook: self.name.to_owned(),
            of,
            delivery: cx.delivery_id(),
            outcome,
            resumed: cx.resumed(),
        });
        sleep(PAUSE / 4).await;
    }
}

#[async_trait]
impl AgentLifecycle for Witness {
    fn name(&self) -> &str {
        self.name
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.saw(&cx, cx.instance_id().to_string(), None).await;
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, reason: ExitReason) -> Result<(), HookError> {
        self.saw(&cx, cx.instance_id().to_string(), Some(reason.to_string())).await;
        Ok(())
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        let of = of_chat(&cx);
        cx.carry_recorded(&of)?;
        let label = format!("{}/before_chat", cx.delivery_id());
        let _: String = cx.step("note", noted(&self.ledger, label)).await?;
        cx.variables().set(format!("opened_by_{}", self.name), "before_chat")?;
        self.saw(&cx, of, None).await;
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let carried: Option<String> = cx.carried_recorded();
        let of = carried.unwrap_or_else(|| "what before_chat carried is lost".to_owned());
        self.saw(&cx, of, Some(end.outcome.to_string())).await;
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let of = format!("{}: {}", cx.config().name, input.content.text());
        cx.carry_recorded(&of)?;
        let label = format!("{}/before_agent", cx.delivery_id());
        let _: String = cx.step("note", noted(&self.ledger, label)).await?;
        input.content.push(".");
        self.saw(&cx, of, None).await;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let carried: Option<String> = cx.carried_recorded();
        let of = carried.unwrap_or_else(|| "what before_agent carried is lost".to_owned());
        let outcome = end.outcome().to_string();
        if let Some(output) = end.content_mut() {
            output.push("!");
        }
        self.saw(&cx, of, Some(outcome)).await;
        Ok(After::Done)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        request.instruction = Some(format!("step {}", cx.step_number()).into());
        self.saw(&cx, String::new(), None).await;
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        _: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        Ok(next.call(request).await?)
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        _: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        self.saw(&cx, String::new(), None).await;
        Ok(HookAction::Continue)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let label = format!("{}/{}/wrap", cx.idempotency_key(), self.name);
        let _: String = cx.step("note", noted(&self.ledger, label)).await?;
        Ok(next.call(request).await?)
    }
}

fn of_chat(cx: &ChatCx<'_>) -> String {
    format!("{} of {}", cx.chat_id().unwrap_or("no chat"), cx.agent_name())
}

/// Asks before every call.
pub(super) struct Leave;

#[async_trait]
impl AgentLifecycle for Leave {
    fn points(&self) -> tenure_core::hook::Points {
        tenure_core::hook::Point::WrapToolCall.into()
    }

    fn name(&self) -> &str {
        "leave"
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let action = json!({ "tool": request.name(), "with": request.arguments });
        match cx.ask(Ask::approval("May it be done?", action)).await? {
            Answer::Approve => Ok(next.call(request).await?),
            Answer::Edit(arguments) => {
                request.arguments = arguments;
                Ok(next.call(request).await?)
            }
            Answer::Reject(why) => Ok(ToolOutput::denied(why)),
            Answer::Respond(text) => Ok(ToolOutput::text(text)),
        }
    }
}
