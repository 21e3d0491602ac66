//! A new file: there whole or not at all, and nobody else's to read.

use super::{connect, schema};
use crate::error::{Explain, StoreError};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tenure_core::RunId;

/// What a file is made with: what people say to agents is theirs. SQLite makes the files beside a
/// store with the rights of the store.
pub(super) const PRIVATE: u32 = 0o600;

/// A file that is given its name when it is whole, and goes with its maker if it is not.
pub(super) struct Draft(PathBuf);

impl Draft {
    /// An empty file beside `to`.
    pub(super) fn beside(to: &Path) -> io::Result<Self> {
        let path = with(to, &format!(".{}.part", RunId::unique()));
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name once it is on disk, and says how big it is; nothing, if there is such a file
    /// already.
    pub(super) fn publish(&self, to: &Path) -> io::Result<Option<u64>> {
        // Closed before it has its name: closing a file gives back the locks that another thread may
        // have on it by then.
        let size = {
            let file = File::open(&self.0)?;
            file.sync_all()?;
            file.metadata()?.len()
        };
        match fs::hard_link(&self.0, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            // Not every file system has links.
            Err(_) if !to.exists() => fs::rename(&self.0, to)?,
            Err(_) => return Ok(None),
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Some(size))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(with(&self.0, end));
        }
    }
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Makes a store, and its folder. Another process may be faster; then its file is the one.
pub(super) fn store(path: &Path) -> Result<(), StoreError> {
    let what = "make a store";
    // A link to a place where nothing is yet says where it is to be.
    let linked = fs::read_link(path).ok();
    let linked = linked.map(|to| path.parent().map_or(to.clone(), |folder| folder.join(&to)));
    let path = linked.as_deref().unwrap_or(path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).explain(folder, "create the folder of a store")?;
    }
    let draft = Draft::beside(path).explain(path, what)?;
    let mut conn = connect(draft.path())?;
    schema::migrate(&mut conn, draft.path())?;
    conn.close().map_err(|(_, error)| error).explain(path, what)?;
    draft.publish(path).explain(path, what)?;
    Ok(())
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
