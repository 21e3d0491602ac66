//! Who drives a file: one process at a time, held by a lock of the operating system.
//!
//! The lock goes with the process, however it ends. The file that is locked says who has it; what a
//! dead process left there is no obstacle.

use crate::error::{Explain, StoreError, StoreErrorKind};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
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
pub(crate) struct DriverLock {
    file: File,
    path: PathBuf,
}

impl DriverLock {
    /// Takes the right, or says who has it.
    pub(crate) fn take(store: &Path, what: &str) -> Result<Self, StoreError> {
        let path = beside(store);
        let mut file = open(&path).explain(&path, "lock the store for driving its runs")?;
        if !try_lock(&file, FlockOperation::NonBlockingLockExclusive)
            .explain(&path, "lock the store for driving its runs")?
        {
            let who = match read(&mut file) {
                Some(info) => info.to_string(),
                None => "another process".to_owned(),
            };
            let message = format!(
                "{}: its runs are driven by {who}; one process at a time can do that. Wait until it \
                 is done, or end it, or record to another file (questions can be answered and runs \
                 cancelled all the same)",
                store.display()
            );
            return Err(StoreError::new(StoreErrorKind::Driven, message));
        }
        let since = crate::journal::millis(SystemTime::now());
        let written = Written { pid: std::process::id(), what: what.to_owned(), since };
        write(&mut file, &written).explain(&path, "say who drives the store")?;
        Ok(Self { file, path })
    }

    /// Who has the right now.
    pub(crate) fn holder(store: &Path) -> Result<Option<DriverInfo>, StoreError> {
        let path = beside(store);
        let mut file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.explain(&path, "see who drives the store")?,
        };
        // A shared lock is to be had while nobody drives. It is gone with the file at once; who
        // wants to drive at this very moment tries again.
        if try_lock(&file, FlockOperation::NonBlockingLockShared)
            .explain(&path, "see who drives the store")?
        {
            return Ok(None);
        }
        let unknown = || DriverInfo { pid: 0, what: "unknown".into(), since: SystemTime::now() };
        Ok(Some(read(&mut file).unwrap_or_else(unknown)))
    }
}

impl Drop for DriverLock {
    fn drop(&mut self) {
        // Who reads it now must not be told of a process that is done. The file stays: whoever waits
        // for the lock has it open.
        if let Err(error) = self.file.set_len(0) {
            tracing::debug!(file = %self.path.display(), %error, "the driver's name stays");
        }
    }
}

fn beside(store: &Path) -> PathBuf {
    let mut name = OsString::from(store);
    name.push(".driver");
    name.into()
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(super::make::PRIVATE);
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
    use crate::StoreErrorKind;

    #[test]
    fn a_second_driver_is_told_who_drives_and_has_its_turn_afterwards() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("tenure.db");
        assert_eq!(DriverLock::holder(&store).expect("it can be asked"), None);
        let lock = DriverLock::take(&store, "tenure run a.md").expect("it is free");
        let error = DriverLock::take(&store, "another").expect_err("it is taken");
        assert_eq!(error.kind(), StoreErrorKind::Driven);
        let said = error.to_string();
        for part in ["tenure run a.md", &std::process::id().to_string(), "tenure.db"] {
            assert!(said.contains(part), "{said}");
        }
        let holder = DriverLock::holder(&store).expect("it can be asked").expect("there is one");
        assert_eq!((holder.pid, &*holder.what), (std::process::id(), "tenure run a.md"));
        drop(lock);
        assert_eq!(DriverLock::holder(&store).expect("it can be asked"), None);
        DriverLock::take(&store, "another").expect("it is free again");
    }

    #[test]
    fn what_a_dead_process_left_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("tenure.db");
        let left = r#"{"pid":999999,"what":"tenure run","since":1}"#;
        std::fs::write(folder.path().join("tenure.db.driver"), left).expect("it is written");
        assert_eq!(DriverLock::holder(&store).expect("it can be asked"), None);
        DriverLock::take(&store, "now").expect("it is free");
    }
}
