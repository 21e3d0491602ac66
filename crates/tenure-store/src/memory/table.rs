//! The table of what agents know, and the index of its words.

use super::rule::{Rules, settle};
use crate::db::StoreFile;
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::{Sum, Tx, hash, hex, millis};
use crate::key::Table;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::SystemTime;
use tenure_core::memory::{Conflict, Found, Kept, Search, Write, text_of};

/// The columns of `memory`, all but the sum and then that.
const COLUMNS: &str = "m.id, m.namespace, m.key, m.value, m.version, m.updated, m.writer, m.sum";

/// A row of `memory`.
pub(super) struct MemoryRow {
    id: i64,
    namespace: String,
    pub(super) key: String,
    text: String,
    pub(super) version: i64,
    pub(super) updated: i64,
    pub(super) writer: String,
}

impl MemoryRow {
    fn sum(&self) -> Sum {
        let mut sum = Sum::new();
        sum.int(self.id).text(&self.namespace).text(&self.key).text(&self.text);
        sum.int(self.version).int(self.updated).text(&self.writer);
        sum
    }

    pub(super) fn kept(&self, path: &StoreFile) -> Result<Kept, StoreError> {
        let value = serde_json::from_str(&self.text).map_err(|error| {
            let found = format!("memory `{}` of {}: {error}", self.key, self.namespace);
            StoreError::damaged(path, found)
        })?;
        Ok(Kept { value, version: self.version.unsigned_abs() })
    }

    /// Reads the [`COLUMNS`].
    fn read(path: &StoreFile, row: &Row<'_>) -> Result<Result<Self, StoreError>, rusqlite::Error> {
        let it = Self {
            id: row.get(0)?,
            namespace: row.get(1)?,
            key: row.get(2)?,
            text: row.get(3)?,
            version: row.get(4)?,
            updated: row.get(5)?,
            writer: row.get(6)?,
        };
        Ok(match it.sum().check(path, Table::Memory, row.get_ref(7)?) {
            Ok(()) => Ok(it),
            Err(wrong) => {
                let found = format!("memory `{}` of {}: {wrong}", it.key, it.namespace);
                Err(StoreError::damaged(path, found))
            }
        })
    }
}

/// Everything of a namespace, by key.
pub(super) fn all(
    conn: &Connection,
    path: &StoreFile,
    namespace: &str,
) -> Result<Vec<MemoryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM memory m WHERE namespace = ?1 ORDER BY key");
    let what = "read memory";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let rows = select.query_map([namespace], |row| MemoryRow::read(path, row));
    rows.explain(path, what)?.map(|row| row.explain(path, what)?).collect()
}

/// The namespaces there are.
pub(super) fn namespaces(conn: &Connection, path: &StoreFile) -> Result<Vec<String>, StoreError> {
    let what = "read memory";
    let sql = "SELECT DISTINCT namespace FROM memory ORDER BY namespace";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let names = select.query_map([], |row| row.get(0)).explain(path, what)?;
    names.collect::<Result<_, _>>().explain(path, what)
}

/// What became of a commit: what is kept of each key, and where nobody may choose.
#[derive(Default)]
pub(super) struct Committed {
    pub(super) kept: BTreeMap<String, Kept>,
    pub(super) conflicts: Vec<Conflict>,
}

/// Writes what `writer` has changed, each key by its rule.
pub(super) fn commit(
    tx: &mut Tx<'_>,
    namespace: &str,
    writer: &str,
    changes: BTreeMap<String, Write>,
    rules: &Rules,
) -> Result<Committed, StoreError> {
    let mut committed = Committed::default();
    for (key, write) in changes {
        let kept = match find(tx.conn(), tx.path(), namespace, &key)? {
            None => {
                // One that was forgotten meanwhile does not begin at a version that was read before.
                let version = i64::try_from(write.read.version).unwrap_or(0) + 1;
                insert(tx, namespace, writer, &key, write.value, version)?
            }
            Some(row) => {
                let there = row.kept(tx.path())?;
                if there.value == write.value {
                    there
                } else if is_known(&row, writer, &write) {
                    update(tx, row, writer, write.value)?
                } else {
                    let read = write.read.value.as_ref();
                    match settle(rules.of(&key), read, &there.value, write.value.clone()) {
                        Some(value) if value == there.value => there,
                        Some(value) => update(tx, row, writer, value)?,
                        None => {
                            let (there, by) = (there.value, row.writer);
                            let conflict = Conflict::new(namespace, &key, write, there, by);
                            committed.conflicts.push(conflict);
                            continue;
                        }
                    }
                }
            }
        };
        committed.kept.insert(key, kept);
    }
    Ok(committed)
}

