//! Noticing what other processes write: answers, and wishes of cancel.
//!
//! A thread looks at the file's version, which costs no read of a table, and only if that has
//! changed at what is waited for.

use super::Inner;
use crate::db::{self, StoreFile};
use crate::error::{Explain, StoreError};
use crate::run;
use crate::store::lock;
use crate::wish::{self, Wish};
use rusqlite::Connection;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

/// How often the version is looked at, while anything is driven.
const OFTEN: Duration = Duration::from_millis(50);

/// How long to leave a file alone that cannot be read.
const LATER: Duration = Duration::from_secs(1);

pub(super) fn start(drive: &Arc<Inner>) -> Result<Thread, StoreError> {
    let file = drive.store.file().clone();
    let conn = db::reader(&file)?;
    let weak = Arc::downgrade(drive);
    let thread = thread::Builder::new()
        .name("tenure-watch".to_owned())
        .spawn({
            let file = file.clone();
            move || poll(&weak, &conn, &file)
        })
        .explain(&file, "start the thread that watches the store")?;
    Ok(thread.thread().clone())
}

fn poll(drive: &Weak<Inner>, conn: &Connection, path: &StoreFile) {
    let mut seen = None;
    loop {
        let Some(drive) = drive.upgrade() else { return };
        if drive.closed.load(Ordering::Acquire) {
            return;
        }
        let logs = drive.logs();
        let is_watched = drive.watchers.load(Ordering::Relaxed) > 0;
        if logs.is_empty() && !is_watched {
            drop((logs, drive));
            // Whoever begins to drive a run wakes it.
            thread::park();
            continue;
        }
        let pause = match drive.look(conn, path, &logs, &mut seen) {
            Ok(()) => OFTEN,
            Err(error) => {
                tracing::warn!(%error, "answers of other processes are not noticed for a moment");
                LATER
            }
        };
        // Neither the runs nor their driver are kept alive by being watched.
        drop((logs, drive));
        thread::park_timeout(pause);
    }
}

impl Inner {
    fn logs(&self) -> Vec<Arc<run::Inner>> {
        lock(&self.live).values().filter_map(|live| live.log.upgrade()).collect()
    }

    fn look(
        &self,
        conn: &Connection,
        path: &StoreFile,
        logs: &[Arc<run::Inner>],
        seen: &mut Option<(i64, usize)>,
    ) -> Result<(), StoreError> {
        for log in logs {
            log.say_whether_it_waits();
        }
        let version: i64 = conn
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut version| version.query_row([], |row| row.get(0)))
            .explain(path, "look whether the store has changed")?;
        let asked: usize = logs.iter().map(|log| log.open_asks().len()).sum();
        let now = Some((version, logs.len() + asked));
        if *seen == now {
            return Ok(());
        }
        for (run, wish) in wish::all(conn, path)? {
            if let Some(log) = logs.iter().find(|log| log.run() == run) {
                match wish {
                    Wish::Cancel => log.wants_cancel(),
                    Wish::Kill => log.wants_kill(),
                }
            }
        }
        if asked > 0 {
            let open = open_asks(conn, path)?;
            for log in logs {
                for id in log.open_asks().iter().filter(|id| !open.contains(*id)) {
                    log.wake_ask(id);
                }
            }
        }
        self.changed.send_modify(|count| *count += 1);
        *seen = now;
        Ok(())
    }
}

/// The questions that nobody has decided.
fn open_asks(conn: &Connection, path: &Path) -> Result<HashSet<String>, StoreError> {
    let what = "look which questions are open";
    let sql = "SELECT id FROM asks WHERE status = 'open'";
    let mut select = conn.prepare_cached(sql).explain(path, what)?;
    let rows = select.query_map([], |row| row.get(0)).explain(path, what)?;
    rows.collect::<Result<_, _>>().explain(path, what)
}
