//! An agent as a tool of another.

use super::{ChildOptions, HistoryIn, HistoryOut};
use crate::agent::{Agent, Blueprint, Label};
use crate::context::{ExecutionContext, ToolCx};
use crate::error::Error;
use crate::message::{History, Message};
use crate::step::Steps;
use crate::sync::Mutex;
use crate::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Runs each call on a detached clone of its agent.
pub(crate) struct AgentTool {
    blueprint: Blueprint,
    options: ChildOptions,
    permits: Option<Semaphore>,
    /// What the clones left for one another.
    shared: Mutex<History>,
}

impl AgentTool {
    /// `blueprint` has the parent's guards in it already.
    pub(crate) fn new(blueprint: Blueprint, options: ChildOptions) -> Self {
        let permits = options.max_parallel.map(Semaphore::new);
        Self {
            blueprint,
            options,
            permits,
            shared: Mutex::new(History::new()),
        }
    }

    fn history(&self, cx: &ToolCx<'_>) -> Option<History> {
        match self.options.history_in {
            HistoryIn::None => None,
            HistoryIn::Child => Some(self.shared.lock().clone()),
            HistoryIn::Parent => Some(cx.agent().history()),
        }
    }

    /// Hands on what the clone said and heard since it started.
    fn hand_out(&self, cx: &ToolCx<'_>, clone: &Agent, known: usize) {
        let said: Vec<Message> = clone.history().iter().skip(known).cloned().collect();
        match self.options.history_out {
            HistoryOut::None => {}
            HistoryOut::Child => self.shared.lock().extend(said),
            HistoryOut::Parent => {
                if let Some(turn) = cx.site.turn {
                    turn.appended.lock().extend(said);
                }
            }
        }
    }

    async fn run(&self, cx: &ToolCx<'_>, clone: &Agent, message: String) -> Result<String, Error> {
        let mut request = clone.request(message).with_steps(steps(cx));
        if let Some(context) = cx.context() {
            let context: ExecutionContext = context.child(context.user_intent());
            request = request.context(context);
        }
        if let Some(limit) = self.options.limit {
            request = request.limit(limit);
        }
        let mut run = pin!(request.run());
        let mut told = false;
        // A cancel of the parent cancels the clone, which then ends in its own good order: children
        // end before their parents (G2).
        let report = poll_fn(|task| {
            if !told
                && cx
                    .site
                    .signal
                    .is_some_and(|signal| signal.register(task.waker()))
            {
                told = true;
                clone.cancel();
            }
            run.as_mut().poll(task)
        })
        .await;
        report.map(|report| report.output().to_owned())
    }
}

/// The clone's steps go into the parent's log, under the call.
fn steps(cx: &ToolCx<'_>) -> Option<Steps> {
    let parent = cx.site.turn?.step_path()?;
    let path = if parent.path.is_empty() {
        Arc::from(cx.call_id())
    } else {
        Arc::from(format!("{}/{}", parent.path, cx.call_id()))
    };
    Some(Steps {
        log: parent.log.clone(),
        path,
    })
}

#[async_trait]
impl Tool for AgentTool {
    fn spec(&self) -> ToolSpec {
        let config = self.blueprint.config();
        let description = if config.description.is_empty() {
            format!("Ask the agent {}", config.name)
        } else {
            config.description.clone()
        };
        ToolSpec::new(self.options.tool_name(&self.blueprint), description).parameters(json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "What to ask the agent" },
            },
            "required": ["message"],
            "additionalProperties": false,
        }))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let message = match &arguments["message"] {
            Value::String(message) => message.clone(),
            Value::Null => return Err(ToolError::new("argument `message` is missing")),
            other => {
                return Err(ToolError::new(format!(
                    "argument `message` must be a string, but it is {other}"
                )));
            }
        };
        let _permit = match &self.permits {
            Some(permits) => Some(permits.acquire().await?),
            None => None,
        };
        let history = self.history(&cx);
        let known = history.as_ref().map_or(0, History::len);
        let number = self.blueprint.0.spawned.fetch_add(1, Ordering::Relaxed) + 1;
        let clone = match cx
            .site
            .inner
            .spawn(&self.blueprint, Label::Tool(number), history)
            .await
        {
            Ok(clone) => clone,
            Err(error) => return Err(ToolError::new(format!("Spawn failed: {error}"))),
        };
        let result = self.run(&cx, &clone, message).await;
        clone.shutdown().await;
        if let Some(turn) = cx.site.turn {
            turn.charge_child(clone.usage());
        }
        self.hand_out(&cx, &clone, known);
        match result {
            Ok(output) => Ok(ToolOutput::text(output)),
            Err(error) => Err(ToolError::new(format!("Error: {error}"))),
        }
    }

    /// The clone's ends and its shutdown have budgets of their own.
    fn cancel_grace(&self) -> Duration {
        let config = self.blueprint.config();
        config.limits.ends + config.lifecycle.timeout
    }

    fn is_composite(&self) -> bool {
        true
    }
}