/// Whether the writer knows what it overwrites: it is what it has read, or what it has written
/// since.
fn is_known(row: &MemoryRow, writer: &str, write: &Write) -> bool {
    let (there, read) = (row.version.unsigned_abs(), write.read.version);
    there == read || (there == read + 1 && row.writer == writer && !writer.is_empty())
}

fn find(
    conn: &Connection,
    path: &StoreFile,
    namespace: &str,
    key: &str,
) -> Result<Option<MemoryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM memory m WHERE namespace = ?1 AND key = ?2");
    let what = "read memory";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let row = select.query_row([namespace, key], |row| MemoryRow::read(path, row)).optional();
    row.explain(path, what)?.transpose()
}

fn insert(
    tx: &Tx<'_>,
    namespace: &str,
    writer: &str,
    key: &str,
    value: Value,
    version: i64,
) -> Result<Kept, StoreError> {
    let what = "write memory";
    let next = "SELECT coalesce(max(id), 0) + 1 FROM memory";
    let id = tx.conn().query_row(next, [], |row| row.get(0)).explain(tx.path(), what)?;
    let row = MemoryRow {
        id,
        namespace: namespace.to_owned(),
        key: key.to_owned(),
        text: value.to_string(),
        version,
        updated: millis(SystemTime::now()),
        writer: writer.to_owned(),
    };
    let sql = "INSERT INTO memory (id, namespace, key, value, version, updated, writer, sum) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    write_row(tx, sql, &row, &value)?;
    Ok(Kept { value, version: row.version.unsigned_abs() })
}

fn update(tx: &Tx<'_>, mut row: MemoryRow, writer: &str, value: Value) -> Result<Kept, StoreError> {
    row.text = value.to_string();
    row.version += 1;
    row.updated = millis(SystemTime::now());
    row.writer = writer.to_owned();
    let sql = "UPDATE memory SET namespace = ?2, key = ?3, value = ?4, version = ?5, updated = ?6, \
               writer = ?7, sum = ?8 WHERE id = ?1";
    write_row(tx, sql, &row, &value)?;
    Ok(Kept { value, version: row.version.unsigned_abs() })
}

fn write_row(tx: &Tx<'_>, sql: &str, row: &MemoryRow, value: &Value) -> Result<(), StoreError> {
    let (conn, path, what) = (tx.conn(), tx.path(), "write memory");
    let values = params![
        row.id,
        row.namespace,
        row.key,
        row.text,
        row.version,
        row.updated,
        row.writer,
        row.sum().seal(path, Table::Memory),
    ];
    conn.prepare_cached(sql).and_then(|mut it| it.execute(values)).explain(path, what)?;
    let clear = "DELETE FROM memory_text WHERE rowid = ?1";
    conn.prepare_cached(clear).and_then(|mut it| it.execute([row.id])).explain(path, what)?;
    index(conn, path, row, value)
}

/// Puts the words of a row into the index.
fn index(
    conn: &Connection,
    path: &StoreFile,
    row: &MemoryRow,
    value: &Value,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO memory_text (rowid, place, key, text) VALUES (?1, ?2, ?3, ?4)";
    let values = params![row.id, place(&row.namespace), row.key, text_of(value)];
    let done = conn.prepare_cached(sql).and_then(|mut it| it.execute(values));
    done.explain(path, "write memory").map(drop)
}

/// Makes the index anew from the rows: whatever else was in it is gone.
pub(crate) fn index_anew(conn: &Connection, path: &StoreFile) -> Result<(), StoreError> {
    let what = "write the index of memory";
    conn.execute("DELETE FROM memory_text", []).explain(path, what)?;
    let sql = format!("SELECT {COLUMNS} FROM memory m");
    let mut select = conn.prepare(&sql).explain(path, what)?;
    let rows = select.query_map([], |row| MemoryRow::read(path, row)).explain(path, what)?;
    for row in rows {
        let row = row.explain(path, what)??;
        let value = row.kept(path)?.value;
        index(conn, path, &row, &value)?;
    }
    Ok(())
}

/// Forgets a key. Whether it was there.
pub(super) fn forget(tx: &Tx<'_>, namespace: &str, key: &str) -> Result<bool, StoreError> {
    let sql = "DELETE FROM memory WHERE namespace = ?1 AND key = ?2";
    let deleted = tx.conn().execute(sql, [namespace, key]).explain(tx.path(), "forget")?;
    Ok(deleted > 0)
}

/// One word for a namespace, that no text has by chance.
fn place(namespace: &str) -> String {
    format!("ns{}", hex(&hash(namespace.as_bytes())))
}

