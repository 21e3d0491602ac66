//! A Python function as a message hook of a workflow.

mod list;

use super::PythonHost;
use super::call::{Invocation, Rest, Said, Told};
use super::host::Entry;
use super::seats::Chair;
use crate::site::Site;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use tenure_core::NextModel;
use tenure_core::context::TurnCx;
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, FaultKind, Flow, HookError, Point, Points};
use tenure_core::model::{ModelRequest, ModelResponse};

/// Who everybody in a chat sends to.
const RECIPIENT: &str = "chat_manager";

/// What a message hook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageHookKind {
    /// What an agent says, before anybody reads it.
    BeforeSend,
    /// Before an agent's reply: its instruction may be changed.
    UpdateAgentState,
    /// What an agent is told last.
    LastReceived,
    /// All that an agent is told, before it replies.
    BeforeReply,
}

impl MessageHookKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeSend => "process_message_before_send",
            Self::UpdateAgentState => "update_agent_state",
            Self::LastReceived => "process_last_received_message",
            Self::BeforeReply => "process_all_messages_before_reply",
        }
    }
}

/// A Python function as a message hook. See [`PythonHost::message_hook`].
///
/// | kind | called with, by place | at |
/// |---|---|---|
/// | before send | sender, message, recipient, silent | each answer of the model that is not a tool call |
/// | update agent state | agent, messages | each model call |
/// | last received | message | the begin of a turn |
/// | before reply | messages | each model call |
///
/// Messages are a list of `{role, name, content}`; what is changed in them counts for that model
/// call alone. An instruction that is changed stays for the turn.
pub struct PythonMessageHook {
    host: PythonHost,
    entry: Arc<Entry>,
    kind: MessageHookKind,
    name: Arc<str>,
    at_end: bool,
}

/// The instruction that a hook set in this turn, and the one that it made it of.
struct Instruction {
    of: Option<Arc<str>>,
    set: Arc<str>,
}

impl Instruction {
    /// What it is if another hook has changed what it was made of since.
    fn made_of(&self, now: Option<&str>) -> Arc<str> {
        match (self.of.as_deref().filter(|of| !of.is_empty()), now) {
            (Some(of), Some(now)) if of != now => self.set.replacen(of, now, 1).into(),
            _ => self.set.clone(),
        }
    }
}

impl PythonMessageHook {
    pub(super) fn new(host: PythonHost, entry: Arc<Entry>, kind: MessageHookKind) -> Self {
        let name = entry.function.name.clone();
        Self { host, entry, kind, name, at_end: false }
    }

    /// The name that the log knows it by. By default it is the function's.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Takes what is said from the end of a turn, for somebody who has no model: a person. A failure
    /// there cannot hold the message back.
    #[must_use]
    pub fn at_end(mut self) -> Self {
        self.at_end = true;
        self
    }

    async fn call(&self, cx: TurnCx<'_>, mut given: Value) -> Result<Option<Value>, HookError> {
        given["kind"] = self.kind.as_str().into();
        let invocation = Invocation {
            host: &self.host,
            entry: &self.entry,
            site: Site::from(cx),
            hook: &self.name,
            rest: Rest::Nothing,
            chair: Chair::default(),
        };
        match invocation.run(Told::Message(&given)).await? {
            Said::Decision(value) => Ok(value),
            Said::Text(_) | Said::Given(_) => Ok(None),
        }
    }

    async fn sent(&self, cx: TurnCx<'_>, message: &str) -> Result<String, HookError> {
        let instruction = cx.config().instruction.as_deref();
        let given = json!({
            "message": message,
            "instruction": instruction,
            "recipient": RECIPIENT,
            "silent": false,
        });
        self.text(self.call(cx, given).await?)
    }

    fn text(&self, value: Option<Value>) -> Result<String, HookError> {
        match value {
            Some(Value::String(text)) => Ok(text),
            _ => Err(bad(format!("{} gave no text", self.kind.as_str()))),
        }
    }
}

#[async_trait]
impl AgentLifecycle for PythonMessageHook {
    fn points(&self) -> Points {
        match self.kind {
            MessageHookKind::BeforeSend if self.at_end => Point::AfterAgent.into(),
            MessageHookKind::BeforeSend => Point::WrapModelCall.into(),
            MessageHookKind::LastReceived => Point::BeforeAgent.into(),
            MessageHookKind::UpdateAgentState | MessageHookKind::BeforeReply => {
                Point::BeforeModel.into()
            }
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let said = self.call(cx, json!({ "message": input.content.text() })).await?;
        input.content.set_text(self.text(said)?);
        Ok(Flow::Continue)
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let of = request.instruction.clone();
        if let Some(instruction) = cx.carried::<Instruction>() {
            request.instruction = Some(instruction.made_of(of.as_deref()));
        }
        let speakers = list::Speakers::new(cx.agent_name(), cx.chat_agents());
        let messages = list::told(&request.messages, &speakers);
        let given = json!({ "messages": messages, "instruction": request.instruction });
        let said = self.call(cx, given).await?;
        match (self.kind, said) {
            (MessageHookKind::UpdateAgentState, Some(Value::String(text))) => {
                let text: Arc<str> = text.into();
                cx.carry(Instruction { of, set: text.clone() });
                request.instruction = Some(text);
            }
            (MessageHookKind::UpdateAgentState, _) => {}
            (_, Some(Value::Array(said))) if said == messages => {}
            (_, Some(Value::Array(said))) => {
                let changed = list::heard(&said, &request.messages, &speakers).map_err(bad)?;
                *request.messages.edit() = changed;
                if let Some(defect) = request.messages.defect() {
                    return Err(bad(format!("the messages that it returned: {defect}")));
                }
            }
            _ => return Err(bad(format!("{} gave no list", self.kind.as_str()))),
        }
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let mut response = next.call(request).await?;
        if response.calls.is_empty() {
            let sent = self.sent(cx, response.content.text()).await?;
            response.content.set_text(sent);
        }
        Ok(response)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        if let Some(output) = end.content_mut() {
            let sent = self.sent(cx, output.text()).await?;
            output.set_text(sent);
        }
        Ok(After::Done)
    }
}

fn bad(what: impl Into<String>) -> HookError {
    HookError::of_kind(FaultKind::BadReply, what.into())
}

impl fmt::Debug for PythonMessageHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonMessageHook")
            .field("kind", &self.kind)
            .field("name", &self.name)
            .field("file", &self.entry.function.file.path())
            .finish_non_exhaustive()
    }
}
