//! `auto_tool_mode`: an agent whose tool is called with what it answers.

use super::{Output, unfenced};
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::Error;
use tenure_core::context::TurnCx;
use tenure_core::hook::{
    AgentLifecycle, Flow, HookAction, HookError, Origin, Point, Points, Registration, hook,
};
use tenure_core::message::{Message, ToolCall, ToolResult, ToolStatus};
use tenure_core::model::{ModelRequest, ModelResponse, StopReason};
use tenure_core::tool::{LongIntegers, ToolSpec};

/// The entry of an agent in `auto_tool_mode`: its model sees no tools, and when it has answered as
/// `output` says, the agent's `tool` is called with the fields of the answer.
///
/// It is the loop itself that makes the call, so hooks around tools, limits and events are those of
/// any call. The turn's output is the answer. If the tool fails the turn fails; if somebody denies
/// the call the turn is denied. The agent must have the tool, and its requests must be made with
/// [`Output::ask`].
pub fn auto_tool(output: &Arc<Output>, tool: impl Into<Arc<str>>) -> Registration {
    let entry = AutoTool { output: output.clone(), tool: tool.into(), spec: Mutex::new(None) };
    // What it keeps of the tool is kept for one life of a run, and it decides the same in each.
    hook(entry).named("auto_tool").origin(Origin::Platform).again_on_resume()
}

/// The fields of an answer that a tool takes: those that are among its parameters, or all if it takes
/// any.
pub fn arguments(parameters: &Value, answer: &Map<String, Value>) -> Map<String, Value> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let takes_any = match parameters.get("additionalProperties") {
        Some(Value::Bool(any)) => *any,
        Some(_) => true,
        None => properties.is_none(),
    };
    let is_taken = |name: &str| takes_any || properties.is_some_and(|all| all.contains_key(name));
    let taken = answer.iter().filter(|(name, _)| is_taken(name));
    taken.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The parameters that a tool needs and no answer of this form has.
pub fn unfilled(parameters: &Value, output: &Output) -> Vec<String> {
    let required = parameters.get("required").and_then(Value::as_array);
    let fields = output.schema().get("properties").and_then(Value::as_object);
    let has = |name: &str| fields.is_some_and(|fields| fields.contains_key(name));
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    required.filter(|name| !has(name)).map(str::to_owned).collect()
}

struct AutoTool {
    output: Arc<Output>,
    tool: Arc<str>,
    /// The tool as the agent has it. It is the same for all instances of the agent.
    spec: Mutex<Option<Arc<ToolSpec>>>,
}

impl AutoTool {
    fn spec(&self) -> Option<Arc<ToolSpec>> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the call that was made for this answer means for the turn.
    fn conclude(&self, messages: &[&Message], result: &ToolResult) -> Result<Flow, HookError> {
        let tool = &self.tool;
        match result.status {
            ToolStatus::Ok => {
                let answer = messages.iter().rev().find(|message| !message.calls().is_empty());
                Ok(Flow::Finish(answer.map_or("", |answer| answer.text()).into()))
            }
            ToolStatus::Denied => {
                Err(Error::denied(format!("`{tool}` was not called: {}", result.content)).into())
            }
            ToolStatus::Cancelled => Err(Error::cancelled().into()),
            _ => Err(HookError::new(format!(
                "`{tool}`, called with what the agent answered, failed: {}",
                result.content
            ))),
        }
    }
}

#[async_trait]
impl AgentLifecycle for AutoTool {
    fn points(&self) -> Points {
        Points::from(Point::BeforeModel).with(Point::AfterModel)
    }

    fn name(&self) -> &str {
        "auto_tool"
    }

    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if let Some(Message::Tool(result)) = request.messages.last() {
            let messages: Vec<_> = request.messages.iter().collect();
            return self.conclude(&messages, result);
        }
        let Some(spec) = request.tools.iter().find(|spec| spec.name == self.tool) else {
            return Err(HookError::new(format!(
                "the agent has no tool `{}` to be called with what it answers",
                self.tool
            )));
        };
        *self.spec.lock().unwrap_or_else(PoisonError::into_inner) = Some(spec.clone());
        request.tools = Arc::new([]);
        // A model that has no tools is not told of calls: some providers refuse that.
        if request.messages.iter().any(|message| !message.calls().is_empty()) {
            let told = told(request.messages.iter());
            *request.messages.edit() = told;
        }
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let mut calls = Vec::new();
        if let (Ok(Value::Object(answer)), Some(spec)) =
            (self.output.read(response.content.text()), self.spec())
        {
            let arguments = Value::Object(arguments(&spec.parameters, &answer));
            let text = match LongIntegers::of(unfenced(response.content.text())) {
                Some(long) => long.json(&arguments),
                None => arguments.to_string(),
            };
            calls.push(ToolCall::new("", self.tool.clone(), text));
        }
        if calls.is_empty() && response.calls.is_empty() {
            // The answer has another form, which the turn tells the model.
            return Ok(HookAction::Continue);
        }
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let mut response = response.clone();
        response.calls = calls;
        response.stop = stop;
        Ok(HookAction::Modify(Box::new(response)))
    }
}

/// The conversation without calls: the answer that a call was made with stands for it, and what the
/// tool said comes behind as if somebody had told it.
fn told<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<Message> {
    let mut told = Vec::new();
    let mut said = Vec::new();
    for message in messages {
        match message {
            Message::Tool(result) => {
                said.push(format!("`{}` was called and said: {}", result.name, result.content));
            }
            Message::Assistant { calls, .. } if !calls.is_empty() => {}
            other => {
                told.push(other.clone());
                told.extend(said.drain(..).map(Message::user));
            }
        }
    }
    told.extend(said.drain(..).map(Message::user));
    told
}
