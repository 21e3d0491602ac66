//! The servers of a team.

use super::names::may_be_of;
use super::server::Server;
use super::{McpSelection, McpServer, McpStatus, McpView};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_process::Environment;
use tokio_util::task::TaskTracker;

/// The tool servers of a team: one connection each, shared by the agents.
///
/// A connection is opened when the first instance that needs it starts, and closed after the last
/// one has shut down. Clones are one and the same.
#[derive(Clone)]
pub struct McpServers {
    servers: Arc<BTreeMap<Arc<str>, Arc<Server>>>,
}

impl McpServers {
    /// These servers. Processes get `environment` and what their transport says.
    pub fn new(servers: impl IntoIterator<Item = McpServer>, environment: Environment) -> Self {
        let tracker = TaskTracker::new();
        let server = |config: McpServer| {
            let name = config.name.clone();
            let environment = config.environment.clone().unwrap_or_else(|| environment.clone());
            (name, Arc::new(Server::new(config, environment, tracker.clone())))
        };
        Self { servers: Arc::new(servers.into_iter().map(server).collect()) }
    }

    /// What an agent sees that wants this. A server that there is not is left out, with a warning.
    pub fn view(&self, selections: Vec<McpSelection>) -> McpView {
        let known = |selection: McpSelection| match self.servers.get(&selection.server) {
            Some(server) => Some((server.clone(), selection)),
            None => {
                tracing::warn!(target: "tenure::mcp", "there is no server `{}`", selection.server);
                None
            }
        };
        McpView::new(selections.into_iter().filter_map(known).collect())
    }

    /// Whether a name could be that of a tool of one of the servers, as agents call them:
    /// `<server>__<tool>`. Which tools there are is known once a server is connected.
    pub fn may_have(&self, tool: &str) -> bool {
        self.servers.keys().any(|server| may_be_of(server, tool))
    }

    /// How each server is, in the order of their names, with what the agents take that run.
    pub fn status(&self) -> Vec<McpStatus> {
        self.servers.values().map(|server| server.status()).collect()
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.servers.keys()).finish()
    }
}
