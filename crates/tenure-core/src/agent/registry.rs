//! Agents by name, while they live.

use super::{Agent, WeakAgent};
use crate::id::InstanceId;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where agents register: at startup, before `on_start`, and until after `on_shutdown`.
///
/// A registry holds no handle that would keep an agent alive.
pub trait Registry: Send + Sync + 'static {
    /// An agent is starting. An error fails its startup.
    fn register(&self, agent: WeakAgent) -> Result<(), crate::Error>;
    /// An agent is over. Never fails.
    fn deregister(&self, id: InstanceId);
    /// The agent of this name, if it lives.
    fn find(&self, name: &str) -> Option<Agent>;
    /// The names of the agents that live, sorted, as far as the registry can tell.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A registry in memory.
#[derive(Clone, Default)]
pub struct AgentRegistry {
    agents: Arc<Mutex<BTreeMap<String, WeakAgent>>>,
}

impl AgentRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The names of the agents that live, sorted.
    pub fn names(&self) -> Vec<String> {
        self.agents.lock().keys().cloned().collect()
    }
}

impl Registry for AgentRegistry {
    fn register(&self, agent: WeakAgent) -> Result<(), crate::Error> {
        let mut agents = self.agents.lock();
        let name = agent.name().to_owned();
        if let Some(other) = agents.get(&name).filter(|other| other.id() != agent.id()) {
            return Err(crate::Error::invalid(format!(
                "an agent named `{name}` is registered already (instance {}); shut it down first, \
                 or give one of them another name",
                other.id()
            )));
        }
        agents.insert(name, agent);
        Ok(())
    }

    fn deregister(&self, id: InstanceId) {
        self.agents.lock().retain(|_, agent| agent.id() != id);
    }

    fn find(&self, name: &str) -> Option<Agent> {
        self.agents.lock().get(name)?.upgrade()
    }

    fn names(&self) -> Vec<String> {
        AgentRegistry::names(self)
    }
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
