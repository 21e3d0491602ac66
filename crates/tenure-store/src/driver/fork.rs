//! A new run from a part of another one's record.

use super::Driver;
use crate::error::{StoreError, StoreErrorKind};
use crate::journal::{NewRow, Row};
use crate::runs::{self, RunRow};
use crate::store::Store;
use serde_json::json;
use std::time::SystemTime;
use tenure_core::engine::{NewRun, RunInfo};
use tenure_core::{Error, RunId};

impl Driver {
    /// Makes a new run whose record is that of `run` up to the step `from`, without it. The old run
    /// stays as it is. Take the new one up with [`Driver::resume`]: it does everything from that step
    /// on again.
    ///
    /// `from` is the number of a record (`17`), or a step as it is shown (`turn/tool:pay#2`), or its
    /// id.
    pub async fn fork(&self, run: RunId, from: &str) -> Result<RunId, Error> {
        let (store, from) = (self.store().clone(), from.to_owned());
        let Fork { row, id, steps, cut } =
            super::blocking(move || Fork::read(&store, run, &from)).await?;
        let done = self.store().write_with_async(move |tx| {
            runs::insert(tx, &row)?;
            let data =
                json!({ "kind": row.kind, "name": row.name, "from": cut, "steps": steps.len() });
            let mut started = NewRow::new("run.started").data(&data);
            started.cause = Some(run.to_string());
            tx.append(&row.id, started)?;
            for step in steps {
                tx.append(&row.id, step)?;
            }
            Ok(())
        });
        done.await?;
        Ok(id)
    }
}

/// What the new run is made of.
struct Fork {
    row: RunRow,
    id: RunId,
    steps: Vec<NewRow>,
    cut: u64,
}

impl Fork {
    fn read(store: &Store, run: RunId, from: &str) -> Result<Self, StoreError> {
        let info = store.run(run)?;
        let info = info.ok_or_else(|| runs::unknown(store.path(), &run.to_string()))?;
        let rows = store.load(&run.to_string(), |of, _| of == "step.recorded")?;
        let Some(cut) = cut(&rows, run, from) else {
            return Err(no_such_step(&rows, run, from));
        };
        let new = new_run(&info);
        let row = RunRow::new(&new, SystemTime::now());
        let mut steps = Vec::new();
        for row in rows.iter().take_while(|row| row.seq < cut) {
            let Some(key) = row.key() else { continue };
            // Whose process died was told so; the instances of the new run are others.
            if &*key.kind == "on_shutdown" {
                continue;
            }
            let mut step = NewRow::step(&key, &store.expand(row)?);
            step.agent = row.agent.as_deref().map(Into::into);
            step.cause = within(&rows, run, new.id, row.cause.as_deref());
            steps.push(step);
        }
        Ok(Self { row, id: new.id, steps, cut })
    }
}

fn new_run(old: &RunInfo) -> NewRun {
    let mut new = NewRun::new(old.kind.clone(), old.input.clone()).name(old.name.clone());
    (new.thread, new.user) = (old.thread.clone(), old.user.clone());
    new
}

/// The number of the record that is meant.
fn cut(rows: &[Row], run: RunId, from: &str) -> Option<u64> {
    if let Ok(seq) = from.parse::<u64>() {
        return rows.iter().any(|row| row.seq >= seq).then_some(seq);
    }
    let is_meant =
        |row: &&Row| row.key().is_some_and(|key| key.to_string() == from || key.id(run) == from);
    rows.iter().find(is_meant).map(|row| row.seq)
}

/// In whose effect a step was taken, by the id that this one has in the new run.
fn within(rows: &[Row], old: RunId, new: RunId, cause: Option<&str>) -> Option<String> {
    let cause = cause?;
    let outer = rows.iter().filter_map(Row::key).find(|key| key.id(old) == cause)?;
    Some(outer.id(new))
}

#[cold]
fn no_such_step(rows: &[Row], run: RunId, from: &str) -> StoreError {
    let message = match rows.last().and_then(|row| Some((row.seq, row.key()?))) {
        Some((seq, key)) => format!(
            "run {run} has no step `{from}`; its last one is {key}, record {seq}. `tenure show {run}` \
             shows them all"
        ),
        None => format!("run {run} has no step `{from}`: nothing but its start is on record"),
    };
    StoreError::new(StoreErrorKind::Unknown, message)
}
