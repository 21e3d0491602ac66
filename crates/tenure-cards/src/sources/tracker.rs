//! What has changed since cards were taken.

use super::{FileChange, Snapshot, Sources};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Knows what the files of some cards held when they were taken, and when they were last looked at.
#[derive(Clone, Debug)]
pub struct Tracker {
    sources: Sources,
    /// What the cards were made of that are in use.
    taken: Snapshot,
    /// What was there at the last look.
    seen: Snapshot,
}

impl Tracker {
    /// Takes the files as they are now for those that the cards were made of.
    pub fn new(sources: Sources) -> Self {
        let seen = sources.snapshot();
        Self { sources, taken: seen.clone(), seen }
    }

    /// Looks at the files. Says whether any of them holds something else than at the last look.
    pub fn look(&mut self) -> bool {
        let now = self.sources.snapshot();
        let differs = now != self.seen;
        self.seen = now;
        differs
    }

    /// What differed at the last look from what the cards in use were made of.
    pub fn changes(&self) -> Vec<FileChange> {
        self.taken.changes(&self.seen)
    }

    /// The agents that those changes matter to; what lies outside of the project matters to none.
    pub fn touched(&self) -> BTreeSet<Arc<str>> {
        let changes = self.changes();
        let own = changes.iter().filter(|it| it.path().starts_with(self.sources.root()));
        own.flat_map(|change| self.sources.users(change.path())).collect()
    }

    /// Which files count.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The folders to look at for changes, as [`Sources::folders`] says.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        self.sources.folders()
    }

    /// Lets the files of other cards count too, which were tried and are not in use: what is wrong
    /// with those may be mended in files that the cards in use do not know.
    pub fn consider(&mut self, others: Sources) {
        self.sources.extend(others);
        let present = self.sources.snapshot();
        self.taken = self.taken.carried(&self.sources, &present, &self.seen);
        self.seen = self.seen.carried(&self.sources, &present, &self.seen);
    }

    /// Other cards are in use. They were made of what was there at the last look, so what has
    /// changed since then is found by the next one.
    pub fn follow(&mut self, sources: Sources) {
        self.sources = sources;
        let present = self.sources.snapshot();
        self.seen = self.seen.carried(&self.sources, &present, &self.seen);
        self.taken = self.seen.clone();
    }
}
