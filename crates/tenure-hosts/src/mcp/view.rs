//! What one agent sees of the servers.

use super::filter::passes;
use super::names::Names;
use super::server::Server;
use super::status::Lists;
use super::tool::{McpTool, ReadResource};
use super::unmatched::{McpUnmatched, unmatched};
use super::{McpKeeper, McpPrompt, McpResource, McpSelection, McpStatus, content};
use crate::HostError;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::message::Message;
use tenure_core::tool::{Tool, ToolSource};

/// What one agent sees of the servers: a source of tools, and the prompts and resources.
///
/// It only looks. For connections there has to be a [`keeper`](McpView::keeper) among the hooks of
/// the agent; until they are open, and while a server is away, the tools that were known last are
/// there. A call then waits a little for the connection and fails with the reason.
#[derive(Clone)]
pub struct McpView {
    parts: Arc<[Part]>,
}

struct Part {
    server: Arc<Server>,
    wanted: McpSelection,
}

impl McpView {
    pub(super) fn new(parts: Vec<(Arc<Server>, McpSelection)>) -> Self {
        let parts = parts.into_iter().map(|(server, wanted)| Part { server, wanted });
        Self { parts: parts.collect() }
    }

    /// The servers, each once.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        for Part { server, .. } in &*self.parts {
            if servers.iter().all(|known| known.name() != server.name()) {
                servers.push(server.clone());
            }
        }
        servers
    }

    /// The hook that holds the connections open. Register it before hooks that use the tools.
    pub fn keeper(&self) -> McpKeeper {
        McpKeeper::new(self.clone())
    }

    /// How each server of this agent is, with what this agent takes of it.
    pub fn status(&self) -> Vec<McpStatus> {
        self.servers().iter().map(|server| server.status_for(&[self])).collect()
    }

    /// Whether this agent takes a tool of a server.
    pub(super) fn takes(&self, server: &Server, tool: &str) -> bool {
        let mut parts = self.parts_of(server);
        parts.any(|part| passes(part.wanted.tools.as_deref(), tool))
    }

    /// The patterns that match nothing of what a server offers.
    pub(super) fn unmatched(&self, server: &Server, lists: &Lists) -> Vec<McpUnmatched> {
        self.parts_of(server).flat_map(|part| unmatched(&part.wanted, lists)).collect()
    }

    fn parts_of(&self, server: &Server) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.server.name() == server.name())
    }

    /// The prompts, as they are known.
    pub fn prompts(&self) -> Vec<McpPrompt> {
        let mut all = Vec::new();
        for Part { server, wanted } in &*self.parts {
            let fits = |prompt: &&McpPrompt| passes(wanted.prompts.as_deref(), &prompt.name);
            all.extend(server.lists().prompts.iter().filter(fits).cloned());
        }
        all
    }

    /// The messages of a prompt, filled in.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Message>, HostError> {
        let part = self.part(server, "prompt", name, |wanted| wanted.prompts.as_deref())?;
        let got = part.server.get_prompt(name, arguments).await.map_err(HostError::new)?;
        Ok(content::messages(got))
    }

    /// The resources, as they are known.
    pub fn resources(&self) -> Vec<McpResource> {
        let mut all = Vec::new();
        for Part { server, wanted } in &*self.parts {
            let fits = |it: &&McpResource| passes(wanted.resources.as_deref(), &it.uri);
            all.extend(server.lists().resources.iter().filter(fits).cloned());
        }
        all
    }

    /// The text of a resource. What is not text is described in words.
    pub async fn read(&self, server: &str, uri: &str) -> Result<String, HostError> {
        let part = self.part(server, "resource", uri, |wanted| wanted.resources.as_deref())?;
        let read = part.server.read_resource(uri).await.map_err(HostError::new)?;
        Ok(content::resource(read))
    }

    /// The part that may use this.
    fn part(
        &self,
        server: &str,
        what: &str,
        name: &str,
        patterns: impl Fn(&McpSelection) -> Option<&[String]>,
    ) -> Result<&Part, HostError> {
        let mut parts = self.parts.iter().filter(|part| &**part.server.name() == server).peekable();
        if parts.peek().is_none() {
            return Err(HostError::new(format!("the agent uses no tool server `{server}`")));
        }
        parts.find(|part| passes(patterns(&part.wanted), name)).ok_or_else(|| {
            HostError::new(format!("the agent may not use the {what} `{name}` of `{server}`"))
        })
    }
}

impl ToolSource for McpView {
    fn version(&self) -> u64 {
        // Each only grows, so the sum is another one whenever one of them is.
        self.parts.iter().map(|part| part.server.version()).sum()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut names = Names::default();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for Part { server, wanted } in &*self.parts {
            for facts in &*server.lists().tools {
                if passes(wanted.tools.as_deref(), &facts.name) {
                    let name = names.name(server.name(), &facts.name);
                    tools.push(Arc::new(McpTool::new(name, facts, server.clone())));
                }
            }
            if let Some(patterns) = wanted.resources.as_ref().filter(|some| !some.is_empty()) {
                let name = names.name(server.name(), "read_resource");
                tools.push(Arc::new(ReadResource::new(name, patterns, server.clone())));
            }
        }
        tools
    }
}

impl fmt::Debug for McpView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|part| &part.wanted)).finish()
    }
}
