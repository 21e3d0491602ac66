//! The journal by itself: rows as any part of the crate appends them.

mod disk;
mod group;
mod upkeep;

use super::row::NewRow;
use super::{Job, Sum, Tx};
use crate::error::{Explain, StoreError};
use crate::key::Table;
use crate::store::Driving;
use crate::{Store, StoreErrorKind};
use rusqlite::params;
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;
use tenure_core::RunId;
use tenure_core::step::StepKey;

/// A store in a folder of its own.
struct Place {
    folder: TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = crate::testing::open(folder.path().join("tenure.db")).expect("it opens");
        Self { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn drive(&self) -> Driving {
        self.store.take_over("a test").expect("nobody else drives")
    }
}

fn append(run: RunId, row: NewRow) -> Job {
    Box::new(move |tx| tx.append(&run.to_string(), row).map(Value::from))
}

fn step(number: usize) -> NewRow {
    let key = StepKey::new("turn", "model", "model", number as u32, number as u64);
    NewRow::step(&key, &json!({ "value": format!("the answer to question {number}") }))
}

/// A run in the table of runs, as it is after `run.started`.
fn known(
    tx: &mut Tx<'_>,
    run: RunId,
    status: &str,
    ended: Option<i64>,
) -> Result<Value, StoreError> {
    let id = run.to_string();
    let outcome = ended.map(|_| "ok");
    let mut sum = Sum::new();
    sum.text(&id).text("test").text("a test").text(status).opt_text(outcome).text("null");
    sum.null().null().null().null().int(1).null().int(1).opt_int(ended).null();
    let sql = "INSERT INTO runs (id, kind, name, status, outcome, input, lives, started, ended, sum) \
               VALUES (?1, 'test', 'a test', ?2, ?3, 'null', 1, 1, ?4, ?5)";
    let row = params![id, status, outcome, ended, sum.seal(tx.path(), Table::Runs)];
    tx.conn().execute(sql, row).explain(tx.path(), "write a run")?;
    Ok(Value::Null)
}

fn scope(of: &'static str, name: &str) -> NewRow {
    let mut row = NewRow::new(of);
    (row.path, row.kind, row.name) = (Some("".into()), Some("turn".into()), Some(name.into()));
    row
}
