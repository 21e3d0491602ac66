//! Making a file smaller: the events of old runs go, and what nothing refers to any more.

use super::{DriverLock, StoreFile, writer};
use crate::Store;
use crate::cache::forget_over;
use crate::error::{Explain, StoreError};
use crate::journal::{Referred, millis, with_tx};
use crate::runs;
use crate::store::Durability;
use rusqlite::{Connection, params};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What may go. Runs that are not over are never touched; of one that is, only its row stays, with
/// what it was started with and what came of it.
///
/// With neither an age nor a number, no run loses anything: only what nothing refers to goes, and
/// the room that is free in the file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Compaction {
    /// Only runs that ended so long ago.
    pub older_than: Option<Duration>,
    /// All but so many of those that ended last.
    pub keep_last: Option<usize>,
}

impl Compaction {
    /// Only what nothing refers to.
    pub fn new() -> Self {
        Self::default()
    }

    /// The events of runs that ended so long ago go.
    #[must_use]
    pub fn older_than(mut self, age: Duration) -> Self {
        self.older_than = Some(age);
        self
    }

    /// So many of the runs that ended last keep their events, however old they are.
    #[must_use]
    pub fn keep_last(mut self, runs: usize) -> Self {
        self.keep_last = Some(runs);
        self
    }
}

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Compacted {
    /// So many runs lost their events.
    pub runs: u64,
    /// So many events.
    pub events: u64,
    /// So many texts that nothing referred to any more.
    pub texts: u64,
    /// So many lists of messages that nothing referred to any more.
    pub lists: u64,
    /// So many cached answers that were over.
    pub answers: u64,
    /// The size of the file before.
    pub bytes_before: u64,
    /// The size of the file now.
    pub bytes_after: u64,
}

impl Compacted {
    /// How many bytes were won.
    pub fn bytes_won(&self) -> u64 {
        self.bytes_before.saturating_sub(self.bytes_after)
    }
}

impl Store {
    /// Makes the file smaller. Nobody may drive its runs meanwhile: it is an error if somebody does.
    ///
    /// What goes, goes in one transaction; a process that dies meanwhile leaves a store that is whole.
    pub fn compact(&self, what: &Compaction) -> Result<Compacted, StoreError> {
        let path = self.file();
        let _lock = DriverLock::take(path, "tenure db compact")?;
        let conn = writer(path, Durability::Full)?;
        let mut compacted = Compacted { bytes_before: size(path), ..Compacted::default() };
        conn.execute_batch("BEGIN IMMEDIATE").explain(path, "compact the store")?;
        let deleted = delete(&conn, path, what, &mut compacted);
        let end = if deleted.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = conn.execute_batch(end).explain(path, "compact the store");
        deleted.and(ended)?;
        // What was read before may be gone.
        *self.shelf() = crate::journal::Shelf::default();
        conn.execute_batch("VACUUM").explain(path, "give back the room that is free")?;
        // With other processes reading, the log is emptied by whoever comes later.
        let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
        conn.query_row(empty, [], |_| Ok(())).explain(path, "give back the room that is free")?;
        compacted.bytes_after = size(path);
        Ok(compacted)
    }
}

/// The file and its log.
fn size(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    size(path) + size(Path::new(&log))
}

fn delete(
    conn: &Connection,
    path: &StoreFile,
    what: &Compaction,
    compacted: &mut Compacted,
) -> Result<(), StoreError> {
    for run in over(conn, what).explain(path, "find the runs that are over")? {
        compacted.runs += 1;
        compacted.events += forget(conn, path, &run)?;
    }
    let referred = Referred::find(conn, path)?;
    (compacted.texts, compacted.lists) = referred.delete_others(conn, path)?;
    compacted.answers = forget_over(conn, path, millis(SystemTime::now()))?;
    Ok(())
}

/// The runs whose events go.
fn over(conn: &Connection, what: &Compaction) -> rusqlite::Result<Vec<String>> {
    if what.older_than.is_none() && what.keep_last.is_none() {
        return Ok(Vec::new());
    }
    let now = SystemTime::now();
    let before = what.older_than.map_or(Some(now), |age| now.checked_sub(age));
    // Longer ago than there was time: nothing is.
    let Some(before) = before else { return Ok(Vec::new()) };
    let kept = i64::try_from(what.keep_last.unwrap_or(0)).unwrap_or(i64::MAX);
    let query = "SELECT id FROM (SELECT id, ended FROM runs \
                 WHERE status = 'ended' AND compacted IS NULL \
                 ORDER BY ended DESC, id DESC LIMIT -1 OFFSET ?1) WHERE ended <= ?2";
    conn.prepare(query)?.query_map(params![kept, millis(before)], |row| row.get(0))?.collect()
}

/// Deletes what there is of a run beside its row, and says so there.
fn forget(conn: &Connection, file: &StoreFile, run: &str) -> Result<u64, StoreError> {
    let what = "delete the events of a run";
    let now = millis(SystemTime::now());
    // First: a row that is not ours is not to become ours.
    with_tx(conn, file, |tx| runs::change(tx, run, |row| row.compacted = Some(now)))?;
    let delete = |table: &str| {
        let sql = format!("DELETE FROM {table} WHERE run = ?1");
        conn.prepare_cached(&sql).and_then(|mut delete| delete.execute([run])).explain(file, what)
    };
    for table in ["heads", "asks", "requests"] {
        delete(table)?;
    }
    Ok(delete("events")? as u64)
}
