//! A new file: there whole or not at all, and nobody else's to read.

use super::{Access, StoreFile, adopt, connect, schema};
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::key::{Identity, Seals, StoreKeys, private_folder, random};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tenure_core::RunId;

/// What a file is made with: what people say to agents is theirs. SQLite makes the files beside a
/// store with the rights of the store.
pub(super) const PRIVATE: u32 = 0o600;

/// A file that is given its name when it is whole, and goes with its maker if it is not.
pub(crate) struct Draft(PathBuf);

impl Draft {
    /// An empty file beside `to`.
    pub(crate) fn beside(to: &Path) -> io::Result<Self> {
        let path = with(to, &format!(".{}.part", RunId::unique()));
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name once it is on disk, and says how big it is; nothing, if there is such a file
    /// already.
    pub(crate) fn publish(&self, to: &Path) -> io::Result<Option<u64>> {
        let size = self.sync()?;
        // By this name alone: a store with two would be two to SQLite.
        match renameat_with(CWD, &self.0, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(None),
            // Not every file system can do it at once.
            Err(_) if self.claim(to)? => {}
            Err(_) => return Ok(None),
        }
        sync_folder(to)?;
        Ok(Some(size))
    }

    /// Takes the place of a file that may be there, once it is on disk.
    pub(crate) fn replace(&self, to: &Path) -> io::Result<()> {
        self.sync()?;
        fs::rename(&self.0, to)?;
        sync_folder(to)
    }

    fn sync(&self) -> io::Result<u64> {
        // Closed before it has its name: closing a file gives back the locks that another thread may
        // have on it by then.
        let file = File::open(&self.0)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }

    /// Gives it its name in two steps: an empty file says whose it is, and is replaced. `false` if there is
    /// such a file already.
    fn claim(&self, to: &Path) -> io::Result<bool> {
        match OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            claimed => drop(claimed?),
        }
        fs::rename(&self.0, to).inspect_err(|_| drop(fs::remove_file(to)))?;
        Ok(true)
    }
}

fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

impl Drop for Draft {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(with(&self.0, end));
        }
    }
}

pub(super) fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Makes a store, its key, and its folder. Another process may be faster; then its file is the one.
pub(super) fn store(path: &Path, keys: &StoreKeys) -> Result<(), StoreError> {
    // A link to a place where nothing is yet says where it is to be.
    let linked = fs::read_link(path).ok();
    let linked = linked.map(|to| path.parent().map_or(to.clone(), |folder| folder.join(&to)));
    let path = linked.as_deref().unwrap_or(path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private_folder(folder).explain(folder, "create the folder of a store")?;
    }
    let identity = Identity(random(path)?);
    // On disk before the store is: one without its key would be nobody's.
    let key = keys.make(identity, path)?;
    let file = StoreFile::new(path, Access::ReadWrite, keys);
    let made = fill(path, &file.sealed(identity, Seals::new(&key, identity)));
    // A store that has its name needs its key, whatever failed after that.
    let is_there = match &made {
        Ok(published) => published.is_some(),
        Err(_) => path.exists(),
    };
    if !is_there {
        keys.forget(identity);
    }
    made.map(drop)
}

/// Makes the file of a new store; none if there is one already.
fn fill(path: &Path, file: &StoreFile) -> Result<Option<u64>, StoreError> {
    let what = "make a store";
    let draft = Draft::beside(path).explain(path, what)?;
    let conn = connect(draft.path(), Access::ReadWrite)?;
    schema::create(&conn, path, || adopt::write_identity(&conn, file))?;
    conn.close().map_err(|(_, error)| error).explain(path, what)?;
    // What is on disk, and not what a connection remembers.
    let conn = connect(draft.path(), Access::ReadWrite)?;
    schema::check(&conn, path, schema::VERSION)?;
    adopt::check_key(&conn, file)?;
    conn.close().map_err(|(_, error)| error).explain(path, what)?;
    draft.publish(path).explain(path, what)
}

/// The file that a path means, where it really is.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Makes sure that what SQLite would read and write beside the file is a store's.
pub(super) fn check_beside(path: &Path) -> Result<(), StoreError> {
    let real = real(path);
    for end in ["-wal", "-shm", "-journal"] {
        let beside = with(&real, end);
        let Ok(metadata) = beside.symlink_metadata() else { continue };
        // A store has a log, never a journal: SQLite would undo what one says, and delete what it
        // names.
        if !metadata.is_file() || end == "-journal" {
            let message = format!(
                "{}: {} is none of a store's files; nothing was changed. Move it away",
                path.display(),
                beside.display()
            );
            return Err(StoreError::new(StoreErrorKind::Foreign, message));
        }
    }
    Ok(())
}

/// Whether all of a store is in the file itself: nothing is in a log beside it.
pub(super) fn is_at_rest(path: &Path) -> bool {
    let log = with(&real(path), "-wal").metadata();
    log.map_or(true, |log| log.len() == 0)
}

/// The file as SQLite is told of one that does not change.
pub(super) fn uri_at_rest(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in real(path).as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// Whether a file that SQLite does not take for one of its own was a store: it begins as such files
/// do, or it has our mark where they have it.
///
/// Only for a file that nobody can use: closing it gives back every lock that this process has on it.
pub(super) fn was_store(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut head));
    let begins = head.iter().zip(MAGIC).all(|(is, was)| is == was);
    let mark = schema::APPLICATION_ID.to_be_bytes();
    read.is_err() || begins || head.get(68..72) == Some(&mark[..])
}

#[cfg(test)]
mod tests {
    use super::Draft;
    use std::fs;

    #[test]
    fn where_a_name_cannot_be_given_at_once_it_is_claimed_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("a.key");
        let make = |text: &str| {
            let draft = Draft::beside(&to).expect("it is made");
            fs::write(draft.path(), text).expect("it is written");
            draft
        };
        assert!(make("the first").claim(&to).expect("it can be written"));
        assert!(!make("the second").claim(&to).expect("it can be looked at"));
        assert_eq!(fs::read_to_string(&to).expect("it is there"), "the first");
        assert_eq!(fs::read_dir(folder.path()).expect("it is a folder").count(), 1);
    }
}
