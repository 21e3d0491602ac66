//! The model, the tools and the hooks that the measured agents have, on either side.
//!
//! Both models answer from the same texts, make every string anew as a parser would, and tell from
//! the number of messages how far the turn is, so they keep nothing between turns. Both tools share
//! one body.

use crate::base;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use tenure::agent::{Agent, AgentBuilder, Blueprint};
use tenure::context::{ChatCx, ModelCx, ToolCx, TurnCx};
use tenure::drive::{Input, TurnEnd};
use tenure::hook::{After, AgentLifecycle, Flow, HookAction, HookError, hook};
use tenure::message::ToolCall;
use tenure::model::{Model, ModelError, ModelRequest, ModelResponse, Usage};
use tenure::tool::{Tool, ToolError, ToolOutput, ToolRequest, ToolSpec};
use tenure::{NextModel, NextTool, lifecycle};

pub(crate) const INPUT: &str = "What is the value of alpha?";
/// More steps than any turn here makes.
pub(crate) const MAX_STEPS: usize = 1 << 20;
const NAME: &str = "clerk";
const INSTRUCTION: &str = "You are a clerk. Look things up before you answer.";
const TOOLS: [&str; 2] = ["lookup", "archive"];
const CALL_ID: &str = "call_7f3a";
const ARGUMENTS: &str = r#"{"key":"alpha"}"#;
const ANSWER: &str = "The value of alpha is 42.";

/// A model that asks for a tool `steps` times and then answers.
pub(crate) struct Scripted {
    pub(crate) steps: usize,
}

impl Scripted {
    /// A step adds two messages behind the user's.
    fn wants_tool(&self, messages: usize) -> bool {
        messages / 2 < self.steps
    }
}

#[async_trait]
impl Model for Scripted {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let response = if self.wants_tool(request.messages.len()) {
            ModelResponse::calls([ToolCall::new(CALL_ID, TOOLS[0], ARGUMENTS)])
        } else {
            ModelResponse::text(ANSWER)
        };
        Ok(response.with_usage(Usage::new(20, 10)))
    }
}

#[async_trait]
impl base::Model for Scripted {
    async fn call(
        &self,
        _instruction: &str,
        messages: &[base::Message],
    ) -> Result<base::Response, base::Failure> {
        let usage = base::Usage { input: 20, output: 10 };
        Ok(if self.wants_tool(messages.len()) {
            let call = base::ToolCall {
                id: CALL_ID.to_owned(),
                name: TOOLS[0].to_owned(),
                arguments: ARGUMENTS.to_owned(),
            };
            base::Response { text: String::new(), calls: vec![call], usage }
        } else {
            base::Response { text: ANSWER.to_owned(), calls: Vec::new(), usage }
        })
    }
}

/// A tool that reads its argument.
pub(crate) struct Lookup(&'static str);

/// The same, and it really suspends once.
pub(crate) struct SlowLookup(&'static str);

fn look_up(arguments: &Value) -> String {
    ["the value of ", arguments["key"].as_str().unwrap_or_default(), " is 42"].concat()
}

#[async_trait]
impl Tool for Lookup {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "Looks up a value")
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        Ok(look_up(arguments).into())
    }
}

#[async_trait]
impl base::Tool for Lookup {
    async fn call(&self, arguments: &Value) -> Result<String, base::Failure> {
        Ok(look_up(arguments))
    }
}

#[async_trait]
impl Tool for SlowLookup {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "Looks up a value, slowly")
    }

    async fn call(&self, _cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        tokio::task::yield_now().await;
        Ok(look_up(arguments).into())
    }
}

#[async_trait]
impl base::Tool for SlowLookup {
    async fn call(&self, arguments: &Value) -> Result<String, base::Failure> {
        tokio::task::yield_now().await;
        Ok(look_up(arguments))
    }
}

/// An agent of Tenure with this model and two tools. Turns do not see each other, so that a batch
/// of turns does the same work in each.
pub(crate) fn builder(model: impl Model) -> AgentBuilder {
    let builder = Agent::builder(NAME).instruction(INSTRUCTION).model(model).max_steps(MAX_STEPS);
    builder.without_history()
}

