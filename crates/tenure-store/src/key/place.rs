//! Where the keys of stores are kept: with their owner, never beside the store.

use super::{Identity, StoreKey};
use crate::error::{Explain, StoreError, StoreErrorKind};
use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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
const VARIABLE: &str = "TENURE_STORE_KEY_FILE";

/// No file of keys is longer.
const LONGEST: u64 = 64 << 10;

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

    /// The keys that may be a store's, the newest first.
    pub(crate) fn of(&self, identity: Identity) -> Result<Vec<StoreKey>, StoreError> {
        match self.place(identity) {
            Some(file) => read(&file),
            None => Ok(Vec::new()),
        }
    }

    /// Whether keys are kept by the identity of their stores: then one that is there is this store's.
    pub(crate) fn is_by_identity(&self) -> bool {
        matches!(self.0, Place::Folder(_))
    }

    /// A key for a new store, on disk when this returns.
    pub(crate) fn make(&self, identity: Identity) -> Result<StoreKey, StoreError> {
        let file = self.file_for(identity)?;
        let known = read(&file)?.into_iter().next();
        if let Some(key) = known {
            return Ok(key);
        }
        let key = StoreKey::random(&file)?;
        match write(&file, std::slice::from_ref(&key), Over::Nothing) {
            // Another process may have been first with a file for all stores.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read(&file)?.into_iter().next().ok_or_else(|| empty(&file))
            }
            written => written.explain(&file, "write the key of the store").map(|()| key),
        }
    }

    /// Puts keys in the place of those that are there, the newest first.
    pub(crate) fn replace(&self, identity: Identity, keys: &[StoreKey]) -> Result<(), StoreError> {
        let file = self.file_for(identity)?;
        write(&file, keys, Over::Another).explain(&file, "write the key of the store")
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

fn read(path: &Path) -> Result<Vec<StoreKey>, StoreError> {
    let what = "read the key of the store";
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.explain(path, what)?,
    };
    let metadata = file.metadata().explain(path, what)?;
    let owner = metadata.uid();
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err(refused(path, format_args!("it belongs to another user (uid {owner})")));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused(path, "others may write it; `chmod 600` makes it yours alone"));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).explain(path, what)?;
    let keys: Option<Vec<StoreKey>> = text.split_whitespace().map(StoreKey::from_hex).collect();
    match keys {
        Some(keys) if !keys.is_empty() => Ok(keys),
        Some(_) => Err(empty(path)),
        None => Err(refused(path, "a line of it is not 64 hexadecimal digits")),
    }
}

enum Over {
    Nothing,
    Another,
}

/// Writes a file of keys, there whole or not at all.
fn write(path: &Path, keys: &[StoreKey], over: Over) -> io::Result<()> {
    let text: String = keys.iter().map(|key| key.to_hex() + "\n").collect();
    let draft = path.with_extension(format!("{}.part", tenure_core::RunId::unique()));
    let result = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        match over {
            Over::Another => fs::rename(&draft, path)?,
            Over::Nothing => fs::hard_link(&draft, path)?,
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    })();
    let _ = fs::remove_file(&draft);
    result
}

fn empty(path: &Path) -> StoreError {
    refused(path, "there is no key in it")
}

fn refused(path: &Path, wrong: impl std::fmt::Display) -> StoreError {
    let message = format!(
        "{}: cannot read the key of the store: {wrong}. Put the right file in its place, or name \
         another one with {VARIABLE}",
        path.display()
    );
    StoreError::new(StoreErrorKind::Io, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        for keys in [
            StoreKeys::folder(folder.path().join("stores")),
            StoreKeys::file(folder.path().join("all.key")),
        ] {
            let identity = Identity([7; 16]);
            assert_eq!(keys.of(identity).expect("it is looked for"), []);
            let key = keys.make(identity).expect("it is made");
            assert_eq!(keys.make(identity).expect("it is there"), key);
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
        for (text, said) in [("", "no key in it"), ("abc\n", "64 hexadecimal digits")] {
            fs::write(&file, text).expect("it is written");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is set");
            let error = StoreKeys::file(&file).of(Identity([0; 16])).expect_err("it is none");
            let shown = error.to_string();
            assert!(shown.contains(said) && shown.contains("/k:"), "{shown}");
        }
    }
}
