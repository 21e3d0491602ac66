//! What is said in a conversation, and the history that keeps it.
//!
//! A [`History`] is cheap to snapshot and to fork, because requests share it: cost per step does
//! not grow with the length of the conversation. Validity of a history (G8) is checked here too.

mod history;
mod valid;

pub use history::{History, HistoryIter};
pub use valid::HistoryDefect;

use crate::content::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// An instruction from the system.
    System {
        /// What it says.
        #[serde(rename = "text")]
        content: Content,
    },
    /// What the user, or whoever called the agent, said.
    User {
        /// What it says.
        #[serde(rename = "text")]
        content: Content,
    },
    /// What the model said.
    Assistant {
        /// What it says; may be empty beside tool calls.
        #[serde(rename = "text")]
        content: Content,
        /// The tools it wants called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// The result of one tool call.
    Tool(ToolResult),
}

impl Message {
    /// A system message.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::System { content: content.into() }
    }

    /// A user message.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::User { content: content.into() }
    }

    /// An assistant message without tool calls.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::Assistant { content: content.into(), calls: Vec::new() }
    }

    /// Returns what the message says; of a tool result what the tool said.
    pub fn content(&self) -> &Content {
        match self {
            Self::System { content } | Self::User { content } => content,
            Self::Assistant { content, .. } | Self::Tool(ToolResult { content, .. }) => content,
        }
    }

    /// Returns what the message says, to change it.
    pub fn content_mut(&mut self) -> &mut Content {
        match self {
            Self::System { content } | Self::User { content } => content,
            Self::Assistant { content, .. } | Self::Tool(ToolResult { content, .. }) => content,
        }
    }

    /// Returns the text of the message.
    pub fn text(&self) -> &str {
        self.content().text()
    }

    /// The tool calls of an assistant message; empty for every other.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant { calls, .. } => calls,
            _ => &[],
        }
    }
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that pairs the call with its result.
    pub id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments as the model wrote them: JSON, as yet unchecked.
    pub arguments: String,
    /// What the provider wants to get back beside this call, in its own form: a signature of the
    /// thoughts that led to it, for instance. Nobody else reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Arc<Value>>,
}

impl ToolCall {
    /// A call of the tool `name` with JSON `arguments`.
    pub fn new(
        id: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<String>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into(), continuation: None }
    }
}

/// The result of a tool call as the model gets to see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call that this answers.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub name: Arc<str>,
    /// What the tool said.
    pub content: Content,
    /// How the call ended.
    pub status: ToolStatus,
}

/// How a tool call ended, as its result records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// The tool ran and answered.
    Ok,
    /// The tool failed, its arguments were wrong, or it does not exist.
    Error,
    /// A guard or a person said no; the tool did not run.
    Denied,
    /// The turn was cancelled before the tool answered.
    Cancelled,
    /// The call was not made: the turn jumped past it.
    NotExecuted,
}
