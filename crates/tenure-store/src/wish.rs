//! What others want of a run: whoever drives it notices within 200 ms; if nobody does, it is there
//! when the run is taken up again.

use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use crate::journal::{Sum, Tx, millis};
use crate::key::Table;
use crate::runs;
use crate::store::Store;
use rusqlite::{Connection, params};
use std::time::SystemTime;
use tenure_core::RunId;

/// What is wanted of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wish {
    /// That it is cancelled, in good order: everything that began gets its end.
    Cancel,
    /// That it is stopped at once: its work is dropped where it stands. Ends of turns and chats are
    /// recorded, and no hook is called for them.
    Kill,
}

impl Wish {
    /// The wish's name as records spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Kill => "kill",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Cancel, Self::Kill].into_iter().find(|wish| wish.as_str() == name)
    }
}

impl Store {
    /// Asks whoever drives a run to cancel it or to stop it at once, now or when it is taken up
    /// again. Whether there is such a run that is not over. It is on disk when this returns.
    pub fn request(&self, run: RunId, wish: Wish) -> Result<bool, StoreError> {
        self.write_with(request(run, wish))
    }

    /// What is wanted of a run, and has not been done yet.
    pub fn wanted(&self, run: RunId) -> Result<Vec<Wish>, StoreError> {
        let all = self.read(|conn| all(conn, self.file()))?;
        Ok(all.into_iter().filter(|(it, _)| *it == run).map(|(_, wish)| wish).collect())
    }

    /// As [`Store::request`], without blocking the thread.
    pub(crate) async fn request_async(&self, run: RunId, wish: Wish) -> Result<bool, StoreError> {
        self.write_with_async(request(run, wish)).await
    }
}

fn request(run: RunId, wish: Wish) -> impl FnOnce(&mut Tx<'_>) -> Result<bool, StoreError> + Send {
    move |tx| {
        let run = run.to_string();
        match runs::find(tx.conn(), tx.path(), &run)? {
            Some(row) if !row.is_over() => {}
            _ => return Ok(false),
        }
        let what = "write what is wanted of a run";
        let (wish, now) = (wish.as_str(), millis(SystemTime::now()));
        let by = format!("process {}", std::process::id());
        let sql = "INSERT INTO requests (run, wish, by, time, sum) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT DO NOTHING";
        let mut insert = tx.conn().prepare_cached(sql).explain(tx.path(), what)?;
        let mut sum = Sum::new();
        sum.text(&run).text(wish).text(&by).int(now);
        let sum = sum.seal(tx.path(), Table::Requests);
        insert.execute(params![run, wish, by, now, sum]).explain(tx.path(), what)?;
        Ok(true)
    }
}

/// Everything that is wanted, of any run. A row that is damaged is left out, with a warning.
pub(crate) fn all(conn: &Connection, path: &StoreFile) -> Result<Vec<(RunId, Wish)>, StoreError> {
    let what = "read what is wanted of runs";
    let sql = "SELECT run, wish, by, time, sum FROM requests";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let mut rows = select.query([]).explain(path, what)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().explain(path, what)? {
        let mut sum = Sum::new();
        for column in 0..4 {
            sum.column(row.get_ref(column).explain(path, what)?);
        }
        let run: String = row.get(0).explain(path, what)?;
        let seal = row.get_ref(4).explain(path, what)?;
        if let Err(wrong) = sum.check(path, Table::Requests, seal) {
            let file = path.display();
            tracing::warn!("{file}: a row is left out: table requests, run {run}: {wrong}");
            continue;
        }
        let wish: String = row.get(1).explain(path, what)?;
        all.extend(run.parse().ok().zip(Wish::named(&wish)));
    }
    Ok(all)
}

/// What is wanted of one run.
pub(crate) fn of(tx: &Tx<'_>, run: RunId) -> Result<Vec<Wish>, StoreError> {
    let all = all(tx.conn(), tx.path())?;
    Ok(all.into_iter().filter(|(it, _)| *it == run).map(|(_, wish)| wish).collect())
}

/// The run is over: nothing can be wanted of it.
pub(crate) fn forget(tx: &Tx<'_>, run: &str) -> Result<(), StoreError> {
    let what = "delete what was wanted of a run";
    let sql = "DELETE FROM requests WHERE run = ?1";
    tx.conn()
        .prepare_cached(sql)
        .and_then(|mut delete| delete.execute([run]))
        .explain(tx.path(), what)?;
    Ok(())
}
