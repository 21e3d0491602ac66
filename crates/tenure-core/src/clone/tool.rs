//! An agent as a tool of another.

use super::{ChildOptions, HistoryIn, HistoryOut};
use crate::agent::{Agent, Blueprint, Label};
use crate::ask::Asker;
use crate::context::{ExecutionContext, ToolCx};
use crate::drive::Waiting;
use crate::error::Error;
use crate::hook::Chain;
use crate::message::{History, Message, ToolStatus};
use crate::phase::Phase;
use crate::step::Steps;
use crate::sync::Mutex;
use crate::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Runs each call on a detached clone of its agent.
pub(crate) struct AgentTool {
    blueprint: Blueprint,
    options: ChildOptions,
    shared: Arc<Shared>,
}

/// What a clone has before it, as it is recorded.
#[derive(Serialize, Deserialize)]
struct Beginning {
    messages: History,
}

/// What all clones share, whoever spawned them.
struct Shared {
    permits: Option<Semaphore>,
    /// What the clones left for one another.
    history: Mutex<History>,
}

impl AgentTool {
    /// `blueprint` has the parent's guards in it already.
    pub(crate) fn new(blueprint: Blueprint, options: ChildOptions) -> Self {
        let permits = options.max_parallel.map(Semaphore::new);
        let shared = Arc::new(Shared { permits, history: Mutex::new(History::new()) });
        Self { blueprint, options, shared }
    }

    /// The same tool of an agent that is a child itself: its parent's guards come along.
    pub(crate) fn as_child_of(&self, parent: &Chain, asker: Option<&Arc<dyn Asker>>) -> Self {
        Self {
            blueprint: self.blueprint.as_child_of(parent, asker),
            options: self.options.clone(),
            shared: self.shared.clone(),
        }
    }

    fn history(&self, cx: &ToolCx<'_>) -> Option<History> {
        match self.options.history_in {
            HistoryIn::None => None,
            HistoryIn::Child => Some(self.shared.history.lock().clone()),
            HistoryIn::Parent => Some(cx.agent().history()),
            HistoryIn::Given => Some(self.options.given.clone()),
        }
    }

    /// What the clone has said and heard when it starts. What other clones left depends on which of
    /// them were done by then, so in a recorded run it is on record.
    async fn beginning(
        &self,
        cx: &ToolCx<'_>,
        steps: Option<&Steps>,
    ) -> Result<Option<History>, Error> {
        match (self.options.history_in, steps) {
            (HistoryIn::Child, Some(steps)) => {
                let messages =
                    async { Ok(Beginning { messages: self.shared.history.lock().clone() }) };
                let Beginning { messages } = steps.step("history", &(), messages).await?;
                Ok(Some(messages))
            }
            _ => Ok(self.history(cx)),
        }
    }

    /// Hands on what the clone said and heard since it started.
    fn hand_out(&self, cx: &ToolCx<'_>, clone: &Agent, known: usize) {
        let said: Vec<Message> = clone.history().iter().skip(known).cloned().collect();
        match self.options.history_out {
            HistoryOut::None => {}
            HistoryOut::Child => self.shared.history.lock().extend(said),
            HistoryOut::Parent => {
                if let Some(turn) = cx.site.turn {
                    turn.rare().appended.lock().push((cx.index(), said));
                }
            }
        }
    }

    async fn run(
        &self,
        cx: &ToolCx<'_>,
        clone: &Agent,
        message: String,
        steps: Option<&Steps>,
    ) -> Result<String, Error> {
        let chat = cx.site.turn.and_then(|turn| turn.chat.clone());
        let mut request = clone.request(message).with_steps(steps).with_chat(chat);
        if let Some(context) = cx.context() {
            let context: ExecutionContext = context.child(context.user_intent());
            request = request.context(context);
        }
        if let Some(limit) = self.options.limit {
            request = request.limit(limit);
        }
        if cx.is_cancelled() {
            return Err(Error::cancelled());
        }
        let report = told(cx, clone, request.run(), || clone.cancel()).await;
        report.map(|report| report.output().to_owned())
    }

