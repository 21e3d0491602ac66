//! Sealing the events of every run anew, and where they end.

use super::read::sealed_chain;
use super::row::{COLUMNS, Stored, link};
use super::sum::{Chain, Sum};
use crate::db::StoreFile;
use crate::error::{Explain, StoreError};
use rusqlite::{Connection, params};

/// Seals every event and every row of `heads` with what `file` has. For rows that were checked.
pub(crate) fn reseal_events(conn: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    let what = "seal the events of runs";
    // In the order in which they are on disk, and without a list of them: there may be millions.
    let select = format!("SELECT {COLUMNS}, rowid FROM events WHERE rowid > ?1 LIMIT 10000");
    let mut select = conn.prepare(&select).explain(file, what)?;
    let mut update =
        conn.prepare("UPDATE events SET sum = ?2 WHERE rowid = ?1").explain(file, what)?;
    let mut last = i64::MIN;
    loop {
        let mut seals = Vec::new();
        let mut rows = select.query([last]).explain(file, what)?;
        while let Some(row) = rows.next().explain(file, what)? {
            last = row.get("rowid").explain(file, what)?;
            let seal = Stored(row).seal(file).map_err(|wrong| {
                StoreError::damaged(file, format_args!("table events: {wrong}"))
            })?;
            seals.push((last, seal));
        }
        drop(rows);
        if seals.is_empty() {
            break;
        }
        for (row, seal) in seals {
            update.execute(params![row, seal]).explain(file, what)?;
        }
    }
    reseal_heads(conn, file).explain(file, what)
}

fn reseal_heads(conn: &Connection, file: &StoreFile) -> rusqlite::Result<()> {
    // A chain, with or without a code behind it.
    let mut select = conn.prepare("SELECT run, seq, substr(chain, 1, 16) FROM heads")?;
    let heads = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(String, i64, Chain)>, _>>()?;
    let mut update = conn.prepare("UPDATE heads SET chain = ?2 WHERE run = ?1")?;
    for (run, seq, chain) in heads {
        let link: Sum = link(&run, seq.unsigned_abs(), &chain);
        update.execute(params![run, sealed_chain(file, &link, &chain)])?;
    }
    Ok(())
}
