//! The table of conversations.

use super::ThreadInfo;
use crate::db::StoreFile;
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::{Hash, Packed, Shelf, Sum, Tx, hash_of_list, list_reference, millis, time};
use crate::key::Table;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::time::SystemTime;

/// The columns of `threads`, the sum last.
const COLUMNS: &str = "thread, agent, head, length, run, user, updated, sum";

/// A row that was read and is as it was written.
pub(super) struct ThreadRow {
    pub(super) head: String,
    pub(super) info: ThreadInfo,
}

/// What is saved of a conversation, beside its messages.
#[derive(Clone)]
pub(super) struct Change {
    pub(super) thread: String,
    pub(super) agent: String,
    pub(super) length: usize,
    pub(super) run: Option<String>,
    pub(super) user: Option<String>,
}

/// What the row says of messages with these hashes.
pub(super) fn head(items: &[Hash]) -> String {
    list_reference(&hash_of_list(items))
}

/// Writes a conversation. If its row is not what was `expected`, nothing is written, and the messages
/// that were taken for known have to be given, too.
pub(super) fn save(
    tx: &mut Tx<'_>,
    change: &Change,
    packed: &Packed,
    expected: Option<&str>,
) -> Result<bool, StoreError> {
    let Change { thread, agent, .. } = change;
    let known = find(tx.conn(), tx.path(), thread, agent)?;
    if let Some(expected) = expected
        && known.as_ref().is_none_or(|known| known.head != expected)
    {
        return Ok(false);
    }
    // Lists of one conversation are said by each other.
    let family = format!("thread {thread} {agent}");
    if let Some(known) = &known {
        tx.follow(&family, &known.head)?;
    }
    tx.keep_apart(&family, packed)?;
    let earlier = known.map(|known| known.info);
    let earlier_run = earlier.as_ref().and_then(|info| info.run).map(|run| run.to_string());
    let run = change.run.clone().or(earlier_run);
    let user = change.user.clone().or(earlier.and_then(|info| info.user));
    let length = i64::try_from(change.length).unwrap_or(i64::MAX);
    let updated = millis(SystemTime::now());
    let mut sum = Sum::new();
    sum.text(thread).text(agent).text(&packed.text).int(length);
    sum.opt_text(run.as_deref()).opt_text(user.as_deref()).int(updated);
    let seal = sum.seal(tx.path(), Table::Threads);
    let sql = "INSERT OR REPLACE INTO threads (thread, agent, head, length, run, user, updated, \
               sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = params![thread, agent, packed.text, length, run, user, updated, seal];
    tx.conn()
        .prepare_cached(sql)
        .and_then(|mut insert| insert.execute(values))
        .explain(tx.path(), "save a conversation")?;
    Ok(true)
}

/// The hashes of a conversation's messages.
pub(super) fn items(
    shelf: &mut Shelf,
    conn: &Connection,
    path: &StoreFile,
    row: &ThreadRow,
) -> Result<Vec<Hash>, StoreError> {
    shelf.items(conn, path, &row.head)
}

pub(super) fn find(
    conn: &Connection,
    path: &StoreFile,
    thread: &str,
    agent: &str,
) -> Result<Option<ThreadRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM threads WHERE thread = ?1 AND agent = ?2");
    let what = "read a conversation";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let row = select.query_row([thread, agent], |row| read(path, row)).optional();
    row.explain(path, what)?.transpose()
}

/// The newest conversations, of one agent or of all.
pub(super) fn list(
    conn: &Connection,
    path: &StoreFile,
    agent: Option<&str>,
    limit: usize,
) -> Result<Vec<ThreadInfo>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM threads WHERE ?1 IS NULL OR agent = ?1 \
         ORDER BY updated DESC, thread, agent LIMIT ?2"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    infos(conn, path, &sql, params![agent, limit])
}

/// One conversation, of every agent that took part.
pub(super) fn of(
    conn: &Connection,
    path: &StoreFile,
    thread: &str,
) -> Result<Vec<ThreadInfo>, StoreError> {
    let sql =
        format!("SELECT {COLUMNS} FROM threads WHERE thread = ?1 ORDER BY updated DESC, agent");
    infos(conn, path, &sql, params![thread])
}

pub(super) fn forget(tx: &Tx<'_>, thread: &str) -> Result<usize, StoreError> {
    let sql = "DELETE FROM threads WHERE thread = ?1";
    tx.conn().execute(sql, [thread]).explain(tx.path(), "forget a conversation")
}

fn infos(
    conn: &Connection,
    path: &StoreFile,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<ThreadInfo>, StoreError> {
    let what = "read the conversations";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let rows = select.query_map(values, |row| read(path, row)).explain(path, what)?;
    rows.map(|row| Ok(row.explain(path, what)??.info)).collect()
}

fn read(path: &StoreFile, row: &Row<'_>) -> Result<Result<ThreadRow, StoreError>, rusqlite::Error> {
    let mut sum = Sum::new();
    for column in 0..7 {
        sum.column(row.get_ref(column)?);
    }
    let (thread, agent): (String, String) = (row.get(0)?, row.get(1)?);
    let (length, run): (i64, Option<String>) = (row.get(3)?, row.get(4)?);
    let damaged = |what: &str| {
        let found = format!("conversation `{thread}` of {agent}: {what}");
        Ok(Err(StoreError::damaged(path, found)))
    };
    if let Err(wrong) = sum.check(path, Table::Threads, row.get_ref(7)?) {
        return damaged(wrong);
    }
    let run = match run.map(|run| run.parse()).transpose() {
        Ok(run) => run,
        Err(_) => return damaged("its run is none"),
    };
    let Ok(length) = usize::try_from(length) else { return damaged("its length is none") };
    let (user, updated) = (row.get(5)?, time(row.get(6)?));
    let info = ThreadInfo { thread, agent, length, run, user, updated };
    Ok(Ok(ThreadRow { head: row.get(2)?, info }))
}

#[cold]
pub(super) fn unwritable(error: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("a message cannot be written: {error}"))
}
