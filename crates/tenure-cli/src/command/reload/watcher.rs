//! Waiting for the files of a team to change.

use crate::terminal::Screen;
use crate::terminal::style::{WARN, paint};
use crate::terminal::text::clean_line;
use anyhow::{Context as _, Result};
use notify::Watcher as _;
use notify::{Config, ErrorKind, EventKind, PollWatcher, RecommendedWatcher, RecursiveMode};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::check::Loaded;
use tenure_cards::sources::{FileChange, Sources, Tracker};
use tenure_cards::team::Team;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A burst of changes is over when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(150);
/// It is looked at after this long, over or not.
const LONGEST: Duration = Duration::from_secs(1);
/// How often files are looked at where the system does not tell.
const POLL: Duration = Duration::from_millis(500);

/// Waits until a file changes that a team comes from.
///
/// Folders are watched and not files, because editors save by putting a new file in the place of the
/// old one. What counts is what files hold: one that is written again as it was is no change.
pub(crate) struct Watcher {
    tracker: Tracker,
    eyes: Eyes,
    /// The folders that are watched, each with its number on disk.
    watched: BTreeMap<PathBuf, u64>,
    bell: Arc<Notify>,
    /// The model in place of the cards' own, which may be a file.
    model: Option<String>,
    /// What could not be watched, once for each reason.
    excuses: Vec<String>,
}

/// Who tells that something happened.
enum Eyes {
    System(RecommendedWatcher),
    /// Where the system cannot tell, the folders are read again and again.
    Polling(PollWatcher),
}

impl Eyes {
    fn polling(bell: &Arc<Notify>) -> notify::Result<Self> {
        let config = Config::default().with_poll_interval(POLL).with_compare_contents(true);
        Ok(Self::Polling(PollWatcher::new(ring(bell), config)?))
    }

    fn watch(&mut self, folder: &Path) -> notify::Result<()> {
        match self {
            Self::System(it) => it.watch(folder, RecursiveMode::NonRecursive),
            Self::Polling(it) => it.watch(folder, RecursiveMode::NonRecursive),
        }
    }

    fn forget(&mut self, folder: &Path) {
        // A folder that is gone is not watched any more, and that is what is wanted.
        let _ = match self {
            Self::System(it) => it.unwatch(folder),
            Self::Polling(it) => it.unwatch(folder),
        };
    }
}

/// Rings for everything but mere reading.
fn ring(bell: &Arc<Notify>) -> impl Fn(notify::Result<notify::Event>) + Send + 'static {
    let bell = bell.clone();
    move |event| match event {
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        // Of an error nothing is known but that something happened; looking does no harm.
        _ => bell.notify_one(),
    }
}

impl Watcher {
    /// Watches the files that `team` comes from, as they are now.
    pub(crate) fn new(team: &Team) -> Result<Self> {
        let bell = Arc::new(Notify::new());
        let eyes = match RecommendedWatcher::new(ring(&bell), Config::default()) {
            Ok(eyes) => Ok((Eyes::System(eyes), None)),
            Err(error) => Eyes::polling(&bell).map(|eyes| (eyes, Some(error.to_string()))),
        };
        let (eyes, excuse) = eyes.context("the files cannot be watched")?;
        Self::with(team, bell, eyes, excuse)
    }

    fn with(team: &Team, bell: Arc<Notify>, eyes: Eyes, excuse: Option<String>) -> Result<Self> {
        let mut watcher = Self {
            tracker: Tracker::new(team.sources()),
            eyes,
            watched: BTreeMap::new(),
            bell,
            model: team.model_override().map(str::to_owned),
            excuses: excuse.as_deref().map(polls).into_iter().collect(),
        };
        watcher.attend()?;
        // Something may have changed after it was looked at and before it was watched.
        watcher.bell.notify_one();
        Ok(watcher)
    }

