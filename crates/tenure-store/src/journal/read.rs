//! Reading a run's rows: each is checked against its sum, its number and the chain.

use super::row::{COLUMNS, Row, Stored, link, time};
use super::sum::{Chain, NO_CHAIN, Sum};
use crate::Store;
use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use crate::key::Table;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::SystemTime;
use tenure_core::RunId;
use tenure_core::step::StepKey;

/// One thing that happened in a run, as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// Its number in the run: 1, 2, 3, without a gap.
    pub seq: u64,
    /// When it happened.
    pub time: SystemTime,
    /// What happened, such as `step.recorded` or `hook.ended`.
    #[serde(rename = "type")]
    pub name: String,
    /// The agent.
    pub agent: Option<String>,
    /// The instance.
    pub instance: Option<String>,
    /// The trace.
    pub trace: Option<String>,
    /// What led to it.
    pub cause: Option<String>,
    /// Where in the run.
    pub path: Option<String>,
    /// The step it is about.
    pub step: Option<StepKey>,
    /// The id of the scope it is about.
    pub scope: Option<String>,
    /// What else is known of it.
    pub data: Value,
}

impl Store {
    /// What happened in a run after the number `after`, in order, at most `limit` of it.
    ///
    /// Every row is checked against its sum and its place in the run. What was not written is never
    /// returned: it is an error that says what is damaged.
    pub fn records(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        let run = run.to_string();
        self.read(|conn| {
            let rows = rows(conn, self.file(), &run, after, limit, |_, _| true)?;
            rows.into_iter().map(|row| self.record(conn, row)).collect()
        })
    }

    fn record(&self, conn: &Connection, row: Row) -> Result<Record, StoreError> {
        let data = match &row.data {
            Some(data) => self.shelf().expand(conn, self.file(), data)?,
            None => Value::Null,
        };
        let step = row.key();
        let owned = |text: Option<Box<str>>| text.map(String::from);
        Ok(Record {
            seq: row.seq,
            time: time(row.time),
            name: row.of.into(),
            agent: owned(row.agent),
            instance: owned(row.instance),
            trace: owned(row.trace),
            cause: owned(row.cause),
            path: owned(row.path),
            scope: if step.is_none() { owned(row.name) } else { None },
            step,
            data,
        })
    }

