//! What a message hook is, as a file declares it.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tenure_core::hook::{Limit, Policy};
use tenure_hosts::PythonFunction;

/// What a message hook is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageHookType {
    /// `(sender, message, recipient, silent) -> message`: what an agent says, before anybody reads
    /// it.
    ProcessMessageBeforeSend,
    /// `(agent, messages) -> None`: before an agent's reply; it may change the agent's instruction
    /// for this turn.
    UpdateAgentState,
    /// `(message) -> str`: what an agent is told last.
    ProcessLastReceivedMessage,
    /// `(messages) -> list`: all that an agent is told, before it replies.
    ProcessAllMessagesBeforeReply,
}

impl MessageHookType {
    /// Every type.
    pub const ALL: [Self; 4] = [
        Self::ProcessMessageBeforeSend,
        Self::UpdateAgentState,
        Self::ProcessLastReceivedMessage,
        Self::ProcessAllMessagesBeforeReply,
    ];

    /// The name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProcessMessageBeforeSend => "process_message_before_send",
            Self::UpdateAgentState => "update_agent_state",
            Self::ProcessLastReceivedMessage => "process_last_received_message",
            Self::ProcessAllMessagesBeforeReply => "process_all_messages_before_reply",
        }
    }

    /// The parameters that its function is called with, by their places.
    pub const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::ProcessMessageBeforeSend => &["sender", "message", "recipient", "silent"],
            Self::UpdateAgentState => &["agent", "messages"],
            Self::ProcessLastReceivedMessage => &["message"],
            Self::ProcessAllMessagesBeforeReply => &["messages"],
        }
    }
}

impl fmt::Display for MessageHookType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MessageHookType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("`{text}` is no type of message hook; the types are {}", known.join(", "))
        })
    }
}

/// One entry of `hooks.json`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MessageHook {
    /// What it is called for.
    pub kind: MessageHookType,
    /// The agent it concerns; none means all of them, as `all` does in a file.
    pub agent: Option<Arc<str>>,
    /// The function.
    pub function: PythonFunction,
    /// The name that events and reports know it by; unique in the workflow.
    pub name: Arc<str>,
    /// Its purpose, as `explain` says it.
    pub description: Option<Arc<str>>,
    /// What a failure means; none means `abort`.
    pub policy: Option<Policy>,
    /// The most time that a call may take; none means 30 s.
    pub timeout: Option<Limit>,
    /// Whether it is called again when a run goes on in another process, where what it made the first
    /// time is gone.
    pub again_on_resume: bool,
    /// Where it is declared, as `file:line`.
    pub declared: Option<Arc<str>>,
}

impl MessageHook {
    /// A hook of all agents, under the name of its function.
    pub fn new(kind: MessageHookType, function: PythonFunction) -> Self {
        let name = function.name.clone();
        Self {
            kind,
            agent: None,
            function,
            name,
            description: None,
            policy: None,
            timeout: None,
            again_on_resume: false,
            declared: None,
        }
    }

    /// Whether it concerns this agent. The person is an agent only for a hook that names them.
    pub fn concerns(&self, agent: &str) -> bool {
        match &self.agent {
            Some(named) => **named == *agent,
            None => agent != crate::lifecycle::USER,
        }
    }
}
