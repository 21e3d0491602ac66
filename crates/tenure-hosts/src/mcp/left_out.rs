//! What stands for tool servers in a build without the feature `mcp`: they have names, and offer nothing.

use super::names::may_be_of;
use super::{McpPrompt, McpResource, McpSelection, McpServer, McpState, McpStatus};
use crate::HostError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tenure_core::hook::{AgentLifecycle, Points};
use tenure_core::message::Message;
use tenure_core::tool::{Tool, ToolSource};
use tenure_process::Environment;

const NOT_BUILT: &str = "the feature `mcp` is not built in";

/// The servers of a team, none of which can be connected to. Cheap to clone.
#[derive(Clone, Debug)]
pub struct McpServers {
    names: Arc<BTreeSet<Arc<str>>>,
}

impl McpServers {
    /// Servers in this environment. None of them is started.
    pub fn new(servers: impl IntoIterator<Item = McpServer>, _: Environment) -> Self {
        Self { names: Arc::new(servers.into_iter().map(|server| server.name).collect()) }
    }

    /// Returns what an agent that wants this sees of them.
    pub fn view(&self, selections: Vec<McpSelection>) -> McpView {
        let known = selections.into_iter().map(|selection| selection.server);
        McpView { names: known.filter(|name| self.names.contains(name)).collect() }
    }

    /// Whether a tool of this name may be one of theirs.
    pub fn may_have(&self, tool: &str) -> bool {
        self.names.iter().any(|server| may_be_of(server, tool))
    }

    /// Returns how each of them is, in the order of their names.
    pub fn status(&self) -> Vec<McpStatus> {
        self.names.iter().map(failed).collect()
    }
}

/// What one agent sees of the servers: nothing.
#[derive(Clone, Debug)]
pub struct McpView {
    names: Arc<[Arc<str>]>,
}

impl McpView {
    /// Returns the hook that would hold the connections open.
    pub fn keeper(&self) -> McpKeeper {
        McpKeeper
    }

    /// Returns how each of its servers is.
    pub fn status(&self) -> Vec<McpStatus> {
        self.names.iter().map(failed).collect()
    }

    /// Returns the prompts that are offered.
    pub fn prompts(&self) -> Vec<McpPrompt> {
        Vec::new()
    }

    /// Fails.
    pub async fn prompt(
        &self,
        _server: &str,
        _name: &str,
        _arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Message>, HostError> {
        Err(HostError::new(NOT_BUILT))
    }

    /// Returns the resources that are offered.
    pub fn resources(&self) -> Vec<McpResource> {
        Vec::new()
    }

    /// Fails.
    pub async fn read(&self, _server: &str, _uri: &str) -> Result<String, HostError> {
        Err(HostError::new(NOT_BUILT))
    }
}

impl ToolSource for McpView {
    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

/// A hook that does nothing: there are no connections to hold open.
#[derive(Debug)]
pub struct McpKeeper;

impl AgentLifecycle for McpKeeper {
    fn points(&self) -> Points {
        Points::default()
    }

    fn name(&self) -> &str {
        "mcp-servers"
    }
}

fn failed(name: &Arc<str>) -> McpStatus {
    McpStatus {
        name: name.clone(),
        state: McpState::Failed,
        tools: 0,
        taken: 0,
        prompts: 0,
        unmatched: Vec::new(),
        retry_in: None,
        protocol: None,
        error: Some(NOT_BUILT.to_owned()),
        pid: None,
    }
}
