//! The agents of an orchestration: found, started when they are needed, and stopped again.

use super::Candidate;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::agent::{Agent, AgentConfig, AgentRegistry, Blueprint, Registry};
use tenure_core::context::ExecutionContext;
use tenure_core::phase::AgentState;
use tenure_core::{Error, InstanceId};

/// An agent that an orchestrator may give tasks to.
///
/// | made of | lives |
/// |---|---|
/// | a [`Blueprint`] | one instance for each orchestration, which ends it |
/// | an [`Agent`] that is ready | as before: whoever started it ends it |
/// | an [`Agent`] that was never started | until the orchestration that starts it ends it |
///
/// A terminated agent stays so; give the orchestrator a blueprint if it is to be used again.
#[derive(Clone)]
#[doc(alias = "WorkerAgent")]
pub struct Worker {
    source: Source,
    capabilities: Vec<Arc<str>>,
}

#[derive(Clone)]
enum Source {
    Handle(Agent),
    Blueprint(Blueprint),
}

impl Worker {
    /// The same, able to do this.
    #[must_use]
    pub fn can(mut self, capability: impl Into<Arc<str>>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.config().name
    }

    fn config(&self) -> &AgentConfig {
        match &self.source {
            Source::Handle(agent) => agent.config(),
            Source::Blueprint(blueprint) => blueprint.config(),
        }
    }

    fn candidate(&self) -> Candidate {
        // A clone of an agent has a name of its own.
        let name = match &self.source {
            Source::Handle(agent) => agent.name().into(),
            Source::Blueprint(blueprint) => blueprint.config().name.clone(),
        };
        let mut candidate = Candidate::new(name);
        candidate.description = (*self.config().description).into();
        candidate.capabilities = self.capabilities.clone();
        candidate
    }
}

impl From<Agent> for Worker {
    fn from(agent: Agent) -> Self {
        Self { source: Source::Handle(agent), capabilities: Vec::new() }
    }
}

impl From<&Agent> for Worker {
    fn from(agent: &Agent) -> Self {
        agent.clone().into()
    }
}

impl From<Blueprint> for Worker {
    fn from(blueprint: Blueprint) -> Self {
        Self { source: Source::Blueprint(blueprint), capabilities: Vec::new() }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("name", &self.name())
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

/// Those whom an orchestrator knows: its own workers, then the agents of its registry.
pub(crate) fn known(workers: &[Worker], registry: Option<&AgentRegistry>) -> Vec<Worker> {
    let mut known = workers.to_vec();
    if let Some(registry) = registry {
        for name in registry.names() {
            // Its own come first, also if they are registered.
            if known.iter().all(|worker| worker.candidate().name != name.as_str().into())
                && let Some(agent) = registry.find(&name)
            {
                known.push(agent.into());
            }
        }
    }
    known
}

/// The candidates that these workers are.
pub(crate) fn candidates(workers: &[Worker]) -> Vec<Candidate> {
    workers.iter().map(Worker::candidate).collect()
}

/// Which agents an orchestrator started itself, and how many orchestrations use each. The last one
/// ends it.
#[derive(Default)]
pub(crate) struct Leases(Mutex<BTreeMap<InstanceId, usize>>);

enum Lease {
    /// Somebody else's: it is not ours to end.
    Foreign,
    /// Started by this orchestrator, which ends it.
    Own,
    /// Started by this orchestrator, and about to be ended.
    Over,
}

impl Leases {
    fn take(&self, agent: &Agent) -> Lease {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match leases.get_mut(&agent.id()) {
            Some(0) => Lease::Over,
            Some(users) => {
                *users += 1;
                Lease::Own
            }
            None if agent.state() == AgentState::Uninitialized => {
                leases.insert(agent.id(), 1);
                Lease::Own
            }
            None => Lease::Foreign,
        }
    }

    /// Whether that was the last use.
    fn give_back(&self, agent: &Agent) -> bool {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match leases.get_mut(&agent.id()) {
            Some(users) => {
                *users = users.saturating_sub(1);
                *users == 0
            }
            None => true,
        }
    }
}

/// The agents of one orchestration.
pub(crate) struct Crew {
    workers: Vec<Worker>,
    candidates: Vec<Candidate>,
    /// The instance of each worker, once there is one.
    live: Vec<Option<Agent>>,
    /// Those that it has to end, in the order in which they were started.
    started: Vec<Agent>,
    leases: Arc<Leases>,
    context: Arc<ExecutionContext>,
}

impl Crew {
    pub(crate) fn new(
        workers: Vec<Worker>,
        leases: Arc<Leases>,
        context: Arc<ExecutionContext>,
    ) -> Self {
        let candidates = candidates(&workers);
        let live = vec![None; workers.len()];
        Self { workers, candidates, live, started: Vec::new(), leases, context }
    }

    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The agent of this name, started if it was not. A terminated one is an error that says so.
    pub(crate) async fn ready(&mut self, name: &str) -> Result<Agent, Error> {
        let Some(at) = self.candidates.iter().position(|it| &*it.name == name) else {
            return Err(Error::orchestration(format!("there is no agent `{name}`")));
        };
        if let Some(agent) = self.live[at].as_ref().filter(|it| is_alive(it)) {
            return Ok(agent.clone());
        }
        let agent = match &self.workers[at].source {
            Source::Blueprint(blueprint) => {
                let agent = blueprint.instance();
                self.started.push(agent.clone());
                agent
            }
            Source::Handle(agent) => {
                let agent = agent.clone();
                if self.live[at].is_none() {
                    match self.leases.take(&agent) {
                        Lease::Own => self.started.push(agent.clone()),
                        // Who ends it does so; its startup then says that it is over.
                        Lease::Over => agent.terminated().await,
                        Lease::Foreign => {}
                    }
                }
                agent
            }
        };
        // From here on it is ended with the others, however far its startup comes.
        self.live[at] = Some(agent.clone());
        if agent.state() == AgentState::Uninitialized {
            // Its start and its end belong to the trace. If it has a context, that one counts.
            let _ = agent.set_context((*self.context).clone());
        }
        agent.startup().await?;
        Ok(agent)
    }

    /// Whether nobody but this orchestration talks to the agent of this name.
    pub(crate) fn is_alone_with(&self, name: &str) -> bool {
        let at = self.candidates.iter().position(|it| &*it.name == name);
        at.is_some_and(|at| matches!(self.workers[at].source, Source::Blueprint(_)))
    }

    /// Ends those that this orchestration started, last to first. Never fails.
    pub(crate) async fn stop(&mut self) {
        self.live.clear();
        while let Some(agent) = self.started.pop() {
            if self.leases.give_back(&agent) {
                agent.shutdown().await;
            }
        }
    }
}

/// Whether it may still become or stay ready.
fn is_alive(agent: &Agent) -> bool {
    matches!(agent.state(), AgentState::Ready | AgentState::Busy | AgentState::Paused)
}
