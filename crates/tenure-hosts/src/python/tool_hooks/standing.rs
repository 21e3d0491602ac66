//! What tool hooks make of a conversation.

use crate::Role;
use crate::reply::{Expect, Reply, RequestPatch};
use serde_json::{Value, json};
use std::collections::HashMap;
use tenure_core::hook::{HookAction, HookError, Point};
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Messages, ModelResponse, StopReason};

/// What was changed, as far as it makes sense.
pub(super) fn patch(
    changed: Value,
    messages: &Messages,
    response: Option<&ModelResponse>,
) -> Result<RequestPatch, HookError> {
    let expect = Expect::of_python(Point::BeforeModel, Role::Other);
    let reply = Reply::of_value(json!({ "request": changed }), &expect)?;
    let mut patch = reply.request.unwrap_or_default();
    if let Some(mut changed) = patch.take_messages() {
        let calls = messages.iter().flat_map(Message::calls);
        let calls = calls.chain(response.iter().flat_map(|response| &response.calls));
        keep_spelling(&mut changed, calls);
        patch.put_messages(changed);
    }
    Ok(patch)
}

/// Arguments that mean the same stay as the model wrote them.
fn keep_spelling<'a>(changed: &mut [Message], calls: impl Iterator<Item = &'a ToolCall>) {
    let written: HashMap<&str, &str> = calls.map(|call| (&*call.id, &*call.arguments)).collect();
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    for message in changed {
        let Message::Assistant { calls, .. } = message else { continue };
        for call in calls {
            if let Some(was) = written.get(&*call.id)
                && (*was == call.arguments || parsed(was) == parsed(&call.arguments))
            {
                call.arguments = (*was).to_owned();
            }
        }
    }
}

/// The conversation before an answer, and the answer, as they stand.
pub(super) struct Standing {
    pub(super) before: Messages,
    pub(super) response: ModelResponse,
    is_rewritten: bool,
    is_modified: bool,
    pub(super) extra: Vec<Message>,
}

impl Standing {
    pub(super) fn new(before: Messages, response: ModelResponse) -> Self {
        Self { before, response, is_rewritten: false, is_modified: false, extra: Vec::new() }
    }

    /// Takes over what a hook made of them: the last message of the assistant's is the answer, and
    /// what is behind it comes later.
    pub(super) fn change(&mut self, mut messages: Vec<Message>) {
        let answer = messages.iter().rposition(|it| matches!(it, Message::Assistant { .. }));
        // One that was there before is not the answer: then the hook took that away, and it stays.
        let is_answer = |at: &usize| {
            let old = self.before.iter().any(|it| *it == messages[*at]);
            !old || *at + 1 == messages.len()
        };
        if let Some(at) = answer.filter(is_answer) {
            self.extra.extend(messages.drain(at + 1..));
            if let Some(Message::Assistant { content, calls }) = messages.pop()
                && (content != self.response.content || calls != self.response.calls)
            {
                self.response.stop = match (calls.is_empty(), self.response.stop) {
                    (false, _) => StopReason::ToolUse,
                    (true, StopReason::ToolUse) => StopReason::EndTurn,
                    (true, stop) => stop,
                };
                (self.response.content, self.response.calls) = (content, calls);
                self.is_modified = true;
            }
        }
        if !self.before.iter().eq(messages.iter()) {
            self.before = messages.into();
            self.is_rewritten = true;
        }
    }

    pub(super) fn action(self) -> HookAction {
        let response = Box::new(self.response);
        if self.is_rewritten {
            HookAction::Rewrite { messages: self.before.iter().cloned().collect(), response }
        } else if self.is_modified {
            HookAction::Modify(response)
        } else {
            HookAction::Continue
        }
    }
}
