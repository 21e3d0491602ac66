//! The file as this process has it: its path, the way it may be opened, and what its rows are sealed
//! with.

use super::Access;
use crate::key::{Identity, Seals, StoreKeys};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// A store's file. Stands for its path wherever one is wanted.
pub(crate) struct StoreFile {
    path: PathBuf,
    access: Access,
    sealed: Option<(Identity, Seals)>,
    keys: StoreKeys,
}

impl StoreFile {
    /// A file that is not known to be its user's.
    pub(super) fn new(path: &Path, access: Access, keys: &StoreKeys) -> Self {
        Self { path: path.to_owned(), access, sealed: None, keys: keys.clone() }
    }

    /// The same file, with what its rows are sealed with.
    pub(super) fn sealed(&self, identity: Identity, seals: Seals) -> Self {
        let sealed = Some((identity, seals));
        Self { path: self.path.clone(), access: self.access, sealed, keys: self.keys.clone() }
    }

    /// What its rows are sealed with; none if no key of the user's is its.
    pub(crate) fn seals(&self) -> Option<&Seals> {
        self.sealed.as_ref().map(|(_, seals)| seals)
    }

    /// Its name, if its key is known.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.sealed.as_ref().map(|(identity, _)| *identity)
    }

    /// Where its key is kept.
    pub(crate) fn keys(&self) -> &StoreKeys {
        &self.keys
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }
}

impl Deref for StoreFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
