//! The same work written by hand: what Tenure is measured against.
//!
//! This is the loop that a competent person writes who needs an agent and no framework, and no
//! slower than that:
//!
//! - the model and the tools are `dyn` and async, because a program has several of each; a call is
//!   one boxed future, as `async_trait` makes it;
//! - messages own their strings and stand in one `Vec`, because providers want them in a row;
//!   nothing is copied that can be moved: a response's text and calls move into their message, and
//!   only the id of a call is cloned, for its result;
//! - arguments are parsed to a [`Value`], because the model wrote them as text, and what is wrong
//!   with them is told to the model;
//! - tools are found by name in a `Vec`, which for a few is the fastest way;
//! - usage is added up, the number of steps is bounded, and the caller gets the conversation.
//!
//! It has no hooks, no phases, no limits, no cancellation and no parallel tools; it catches no
//! panic and reads no clock. That is the point: the ratio says what all of these cost.

use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[async_trait]
pub(crate) trait Model: Send + Sync {
    async fn call(&self, instruction: &str, messages: &[Message]) -> Result<Response, Failure>;
}

#[async_trait]
pub(crate) trait Tool: Send + Sync {
    async fn call(&self, arguments: &Value) -> Result<String, Failure>;
}

/// What comes out is read by nobody here, as it is by nobody on the other side; it is owned all the
/// same, since that is the work.
#[allow(dead_code)]
pub(crate) enum Message {
    User { text: String },
    Assistant { text: String, calls: Vec<ToolCall> },
    Tool { call_id: String, content: String },
}

pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

pub(crate) struct Response {
    pub(crate) text: String,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) usage: Usage,
}

#[derive(Default)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// What a turn gives back. The answer is the text of the last message.
#[allow(dead_code)]
pub(crate) struct Reply {
    pub(crate) messages: Vec<Message>,
    pub(crate) usage: Usage,
}

/// An agent owns its strings and its list of tools, and shares what is behind the handles.
#[allow(dead_code)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) instruction: String,
    pub(crate) tools: Vec<(String, Arc<dyn Tool>)>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) max_steps: usize,
}

impl Agent {
    pub(crate) async fn run(&self, input: &str) -> Result<Reply, Failure> {
        let mut messages = vec![Message::User { text: input.to_owned() }];
        let mut usage = Usage::default();
        for _ in 0..self.max_steps {
            let response = self.model.call(&self.instruction, &messages).await?;
            usage.input += response.usage.input;
            usage.output += response.usage.output;
            let asked = messages.len();
            messages.push(Message::Assistant { text: response.text, calls: response.calls });
            // By position, since the results go where the calls are.
            let mut next = 0;
            while let Message::Assistant { calls, .. } = &messages[asked]
                && let Some(call) = calls.get(next)
            {
                let content = self.call_tool(call).await;
                let call_id = call.id.clone();
                messages.push(Message::Tool { call_id, content });
                next += 1;
            }
            if next == 0 {
                return Ok(Reply { messages, usage });
            }
        }
        Err("the model did not come to an end".into())
    }

    /// What goes wrong here is for the model to read.
    async fn call_tool(&self, call: &ToolCall) -> String {
        let Some((_, tool)) = self.tools.iter().find(|(name, _)| *name == call.name) else {
            return format!("there is no tool `{}`", call.name);
        };
        match serde_json::from_str(&call.arguments) {
            Ok(arguments) => match tool.call(&arguments).await {
                Ok(content) => content,
                Err(error) => error.to_string(),
            },
            Err(error) => format!("the arguments are not JSON: {error}"),
        }
    }
}

/// A point written by hand: a boxed call that may change what it is lent, and may fail.
#[async_trait]
pub(crate) trait Point: Send + Sync {
    async fn before(&self, messages: &mut Vec<Message>) -> Result<(), Failure>;
}

/// A point that does nothing.
pub(crate) struct NoPoint;

#[async_trait]
impl Point for NoPoint {
    async fn before(&self, _messages: &mut Vec<Message>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A wrapper written by hand: a model around a model.
pub(crate) struct Wrapper(pub(crate) Arc<dyn Model>);

#[async_trait]
impl Model for Wrapper {
    async fn call(&self, instruction: &str, messages: &[Message]) -> Result<Response, Failure> {
        self.0.call(instruction, messages).await
    }
}
