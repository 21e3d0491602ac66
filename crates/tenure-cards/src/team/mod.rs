//! All agents of a run: started together, asked, stopped together.
//!
//! A [`Team`] starts its agents children first and stops them in reverse, whatever happens in
//! between: a start that fails, a cancel, a dropped future. Each run is a chat of the agent that is
//! asked, so `before_chat` and `after_chat` are called around it; a [`Conversation`] is one chat of
//! many turns.

mod builder;
mod cast;
mod conversation;
mod error;
mod explain;
mod life;
mod recording;
mod reload;
mod run;
mod servers;

pub use builder::{Inspection, TeamBuilder};
pub use cast::Cast;
pub use conversation::{Conversation, Saying};
pub use error::{TeamError, TeamErrorKind};
pub use explain::{
    EntryExplanation, Explanation, ModelExplanation, PointExplanation, ServerExplanation,
};
pub use recording::Recording;
pub use run::Run;

use crate::build::{Assembly, Settings};
use crate::card::Card;
use crate::check::Loaded;
use crate::diagnostic::Report;
use life::Life;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_hosts::PythonConfig;
use tokio_util::task::TaskTracker;

/// How long is waited for what is no agent's own: runs that end, ends that were left behind.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// All agents of a run.
///
/// Dropping a team that was not shut down shuts it down in the background, in the same order.
pub struct Team {
    loaded: Loaded,
    settings: Settings,
    python: Option<PythonConfig>,
    /// Where its run is recorded, if it is.
    recording: Option<Recording>,
    /// What was built to be looked at. Nothing of it is ever started.
    plan: Assembly,
    life: Mutex<Stage>,
    /// What is stopped in the background: dropped starts, dropped shutdowns.
    background: TaskTracker,
}

/// How far a team has come.
enum Stage {
    Built,
    Starting,
    Running(Life),
    Over,
}

impl Team {
    /// Starts building a team of these cards.
    pub fn builder(loaded: Loaded) -> TeamBuilder {
        TeamBuilder::new(loaded)
    }

    /// The names of its agents, in the order in which they start.
    pub fn agents(&self) -> Vec<&str> {
        self.plan.agents.iter().map(|agent| &*agent.name).collect()
    }

    /// The names of the tools that its agents have, sorted. Those of MCP servers are not among
    /// them: they are known once a server is connected.
    pub fn tools(&self) -> Vec<Arc<str>> {
        let specs = self.plan.agents.iter().flat_map(|agent| agent.blueprint.tools());
        let names: BTreeSet<_> = specs.map(|spec| spec.name.clone()).collect();
        names.into_iter().collect()
    }

    /// The cards that it is made of.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// What checking and building had to say: warnings only, or there would be no team.
    pub fn warnings(&self) -> &Report {
        &self.plan.report
    }

    /// A running agent, by name.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        match &*self.stage() {
            Stage::Running(life) => life.agent(name),
            _ => None,
        }
    }

    /// The agent that a run talks to: the one that is named, else the one with `default: true`,
    /// else the only one that is nobody's child and not `tool_only`.
    pub fn entry(&self, name: Option<&str>) -> Result<&str, TeamError> {
        let names = || self.agents().join(", ");
        if let Some(name) = name {
            let found = self.plan.agents.iter().find(|agent| &*agent.name == name);
            return found.map(|agent| &*agent.name).ok_or_else(|| {
                TeamError::choice(format!("there is no agent `{name}`; there are: {}", names()))
            });
        }
        let card = |at: usize| -> &Card { &self.loaded.cards[at] };
        if let Some(agent) = self.plan.agents.iter().find(|agent| card(agent.card).default) {
            return Ok(&agent.name);
        }
        let is_child = |name: &str| {
            self.plan.agents.iter().any(|other| other.children.iter().any(|child| &**child == name))
        };
        let free: Vec<_> = self
            .plan
            .agents
            .iter()
            .filter(|agent| !card(agent.card).tool_only && !is_child(&agent.name))
            .map(|agent| &*agent.name)
            .collect();
        match *free {
            [only] => Ok(only),
            [] => Err(TeamError::choice(format!(
                "no agent can be talked to by itself; name one of: {}",
                names()
            ))),
            _ => Err(TeamError::choice(format!(
                "several agents could be meant: {}; name one of them, or mark one with \
                 `default: true`",
                free.join(", ")
            ))),
        }
    }

    /// Which hooks run at each point of an agent's life, in order (G12). Needs no start.
    pub fn explain(&self, agent: &str) -> Result<Explanation, TeamError> {
        let name = self.entry(Some(agent))?;
        explain::explanations(&self.plan, &self.loaded)
            .into_iter()
            .find(|explanation| explanation.agent == name)
            .ok_or_else(|| TeamError::choice(format!("there is no agent `{agent}`")))
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team").field("agents", &self.agents()).finish_non_exhaustive()
    }
}