    /// Waits until a file has changed and the burst of changes is over: nothing for 150 ms, or after
    /// a second at most. Files that hold what they held do not count.
    ///
    /// # Cancel safety
    ///
    /// Nothing is missed: a change that was not told yet is told by the next call.
    pub(crate) async fn changed(&mut self) {
        loop {
            self.bell.notified().await;
            let bell = self.bell.clone();
            // A future that is dropped here has taken the ring of the bell with it.
            let rung = Rung(Some(&bell));
            let latest = Instant::now() + LONGEST;
            loop {
                let quiet = (Instant::now() + QUIET).min(latest);
                if timeout_at(quiet, bell.notified()).await.is_err() {
                    break;
                }
                if Instant::now() >= latest {
                    break;
                }
            }
            rung.heard();
            // Folders that were made meanwhile hold files that count. What cannot be watched is told
            // by whoever looks at the excuses; the rest still is.
            let _ = self.attend();
            if self.tracker.look() {
                return;
            }
        }
    }

    /// What has changed since the cards in use were read.
    pub(crate) fn changes(&self) -> Vec<FileChange> {
        self.tracker.changes()
    }

    /// The agents that those changes matter to.
    pub(super) fn touched(&self) -> BTreeSet<Arc<str>> {
        self.tracker.touched()
    }

    /// Says what cannot be watched as it should be, each thing once.
    pub(crate) fn excuse(&mut self, screen: &Screen) {
        for excuse in std::mem::take(&mut self.excuses) {
            screen.print(&format!("{} {}", paint(WARN, "warning:"), clean_line(&excuse)));
        }
    }

    /// These cards are in use now.
    pub(crate) fn follow(&mut self, loaded: &Loaded) {
        let sources = self.sources(loaded);
        self.tracker.follow(sources);
        let _ = self.attend();
    }

    /// These cards were read and may not come to be used: their files count as well.
    pub(super) fn consider(&mut self, loaded: &Loaded) {
        let sources = self.sources(loaded);
        self.tracker.consider(sources);
        let _ = self.attend();
    }

    /// This file counts as well, until other cards are followed.
    pub(super) fn attend_to(&mut self, file: PathBuf) {
        let mut sources = Sources::default();
        sources.insert(file);
        self.tracker.consider(sources);
        let _ = self.attend();
    }

    fn sources(&self, loaded: &Loaded) -> Sources {
        Sources::of(loaded).with_model(self.model.as_deref())
    }

    /// Watches the folders that matter now, and no others.
    fn attend(&mut self) -> Result<()> {
        let wanted = self.tracker.folders();
        let watched = std::mem::take(&mut self.watched);
        for (folder, number) in watched {
            // A folder that was removed and made again is another one.
            if wanted.contains(&folder) && number_of(&folder) == Some(number) {
                self.watched.insert(folder, number);
            } else {
                self.eyes.forget(&folder);
            }
        }
        for folder in wanted {
            let Some(number) = number_of(&folder) else { continue };
            if self.watched.contains_key(&folder) {
                continue;
            }
            match self.eyes.watch(&folder) {
                Ok(()) => {
                    self.watched.insert(folder, number);
                }
                Err(error) if is_limit(&error) && matches!(self.eyes, Eyes::System(_)) => {
                    self.excuses.push(polls(&error.to_string()));
                    self.eyes = Eyes::polling(&self.bell).context("the files cannot be watched")?;
                    self.watched.clear();
                    return self.attend();
                }
                // It went away in this moment.
                Err(_) if !folder.is_dir() => {}
                Err(error) => {
                    let excuse = format!("{} cannot be watched: {error}", folder.display());
                    if !self.excuses.contains(&excuse) {
                        self.excuses.push(excuse);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The number of a folder on disk; none if it is not there.
fn number_of(folder: &Path) -> Option<u64> {
    folder.metadata().ok().filter(|it| it.is_dir()).map(|it| it.ino())
}

/// Rings again if it is dropped before anybody has looked.
struct Rung<'a>(Option<&'a Notify>);

impl Rung<'_> {
    fn heard(mut self) {
        self.0 = None;
    }
}

impl Drop for Rung<'_> {
    fn drop(&mut self) {
        if let Some(bell) = self.0 {
            bell.notify_one();
        }
    }
}

/// Whether the system has no room for another watch.
fn is_limit(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        // Too many open files, in the process or in all.
        ErrorKind::Io(error) => matches!(error.raw_os_error(), Some(23 | 24 | 28)),
        _ => false,
    }
}

fn polls(why: &str) -> String {
    format!(
        "the system watches no more files ({why}), so they are looked at every {} ms; a higher \
         fs.inotify.max_user_watches lets it tell at once",
        POLL.as_millis()
    )
}

#[cfg(test)]
mod tests;
