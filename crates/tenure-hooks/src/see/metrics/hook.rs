//! The points at which something is counted.

use super::super::lifecycle::LifecycleCall;
use super::super::pump::Brought;
use super::super::seen::{failed_attempt, failure, lock, model_name, status};
use super::Center;
use super::numbers::{Came, OfAgent};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tenure_core::context::{InstanceCx, ToolCx, TurnCx};
use tenure_core::drive::{Input, TurnEnd};
use tenure_core::event::{Event, EventKind};
use tenure_core::hook::{After, AgentLifecycle, Flow, HookError};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{ExitReason, InstanceId, NextModel, NextTool};
use tenure_macros::lifecycle;

/// Counts what an agent does.
pub(super) struct Count(pub(super) Arc<Center>);

/// When a turn began, and what it counts into.
struct Began {
    at: Instant,
    of: Arc<OfAgent>,
}

#[lifecycle]
impl AgentLifecycle for Count {
    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let pumps = self.0.enter(cx.instance_id())?;
        if let Some(bus) = cx.events() {
            self.0.chats.join(&cx);
            pumps.attach(bus, handler(&self.0));
        }
        Ok(())
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _: ExitReason) -> Result<(), HookError> {
        self.0.leave(cx.instance_id()).await?;
        Ok(())
    }

    async fn before_agent(&self, cx: TurnCx<'_>, _: &mut Input) -> Result<Flow, HookError> {
        let of = self.0.numbers.turn_began(&cx.config().name);
        cx.carry(Began { at: Instant::now(), of });
        Ok(Flow::Continue)
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        if let Some(began) = cx.carried::<Began>() {
            let came = Came { to: end.outcome().as_str(), took: began.at.elapsed() };
            self.0.numbers.turn_ended(&began.of, came);
        }
        if let Some(saver) = &self.0.saver {
            saver.soon();
        }
        Ok(After::Done)
    }

    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let began = Instant::now();
        let result = next.call(request).await;
        let (to, usage) = match &result {
            Ok(response) => ("ok", Some(&response.usage)),
            Err(error) => (failure(error), None),
        };
        // Somebody further in may have had another model answer.
        let model = model_name(&cx, request);
        self.0.numbers.model(model, Came { to, took: began.elapsed() }, usage);
        Ok(result?)
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let began = Instant::now();
        let result = next.call(request).await;
        let to = match &result {
            Ok(output) => status(output.status),
            Err(error) => failure(error),
        };
        self.0.numbers.tool(request.name(), Came { to, took: began.elapsed() });
        Ok(result?)
    }
}

/// Counts what only events tell: hooks that failed, attempts that were made again, lifecycle tools, and
/// questions.
fn handler(center: &Arc<Center>) -> impl FnMut(Brought<'_>) -> bool + Send + 'static {
    let center: Weak<Center> = Arc::downgrade(center);
    let mut open = Questions::default();
    move |brought| {
        let Some(center) = center.upgrade() else { return false };
        match brought {
            Brought::Event(event) => {
                if center.is_watched(event.instance) {
                    center.take(event, &mut open);
                }
                center.chats.follow(event);
            }
            Brought::Missed => {
                // Which of them were answered is not known.
                open.clear();
                center.forget_the_gone();
            }
        }
        true
    }
}

/// Questions that are open, with who asks.
type Questions = BTreeMap<Arc<str>, InstanceId>;

impl Center {
    fn take(&self, event: &Event, open: &mut Questions) {
        match &event.kind {
            EventKind::HookEnded { hook, point, outcome, .. } if !outcome.is_ok() => {
                self.numbers.hook_failed(hook, point.as_str(), outcome.as_str());
            }
            EventKind::Announced { name, data } => {
                if let Some(failed) = failed_attempt(name, data) {
                    self.numbers.retried(failed.model, failed.kind);
                }
                if let Some(call) = LifecycleCall::read(name, data) {
                    self.numbers.lifecycle_tool(&call);
                }
                return;
            }
            EventKind::Asked { ask, .. } => {
                open.insert(ask.clone(), event.instance);
            }
            EventKind::Answered { ask, .. } | EventKind::AskEnded { ask, .. } => {
                open.remove(ask);
            }
            EventKind::TurnEnded { .. } => open.retain(|_, asks| *asks != event.instance),
            _ => return,
        }
        self.numbers.asks_waiting(open.len());
    }

    /// Returns `true` for an instance that is counted, or stands for a chat of one that is.
    fn is_watched(&self, instance: InstanceId) -> bool {
        lock(&self.state).users.contains(&instance) || self.chats.knows(instance)
    }
}
