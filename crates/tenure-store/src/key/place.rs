//! Where the keys of stores are kept: with their owner, never beside the store.

use super::lines::{KeyFile, empty};
use super::{Identity, StoreKey};
use crate::db::Draft;
use crate::error::{Explain, StoreError, StoreErrorKind};
use rustix::fs::{FlockOperation, flock};
use std::env;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The place where the keys of stores are kept.
///
/// Every row of a store is sealed with a key that is not in it. A store whose key is not here was
/// written by someone else, or by an earlier release: it can be read, and nothing in it is acted on
/// before it is adopted (see [`Store::adopt`](crate::Store::adopt)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreKeys(Place);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Folder(PathBuf),
    File(PathBuf),
    Nowhere,
}

/// The variable that names a file of keys.
pub(super) const VARIABLE: &str = "TENURE_STORE_KEY_FILE";

/// A key whose store is not where it was last driven.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrphanKey {
    /// The file of the key.
    pub file: PathBuf,
    /// The place where its store was. It may have been moved, or deleted.
    pub store: PathBuf,
}

impl StoreKeys {
    /// The user's own: the file that `TENURE_STORE_KEY_FILE` names, else the folder `tenure/stores`
    /// in `$XDG_DATA_HOME` or `~/.local/share`.
    pub fn of_user() -> Self {
        if let Some(file) = env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
            return Self::file(PathBuf::from(file));
        }
        Self(user_folder().map_or(Place::Nowhere, Place::Folder))
    }

    /// A folder with a file for each store. It is made when the first key is.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self(Place::Folder(folder.into()))
    }

    /// One file for every store. It is made when the first store is.
    pub fn file(file: impl Into<PathBuf>) -> Self {
        Self(Place::File(file.into()))
    }

    /// The folder or file; none if the user has neither a home nor a data folder.
    pub fn location(&self) -> Option<&Path> {
        match &self.0 {
            Place::Folder(path) | Place::File(path) => Some(path),
            Place::Nowhere => None,
        }
    }

    /// The folder of locks, if there is a place for one.
    pub(crate) fn locks(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Folder(folder) => Some(folder.join("locks")),
            Place::File(_) | Place::Nowhere => user_folder().map(|folder| folder.join("locks")),
        }
    }

    /// The keys whose stores are gone from their places, by the folder. Nothing deletes them: a store
    /// that was only moved needs its key.
    pub fn orphans(&self) -> Result<Vec<OrphanKey>, StoreError> {
        let Place::Folder(folder) = &self.0 else { return Ok(Vec::new()) };
        let what = "look at the keys of stores";
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.explain(folder, what)?,
        };
        let mut orphans = Vec::new();
        for entry in entries {
            let file = entry.explain(folder, what)?.path();
            let is_key = file.extension().is_some_and(|end| end == "key");
            // One that cannot be read is told of when its store is opened.
            let Some(Ok(Some(keys))) = is_key.then(|| KeyFile::read(&file)) else { continue };
            if let Some(store) = keys.store().filter(|store| !store.exists()) {
                orphans.push(OrphanKey { file, store });
            }
        }
        orphans.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(orphans)
    }

    /// The keys that may be a store's, the newest first.
    pub(crate) fn of(&self, identity: Identity) -> Result<Vec<StoreKey>, StoreError> {
        let Some(file) = self.place(identity) else { return Ok(Vec::new()) };
        Ok(KeyFile::read(&file)?.map(|keys| keys.of(identity)).unwrap_or_default())
    }

    /// A key for a new store, on disk when this returns.
    pub(crate) fn make(&self, identity: Identity, store: &Path) -> Result<StoreKey, StoreError> {
        let file = self.file_for(identity)?;
        let known = |keys: KeyFile| keys.of(identity).into_iter().next();
        if let Some(keys) = KeyFile::read(&file)? {
            return known(keys).ok_or_else(|| empty(&file));
        }
        let key = StoreKey::random(&file)?;
        let mut keys = KeyFile::default();
        keys.replace(None, std::slice::from_ref(&key));
        if let Place::Folder(_) = &self.0 {
            keys.set_store(store);
        }
        let what = "write the key of the store";
        let published = draft(&file, &keys).and_then(|draft| draft.publish(&file));
        if published.explain(&file, what)?.is_some() {
            return Ok(key);
        }
        // Another process was first with a file for all stores.
        KeyFile::read(&file)?.and_then(known).ok_or_else(|| empty(&file))
    }

    /// Puts keys in the place of those that a store has, the newest first. Those of other stores stay.
    pub(crate) fn replace(&self, identity: Identity, keys: &[StoreKey]) -> Result<(), StoreError> {
        let file = self.file_for(identity)?;
        self.change(&file, |there| there.replace(self.own(identity), keys))
    }

    /// Notes where the store of a key is. It is for people alone, so it may fail.
    pub(crate) fn note(&self, identity: Identity, store: &Path) {
        let (Place::Folder(_), Some(file)) = (&self.0, self.place(identity)) else { return };
        let there = KeyFile::read(&file).ok().flatten();
        if there.is_none_or(|keys| keys.is_noted(store)) {
            return;
        }
        if let Err(error) = self.change(&file, |keys| keys.set_store(store)) {
            tracing::debug!(%error, "the place of the store is not noted");
        }
    }

    /// Deletes the key of a store that was never there.
    pub(crate) fn forget(&self, identity: Identity) {
        if let (Place::Folder(_), Some(file)) = (&self.0, self.place(identity)) {
            drop(fs::remove_file(file));
        }
    }

    fn change(&self, file: &Path, change: impl FnOnce(&mut KeyFile)) -> Result<(), StoreError> {
        // One at a time: a file may have the keys of many stores. Where folders cannot be locked, the
        // owner sees to that.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new("."))).ok();
        let _ = folder.as_ref().map(|folder| flock(folder, FlockOperation::LockExclusive));
        let mut keys = KeyFile::read(file)?.unwrap_or_default();
        change(&mut keys);
        let written = draft(file, &keys).and_then(|draft| draft.replace(file));
        written.explain(file, "write the key of the store")
    }

    /// The store that a line for this one names: a file for all stores says whose a key is.
    fn own(&self, identity: Identity) -> Option<Identity> {
        matches!(self.0, Place::File(_)).then_some(identity)
    }

    fn place(&self, identity: Identity) -> Option<PathBuf> {
        match &self.0 {
            Place::Folder(folder) => Some(folder.join(format!("{identity}.key"))),
            Place::File(file) => Some(file.clone()),
            Place::Nowhere => None,
        }
    }

    fn file_for(&self, identity: Identity) -> Result<PathBuf, StoreError> {
        let Some(file) = self.place(identity) else {
            let message = format!(
                "there is no place for the key of a store: set HOME or XDG_DATA_HOME, or name a file \
                 with {VARIABLE}"
            );
            return Err(StoreError::new(StoreErrorKind::Io, message));
        };
        if let Place::Folder(folder) = &self.0 {
            private_folder(folder).explain(folder, "make the folder of the keys of stores")?;
        }
        Ok(file)
    }
}