    /// The rows of a run that `wanted` takes by their type and kind. All rows are checked. What is kept apart
    /// stays apart: see [`Store::expand`].
    pub(crate) fn load(
        &self,
        run: &str,
        wanted: impl Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Row>, StoreError> {
        self.read(|conn| rows(conn, self.file(), run, 0, usize::MAX, wanted))
    }

    /// What a stored row says, or `null`.
    pub(crate) fn expand(&self, row: &Row) -> Result<Value, StoreError> {
        match &row.data {
            Some(data) => self.expand_text(data),
            None => Ok(Value::Null),
        }
    }

    /// What a stored text says that was packed.
    pub(crate) fn expand_text(&self, text: &str) -> Result<Value, StoreError> {
        self.read(|conn| self.shelf().expand(conn, self.file(), text))
    }
}

fn rows(
    conn: &Connection,
    path: &StoreFile,
    run: &str,
    after: u64,
    limit: usize,
    wanted: impl Fn(&str, Option<&str>) -> bool,
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    // The row before the first one has the chain that the first one goes on.
    let from = after.max(1);
    let limit = limit.saturating_add(usize::from(after > 0));
    walk(conn, path, run, from, limit, |row| {
        if row.seq()? > after && wanted(row.of()?, row.kind()?) {
            rows.push(row.row()?);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Goes through a run's rows from `from` on and checks each.
pub(super) fn walk(
    conn: &Connection,
    path: &StoreFile,
    run: &str,
    from: u64,
    limit: usize,
    mut each: impl FnMut(&Stored<'_, '_>) -> Result<(), String>,
) -> Result<u64, StoreError> {
    let what = "read the events of a run";
    let query =
        format!("SELECT {COLUMNS} FROM events WHERE run = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3");
    let mut statement = conn.prepare_cached(&query).explain(path, what)?;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let range = params![run, number(from), number(limit as u64)];
    // One moment for the rows and for what heads says of them: what is beyond that was not appended
    // by us.
    let moment = conn.is_autocommit().then(|| conn.unchecked_transaction());
    let _moment = moment.transpose().explain(path, what)?;
    let last = pointed(conn, path, run)?;
    let mut rows = statement.query(range).explain(path, what)?;
    let (mut sum, mut next) = (Sum::new(), from);
    let mut chain: Option<Chain> = (from <= 1).then_some(NO_CHAIN);
    while let Some(row) = rows.next().explain(path, what)? {
        let row = Stored(row);
        let checked = check(path, &row, &mut sum, next, chain.as_ref()).and_then(|now| {
            chain = Some(now);
            match last {
                None => Err("table heads does not know of the run".to_owned()),
                Some((seq, _)) if next > seq => {
                    Err("it is behind the last one that table heads has".to_owned())
                }
                Some((seq, chain)) if seq == next && chain != now => {
                    Err("it is not the one that table heads has".to_owned())
                }
                Some(_) => each(&row),
            }
        });
        checked.map_err(|wrong| damaged(path, run, next, wrong))?;
        next += 1;
    }
    let read = next - from;
    match last {
        Some((seq, _)) if next <= seq && read < limit as u64 => {
            Err(damaged(path, run, next, "it is missing, and so are all after it"))
        }
        _ => Ok(read),
    }
}

/// The number and the chain of a run's last row, as they were noted beside it.
pub(super) fn pointed(
    conn: &Connection,
    path: &StoreFile,
    run: &str,
) -> Result<Option<(u64, Chain)>, StoreError> {
    let what = "read how far a run's events go";
    let sql = "SELECT seq, chain FROM heads WHERE run = ?1";
    let mut find = conn.prepare_cached(sql).explain(path, what)?;
    let found = find.query_row([run], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((seq, sealed)) = found.optional().explain(path, what)? else { return Ok(None) };
    head(path, run, seq, sealed)
        .map(Some)
        .map_err(|wrong| StoreError::damaged(path, format_args!("table heads, run {run}: {wrong}")))
}

/// A row of `heads`, if it is as it was written.
fn head(
    file: &StoreFile,
    run: &str,
    seq: i64,
    sealed: Vec<u8>,
) -> Result<(u64, Chain), &'static str> {
    let seq = u64::try_from(seq).map_err(|_| "its number is none")?;
    let (chain, code) = sealed.split_at_checked(NO_CHAIN.len()).ok_or("its chain is cut")?;
    let chain = chain.try_into().map_err(|_| "its chain is cut")?;
    let code = (!code.is_empty()).then_some(code);
    link(run, seq, &chain).check_code(file, Table::Heads, code)?;
    Ok((seq, chain))
}

/// What table heads has of a chain: it, and in a store with a key its code behind it.
pub(super) struct SealedChain {
    bytes: [u8; 32],
    length: usize,
}

pub(super) fn sealed_chain(file: &StoreFile, link: &Sum, chain: &Chain) -> SealedChain {
    let mut sealed = SealedChain { bytes: [0; 32], length: chain.len() };
    sealed.bytes[..16].copy_from_slice(chain);
    if let Some(code) = link.code(file, Table::Heads) {
        sealed.bytes[16..].copy_from_slice(&code);
        sealed.length = 32;
    }
    sealed
}

impl ToSql for SealedChain {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(&self.bytes[..self.length])))
    }
}

/// The chain up to this row, if the row is what it should be.
fn check(
    file: &StoreFile,
    row: &Stored<'_, '_>,
    sum: &mut Sum,
    expected: u64,
    before: Option<&Chain>,
) -> Result<Chain, String> {
    row.check(file, sum)?;
    let (seq, chain) = (row.seq()?, row.chain()?);
    if seq != expected {
        return Err(format!("it is missing; the next one there is has the number {seq}"));
    }
    match before {
        Some(before) if sum.chain(before) != chain => {
            Err("it does not follow the rows before it: its chain is wrong".to_owned())
        }
        _ => Ok(chain),
    }
}

fn damaged(path: &Path, run: &str, seq: u64, wrong: impl fmt::Display) -> StoreError {
    StoreError::damaged(path, format_args!("table events, row {seq} of run {run}: {wrong}"))
}
