//! The runs of a file: one row each, which says where the run stands, and what others want of it.

use crate::db::StoreFile;
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::{Sum, Tx, millis, time};
use crate::key::Table;
use crate::store::Store;
use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use std::time::SystemTime;
use tenure_core::engine::{NewRun, RunInfo, RunQuery, RunStatus};
use tenure_core::{Outcome, RunId};

/// A row of `runs`.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) outcome: Option<String>,
    pub(crate) input: String,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) thread: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) lives: u32,
    /// Since when somebody drives it: whoever has the file, if it is not longer ago.
    pub(crate) driven: Option<i64>,
    pub(crate) started: i64,
    pub(crate) ended: Option<i64>,
    pub(crate) compacted: Option<i64>,
}

/// The columns of `runs`, in the order that [`RunRow::read`] takes them, and those of other tables
/// that a [`RunInfo`] has.
const COLUMNS: &str = "r.id, r.kind, r.name, r.status, r.outcome, r.input, r.output, r.error, \
                       r.thread, r.user, r.lives, r.driven, r.started, r.ended, r.compacted, r.sum";
const BESIDE: &str = "(SELECT time FROM events e WHERE e.run = r.id ORDER BY e.seq DESC LIMIT 1), \
                      (SELECT count(*) FROM asks a WHERE a.run = r.id AND a.status = 'open')";

impl RunRow {
    /// The row of a new run, which nobody has driven yet.
    pub(crate) fn new(run: &NewRun, started: SystemTime) -> Self {
        Self {
            id: run.id.to_string(),
            kind: run.kind.clone(),
            name: run.name.clone(),
            status: RunStatus::Running.as_str().to_owned(),
            outcome: None,
            input: run.input.to_string(),
            output: None,
            error: None,
            thread: run.thread.clone(),
            user: run.user.clone(),
            lives: 0,
            driven: None,
            started: millis(started),
            ended: None,
            compacted: None,
        }
    }

    /// The row, if it is as it was written.
    fn read(path: &StoreFile, row: &Row<'_>) -> rusqlite::Result<Result<Self, StoreError>> {
        let it = Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            name: row.get(2)?,
            status: row.get(3)?,
            outcome: row.get(4)?,
            input: row.get(5)?,
            output: row.get(6)?,
            error: row.get(7)?,
            thread: row.get(8)?,
            user: row.get(9)?,
            lives: row.get(10)?,
            driven: row.get(11)?,
            started: row.get(12)?,
            ended: row.get(13)?,
            compacted: row.get(14)?,
        };
        let checked = it.sum().check(path, Table::Runs, row.get_ref(15)?);
        Ok(match checked {
            Ok(()) => Ok(it),
            Err(wrong) => {
                let found = format!("table runs, run {}: {wrong}", it.id);
                Err(StoreError::damaged(path, found))
            }
        })
    }

    fn sum(&self) -> Sum {
        let mut sum = Sum::new();
        sum.text(&self.id).text(&self.kind).text(&self.name).text(&self.status);
        sum.opt_text(self.outcome.as_deref()).text(&self.input);
        sum.opt_text(self.output.as_deref()).opt_text(self.error.as_deref());
        sum.opt_text(self.thread.as_deref()).opt_text(self.user.as_deref());
        sum.int(i64::from(self.lives)).opt_int(self.driven).int(self.started);
        sum.opt_int(self.ended).opt_int(self.compacted);
        sum
    }

    pub(crate) fn is_over(&self) -> bool {
        self.status == RunStatus::Ended.as_str()
    }

    /// What is known of the run.
    pub(crate) fn info(self, path: &Path) -> Result<RunInfo, StoreError> {
        let Self { id, kind, name, .. } = self;
        let damaged = |what: &str| {
            StoreError::damaged(
                path,
                format_args!("table runs, run {id}: its {what} cannot be read"),
            )
        };
        let input = serde_json::from_str(&self.input).map_err(|_| damaged("input"))?;
        let run = id.parse().map_err(|_| damaged("id"))?;
        let mut run = NewRun::new(kind, input).id(run).name(name);
        (run.thread, run.user) = (self.thread, self.user);
        let mut info = RunInfo::new(&run, time(self.started));
        info.status = serde_json::from_value::<RunStatus>(self.status.into())
            .map_err(|_| damaged("status"))?;
        let outcome = self.outcome.map(|outcome| serde_json::from_value::<Outcome>(outcome.into()));
        info.outcome = outcome.transpose().map_err(|_| damaged("outcome"))?;
        let output = self.output.map(|output| serde_json::from_str(&output));
        info.output = output.transpose().map_err(|_| damaged("output"))?;
        (info.error, info.lives) = (self.error, self.lives);
        info.ended = self.ended.map(time);
        Ok(info)
    }
}