impl Default for StoreKeys {
    fn default() -> Self {
        Self::of_user()
    }
}

/// Makes a folder that is the user's alone.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn user_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("tenure/stores"))
}

/// A file of keys that has no name yet.
fn draft(to: &Path, keys: &KeyFile) -> io::Result<Draft> {
    let draft = Draft::beside(to)?;
    fs::write(draft.path(), keys.to_string())?;
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        for keys in [
            StoreKeys::folder(folder.path().join("stores")),
            StoreKeys::file(folder.path().join("all.key")),
        ] {
            let (identity, store) = (Identity([7; 16]), &folder.path().join("tenure.db"));
            assert_eq!(keys.of(identity).expect("it is looked for"), []);
            let key = keys.make(identity, store).expect("it is made");
            assert_eq!(keys.make(identity, store).expect("it is there"), key);
            assert_eq!(keys.of(identity).expect("it is read"), vec![key.clone()]);
            let file = keys.place(identity).expect("there is a place");
            let mode = fs::metadata(&file).expect("it is there").mode() & 0o777;
            assert_eq!(mode, 0o600);
            let newer = StoreKey::random(&file).expect("there are random bytes");
            keys.replace(identity, &[newer.clone(), key.clone()]).expect("it is written");
            assert_eq!(keys.of(identity).expect("it is read"), [newer, key]);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).expect("it is set");
            let error = keys.of(identity).expect_err("anybody may have written it");
            assert!(error.to_string().contains("others may write it"), "{error}");
        }
        let made = fs::metadata(folder.path().join("stores")).expect("it is there");
        assert_eq!(made.mode() & 0o777, 0o700);
    }

    #[test]
    fn what_is_no_key_is_said_with_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("k");
        let key = "ab".repeat(32);
        for (text, said) in [
            (String::new(), "no key in it"),
            ("# a word\n".to_owned(), "no key in it"),
            ("abc\n".to_owned(), "line 1 is neither 64 hexadecimal digits"),
            (format!("{key}\n\n{key} abc\n"), "line 3 is neither"),
            (format!("{key} {} x\n", "cd".repeat(16)), "line 1 is neither"),
            (format!("{key}\n").repeat(1100), "more than 65536 bytes"),
        ] {
            fs::write(&file, text).expect("it is written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is set");
            let error = StoreKeys::file(&file).of(Identity([0; 16])).expect_err("it is none");
            let shown = error.to_string();
            assert!(shown.contains(said) && shown.contains("/k:"), "{shown}");
        }
    }

    #[test]
    fn a_file_for_all_stores_has_other_keys_for_a_store_whose_key_was_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("all.key");
        let keys = StoreKeys::file(&file);
        let (one, other) = (Identity([1; 16]), Identity([2; 16]));
        let shared = keys.make(one, Path::new("one.db")).expect("it is made");
        let note = format!("# of the team\n{}", fs::read_to_string(&file).expect("it is read"));
        fs::write(&file, note).expect("it is written");
        let new = StoreKey::random(&file).expect("there are random bytes");
        keys.replace(one, std::slice::from_ref(&new)).expect("it is written");
        assert_eq!(keys.of(one).expect("it is read"), [new], "the key it had is worthless");
        let of_other = keys.of(other).expect("it is read");
        assert_eq!(of_other, std::slice::from_ref(&shared), "others have theirs");
        assert_eq!(keys.make(other, Path::new("other.db")).expect("it is there"), shared);
        assert!(fs::read_to_string(&file).expect("it is read").contains("# of the team\n"));
    }

    #[test]
    fn keys_of_stores_that_are_gone_are_named_with_their_places() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = StoreKeys::folder(folder.path().join("stores"));
        assert_eq!(keys.orphans().expect("there is none"), []);
        let (there, gone) = (folder.path().join("there.db"), folder.path().join("gone.db"));
        fs::write(&there, "").expect("it is written");
        keys.make(Identity([1; 16]), &there).expect("it is made");
        keys.make(Identity([2; 16]), &gone).expect("it is made");
        let file = keys.place(Identity([2; 16])).expect("there is a place");
        let orphan = OrphanKey { file, store: gone };
        assert_eq!(keys.orphans().expect("it is read"), [orphan]);
        // It was only moved, and is driven where it is now.
        keys.note(Identity([2; 16]), &there);
        assert_eq!(keys.orphans().expect("it is read"), []);
        assert_eq!(keys.of(Identity([2; 16])).expect("it is read").len(), 1);
    }
}
