//! What files hold at one moment.

use super::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

/// What some files hold at one moment, by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    files: BTreeMap<PathBuf, String>,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChange {
    /// It was not there before.
    New(PathBuf),
    /// It holds something else.
    Changed(PathBuf),
    /// It is not there any more.
    Gone(PathBuf),
}

impl FileChange {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::New(path) | Self::Changed(path) | Self::Gone(path) => path,
        }
    }

    /// What became of it, in a word: `new`, `changed` or `gone`.
    pub fn what(&self) -> &'static str {
        match self {
            Self::New(_) => "new",
            Self::Changed(_) => "changed",
            Self::Gone(_) => "gone",
        }
    }
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path().display(), self.what())
    }
}

impl Snapshot {
    pub(super) fn of(files: BTreeSet<PathBuf>) -> Self {
        let hashed = files.into_iter().map(|file| {
            // One that cannot be read differs from one that can, and that is what matters.
            let hash = crate::trust::sha256_of(&file).unwrap_or_else(|error| error.to_string());
            (file, hash)
        });
        Self { files: hashed.collect() }
    }

    /// What is different in `now`.
    pub(super) fn changes(&self, now: &Self) -> Vec<FileChange> {
        let mut changes = Vec::new();
        for (file, hash) in &now.files {
            match self.files.get(file) {
                None => changes.push(FileChange::New(file.clone())),
                Some(before) if before != hash => changes.push(FileChange::Changed(file.clone())),
                Some(_) => {}
            }
        }
        let gone = self.files.keys().filter(|file| !now.files.contains_key(*file));
        changes.extend(gone.cloned().map(FileChange::Gone));
        changes.sort_by(|a, b| a.path().cmp(b.path()));
        changes
    }

    /// This without the files that do not count any more, and with what `present` holds of files
    /// that `known` does not know: that those count now is no change of theirs.
    pub(super) fn carried(&self, sources: &Sources, present: &Self, known: &Self) -> Self {
        let kept = self.files.iter().filter(|(file, _)| sources.counts(file));
        let learnt = present.files.iter().filter(|(file, _)| !known.files.contains_key(*file));
        let mut files: BTreeMap<_, _> =
            learnt.map(|(file, hash)| (file.clone(), hash.clone())).collect();
        files.extend(kept.map(|(file, hash)| (file.clone(), hash.clone())));
        Self { files }
    }
}
