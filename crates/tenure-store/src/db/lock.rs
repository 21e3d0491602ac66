//! Who drives a file: one process at a time, held by a lock of the operating system.
//!
//! The lock goes with the process, however it ends. It is of the store's file and not of its path, and
//! never on the file itself: closing any descriptor of that would give back SQLite's own locks. The
//! file that is locked says who has it; what a dead process left there is no obstacle. A lock of one
//! run is a file of its own, with the run behind the name.

use super::{StoreFile, make};
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::key::private_folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The process that drives a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DriverInfo {
    /// Its number in the operating system.
    pub pid: u32,
    /// What it does, in its own words.
    pub what: String,
    /// Since when.
    pub since: SystemTime,
}

impl fmt::Display for DriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, what, since } = self;
        let ago = since.elapsed().unwrap_or_default().as_secs();
        let ago = match (ago / 3600, ago / 60 % 60, ago % 60) {
            (0, 0, s) => format!("{s} s"),
            (0, m, s) => format!("{m} min {s} s"),
            (h, m, _) => format!("{h} h {m} min"),
        };
        write!(f, "process {pid}, `{what}`, for {ago}")
    }
}

/// As it is in the file.
#[derive(Serialize, Deserialize)]
struct Written {
    pid: u32,
    what: String,
    since: i64,
}

/// The right to drive. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct DriverLock(#[expect(dead_code, reason = "held until it is dropped")] Vec<Held>);

/// A file that is locked.
#[derive(Debug)]
struct Held {
    file: File,
    path: PathBuf,
    named: Named,
}

/// The way in which a file of locks is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// By the device and number of the store's file, in the user's folder: a link to the store, and
    /// a file of locks that was deleted beside it, do not make another lock.
    ByIdentity,
    /// By the store's path, beside it: for those who have another folder, in a container or as
    /// another user.
    ByPath,
}

impl DriverLock {
    /// Takes the right, or says who has it.
    pub(crate) fn take(store: &StoreFile, what: &str) -> Result<Self, StoreError> {
        let since = crate::journal::millis(SystemTime::now());
        let written = Written { pid: std::process::id(), what: what.to_owned(), since };
        let mut held = Vec::new();
        for (named, path) in places(store)? {
            match Held::take(named, &path, &written) {
                Ok(Ok(lock)) => held.push(lock),
                Ok(Err(who)) => return Err(driven(store, who)),
                // Where the user's folder cannot be written, the lock beside the store has to do.
                Err(error) if named == Named::ByIdentity && is_closed(&error) => {}
                Err(error) => {
                    return Err(error).explain(&path, "lock the store for driving its runs");
                }
            }
        }
        Ok(Self(held))
    }

    /// Who has the right now.
    pub(crate) fn holder(store: &StoreFile) -> Result<Option<DriverInfo>, StoreError> {
        for (_, path) in places(store)? {
            let what = "see who drives the store";
            let mut file = match File::open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.explain(&path, what)?,
            };
            // A shared lock is to be had while nobody drives. It is gone with the file at once; who
            // wants to drive at this very moment tries again.
            if !try_lock(&file, FlockOperation::NonBlockingLockShared).explain(&path, what)? {
                let unknown =
                    || DriverInfo { pid: 0, what: "unknown".into(), since: SystemTime::now() };
                return Ok(Some(read(&mut file).unwrap_or_else(unknown)));
            }
        }
        Ok(None)
    }
}

impl Held {
    /// Takes a lock; the inner error says who has it.
    fn take(
        named: Named,
        path: &Path,
        written: &Written,
    ) -> io::Result<Result<Self, Option<DriverInfo>>> {
        if let (Named::ByIdentity, Some(folder)) = (named, path.parent()) {
            private_folder(folder)?;
        }
        loop {
            let mut file = open(path)?;
            if !try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(Err(read(&mut file)));
            }
            // It may have been deleted between the two, by whoever had the lock before.
            let here = fs::symlink_metadata(path).ok();
            let locked = file.metadata()?;
            if here.is_none_or(|here| (here.dev(), here.ino()) != (locked.dev(), locked.ino())) {
                continue;
            }
            write(&mut file, written)?;
            return Ok(Ok(Self { file, path: path.to_owned(), named }));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Who reads it now must not be told of a process that is done. Beside a store the file stays;
        // in the user's folder there would be one of every store there ever was.
        let gone = match self.named {
            Named::ByPath => self.file.set_len(0),
            Named::ByIdentity => fs::remove_file(&self.path),
        };
        if let Err(error) = gone {
            tracing::debug!(file = %self.path.display(), %error, "the driver's name stays");
        }
    }
}

/// The files of locks of a store, in the order in which they are taken.
fn places(store: &StoreFile) -> Result<Vec<(Named, PathBuf)>, StoreError> {
    let real = make::real(store);
    let mut places = Vec::new();
    if let Some(folder) = store.keys().locks() {
        // Looked up and not opened: closing the file would give back SQLite's locks.
        let file = fs::metadata(&real).explain(store, "see which file it is")?;
        // Folders of users may be shared between machines, and numbers of files are not.
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let machine = machine.replace('/', "_");
        let name = format!("{machine}-{:x}-{:x}.lock", file.dev(), file.ino());
        places.push((Named::ByIdentity, folder.join(name)));
    }
    places.push((Named::ByPath, make::with(&real, ".driver")));
    Ok(places)
}