/// With the tools that answer at once.
pub(crate) fn quick(model: impl Model) -> AgentBuilder {
    TOOLS.into_iter().fold(builder(model), |builder, name| builder.tool(Lookup(name)))
}

/// With the tools that suspend.
pub(crate) fn slow(model: impl Model) -> AgentBuilder {
    TOOLS.into_iter().fold(builder(model), |builder, name| builder.tool(SlowLookup(name)))
}

pub(crate) fn blueprint(builder: AgentBuilder) -> Blueprint {
    builder.blueprint().expect("the agent is complete")
}

/// A started instance.
pub(crate) async fn started(builder: AgentBuilder) -> Agent {
    let agent = blueprint(builder).instance();
    agent.startup().await.expect("nothing can fail at startup");
    agent
}

/// One turn.
#[inline]
pub(crate) async fn turn(agent: &Agent) {
    let report = agent.run(INPUT).await.expect("the turn succeeds");
    std::hint::black_box(&report);
}

/// One turn of the agent written by hand.
#[inline]
pub(crate) async fn base_turn(agent: &base::Agent) {
    let reply = agent.run(INPUT).await.expect("the turn succeeds");
    std::hint::black_box(&reply);
}

/// What agents written by hand share.
pub(crate) struct BaseParts {
    model: Arc<dyn base::Model>,
    tools: [Arc<dyn base::Tool>; 2],
}

impl BaseParts {
    pub(crate) fn quick(model: Arc<dyn base::Model>) -> Self {
        Self { model, tools: TOOLS.map(|name| Arc::new(Lookup(name)) as _) }
    }

    pub(crate) fn slow(model: Arc<dyn base::Model>) -> Self {
        Self { model, tools: TOOLS.map(|name| Arc::new(SlowLookup(name)) as _) }
    }

    /// Builds an agent: its own strings, its own list of tools, a handle of the model.
    #[inline]
    pub(crate) fn agent(&self) -> base::Agent {
        base::Agent {
            name: NAME.to_owned(),
            instruction: INSTRUCTION.to_owned(),
            tools: TOOLS
                .into_iter()
                .zip(&self.tools)
                .map(|(name, tool)| (name.to_owned(), tool.clone()))
                .collect(),
            model: self.model.clone(),
            max_steps: MAX_STEPS,
        }
    }
}

/// Adds `count` hooks that `make` makes.
pub(crate) fn with_hooks<H: AgentLifecycle>(
    builder: AgentBuilder,
    count: usize,
    make: impl Fn() -> H,
) -> AgentBuilder {
    (0..count).fold(builder, |builder, at| {
        builder.with_lifecycle(hook(make()).named(format!("hook {at}")))
    })
}

/// Does nothing before and after the model.
pub(crate) struct AtModel;

#[lifecycle]
impl AgentLifecycle for AtModel {
    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        _response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        Ok(HookAction::Continue)
    }
}

/// Does nothing around the model.
pub(crate) struct AroundModel;

#[lifecycle]
impl AgentLifecycle for AroundModel {
    async fn wrap_model_call(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        Ok(next.call(request).await?)
    }
}

/// Has no point on the path of a turn.
pub(crate) struct Elsewhere;

#[lifecycle]
impl AgentLifecycle for Elsewhere {
    async fn before_chat(&self, _cx: ChatCx<'_>) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }
}

/// Does nothing at each of the six points of a turn.
pub(crate) struct Everywhere;

#[lifecycle]
impl AgentLifecycle for Everywhere {
    async fn before_agent(&self, _cx: TurnCx<'_>, _input: &mut Input) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    async fn before_model(
        &self,
        _cx: TurnCx<'_>,
        _request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        Ok(Flow::Continue)
    }

    async fn wrap_model_call(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        Ok(next.call(request).await?)
    }

    async fn after_model(
        &self,
        _cx: TurnCx<'_>,
        _response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        Ok(HookAction::Continue)
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        Ok(next.call(request).await?)
    }

    async fn after_agent(
        &self,
        _cx: TurnCx<'_>,
        _end: &mut TurnEnd<'_>,
    ) -> Result<After, HookError> {
        Ok(After::Done)
    }
}
