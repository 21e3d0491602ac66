//! Agents that somebody else starts: as many of each as there are chats.

use super::TeamError;
use super::life::unchanged;
use crate::build::{Assembly, Built, Settings};
use crate::check::Loaded;
use std::fmt;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::message::History;
use tenure_hosts::{Environment, PythonConfig, PythonHost};

/// The agents of some cards, built and not started, with what they share: the host of their Python
/// and the connections to their tool servers.
///
/// Made by [`TeamBuilder::cast`](super::TeamBuilder::cast). A [`Team`](super::Team) starts one of
/// each agent; here whoever has it makes instances, of one agent as many as there are chats.
pub struct Cast {
    agents: Vec<Built>,
    host: Option<PythonHost>,
}

impl Cast {
    pub(super) fn new(
        loaded: &Loaded,
        settings: &Settings,
        config: PythonConfig,
        environment: &Environment,
    ) -> Result<Self, TeamError> {
        let host = PythonHost::new(config);
        let assembly = Assembly::new(loaded, settings, &host, environment);
        unchanged(&assembly)?;
        Ok(Self { agents: assembly.agents, host: assembly.python.then_some(host) })
    }

    fn find(&self, name: &str) -> Option<&Built> {
        self.agents.iter().find(|built| &*built.name == name)
    }

    /// The names of the agents, children before those who call them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(|built| &*built.name)
    }

    /// An agent, to make instances of.
    pub fn blueprint(&self, name: &str) -> Option<&Blueprint> {
        self.find(name).map(|built| &built.blueprint)
    }

    /// What an agent has said and heard when it starts, if its card says anything of that.
    pub fn history(&self, name: &str) -> Option<&History> {
        self.find(name)?.history.as_ref()
    }

    /// Puts an instance, before it is started, into a group: everybody in it shares one Python
    /// worker, and so the live objects in it.
    pub fn join(&self, agent: &Agent, group: &str) {
        if let Some(host) = &self.host {
            host.join(agent.id(), group);
        }
    }

    /// Ends the worker of a group and forgets who was in it. For when all of them are over.
    pub async fn leave(&self, group: &str) {
        if let Some(host) = &self.host {
            host.leave(group).await;
        }
    }

    /// The host of their Python, if any of them needs one.
    pub fn python(&self) -> Option<&PythonHost> {
        self.host.as_ref()
    }

    /// Waits for ends that dropped runs left behind, then ends every Python worker. The instances
    /// have to be over: whoever started them stops them.
    pub async fn shutdown(&self) {
        let until = tokio::time::Instant::now() + super::SHUTDOWN;
        for built in self.agents.iter().rev() {
            let _ = tokio::time::timeout_at(until, built.blueprint.settled()).await;
        }
        if let Some(host) = &self.host {
            host.shutdown().await;
        }
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cast")
            .field("agents", &self.names().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
