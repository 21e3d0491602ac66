//! The tool servers of a team, for whoever talks to its agents.

use super::{Stage, Team, TeamError};
use std::collections::BTreeMap;
use tenure_core::message::Message;
use tenure_hosts::HostError;
use tenure_hosts::mcp::{McpPrompt, McpResource, McpStatus, McpView};

impl Team {
    /// How each tool server is, in the order of their names. Before the start and after the end
    /// none is connected.
    pub fn servers(&self) -> Vec<McpStatus> {
        match &*self.stage() {
            Stage::Running(life) => life.servers(),
            _ => None,
        }
        .unwrap_or_else(|| self.plan.servers.clone())
        .status()
    }

    /// How each tool server of an agent is, with what this agent takes of it.
    pub fn servers_of(&self, agent: &str) -> Result<Vec<McpStatus>, TeamError> {
        Ok(self.view(agent)?.map(|view| view.status()).unwrap_or_default())
    }

    /// Whether a tool of this name may come from a tool server of the team, once it is connected.
    pub fn may_come(&self, tool: &str) -> bool {
        self.plan.servers.may_have(tool)
    }

    /// The prompts that an agent's servers offer it; none if it uses no server.
    pub fn prompts(&self, agent: &str) -> Result<Vec<McpPrompt>, TeamError> {
        Ok(self.view(agent)?.map(|view| view.prompts()).unwrap_or_default())
    }

    /// The messages of a prompt, filled in.
    pub async fn prompt(
        &self,
        agent: &str,
        server: &str,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Message>, TeamError> {
        let view = self.used(agent)?;
        view.prompt(server, name, arguments).await.map_err(|error| failed(&error))
    }

    /// The resources that an agent's servers offer it; none if it uses no server.
    pub fn resources(&self, agent: &str) -> Result<Vec<McpResource>, TeamError> {
        Ok(self.view(agent)?.map(|view| view.resources()).unwrap_or_default())
    }

    /// The text of a resource.
    pub async fn resource(
        &self,
        agent: &str,
        server: &str,
        uri: &str,
    ) -> Result<String, TeamError> {
        let view = self.used(agent)?;
        view.read(server, uri).await.map_err(|error| failed(&error))
    }

    fn used(&self, agent: &str) -> Result<McpView, TeamError> {
        self.view(agent)?
            .ok_or_else(|| TeamError::choice(format!("the agent `{agent}` uses no tool server")))
    }

    /// What a running agent sees of the servers.
    fn view(&self, agent: &str) -> Result<Option<McpView>, TeamError> {
        let name = self.entry(Some(agent))?;
        match &*self.stage() {
            Stage::Running(life) => Ok(life
                .agents()
                .find(|(built, _)| &*built.name == name)
                .and_then(|(built, _)| built.view.clone())),
            _ => Err(TeamError::not_running("the team is not running; start it first")),
        }
    }
}

fn failed(error: &HostError) -> TeamError {
    TeamError::server(error.to_string())
}
