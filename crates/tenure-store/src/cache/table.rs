//! The table of answers that are kept for a while.

use super::Room;
use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use crate::journal::{Sum, Tx};
use crate::key::Table;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use std::path::Path;

/// A row of `cache`, without its id and its sum.
pub(super) struct CacheRow {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) written: i64,
    pub(super) expires: Option<i64>,
}

impl CacheRow {
    /// How much room it takes.
    pub(super) fn size(&self) -> u64 {
        (self.key.len() + self.text.len()) as u64
    }

    fn sum(&self, id: i64, size: i64) -> Sum {
        let mut sum = Sum::new();
        sum.int(id).text(&self.key).text(&self.text).int(size);
        sum.int(self.written).opt_int(self.expires);
        sum
    }
}

/// What is kept under a key at this time.
pub(crate) fn find(
    conn: &Connection,
    path: &StoreFile,
    key: &str,
    now: i64,
) -> Result<Option<Value>, StoreError> {
    let what = "read the cache";
    let sql = "SELECT id, key, value, size, written, expires, sum FROM cache WHERE key = ?1";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let row = select.query_row([key], |row| {
        let it = CacheRow {
            key: row.get(1)?,
            text: row.get(2)?,
            written: row.get(4)?,
            expires: row.get(5)?,
        };
        let sum = it.sum(row.get(0)?, row.get(3)?);
        Ok((it, sum.check(path, Table::Cache, row.get_ref(6)?)))
    });
    let Some((row, is_whole)) = row.optional().explain(path, what)? else { return Ok(None) };
    if let Err(wrong) = is_whole {
        let found = format!("table cache, the answer `{key}`: {wrong}");
        return Err(StoreError::damaged(path, found));
    }
    if row.expires.is_some_and(|expires| expires <= now) {
        return Ok(None);
    }
    let value = serde_json::from_str(&row.text)
        .map_err(|error| StoreError::damaged(path, format!("cached answer `{key}`: {error}")))?;
    Ok(Some(value))
}

/// Keeps an answer in place of what is there. What is over goes, and the oldest if there is no room.
pub(super) fn put(tx: &Tx<'_>, row: &CacheRow, room: Room) -> Result<(), StoreError> {
    let (conn, path, what) = (tx.conn(), tx.path(), "write the cache");
    forget(tx, &row.key)?;
    forget_over(conn, path, row.written)?;
    make_room(conn, path, room, row.size())?;
    let next = "SELECT coalesce(max(id), 0) + 1 FROM cache";
    let id: i64 = conn
        .prepare_cached(next)
        .and_then(|mut next| next.query_row([], |row| row.get(0)))
        .explain(path, what)?;
    let size = i64::try_from(row.size()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO cache (id, key, value, size, written, expires, sum) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let seal = row.sum(id, size).seal(path, Table::Cache);
    let values = params![id, row.key, row.text, size, row.written, row.expires, seal];
    conn.prepare_cached(sql).and_then(|mut it| it.execute(values)).explain(path, what)?;
    Ok(())
}

/// Forgets what is kept under a key.
pub(super) fn forget(tx: &Tx<'_>, key: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM cache WHERE key = ?1";
    let done = tx.conn().prepare_cached(sql).and_then(|mut it| it.execute([key]));
    done.explain(tx.path(), "write the cache").map(drop)
}

/// Forgets what is over. How many those were.
pub(crate) fn forget_over(conn: &Connection, path: &Path, now: i64) -> Result<u64, StoreError> {
    let sql = "DELETE FROM cache WHERE expires <= ?1";
    let done = conn.prepare_cached(sql).and_then(|mut it| it.execute([now]));
    Ok(done.explain(path, "forget cached answers that are over")? as u64)
}

/// How many answers there are, and how many bytes.
pub(super) fn used(conn: &Connection, path: &Path) -> Result<(u64, u64), StoreError> {
    let sql = "SELECT count(*), coalesce(sum(size), 0) FROM cache";
    let used = conn.prepare_cached(sql).and_then(|mut it| {
        it.query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
    });
    let (entries, bytes) = used.explain(path, "read the cache")?;
    Ok((entries.unsigned_abs(), bytes.unsigned_abs()))
}

/// Deletes the oldest until one more of this size fits.
fn make_room(conn: &Connection, path: &Path, room: Room, more: u64) -> Result<(), StoreError> {
    let what = "make room in the cache";
    let (mut entries, mut bytes) = used(conn, path)?;
    let is_full =
        |entries, bytes: u64| entries >= room.entries || bytes.saturating_add(more) > room.bytes;
    if !is_full(entries, bytes) {
        return Ok(());
    }
    let mut oldest =
        conn.prepare_cached("SELECT id, size FROM cache ORDER BY id").explain(path, what)?;
    let mut rows = oldest.query([]).explain(path, what)?;
    let mut last = None;
    while is_full(entries, bytes)
        && let Some(row) = rows.next().explain(path, what)?
    {
        let (id, size): (i64, i64) =
            (row.get(0).explain(path, what)?, row.get(1).explain(path, what)?);
        (entries, bytes) = (entries.saturating_sub(1), bytes.saturating_sub(size.unsigned_abs()));
        last = Some(id);
    }
    drop(rows);
    let Some(last) = last else { return Ok(()) };
    let delete = conn.prepare_cached("DELETE FROM cache WHERE id <= ?1");
    delete.and_then(|mut it| it.execute([last])).explain(path, what).map(drop)
}
