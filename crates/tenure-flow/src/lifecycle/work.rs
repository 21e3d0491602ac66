//! What a lifecycle tool runs, as a hook that gives a result beside.

use super::LifecycleCall;
use super::function::POINTS;
use super::platform::{ChatClock, Line};
use crate::people::WaitsForPerson;
use async_trait::async_trait;
use serde_json::Value;
use std::cell::RefCell;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError, Points};
use tenure_hosts::{CommandLifecycleTool, PythonLifecycleTool};

tokio::task_local! {
    /// Where the tool that is being called leaves its result: points of a life have no place for
    /// one, and between the tool and whoever waits for its result stand hooks.
    static RESULT: RefCell<Option<Value>>;
}

/// Leaves the result of the tool that is being called, if it is called as one.
pub(super) fn give(result: Value) {
    let _ = RESULT.try_with(|slot| slot.replace(Some(result)));
}

/// Makes a call, and gives what it returned and the result that it left.
pub(super) async fn with_result<T>(call: impl Future<Output = T>) -> (T, Value) {
    let taken = async {
        let out = call.await;
        (out, RESULT.with(RefCell::take).unwrap_or_default())
    };
    RESULT.scope(RefCell::default(), taken).await
}

/// What a lifecycle tool runs, if it is no hook by itself.
pub(super) enum Work {
    Python(PythonLifecycleTool),
    /// The project's own in place of the platform's at the begin of a chat.
    Begins(PythonLifecycleTool, ChatClock),
    Command(CommandLifecycleTool),
    Platform(Line),
}

impl Work {
    async fn call(&self, call: LifecycleCall<'_>) -> Result<(), HookError> {
        give(match self {
            Self::Python(tool) => tool.call(&call).await?,
            Self::Begins(tool, clock) => {
                clock.begin(call.cx());
                tool.call(&call).await?
            }
            Self::Command(tool) => tool.call(&call).await?,
            Self::Platform(line) => line.say(&call, false),
        });
        Ok(())
    }
}

#[async_trait]
impl AgentLifecycle for Work {
    fn points(&self) -> Points {
        POINTS
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        self.call(LifecycleCall::before_chat(cx)).await?;
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        let call = LifecycleCall::after_chat(cx, end);
        if let Self::Platform(line) = self {
            give(line.say(&call, end.error.as_ref().is_some_and(WaitsForPerson::is_behind)));
            return Ok(());
        }
        self.call(call).await
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        self.call(LifecycleCall::before_agent(cx, input)).await?;
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.call(LifecycleCall::after_agent(cx, end)).await?;
        Ok(After::Done)
    }
}
