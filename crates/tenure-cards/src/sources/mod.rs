//! The files that cards come from, so that a change of one of them can be noticed.
//!
//! [`Sources`] says which files count: cards, `tenure.toml`, what instructions take in, Python and
//! what it can import, programs, histories, scripts, skills; also those that are named and not there
//! yet. A [`Tracker`] knows what they held when it last looked. Nothing here waits for a change, and
//! nothing is executed.

mod collect;
mod folders;
mod snapshot;
mod tracker;

pub use snapshot::FileChange;
pub use tracker::Tracker;

use snapshot::Snapshot;

use crate::source::FileKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that some cards come from.
///
/// Files that a run itself is likely to write do not count: what a command is given that is no code,
/// caches, `.tenure/`.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    root: PathBuf,
    /// By file, there or not: the agents that it matters to. None named means all of them.
    files: BTreeMap<PathBuf, BTreeSet<Arc<str>>>,
    /// The folders of which every card counts.
    cards: BTreeSet<PathBuf>,
    /// Folders that Python imports from.
    python: BTreeSet<PathBuf>,
    /// The agents that run Python.
    pythonic: BTreeSet<Arc<str>>,
    /// Skills, and folders of skills.
    skills: BTreeMap<PathBuf, BTreeSet<Arc<str>>>,
    /// Every agent.
    agents: BTreeSet<Arc<str>>,
}

impl Sources {
    /// Counts these too: those of cards that were tried and not taken.
    pub fn extend(&mut self, other: Self) {
        for (file, agents) in other.files {
            self.files.entry(file).or_default().extend(agents);
        }
        self.cards.extend(other.cards);
        self.python.extend(other.python);
        self.pythonic.extend(other.pythonic);
        for (folder, agents) in other.skills {
            self.skills.entry(folder).or_default().extend(agents);
        }
        self.agents.extend(other.agents);
    }

    /// Counts one file more, which matters to every agent.
    pub fn insert(&mut self, file: impl Into<PathBuf>) {
        self.files.entry(file.into()).or_default();
    }

    /// The folder of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folders to look at for changes, each by itself and not with those in it. Editors save by
    /// putting a new file in the place of the old one, so files by themselves are not enough.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        for file in self.files.keys() {
            found.extend(file.parent().and_then(|folder| self.nearest(folder)));
        }
        found.extend(self.cards.iter().filter(|folder| folder.is_dir()).cloned());
        for folder in self.skills.keys() {
            found.extend(self.nearest(folder));
            found.extend(folders::children(folder));
        }
        found.extend(folders::walk(&self.python).folders);
        found
    }

    /// What the files hold now.
    fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.present())
    }

    /// The agents that a file matters to, by name.
    pub fn users(&self, file: &Path) -> BTreeSet<Arc<str>> {
        if let Some(users) = self.files.get(file) {
            return if users.is_empty() { self.agents.clone() } else { users.clone() };
        }
        let mut skills = self.skills.iter().filter(|(folder, _)| file.starts_with(folder));
        match skills.next() {
            Some((_, users)) => users.clone(),
            None if folders::is_python(file) => self.pythonic.clone(),
            None => BTreeSet::new(),
        }
    }

    /// Whether a file counts, there or not.
    fn counts(&self, file: &Path) -> bool {
        let is_card = || {
            let is_in = file.parent().is_some_and(|folder| self.cards.contains(folder));
            is_in && FileKind::of(file).is_some()
        };
        let is_skill = || {
            let folder = file.parent();
            let mut above = folder.into_iter().chain(folder.and_then(Path::parent));
            above.any(|folder| self.skills.contains_key(folder))
        };
        let is_module = || {
            folders::is_python(file) && self.python.iter().any(|folder| file.starts_with(folder))
        };
        self.files.contains_key(file) || is_card() || is_skill() || is_module()
    }

    /// Every file that counts and is there.
    fn present(&self) -> BTreeSet<PathBuf> {
        let mut found: BTreeSet<PathBuf> =
            self.files.keys().filter(|file| file.is_file()).cloned().collect();
        found.extend(self.cards.iter().flat_map(|folder| folders::cards(folder)));
        found.extend(self.skills.keys().flat_map(|folder| folders::manifests(folder)));
        found.extend(folders::walk(&self.python).files);
        found
    }

    /// The folder, or the nearest above it that is there: a folder that is made later shows up in
    /// that one.
    fn nearest(&self, folder: &Path) -> Option<PathBuf> {
        let found = folder.ancestors().find(|folder| folder.is_dir())?;
        // What lies outside, such as the user's own files, is looked at only where it is.
        (found == folder || found.starts_with(&self.root)).then(|| found.to_owned())
    }
}
