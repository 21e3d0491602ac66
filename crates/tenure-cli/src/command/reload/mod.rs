//! Taking files again after they changed, while agents live.
//!
//! [`Watcher`] tells when, [`reload`] does it: everything is read and checked again, trust is asked
//! for where something else would run, the new team is started beside the old one, and only then
//! the old one may end. Whatever goes wrong on the way is told, and the old team stays.

mod rerun;
mod told;
mod watcher;

pub(super) use rerun::{Rerun, rerun};
pub(super) use watcher::Watcher;

use super::cards::named;
use super::project::{Opened, items_of};
use crate::signal::Stopper;
use crate::terminal::Screen;
use crate::trust::{Leave, Store, admit, confirm_unchanged};
use std::path::PathBuf;
use std::time::Instant;
use tenure_cards::diagnostic::Report;
use tenure_cards::team::Team;
use tenure_core::CancelToken;
use told::Told;

/// How files are taken again.
pub(super) struct ReloadWishes {
    /// The card or folder that was asked for.
    pub(super) path: PathBuf,
    /// The agent that must be there, if one was named.
    pub(super) agent: Option<String>,
    /// Whether the new agents go on with the conversations of the old ones.
    pub(super) conversations: Conversations,
    /// What was said about trust.
    pub(super) leave: Leave,
    /// How it is told.
    pub(super) telling: Telling,
    /// The terminal that it is told on.
    pub(super) screen: Screen,
    /// What ends it half way.
    pub(super) stopper: Stopper,
}

/// What becomes of what was said to the old agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversations {
    /// The new agents go on with it.
    GoOn,
    /// They begin anew.
    BeginAnew,
}

/// How a reload is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// To a person.
    Words,
    /// To a person who wants to know of problems only.
    Problems,
    /// To a program, as lines of JSON on standard output; of problems a person is told too.
    Json,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Reloaded {
    /// The agents that run stay. Why is told.
    Kept,
    /// This team has been started, and goes on with the conversations of the old one if that was
    /// wished for. Whoever asked for it shuts the old one down.
    Replaced(Box<Team>),
}

/// Takes the files again. Call it when [`Watcher::changed`] says so, and best between turns: where
/// conversations go on, a turn that goes on in `current` is waited for.
///
/// Never fails, and never touches `current`. If the program is stopped meanwhile, or `cancel` is
/// cancelled, everything that was started has ended when it returns.
pub(super) async fn reload(
    current: &Team,
    wishes: &ReloadWishes,
    watcher: &mut Watcher,
    cancel: &CancelToken,
) -> Reloaded {
    let began = Instant::now();
    let changes = watcher.changes();
    let mut told = Told::new(wishes, current.loaded(), &changes);
    watcher.excuse(&wishes.screen);
    if changes.is_empty() {
        told.unchanged();
        return Reloaded::Kept;
    }
    match take(current, wishes, watcher, &mut told, cancel).await {
        Ok(team) => {
            told.replaced(current, &team, &watcher.touched(), began.elapsed());
            watcher.follow(team.loaded());
            Reloaded::Replaced(Box::new(team))
        }
        Err(why) => {
            told.kept(why);
            Reloaded::Kept
        }
    }
}

/// Why the old team stays.
enum Why {
    /// The check found errors.
    Broken(Box<Opened>),
    /// The cards cannot be run.
    Refused(Report),
    /// Anything else, in words.
    Said(String),
    /// A person did not want to wait for it.
    Cancelled,
    /// The program was told to end.
    Stopped,
}

async fn take(
    current: &Team,
    wishes: &ReloadWishes,
    watcher: &mut Watcher,
    told: &mut Told<'_>,
    cancel: &CancelToken,
) -> Result<Team, Why> {
    let opened = Opened::at(&wishes.path).map_err(|error| Why::Said(format!("{error:#}")))?;
    watcher.consider(&opened.loaded);
    if opened.report().has_errors() {
        return Err(Why::Broken(Box::new(opened)));
    }
    let (root, items) = (opened.root().to_owned(), opened.items());
    let team = current.successor(opened.loaded).map_err(Why::Refused)?;
    let name = named(wishes.agent.as_deref(), &wishes.path, team.loaded())
        .map_err(|error| Why::Said(format!("{error:#}")))?;
    team.entry(name.as_deref()).map_err(|error| Why::Said(format!("{error} (--agent NAME)")))?;

    // The question waits for a person, and that must not keep the program from being stopped.
    let (path, leave, agreed) = (wishes.path.clone(), wishes.leave, items.clone());
    let taken_back = cancel.clone();
    let admitted = {
        let _quiet = wishes.screen.hold();
        let asked =
            tokio::task::spawn_blocking(move || admit(&root, &path, &agreed, leave, &taken_back));
        tokio::select! {
            biased;
            () = wishes.stopper.stopped() => return Err(Why::Stopped),
            asked = asked => asked,
        }
    };
    let admitted = admitted.unwrap_or_else(|panic| Err(anyhow::anyhow!("{panic}")));
    if let Err(error) = admitted {
        if cancel.is_cancelled() {
            return Err(Why::Cancelled);
        }
        // Trust may be given elsewhere, and then nothing else changes.
        watcher.attend_to(Store::locate().unwrap_or_default());
        return Err(Why::Said(format!("{error:#}")));
    }
    if wishes.leave == Leave::AsRecorded {
        let unchanged = confirm_unchanged(&items, &items_of(team.loaded()));
        unchanged.map_err(|error| Why::Said(format!("{error:#}")))?;
    }

    told.warnings(team.warnings());
    let start = async {
        match wishes.conversations {
            Conversations::GoOn => team.start_after(current).await,
            Conversations::BeginAnew => team.start().await,
        }
    };
    let started = tokio::select! {
        biased;
        () = wishes.stopper.stopped() => None,
        () = cancel.cancelled() => None,
        started = start => Some(started),
    };
    match started {
        Some(Ok(())) => Ok(team),
        Some(Err(error)) => {
            team.shutdown().await;
            Err(Why::Said(error.to_string()))
        }
        None => {
            team.shutdown().await;
            team.settled().await;
            Err(if wishes.stopper.cause().is_some() { Why::Stopped } else { Why::Cancelled })
        }
    }
}
