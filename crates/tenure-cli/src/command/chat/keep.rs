//! What is kept of a talk: what each agent has of it, after every turn. A later talk, or a run, goes
//! on there.

use super::super::recorded::{Place, conversation_of, must_be_over};
use crate::args::Chat;
use crate::exit::Stop;
use crate::terminal::print_plain;
use crate::terminal::style::{WARN, paint};
use anyhow::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_cards::project::Project;
use tenure_cards::team::{Team, TeamError};
use tenure_core::RunId;
use tenure_core::message::History;
use tenure_store::Store;

/// Keeps a talk.
pub(super) struct Keep {
    store: Store,
    thread: String,
    /// What was said before.
    before: Option<History>,
    /// Whether it was said that nothing can be kept.
    failed: AtomicBool,
}

impl Keep {
    /// Opens the project's records, if it has any, and finds the conversation that is to go on. Needs
    /// no right to drive: nothing but conversations is written.
    pub(super) fn open(args: &Chat, project: &Project, agent: &str) -> Result<Option<Self>> {
        let Some(place) = Place::wanted(&args.recording, project) else {
            return match args.goes_on {
                None => Ok(None),
                Some(_) => Err(Stop::usage(
                    "there are no records here, so no conversation can be continued: they are kept \
                     in projects with a tenure.toml, and with --store anywhere",
                )
                .into()),
            };
        };
        let (store, failed) = (place.open()?, AtomicBool::new(false));
        let Some(named) = args.goes_on.as_deref() else {
            let thread = RunId::unique().to_string();
            return Ok(Some(Self { store, thread, before: None, failed }));
        };
        let thread = conversation_of(&store, named, agent)?;
        must_be_over(&store, &place, &thread)?;
        let before = store.threads().load(&thread, agent)?;
        Ok(Some(Self { store, thread, before, failed }))
    }

    /// Has the agent remember what was said before.
    pub(super) fn recall(&self, team: &Team, agent: &str) -> Result<(), TeamError> {
        match &self.before {
            Some(before) => team.set_history(agent, before.clone()),
            None => Ok(()),
        }
    }

    /// Keeps what the agent has of the talk now. If that cannot be, it is said once, and the talk
    /// goes on.
    pub(super) async fn save(&self, team: &Team, agent: &str) {
        let Some(history) = team.history(agent) else { return };
        let saved = self.store.threads().save(&self.thread, agent, &history).await;
        if let Err(error) = saved
            && !self.failed.swap(true, Ordering::Relaxed)
        {
            let text = format!("what is said is not kept: {error}");
            print_plain(&format!("{} {text}", paint(WARN, "warning:")));
        }
    }
}
