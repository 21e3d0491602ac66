//! What a card says about tool servers.

use super::Secret;
use crate::server::Server;
use crate::source::Span;
use std::collections::BTreeMap;

/// Tool servers, and which of their tools, resources and prompts are taken.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct McpFields {
    /// The servers' names.
    pub servers: Vec<String>,
    /// By server, the tools that are taken; a server that is not here gives all.
    pub tools: BTreeMap<String, Vec<String>>,
    /// By server, the resources that are taken.
    pub resources: BTreeMap<String, Vec<String>>,
    /// By server, the prompts that are taken.
    pub prompts: BTreeMap<String, Vec<String>>,
    /// Servers that the card itself describes.
    pub connect: Vec<McpConnection>,
    /// Where each of `servers` is written.
    pub(crate) places: Vec<Span>,
}

impl McpFields {
    /// Whether the card names no server at all.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.connect.is_empty()
    }

    /// The servers that the card itself describes, as far as they can be connected to.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Server> {
        self.connect.iter().filter_map(|connection| connection.server.as_ref())
    }
}

/// A server that the card itself describes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpConnection {
    /// Its name; the key, if `mcp_connect` is a map.
    pub name: Option<String>,
    /// An address or a command.
    pub target: Option<String>,
    /// A provider's connector, in place of a target.
    pub connector_id: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who holds the connection.
    pub management: Management,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// A token for it.
    pub access_token: Option<Secret>,
    /// Whether its tools are listed only when they are needed.
    pub defer_loading: bool,
    /// How to prove who is asking; as written, with its values kept secret.
    pub auth: BTreeMap<String, Secret>,
    /// Which edition of the protocol is spoken.
    pub protocol_mode: ProtocolMode,
    /// The server, if the target can be used.
    pub server: Option<Server>,
    pub(crate) span: Span,
}

/// Who holds the connection to a tool server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Management {
    /// This program.
    #[default]
    Client,
    /// The model's provider.
    Provider,
}

/// Which edition of the protocol is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolMode {
    /// Found out when connecting.
    #[default]
    Auto,
    /// The newer.
    Modern,
    /// The older.
    Legacy,
}
