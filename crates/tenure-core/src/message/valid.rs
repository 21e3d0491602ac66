//! G8: at each commit every tool call has exactly one result, right behind its message.

use super::{Message, ToolCall};
use std::fmt;
use std::sync::Arc;

/// What is wrong with a list of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryDefect {
    /// A tool call has no result.
    Unanswered {
        /// The call's id.
        call_id: Arc<str>,
    },
    /// A tool result answers no call of the message before it, or answers it a second time.
    Orphan {
        /// The id that the result carries.
        call_id: Arc<str>,
    },
    /// Two calls of one message have the same id.
    DuplicateCall {
        /// The id.
        call_id: Arc<str>,
    },
}

impl fmt::Display for HistoryDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered { call_id } => write!(f, "tool call `{call_id}` has no result"),
            Self::Orphan { call_id } => {
                write!(f, "tool result `{call_id}` answers no call of the message before it")
            }
            Self::DuplicateCall { call_id } => {
                write!(f, "two tool calls of one message have the id `{call_id}`")
            }
        }
    }
}

impl std::error::Error for HistoryDefect {}

impl HistoryDefect {
    /// The first defect of `messages`, or `None` if every call has exactly one result.
    pub fn find<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Option<HistoryDefect> {
        let mut open: Vec<&ToolCall> = Vec::new();
        for message in messages {
            if let Message::Tool(result) = message {
                match open.iter().position(|call| call.id == result.call_id) {
                    Some(at) => {
                        open.remove(at);
                    }
                    None => {
                        return Some(Self::Orphan { call_id: result.call_id.clone() });
                    }
                }
                continue;
            }
            if let Some(call) = open.first() {
                return Some(Self::Unanswered { call_id: call.id.clone() });
            }
            for call in message.calls() {
                if open.iter().any(|other| other.id == call.id) {
                    return Some(Self::DuplicateCall { call_id: call.id.clone() });
                }
                open.push(call);
            }
        }
        open.first().map(|call| Self::Unanswered { call_id: call.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ToolResult, ToolStatus};
    use super::*;

    fn asks(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| ToolCall::new(*id, "tool", "{}")).collect();
        Message::Assistant { content: "".into(), calls }
    }

    fn answers(id: &str) -> Message {
        Message::Tool(ToolResult {
            call_id: id.into(),
            name: "tool".into(),
            content: String::new().into(),
            status: ToolStatus::Ok,
        })
    }

    #[test]
    fn g8_finds_unanswered_orphaned_and_repeated() {
        let id = |id: &str| Arc::<str>::from(id);
        let cases = [
            (vec![asks(&["a", "b"]), answers("b"), answers("a")], None),
            (vec![asks(&["a"])], Some(HistoryDefect::Unanswered { call_id: id("a") })),
            (
                vec![asks(&["a"]), Message::user("new turn")],
                Some(HistoryDefect::Unanswered { call_id: id("a") }),
            ),
            (vec![answers("a")], Some(HistoryDefect::Orphan { call_id: id("a") })),
            (
                vec![asks(&["a"]), answers("a"), answers("a")],
                Some(HistoryDefect::Orphan { call_id: id("a") }),
            ),
            (vec![asks(&["a", "a"])], Some(HistoryDefect::DuplicateCall { call_id: id("a") })),
        ];
        for (messages, expected) in cases {
            assert_eq!(HistoryDefect::find(&messages), expected);
        }
    }
}
