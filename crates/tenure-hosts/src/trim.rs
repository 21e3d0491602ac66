//! Forgetting the tools of a turn that is over.

use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, Flow, HookAction, HookError, Point, Points};
use tenure_core::message::{History, Message};
use tenure_core::model::{ModelRequest, ModelResponse};

/// Keeps of a turn what was asked, its last tool calls with their results, and the answer.
///
/// It acts when the answer comes, on turns that called tools more than once; turns before this one
/// stay as they are. Register it after the tool hooks of the same agent: their
/// `after_turn_complete` then sees all of the turn, and has the last word if it puts another
/// conversation in its place.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrimToolHistory;

/// The conversation before the model's next answer.
struct Conversation(History);

#[async_trait]
impl AgentLifecycle for TrimToolHistory {
    fn points(&self) -> Points {
        Points::from(Point::BeforeModel).with(Point::AfterModel)
    }

    fn name(&self) -> &str {
        "trim_tool_history"
    }

    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        cx.carry(Conversation(request.conversation()));
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        if !response.calls.is_empty() {
            return Ok(HookAction::Continue);
        }
        let conversation: Option<Arc<Conversation>> = cx.carried();
        let trimmed = conversation.and_then(|conversation| trimmed(&conversation.0));
        Ok(trimmed.map_or(HookAction::Continue, |messages| HookAction::Rewrite {
            messages,
            response: Box::new(response.clone()),
        }))
    }
}

/// The conversation before the answer without what is not kept; `None` if there is nothing to trim.
fn trimmed(conversation: &History) -> Option<Vec<Message>> {
    let messages: Vec<&Message> = conversation.iter().collect();
    let begin = messages.iter().rposition(|message| matches!(message, Message::User { .. }))?;
    let calls = |message: &&&Message| !message.calls().is_empty();
    if messages[begin..].iter().filter(calls).count() < 2 {
        return None;
    }
    let last = messages.iter().rposition(|message| !message.calls().is_empty())?;
    let kept = messages[..=begin].iter().chain(&messages[last..]);
    Some(kept.map(|message| (*message).clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::message::{ToolCall, ToolResult, ToolStatus};

    fn call(id: &str) -> Message {
        Message::Assistant { content: "".into(), calls: vec![ToolCall::new(id, "t", "{}")] }
    }

    fn result(id: &str) -> Message {
        Message::Tool(ToolResult {
            call_id: id.into(),
            name: "t".into(),
            content: "r".into(),
            status: ToolStatus::Ok,
        })
    }

    fn turn(name: &str, calls: usize) -> Vec<Message> {
        let rounds = (0..calls).flat_map(|at| {
            let id = format!("{name}{at}");
            [call(&id), result(&id)]
        });
        std::iter::once(Message::user(name)).chain(rounds).collect()
    }

    #[test]
    fn only_the_last_calls_of_this_turn_are_kept() {
        let long: History = turn("a", 3).into_iter().collect();
        assert_eq!(
            trimmed(&long),
            Some(vec![Message::user("a"), call("a2"), result("a2")]),
            "with the answer that is four"
        );
        for calls in [0, 1] {
            assert_eq!(trimmed(&turn("a", calls).into_iter().collect()), None);
        }
    }

    #[test]
    fn turns_before_this_one_stay_as_they_are() {
        let mut before = turn("a", 3);
        before.push(Message::assistant("done"));
        let all: History = before.iter().cloned().chain(turn("b", 2)).collect();
        let mut kept = before;
        kept.extend([Message::user("b"), call("b1"), result("b1")]);
        assert_eq!(trimmed(&all), Some(kept));

        let quiet: History = turn("a", 5).into_iter().chain(turn("b", 1)).collect();
        assert_eq!(trimmed(&quiet), None);
    }
}
