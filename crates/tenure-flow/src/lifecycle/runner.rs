//! A lifecycle tool in an agent's chain.

use super::begun::Begun;
use super::work::with_result;
use super::{LifecycleTool, Run};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, Cx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::LogStream;
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError, Points};

/// A lifecycle tool: announces each call and what became of it, and takes no decision from it.
pub(super) struct Runner {
    pub(super) tool: Arc<LifecycleTool>,
    /// The name of its entry.
    pub(super) name: Arc<str>,
    pub(super) inner: Arc<dyn AgentLifecycle>,
}

impl Runner {
    /// Makes a call. What it decided is not done.
    async fn watch<T: Decides>(
        &self,
        cx: Cx<'_>,
        call: impl Future<Output = Result<T, HookError>> + Send,
    ) -> Result<(), HookError> {
        let begun = Begun::new(&self.tool, &self.name, cx);
        match with_result(call).await {
            (Ok(decided), result) => {
                if decided.is_decision() {
                    self.ignore(&cx, "it decided how to go on");
                }
                begun.returned(result);
                Ok(())
            }
            (Err(error), _) => {
                begun.failed(&error);
                Err(own(error))
            }
        }
    }

    fn ignore(&self, cx: &Cx<'_>, what: &str) {
        let line = format!("{what}, which a lifecycle tool cannot; it is ignored");
        cx.log(&self.name, LogStream::Host, &line);
    }
}

/// A refusal that a tool was told, or made up itself, is a failure of its own: what it means is
/// said by the tool's policy alone.
fn own(error: HookError) -> HookError {
    match error.downcast_ref::<Error>() {
        Some(refused) if refused.is_denied() => HookError::of_kind(error.kind(), error.to_string()),
        _ => error,
    }
}

/// What a point of a life returns.
trait Decides {
    fn is_decision(&self) -> bool;
}

impl Decides for () {
    fn is_decision(&self) -> bool {
        false
    }
}

impl Decides for Flow {
    fn is_decision(&self) -> bool {
        !matches!(self, Self::Continue)
    }
}

impl Decides for After {
    fn is_decision(&self) -> bool {
        !matches!(self, Self::Done)
    }
}

#[async_trait]
impl AgentLifecycle for Runner {
    fn points(&self) -> Points {
        self.tool.trigger.point().into()
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn before_chat(&self, cx: ChatCx<'_>) -> Result<Flow, HookError> {
        self.watch(*cx, self.inner.before_chat(cx)).await?;
        Ok(Flow::Continue)
    }

    async fn after_chat(&self, cx: ChatCx<'_>, end: &ChatEnd) -> Result<(), HookError> {
        self.watch(*cx, self.inner.after_chat(cx, end)).await
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        // What a tool does with its input stays with it.
        let mut seen = input.clone();
        self.watch(*cx, self.inner.before_agent(cx, &mut seen)).await?;
        if seen != *input {
            self.ignore(&cx, "it changed the input");
        }
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let is_foreign = matches!(self.tool.run, Run::Use { .. });
        let said = if is_foreign { end.output().map(str::to_owned) } else { None };
        let watched = self.watch(*cx, self.inner.after_agent(cx, end)).await;
        if let Some(said) = said
            && end.output() != Some(&said)
            && let Some(output) = end.content_mut()
        {
            output.set_text(said);
            self.ignore(&cx, "it changed the output");
        }
        watched?;
        Ok(After::Done)
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("name", &self.name)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}
