//! What a run writes, as rows.

use super::activity::Frame;
use crate::error::StoreError;
use crate::journal::{NewRow, Tx, millis};
use crate::runs;
use serde_json::Value;
use tenure_core::RunId;
use tenure_core::engine::RunStatus;
use tenure_core::event::Event;
use tenure_core::step::{ScopeEnd, ScopeRecord, StepKey};

/// A step, and in whose effect it was taken.
pub(super) fn step(run: RunId, key: &StepKey, value: &Value, within: Option<&Frame>) -> NewRow {
    let mut row = NewRow::step(key, value);
    row.cause = within.map(|frame| frame.key.id(run));
    row
}

pub(super) fn began(scope: &ScopeRecord) -> NewRow {
    let mut row = of_scope("scope.began", scope);
    let data = serde_json::to_value(scope).unwrap_or_default();
    row = row.data(&data);
    row
}

pub(super) fn ended(scope: &ScopeRecord, end: ScopeEnd) -> NewRow {
    let mut data = serde_json::to_value(end).unwrap_or_default();
    data["life"] = Value::from(scope.life);
    of_scope("scope.ended", scope).data(&data)
}

fn of_scope(of: &'static str, scope: &ScopeRecord) -> NewRow {
    let mut row = NewRow::new(of);
    row.agent = Some(scope.agent.clone());
    row.instance = scope.instance.map(|instance| instance.to_string());
    row.path = Some(scope.path.clone());
    row.kind = Some(scope.kind.as_str().into());
    row.name = Some(scope.id.clone());
    row
}

/// The kind of an event that its run announces once; the row has its place too.
pub(super) const ANNOUNCED: &str = "announced";

/// What an agent says of itself. Its data, before it is written, goes through `redact`.
pub(super) fn event(event: &Event, place: Option<&str>, redact: impl FnOnce(&mut Value)) -> NewRow {
    let mut row = NewRow::new(event.name());
    row.time = millis(event.time);
    row.agent = Some(event.agent.clone());
    row.instance = Some(event.instance.to_string());
    row.trace = event.trace.clone();
    if let Some(place) = place {
        row.path = Some(place.into());
        row.kind = Some(ANNOUNCED.into());
    }
    let mut data = match serde_json::to_value(&event.kind) {
        Ok(Value::Object(mut fields)) => fields.remove("data").unwrap_or(Value::Null),
        _ => Value::Null,
    };
    if data.is_null() {
        return row;
    }
    redact(&mut data);
    row.data(&data)
}

/// Records that only open questions are left of a run.
pub(crate) fn waits(tx: &mut Tx<'_>, run: &str) -> Result<(), StoreError> {
    if is_driven(tx, run)? {
        tx.append(run, NewRow::new("run.waiting"))?;
        runs::change(tx, run, |row| row.status = RunStatus::Waiting.as_str().to_owned())?;
    }
    Ok(())
}

/// Records that something else of a run goes on again.
pub(crate) fn goes_on(tx: &mut Tx<'_>, run: &str) -> Result<(), StoreError> {
    if is_driven(tx, run)? {
        runs::change(tx, run, |row| row.status = RunStatus::Running.as_str().to_owned())?;
    }
    Ok(())
}

/// Whether a driver has the run. One that its driver has left stays as it was left: the note of a
/// poll that began before that is written after it.
fn is_driven(tx: &Tx<'_>, run: &str) -> Result<bool, StoreError> {
    Ok(runs::find(tx.conn(), tx.path(), run)?.is_some_and(|row| row.driven.is_some()))
}
