//! What a window does before a model is asked.

use super::super::tokens::Counted;
use super::cut::{Cut, TooMuch, Unit, Wanted, cut, units};
use super::{ContextWindow, fit, summary};
use serde_json::json;
use tenure_core::context::{InstanceCx, TurnCx};
use tenure_core::hook::{AgentLifecycle, Flow, HookError};
use tenure_core::message::Message;
use tenure_core::model::ModelRequest;
use tenure_macros::lifecycle;

/// The window at work.
pub(super) struct Window(pub(super) ContextWindow);

#[lifecycle]
impl AgentLifecycle for Window {
    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.0.counter.load().await;
        Ok(())
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        let counted = self.0.counter.request(request).await;
        let (total, most) = (counted.total(), self.0.most());
        let is_over = most.is_some_and(|most| total > most);
        if is_over || self.0.is_triggered(total, counted.messages.len()) {
            self.shorten(cx, request, &counted, most.unwrap_or(u64::MAX)).await?;
        }
        Ok(Flow::Continue)
    }
}

impl Window {
    async fn shorten(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        counted: &Counted,
        most: u64,
    ) -> Result<(), HookError> {
        let ContextWindow { summariser, counter, pin_first, .. } = &self.0;
        let units = units(request.messages.iter(), &counted.messages);
        let room = most.saturating_sub(counted.fixed);
        let wanted = |reserve| Wanted { room, reserve, keep: self.0.keep(), pin_first: *pin_first };
        let all: Vec<&Message> = request.messages.iter().collect();
        let reserve = summariser.as_ref().map_or(0, |it| it.writes.min(room / 4));
        let mut made = match cut(&units, wanted(reserve)) {
            Ok(cut) if cut.gone.is_empty() => return Ok(()),
            Ok(cut) => cut,
            Err(too_much) => {
                let messages = self.squeezed(&units, &all, &too_much, counted, most).await?;
                return self.replace(cx, request, counted, messages, "truncate", true).await;
            }
        };
        let mut summary = None;
        let mut failed = false;
        if let Some(summariser) = summariser {
            let gone = picked(&units, &all, made.gone.iter().copied());
            match summariser.summarise(cx, counter, &gone).await? {
                Ok(text) => summary = self.fitted(&text, room - made.tokens(&units)).await,
                Err(why) if self.0.fails => {
                    let message = format!("the conversation could not be summarised: {why}");
                    return Err(HookError::new(message));
                }
                Err(why) => {
                    tracing::warn!(agent = cx.agent_name(), "no summary: {why}");
                    cx.announce("window.no_summary", || json!({ "why": why }));
                    failed = true;
                }
            }
            if summary.is_none() {
                // Without it, there is more room, and something else to begin with.
                made = cut(&units, wanted(0)).unwrap_or(made);
            }
        }
        let how = if summary.is_some() { "summarise" } else { "trim" };
        let Cut { head, tail, .. } = &made;
        let mut messages: Vec<Message> = Vec::with_capacity(all.len());
        messages.extend(picked(&units, &all, head.iter().copied()).into_iter().cloned());
        messages.extend(summary);
        messages.extend(picked(&units, &all, tail.iter().copied()).into_iter().cloned());
        self.replace(cx, request, counted, messages, how, !failed).await
    }

    /// A summary that has room.
    async fn fitted(&self, text: &str, room: u64) -> Option<Message> {
        let counter = &self.0.counter;
        let message = summary::message(text);
        if counter.message(&message).await <= room {
            return Some(message);
        }
        let around = counter.message(&summary::message("")).await;
        let text = summary::shortened(counter, text, room.saturating_sub(around)).await;
        let message = summary::message(&text);
        (counter.message(&message).await <= room).then_some(message)
    }

    /// What has to stay in any case, with its results cut; or the error that there is no room for it.
    async fn squeezed(
        &self,
        units: &[Unit],
        all: &[&Message],
        too_much: &TooMuch,
        counted: &Counted,
        most: u64,
    ) -> Result<Vec<Message>, HookError> {
        let TooMuch { cut, needed } = too_much;
        let fixed = counted.fixed;
        let error = |needed: u64, what: &str| {
            HookError::new(format!(
                "the conversation does not fit: at most {most} tokens may go to the model, its \
                 instruction and tools have {fixed}, and its last exchange {what} has {needed}; \
                 raise `max_tokens` or `context_size`, or let results be cut with `on_overflow: \
                 truncate`"
            ))
        };
        if !self.0.truncate {
            return Err(error(*needed, "alone"));
        }
        let mut messages: Vec<Message> =
            picked(units, all, cut.kept()).into_iter().cloned().collect();
        let room = most.saturating_sub(fixed);
        match fit::cut_results(&self.0.counter, &mut messages, room).await {
            Ok(()) => Ok(messages),
            Err(left) => Err(error(left, "with its results cut")),
        }
    }

    /// Puts the messages into the request, and says so.
    async fn replace(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        before: &Counted,
        messages: Vec<Message>,
        how: &str,
        may_persist: bool,
    ) -> Result<(), HookError> {
        *request.messages.edit() = messages;
        if let Some(defect) = request.messages.defect() {
            return Err(HookError::new(format!(
                "the shortened conversation is not whole: {defect}"
            )));
        }
        let is_kept = may_persist && self.0.persist.unwrap_or(self.0.summariser.is_some());
        if is_kept {
            request.persist();
        }
        if cx.events().is_some() || cx.steps().is_some() {
            let after = self.0.counter.request(request).await;
            cx.announce("window.shortened", || {
                json!({
                    "how": how,
                    "tokens": { "before": before.total(), "after": after.total() },
                    "messages": { "before": before.messages.len(), "after": after.messages.len() },
                    "persisted": is_kept,
                })
            });
        }
        Ok(())
    }
}

/// The messages of units.
fn picked<'a>(
    units: &[Unit],
    all: &[&'a Message],
    which: impl Iterator<Item = usize>,
) -> Vec<&'a Message> {
    which.flat_map(|at| units[at].messages.clone()).map(|at| all[at]).collect()
}