/// Puts a run on record.
pub(crate) fn insert(tx: &Tx<'_>, row: &RunRow) -> Result<(), StoreError> {
    let sql = "INSERT INTO runs (id, kind, name, status, outcome, input, output, error, thread, user, \
               lives, driven, started, ended, compacted, sum) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let what = "put a run on record";
    let mut insert = tx.conn().prepare_cached(sql).explain(tx.path(), what)?;
    let values = params![
        row.id,
        row.kind,
        row.name,
        row.status,
        row.outcome,
        row.input,
        row.output,
        row.error,
        row.thread,
        row.user,
        row.lives,
        row.driven,
        row.started,
        row.ended,
        row.compacted,
        row.sum().seal(tx.path(), Table::Runs),
    ];
    insert.execute(values).explain(tx.path(), what)?;
    Ok(())
}

/// A run's row.
pub(crate) fn find(
    conn: &Connection,
    path: &StoreFile,
    run: &str,
) -> Result<Option<RunRow>, StoreError> {
    let what = "read a run";
    let sql = format!("SELECT {COLUMNS} FROM runs r WHERE r.id = ?1");
    let mut find = conn.prepare_cached(&sql).explain(path, what)?;
    let found = find.query_row([run], |row| RunRow::read(path, row)).optional();
    found.explain(path, what)?.transpose()
}

/// Changes a run's row: where it stands, what came of it, how many lives it had.
pub(crate) fn change(
    tx: &Tx<'_>,
    run: &str,
    change: impl FnOnce(&mut RunRow),
) -> Result<(), StoreError> {
    let Some(mut row) = find(tx.conn(), tx.path(), run)? else {
        return Err(unknown(tx.path(), run));
    };
    change(&mut row);
    let sql = "UPDATE runs SET status = ?2, outcome = ?3, output = ?4, error = ?5, lives = ?6, \
               driven = ?7, ended = ?8, compacted = ?9, sum = ?10 WHERE id = ?1";
    let what = "write where a run stands";
    let mut update = tx.conn().prepare_cached(sql).explain(tx.path(), what)?;
    let values = params![
        row.id,
        row.status,
        row.outcome,
        row.output,
        row.error,
        row.lives,
        row.driven,
        row.ended,
        row.compacted,
        row.sum().seal(tx.path(), Table::Runs),
    ];
    update.execute(values).explain(tx.path(), what)?;
    Ok(())
}

#[cold]
pub(crate) fn unknown(path: &Path, run: &str) -> StoreError {
    let message = format!("{}: there is no run {run}; `tenure runs` shows them", path.display());
    StoreError::new(StoreErrorKind::Unknown, message)
}

/// What is known of a run, and since when somebody drives it.
type Read = (RunInfo, Option<i64>);

/// A row: the first error is of the reading, the second of the row.
type Found = Result<Result<Read, StoreError>, StoreError>;