/// Makes sure that the file has one name: with another one, SQLite would have another log for it.
pub(super) fn check_names(path: &Path) -> Result<(), StoreError> {
    let names = fs::metadata(path).explain(path, "see which file it is")?.nlink();
    if names > 1 {
        let message = format!(
            "{}: the file has {names} names (hard links), and what is written by one of them would be \
             lost by another; nothing was changed. Put a copy in its place: cp FILE COPY && mv COPY \
             FILE",
            path.display()
        );
        return Err(StoreError::new(StoreErrorKind::Io, message));
    }
    Ok(())
}

fn driven(store: &Path, who: Option<DriverInfo>) -> StoreError {
    let who = who.map_or("another process".to_owned(), |who| who.to_string());
    let message = format!(
        "{}: its runs are driven by {who}; one process at a time can do that. Wait until it is done, \
         or end it, or record to another file (questions can be answered and runs cancelled all the \
         same)",
        store.display()
    );
    StoreError::new(StoreErrorKind::Driven, message)
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(make::PRIVATE);
    // A link would have another file written.
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path)
}

/// Whether it was to be had. Somebody who only looks has it for a moment, so a refusal is tried
/// again.
fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    for attempt in 0..4 {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if attempt == 3 => break,
            Err(Errno::WOULDBLOCK) => std::thread::sleep(std::time::Duration::from_millis(5)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn write(file: &mut File, written: &Written) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    serde_json::to_writer(&mut *file, written)?;
    file.write_all(b"\n")
}

fn read(file: &mut File) -> Option<DriverInfo> {
    let mut text = String::new();
    file.take(64 << 10).read_to_string(&mut text).ok()?;
    let Written { pid, what, since } = serde_json::from_str(&text).ok()?;
    Some(DriverInfo { pid, what, since: crate::journal::time(since) })
}

#[cfg(test)]
mod tests {
    use super::DriverLock;
    use crate::{StoreErrorKind, testing};
    use std::fs;

    #[test]
    fn a_second_driver_is_told_who_drives_and_has_its_turn_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = testing::open(folder.path().join("tenure.db")).expect("it is made");
        let file = store.file();
        assert_eq!(DriverLock::holder(file).expect("it can be asked"), None);
        let lock = DriverLock::take(file, "tenure run a.md").expect("it is free");
        let error = DriverLock::take(file, "another").expect_err("it is taken");
        assert_eq!(error.kind(), StoreErrorKind::Driven);
        let said = error.to_string();
        for part in ["tenure run a.md", &std::process::id().to_string(), "tenure.db"] {
            assert!(said.contains(part), "{said}");
        }
        let holder = DriverLock::holder(file).expect("it can be asked").expect("there is one");
        assert_eq!((holder.pid, &*holder.what), (std::process::id(), "tenure run a.md"));
        drop(lock);
        assert_eq!(DriverLock::holder(file).expect("it can be asked"), None);
        DriverLock::take(file, "another").expect("it is free again");
    }

    #[test]
    fn what_a_dead_process_left_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = testing::open(folder.path().join("tenure.db")).expect("it is made");
        let left = r#"{"pid":999999,"what":"tenure run","since":1}"#;
        fs::write(folder.path().join("tenure.db.driver"), left).expect("it is written");
        assert_eq!(DriverLock::holder(store.file()).expect("it can be asked"), None);
        DriverLock::take(store.file(), "now").expect("it is free");
    }

    #[test]
    fn neither_a_link_nor_a_deleted_file_of_locks_makes_a_second_driver() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = testing::open(folder.path().join("tenure.db")).expect("it is made");
        let _lock = DriverLock::take(store.file(), "the first").expect("it is free");
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("it is made");
        std::os::unix::fs::symlink(folder.path().join("keys"), elsewhere.join("keys"))
            .expect("it is made");
        let link = elsewhere.join("link.db");
        std::os::unix::fs::symlink(store.path(), &link).expect("it is made");
        let name = elsewhere.join("name.db");
        fs::hard_link(store.path(), &name).expect("it is made");
        fs::remove_file(folder.path().join("tenure.db.driver")).expect("it is deleted");
        for path in [store.path(), &link, &name] {
            let again = testing::open_existing(path).expect("it opens");
            let error = again.take_over("the second").err().expect("it is driven");
            assert_eq!(error.kind(), StoreErrorKind::Driven, "{error}");
            let holder = again.driver().expect("it can be asked").expect("there is one");
            assert_eq!(holder.what, "the first", "by {}", path.display());
        }
    }

    #[test]
    fn a_store_with_two_names_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = testing::open(folder.path().join("tenure.db")).expect("it is made");
        fs::hard_link(store.path(), folder.path().join("other.db")).expect("it is made");
        let error = store.take_over("a test").err().expect("it has two names");
        assert!(error.to_string().contains("2 names"), "{error}");
    }

    #[test]
    fn a_link_in_the_place_of_the_file_of_locks_has_nothing_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = testing::open(folder.path().join("tenure.db")).expect("it is made");
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").expect("it is written");
        std::os::unix::fs::symlink(&precious, folder.path().join("tenure.db.driver"))
            .expect("it is made");
        assert!(DriverLock::take(store.file(), "a test").is_err());
        assert_eq!(fs::read_to_string(&precious).expect("it is there"), "precious");
    }
}
