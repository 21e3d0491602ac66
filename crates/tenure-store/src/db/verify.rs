//! Checking a whole file: what SQLite says of it, every row, every run, every reference.

use super::StoreFile;
use crate::Store;
use crate::error::{Explain, StoreError};
use crate::journal::{Audit, Sum};
use crate::key::Table;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a check of a whole file found.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// The file.
    pub file: PathBuf,
    /// Whether every row was also held against the store's key. Without it, a row that fits its
    /// checksum may have been written by anybody.
    pub authenticated: bool,
    /// How many runs it has.
    pub runs: u64,
    /// How many events.
    pub events: u64,
    /// What is wrong; nothing, if the file is whole.
    pub faults: Vec<Fault>,
}

impl Verified {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Something in a file that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// The table; none if it is about the file itself.
    pub table: Option<String>,
    /// The row.
    pub row: Option<String>,
    /// What is wrong.
    pub wrong: String,
}

impl Fault {
    pub(crate) fn new(
        table: &str,
        row: impl Into<Option<String>>,
        wrong: impl Into<String>,
    ) -> Self {
        Self { table: Some(table.to_owned()), row: row.into(), wrong: wrong.into() }
    }

    fn of_file(wrong: impl Into<String>) -> Self {
        Self { table: None, row: None, wrong: wrong.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "table {table}")?;
            if let Some(row) = &self.row {
                write!(f, ", {row}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.wrong)
    }
}

/// So many faults are listed of each sort.
const MOST: usize = 100;

impl Store {
    /// Checks the whole file: what SQLite says of its pages and indexes, the sum of every row, the
    /// chain of every run, that what began has ended once, that nothing refers to what is not there.
    ///
    /// Reads only. What is damaged is in the report; an error means that it could not be looked at.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let file = self.file();
        self.read(|conn| {
            conn.execute_batch("BEGIN").explain(file, "check the store")?;
            let verified = check(conn, file);
            conn.execute_batch("ROLLBACK").explain(file, "check the store")?;
            verified
        })
        .map_err(|error| super::unusable(file, error))
    }
}

/// Checks everything, within a transaction of the caller's.
pub(super) fn check(conn: &Connection, file: &StoreFile) -> Result<Verified, StoreError> {
    let mut verified = Verified {
        file: file.to_path_buf(),
        authenticated: file.seals().is_some(),
        runs: 0,
        events: 0,
        faults: Vec::new(),
    };
    let result = pages(conn, file, &mut verified)
        .and_then(|()| sums(conn, file, &mut verified))
        .and_then(|()| {
            let audit = Audit::of(conn, file)?;
            (verified.runs, verified.events) = (audit.runs, audit.events);
            verified.faults.extend(audit.faults);
            Ok(())
        });
    match result {
        Err(error) if error.is_damaged() => {
            let fault = Fault::of_file(error.found());
            if !verified.faults.contains(&fault) {
                verified.faults.push(fault);
            }
            Ok(verified)
        }
        result => result.map(|()| verified),
    }
}

/// What SQLite itself finds.
fn pages(conn: &Connection, path: &Path, verified: &mut Verified) -> Result<(), StoreError> {
    let what = "check the file";
    let mut check = conn.prepare(&format!("PRAGMA integrity_check({MOST})")).explain(path, what)?;
    let mut rows = check.query([]).explain(path, what)?;
    while let Some(row) = rows.next().explain(path, what)? {
        let found: String = row.get(0).explain(path, what)?;
        if found != "ok" {
            verified.faults.push(Fault::of_file(found));
        }
    }
    Ok(())
}

/// The rows of every table that has sums, but events: those are checked run by run.
fn sums(conn: &Connection, path: &StoreFile, verified: &mut Verified) -> Result<(), StoreError> {
    let what = "check the tables";
    let tables = "SELECT name FROM pragma_table_list \
                  WHERE schema = 'main' AND type = 'table' AND name <> 'events' \
                  AND EXISTS (SELECT 1 FROM pragma_table_info(pragma_table_list.name) c \
                              WHERE c.name = 'sum') ORDER BY name";
    let tables: Vec<String> = conn
        .prepare(tables)
        .and_then(|mut tables| tables.query_map([], |row| row.get(0))?.collect())
        .explain(path, what)?;
    for table in tables {
        let Some(of) = Table::named(&table) else { continue };
        let mut all = conn.prepare(&format!("SELECT * FROM \"{table}\"")).explain(path, what)?;
        let sum = all.column_index("sum").explain(path, what)?;
        let columns = all.column_count();
        let mut rows = all.query([]).explain(path, what)?;
        let (mut number, mut faults) = (0, 0);
        while faults < MOST {
            let row = match rows.next().explain(path, what) {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) if error.is_damaged() => {
                    verified.faults.push(Fault::new(&table, None, error.found()));
                    break;
                }
                Err(error) => return Err(error),
            };
            number += 1;
            if let Err(wrong) = whole(row, columns, sum, path, of).explain(path, what)? {
                let row = format!("row {number} ({})", key(row));
                verified.faults.push(Fault::new(&table, row, wrong));
                faults += 1;
            }
        }
    }
    Ok(())
}

/// Holds a row against its seal; the inner error says what is wrong with it.
pub(super) fn whole(
    row: &Row<'_>,
    columns: usize,
    at: usize,
    file: &StoreFile,
    table: Table,
) -> rusqlite::Result<Result<(), &'static str>> {
    Ok(sum(row, columns, at)?.check(file, table, row.get_ref(at)?))
}

/// A row as bytes, without the column at `at`.
pub(super) fn sum(row: &Row<'_>, columns: usize, at: usize) -> rusqlite::Result<Sum> {
    let mut sum = Sum::new();
    for column in (0..columns).filter(|column| *column != at) {
        sum.column(row.get_ref(column)?);
    }
    Ok(sum)
}

/// The first column, which is the key of most tables.
fn key(row: &Row<'_>) -> String {
    match row.get_ref(0) {
        Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Ok(ValueRef::Integer(number)) => number.to_string(),
        Ok(ValueRef::Blob(bytes)) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        _ => "?".to_owned(),
    }
}
