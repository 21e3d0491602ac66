//! A log of a run: of a new one, or of one that has a record.

use super::activity::Activity;
use super::rows::ANNOUNCED;
use super::table::Table;
use super::{Inner, Resume, RunLog, Shared};
use crate::driver::Drive;
use crate::error::StoreError;
use crate::store::Store;
use std::sync::{Arc, Mutex, OnceLock};
use tenure_core::CancelToken;
use tenure_core::engine::RunInfo;
use tenure_core::step::ScopeRecord;

/// What a log is made of.
pub(crate) struct Opened {
    pub(crate) info: RunInfo,
    pub(crate) mode: Resume,
    pub(crate) drive: Option<Drive>,
    pub(crate) shared: Arc<Shared>,
}

impl Opened {
    /// Reads what is on record, and makes a log.
    pub(crate) fn load(self, store: &Store) -> Result<RunLog, StoreError> {
        let table = table(store, &self.shared.name())?;
        Ok(self.with(store, table))
    }

    /// A log of a run of which nothing is on record.
    pub(crate) fn fresh(self, store: &Store) -> RunLog {
        self.with(store, Table::default())
    }

    fn with(self, store: &Store, table: Table) -> RunLog {
        let Self { info, mode, drive, shared } = self;
        let log = Arc::new(Inner {
            info,
            mode,
            store: store.clone(),
            drive,
            shared,
            activity: Activity::default(),
            difference: OnceLock::new(),
            end_of_record: OnceLock::new(),
            stopped: false.into(),
            is_new: table.loaded == 0,
            beyond: false.into(),
            cancel_later: false.into(),
            table: Mutex::new(table),
            cancel: CancelToken::new(),
            killed: CancelToken::new(),
            asks: Mutex::default(),
        });
        if let Some(drive) = &log.drive {
            drive.enter(&log);
        }
        RunLog(log)
    }
}

/// What is on record of a run. Results stay as they are stored until they are served.
fn table(store: &Store, run: &str) -> Result<Table, StoreError> {
    let wanted = |of: &str, kind: Option<&str>| {
        matches!(of, "step.recorded" | "scope.began" | "scope.ended") || kind == Some(ANNOUNCED)
    };
    let mut table = Table::default();
    for row in store.load(run, wanted)? {
        match &*row.of {
            "step.recorded" => table.load(row),
            "scope.began" => {
                let scope = serde_json::from_value::<ScopeRecord>(store.expand(&row)?);
                let scope = scope.map_err(|error| {
                    let found = format!("record {} of run {run} is no scope ({error})", row.seq);
                    StoreError::damaged(store.path(), found)
                })?;
                table.begin(&scope);
            }
            "scope.ended" => {
                if let Some(id) = &row.name {
                    table.load_end(id);
                }
            }
            name => {
                table.announce(row.path.as_deref().unwrap_or_default(), name);
            }
        }
    }
    Ok(table)
}