    /// Waits for a turn to come, where only so many clones may live at the same time.
    async fn permit(&self, cx: &ToolCx<'_>) -> Result<Option<SemaphorePermit<'_>>, Error> {
        let Some(permits) = &self.shared.permits else { return Ok(None) };
        let mut permit = pin!(permits.acquire());
        let mut cancelled = pin!(cx.cancelled());
        poll_fn(|task| {
            if cancelled.as_mut().poll(task).is_ready() {
                return Poll::Ready(Err(Error::cancelled()));
            }
            permit.as_mut().poll(task).map(|permit| Ok(permit.ok()))
        })
        .await
    }
}

/// Awaits what a clone does, and passes on a cancel of the parent. The clone then ends in its own
/// good order: children end before their parents (G2).
///
/// While the clone waits for a person so does the call: nobody's time counts.
async fn told<T>(
    cx: &ToolCx<'_>,
    clone: &Agent,
    work: impl Future<Output = T>,
    cancel: impl Fn(),
) -> T {
    let mut work = pin!(work);
    let mut told = false;
    let mut waiting = None;
    loop {
        let done = poll_fn(|task| {
            let mut polled = work.as_mut().poll(task);
            if polled.is_pending()
                && !told
                && cx.site.signal.is_some_and(|signal| signal.register(task.waker()))
            {
                told = true;
                cancel();
                polled = work.as_mut().poll(task);
            }
            match polled {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending if waits(clone) != waiting.is_some() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        match waiting.take() {
            None if done.is_none() => {
                let paused = cx.clock.pause();
                waiting = Some((Waiting::begin(**cx, Some(cx.as_batch())).await, paused));
            }
            None => {}
            Some((waited, _paused)) => waited.end().await,
        }
        if let Some(value) = done {
            return value;
        }
    }
}

/// Whether the clone can only wait for a person.
fn waits(clone: &Agent) -> bool {
    matches!(clone.phase(), Phase::AwaitingUserInput | Phase::AwaitingToolApproval)
}

fn cancelled() -> ToolOutput {
    ToolOutput::new("the call was cancelled", ToolStatus::Cancelled)
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
        let message = || {
            json!({
                "type": "object",
                "properties": {
                    "message": { "type": "string", "description": "What to ask the agent" },
                },
                "required": ["message"],
                "additionalProperties": false,
            })
        };
        ToolSpec::new(self.options.tool_name(&self.blueprint), description)
            .parameters(self.options.parameters.clone().unwrap_or_else(message))
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let message = self.options.told(arguments)?;
        let _permit = match self.permit(&cx).await {
            Ok(permit) => permit,
            Err(_) => return Ok(cancelled()),
        };
        // The clone's steps go into the parent's log, under the call.
        let steps = cx.own_steps();
        let began = self.beginning(&cx, steps.as_ref()).await;
        let history = began.map_err(ToolError::ends_turn)?;
        let remembers = self.blueprint.config().use_history;
        let known = history.as_ref().filter(|_| remembers).map_or(0, History::len);
        let number = self.blueprint.0.spawned.fetch_add(1, Ordering::Relaxed) + 1;
        let clone = cx.site.inner.offspring(&self.blueprint, Label::Tool(number), history);
        if let Some(steps) = &steps {
            // It is new: nobody has recorded it elsewhere.
            let _ = clone.record(steps);
        }
        let kept: Vec<_> = self.options.kept(arguments).collect();
        if !kept.is_empty() {
            clone.inner().write_state(kept).map_err(ToolError::new)?;
        }
        if let Some(turn) = cx.site.turn {
            turn.adopt(clone.inner());
        }
        let started = told(&cx, &clone, clone.startup(), || clone.inner().signal.set()).await;
        let result = match started {
            Ok(()) => self
                .run(&cx, &clone, message, steps.as_ref())
                .await
                .map_err(|error| ("Error", error)),
            Err(error) => Err(("Spawn failed", error)),
        };
        clone.shutdown().await;
        if let Some(turn) = cx.site.turn {
            turn.child_ended(clone.inner());
        }
        self.hand_out(&cx, &clone, known);
        match result {
            Ok(output) => Ok(ToolOutput::text(output)),
            Err((_, error)) if error.is_cancelled() && cx.is_cancelled() => Ok(cancelled()),
            // What parks the child parks the whole run.
            Err((_, error)) if error.parks() => Err(ToolError::ends_turn(error)),
            Err((what, error)) => Err(ToolError::new(format!("{what}: {error}"))),
        }
    }

    /// The clone's ends and its shutdown have budgets of their own.
    fn cancel_grace(&self) -> Duration {
        let config = self.blueprint.config();
        config.limits.ends + config.lifecycle.timeout
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn is_composite(&self) -> bool {
        true
    }
}