/// Marks that stand around found words until they are made readable. Nobody writes them.
const MARKS: [char; 2] = ['\u{2}', '\u{3}'];

/// Looks for something in a namespace.
pub(super) fn search(
    conn: &Connection,
    path: &StoreFile,
    namespace: &str,
    search: &Search,
    limit: usize,
) -> Result<Vec<Found>, StoreError> {
    match search {
        Search::Keys(prefix) => by_key(conn, path, namespace, prefix, limit),
        Search::Text(text) => {
            let phrases = phrases(text);
            if phrases.is_empty() {
                return Ok(Vec::new());
            }
            let all = by_text(conn, path, namespace, &phrases.join(" AND "), limit)?;
            if !all.is_empty() || phrases.len() == 1 {
                return Ok(all);
            }
            by_text(conn, path, namespace, &phrases.join(" OR "), limit)
        }
        other => {
            let message = format!("a store does not know how to search for {other:?}");
            Err(StoreError::new(StoreErrorKind::Io, message))
        }
    }
}

/// What a person typed, as FTS5 takes it: whatever could be syntax is gone or in quotes.
fn phrases(text: &str) -> Vec<String> {
    let phrases = Search::phrases(text);
    let last = phrases.len().saturating_sub(1);
    let is_open = !text.trim_end().ends_with('"');
    let quoted = phrases.iter().enumerate().map(|(index, words)| {
        let begins = is_open && index == last && words.len() == 1;
        format!("\"{}\"{}", words.join(" "), if begins { "*" } else { "" })
    });
    quoted.collect()
}

fn by_key(
    conn: &Connection,
    path: &StoreFile,
    namespace: &str,
    prefix: &str,
    limit: usize,
) -> Result<Vec<Found>, StoreError> {
    // Keys are in order, so those that begin so stand together.
    let sql =
        format!("SELECT {COLUMNS} FROM memory m WHERE namespace = ?1 AND key >= ?2 ORDER BY key");
    let what = "search memory";
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let rows = select.query_map([namespace, prefix], |row| MemoryRow::read(path, row));
    let mut found = Vec::new();
    for row in rows.explain(path, what)?.take(limit) {
        let row = row.explain(path, what)??;
        if !row.key.starts_with(prefix) {
            break;
        }
        let value = row.kept(path)?.value;
        found.push(Found::new(row.key, value));
    }
    Ok(found)
}

fn by_text(
    conn: &Connection,
    path: &StoreFile,
    namespace: &str,
    phrases: &str,
    limit: usize,
) -> Result<Vec<Found>, StoreError> {
    // A hit in the key counts twice; the namespace is no hit.
    let sql = format!(
        "SELECT {COLUMNS}, snippet(memory_text, 2, ?4, ?5, '…', 16), highlight(memory_text, 1, ?4, \
         ?5), bm25(memory_text, 0.0, 2.0, 1.0) AS rank, memory_text.key, memory_text.text FROM memory_text JOIN memory m ON m.id = \
         memory_text.rowid WHERE memory_text MATCH ?1 AND m.namespace = ?2 ORDER BY rank, m.key \
         LIMIT ?3"
    );
    let what = "search memory";
    let query = format!("place : {} AND {{key text}} : ({phrases})", place(namespace));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let marks = MARKS.map(String::from);
    let mut select = conn.prepare_cached(&sql).explain(path, what)?;
    let rows = select
        .query_map(params![query, namespace, limit, marks[0], marks[1]], |row| {
            let (text, key): (String, String) = (row.get(8)?, row.get(9)?);
            let indexed: (String, String) = (row.get(11)?, row.get(12)?);
            Ok((MemoryRow::read(path, row)?, text, key, row.get::<_, f64>(10)?, indexed))
        })
        .explain(path, what)?;
    let mut found = Vec::new();
    for row in rows {
        let (row, text, key, rank, indexed) = row.explain(path, what)?;
        let row = row?;
        let value = row.kept(path)?.value;
        // Excerpts are made of the index, which has no seals.
        if indexed != (row.key.clone(), text_of(&value)) {
            let found = format!(
                "table memory_text, memory `{}` of {}: its words are other ones",
                row.key, row.namespace
            );
            return Err(StoreError::damaged(path, found));
        }
        let excerpt = if text.contains(MARKS[0]) { text } else { key };
        let excerpt = excerpt.replace(MARKS[0], "[").replace(MARKS[1], "]");
        found.push(Found::new(row.key, value).excerpt(excerpt).score(-rank));
    }
    Ok(found)
}
