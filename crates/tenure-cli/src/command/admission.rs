//! What is settled before anything of a project is executed.

use super::project::{complain_about, items_of};
use super::reload::Watcher;
use super::session::Session;
use crate::args::Yes;
use crate::exit::Stop;
use crate::terminal::print_plain;
use crate::trust::{Item, Leave, admit, confirm_unchanged};
use anyhow::Result;
use std::path::Path;
use tenure_core::CancelToken;

/// Whom a command wants to talk to, and what it was allowed.
pub(super) struct Request<'a> {
    pub(super) root: &'a Path,
    /// What was named on the command line.
    pub(super) path: &'a Path,
    /// What would run, as it was when the files were read.
    pub(super) items: &'a [Item],
    pub(super) named: Option<&'a str>,
    pub(super) yes: &'a Yes,
    pub(super) trust: bool,
    pub(super) watch: bool,
    pub(super) quiet: bool,
}

/// A project that may be executed.
pub(super) struct Admitted {
    /// Who is talked to.
    pub(super) agent: String,
    pub(super) watcher: Option<Watcher>,
    pub(super) leave: Leave,
}

impl Session {
    /// Settles who is talked to, what is approved beforehand, and whether the project is trusted.
    pub(super) fn admit(&self, request: &Request<'_>) -> Result<Admitted> {
        let team = self.team();
        let agent = match team.entry(request.named) {
            Ok(agent) => agent.to_owned(),
            Err(error) => return Err(Stop::usage(format!("{error} (--agent NAME)")).into()),
        };
        let note = request.yes.check(&team.tools(), |tool| team.may_come(tool))?;
        if !request.quiet {
            complain_about(team.warnings());
            note.iter().for_each(|note| print_plain(&format!("note: {note}")));
        }
        // Before anybody is asked anything: what changes meanwhile is not lost.
        let watcher = request.watch.then(|| Watcher::new(team)).transpose()?;
        let leave = if request.trust { Leave::ForThisCommand } else { Leave::AsRecorded };
        // Ctrl-C still ends the program here.
        admit(request.root, request.path, request.items, leave, &CancelToken::new())?;
        if leave == Leave::AsRecorded {
            confirm_unchanged(request.items, &items_of(team.loaded()))?;
        }
        Ok(Admitted { agent, watcher, leave })
    }
}