/// Leaves out a row that is damaged, so that it does not hide those that are whole.
pub(crate) fn skip_damaged<T>(
    row: Result<Result<T, StoreError>, StoreError>,
) -> Result<Option<T>, StoreError> {
    match row? {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.is_damaged() => {
            tracing::warn!("a row is left out: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl Store {
    /// The runs that fit, newest first. One whose row is damaged is left out, with a warning:
    /// [`Store::verify`] names it.
    pub fn runs(&self, query: &RunQuery) -> Result<Vec<RunInfo>, StoreError> {
        let mut sql = format!("SELECT {COLUMNS}, {BESIDE} FROM runs r WHERE 1");
        let status = query.status.map(RunStatus::as_str);
        let columns = [
            ("status", status.map(str::to_owned)),
            ("kind", query.kind.clone()),
            ("name", query.name.clone()),
            ("thread", query.thread.clone()),
        ];
        let mut values: Vec<&dyn ToSql> = Vec::new();
        for (column, value) in &columns {
            if let Some(value) = value {
                values.push(value);
                sql.push_str(&format!(" AND r.{column} = ?{}", values.len()));
            }
        }
        if query.unfinished {
            sql.push_str(" AND r.status <> 'ended'");
        }
        sql.push_str(" ORDER BY r.started DESC, r.id DESC");
        self.infos(&sql, &values, |rows| {
            let whole = rows.filter_map(|row| skip_damaged(row).transpose());
            whole.take(query.limit.unwrap_or(usize::MAX)).collect()
        })
    }

    /// What is known of a run; none if there is no such run.
    pub fn run(&self, run: RunId) -> Result<Option<RunInfo>, StoreError> {
        let sql = format!("SELECT {COLUMNS}, {BESIDE} FROM runs r WHERE r.id = ?1");
        Ok(self.infos(&sql, &[&run.to_string()], |rows| rows.map(Result::flatten).collect())?.pop())
    }

    /// The run whose id begins like this.
    pub fn find(&self, prefix: &str) -> Result<RunId, StoreError> {
        const NAMED: usize = 8;
        let path = self.path();
        let what = "look for a run";
        // Whatever begins so is before the same with a character behind it that no id has.
        let sql =
            "SELECT id, name FROM runs WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT ?2";
        let found = self.read(|conn| {
            let mut find = conn.prepare_cached(sql).explain(path, what)?;
            let limit = i64::try_from(NAMED + 1).unwrap_or(i64::MAX);
            let rows = find.query_map(params![prefix, limit], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            });
            rows.and_then(Iterator::collect::<Result<Vec<_>, _>>).explain(path, what)
        })?;
        let whole = found.iter().find(|(id, _)| id == prefix);
        let only = if found.len() == 1 { found.first() } else { whole };
        match only {
            Some((id, _)) if !prefix.is_empty() => id
                .parse()
                .map_err(|_| StoreError::damaged(path, format_args!("`{id}` is no id of a run"))),
            None if found.len() > 1 && !prefix.is_empty() => {
                let shown = found.iter().take(NAMED).map(|(id, name)| format!("{id} ({name})"));
                let mut shown = shown.collect::<Vec<_>>().join(", ");
                if found.len() > NAMED {
                    shown.push_str(" and more");
                }
                let message = format!(
                    "`{prefix}` is the beginning of several runs: {shown}; type more of it"
                );
                Err(StoreError::new(StoreErrorKind::Ambiguous, message))
            }
            _ => Err(unknown(path, &format!("`{prefix}`"))),
        }
    }

    /// `take` says which rows count: damaged ones come to it as errors.
    fn infos(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        take: impl FnOnce(&mut dyn Iterator<Item = Found>) -> Result<Vec<Read>, StoreError>,
    ) -> Result<Vec<RunInfo>, StoreError> {
        let (path, what) = (self.file(), "read runs");
        let found = self.read(|conn| {
            let mut select = conn.prepare_cached(sql).explain(path, what)?;
            let read = |row: &Row<'_>| -> rusqlite::Result<Result<Read, StoreError>> {
                let (updated, asks): (Option<i64>, i64) = (row.get(16)?, row.get(17)?);
                Ok(RunRow::read(path, row)?.and_then(|row| {
                    let driven = row.driven;
                    let mut info = row.info(path)?;
                    info.updated = updated.map_or(info.started, time);
                    info.asks = usize::try_from(asks).unwrap_or(0);
                    Ok((info, driven))
                }))
            };
            // What is wrong with a row is told apart from what is wrong with the reading of it.
            let rows = select.query_map(values, |row| Ok(read(row).explain(path, what).flatten()));
            take(&mut rows.explain(path, what)?.map(|row| row.explain(path, what)))
        })?;
        let since = match found.is_empty() {
            true => None,
            false => self.driver()?.map(|driver| millis(driver.since)),
        };
        let info = |(mut info, driven): Read| {
            info.driven = since.zip(driven).is_some_and(|(since, driven)| since <= driven);
            info
        };
        Ok(found.into_iter().map(info).collect())
    }
}
