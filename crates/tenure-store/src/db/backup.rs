//! A copy of the file, made while others read and write.

use super::make::Draft;
use super::{StoreFile, reader};
use crate::Store;
use crate::error::{Explain, StoreError, StoreErrorKind};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::path::Path;
use std::time::Duration;

impl Store {
    /// Writes a copy of the store to a new file, as the store is at one moment, and says how many
    /// bytes it has. Runs may go on meanwhile.
    ///
    /// The new file is there whole or not at all, and never takes the place of another one.
    pub fn backup(&self, to: impl AsRef<Path>) -> Result<u64, StoreError> {
        let to = to.as_ref();
        if to.symlink_metadata().is_ok() {
            return Err(taken(to));
        }
        let draft = Draft::beside(to).explain(to, "write the backup")?;
        copy(self.file(), draft.path())?;
        let size = draft.publish(to).explain(to, "write the backup")?;
        size.ok_or_else(|| taken(to))
    }
}

fn copy(from: &StoreFile, to: &Path) -> Result<(), StoreError> {
    let what = "write the backup";
    let source = reader(from)?;
    let mut target = Connection::open(to).explain(to, what)?;
    {
        let backup = Backup::new(&source, &mut target).explain(to, what)?;
        // All of it at once: in parts, a writer in between would have it start again each time.
        let mut patience = 100;
        loop {
            match backup.step(-1).explain(from, "copy the store")? {
                StepResult::Done => break,
                StepResult::More => {}
                _ if patience == 0 => {
                    let message = format!(
                        "{}: cannot copy the store: another process held the file for too long. \
                         Try again",
                        from.display()
                    );
                    return Err(StoreError::new(StoreErrorKind::Busy, message));
                }
                _ => {
                    patience -= 1;
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
    let check: String = target
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .explain(from, "check the copy of the store")?;
    if check != "ok" {
        return Err(StoreError::damaged(from, check));
    }
    target.close().map_err(|(_, error)| error).explain(to, what)
}

fn taken(to: &Path) -> StoreError {
    let message = format!(
        "{}: cannot write the backup: there is such a file already, and a backup never takes the \
         place of another file. Name a new one",
        to.display()
    );
    StoreError::new(StoreErrorKind::Io, message)
}
