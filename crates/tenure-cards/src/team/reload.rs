//! One team in the place of another: what a reload is made of.
//!
//! The agents of a team share workers, servers and each other, so a team is replaced as a whole:
//! the new one is built of the files as they are now, started beside the old one, takes over the
//! conversations, and then the old one is shut down. Whatever fails before that leaves the old one
//! as it is.

use super::{Stage, Team, TeamBuilder, TeamError};
use crate::check::Loaded;
use crate::diagnostic::Report;
use crate::sources::Sources;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::message::History;

impl Team {
    /// Builds a team of other cards with the settings of this one: the same model override, hook
    /// catalog, events, asker and Python. Starts nothing, and leaves this team as it is.
    pub fn successor(&self, loaded: Loaded) -> Result<Self, Report> {
        TeamBuilder::after(self, loaded).build()
    }

    /// Starts this team beside `old`, and takes over its conversations.
    ///
    /// First every agent is started, as [`start`](Team::start) does it. Then it waits until no run
    /// goes on in `old`, which is not told and not cancelled. Then agents that have the same name in
    /// both go on with what the old one has said and heard, unless nothing was said there, or they
    /// keep no history; nothing else is taken over, because `on_start` makes it anew. The caller
    /// shuts the old team down, so that its `on_shutdown` comes after every new `on_start`.
    ///
    /// If the start fails, everything that it started has ended, and `old` goes on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before this team is started stops what was started, in the background;
    /// [`settled`](Team::settled) waits for that. Dropping it later leaves both teams running.
    pub async fn start_after(&self, old: &Self) -> Result<(), TeamError> {
        self.start().await?;
        old.idle().await;
        for (name, said) in old.conversations() {
            let Some(agent) = self.agent(&name) else { continue };
            if agent.config().use_history {
                let taken = agent.set_history(said);
                taken.map_err(|error| {
                    let what = format!("agent `{name}` cannot go on with its conversation");
                    TeamError::start(format!("{what}: {error}"), Some(error))
                })?;
            }
        }
        Ok(())
    }

    /// Waits until no run goes on. Runs may begin at any time after that, or before it returns.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn idle(&self) {
        let runs = match &*self.stage() {
            Stage::Running(life) => life.runs(),
            _ => None,
        };
        if let Some(runs) = runs {
            runs.idle().await;
        }
    }

    /// The files that this team comes from.
    pub fn sources(&self) -> Sources {
        Sources::of(&self.loaded).with_model(self.model_override())
    }

    /// The model that every agent uses in place of its own, if there is one.
    pub fn model_override(&self) -> Option<&str> {
        self.settings.model.as_deref()
    }

    /// What the agents have said and heard since they started, with what they knew before.
    fn conversations(&self) -> Vec<(Arc<str>, History)> {
        let Stage::Running(life) = &*self.stage() else { return Vec::new() };
        let said = |known: &Option<History>, agent: &Agent| {
            let history = agent.history();
            (history != known.clone().unwrap_or_default()).then_some(history)
        };
        let agents = life.agents();
        agents
            .filter_map(|(built, it)| Some((built.name.clone(), said(&built.history, it)?)))
            .collect()
    }
}
