//! What is known of a server: how it is, and what it offers.

use super::McpUnmatched;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::tool::Effect;

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpStatus {
    /// Its name.
    pub name: Arc<str>,
    /// How the connection is.
    pub state: McpState,
    /// How many tools it has; the last count that is known.
    pub tools: usize,
    /// How many of its tools are taken, by the agents that run or by the one that was asked for.
    pub taken: usize,
    /// How many prompts it has; the last count that is known.
    pub prompts: usize,
    /// The patterns of filters that match nothing of what it offers.
    pub unmatched: Vec<McpUnmatched>,
    /// When it is tried again, if it failed.
    pub retry_in: Option<Duration>,
    /// The version of the protocol, once connected.
    pub protocol: Option<String>,
    /// What went wrong last, if that has not been put right since.
    pub error: Option<String>,
    /// The process, if it is one of ours.
    pub pid: Option<u32>,
}

/// How the connection to a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpState {
    /// Nobody needs it.
    #[default]
    Idle,
    /// It is being opened.
    Connecting,
    /// It is open.
    Connected,
    /// It could not be opened, or was lost. It is tried again as long as somebody needs it.
    Failed,
}

impl McpState {
    /// The state's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for McpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPrompt {
    /// Whose it is.
    pub server: Arc<str>,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What has to be filled in.
    pub arguments: Vec<McpPromptArgument>,
}

/// What has to be filled in to get a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpPromptArgument {
    /// Its name.
    pub name: String,
    /// What it means.
    pub description: Option<String>,
    /// Whether it may be left out.
    pub required: bool,
}

/// A resource that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpResource {
    /// Whose it is.
    pub server: Arc<str>,
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

/// A tool that a server offers, as far as an agent needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolFacts {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: serde_json::Value,
    pub(super) effect: Effect,
}

/// The last good lists of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    /// Whether they have been read at all.
    pub(super) is_known: bool,
    pub(super) tools: Arc<[ToolFacts]>,
    pub(super) prompts: Arc<[McpPrompt]>,
    pub(super) resources: Arc<[McpResource]>,
}
