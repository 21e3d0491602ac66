//! Taking over a store that is not known to be its user's, and giving a store another key.

use super::{Access, DriverLock, StoreFile, connect, schema, verify};
use crate::Store;
use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::journal::{reseal_events, time};
use crate::key::{Identity, Seals, StoreKey, Table, random};
use crate::memory::index_anew;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The relation of a store to the keys of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Authenticity {
    /// Its key is the user's: what is read was written with it.
    Authenticated,
    /// No key of the user's is its: anybody may have written it. It is read-only until it is adopted.
    Unknown,
    /// It was written by an earlier release, which had no keys. It is read-only until it is adopted.
    Earlier,
}

/// A summary of what a store holds, for a person who is to say whether to adopt it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Holdings {
    /// The number of runs, by their status.
    pub runs: BTreeMap<String, u64>,
    /// Questions that wait for an answer.
    pub open_asks: u64,
    /// Questions of runs that are not over which were answered: what was approved there would be
    /// done.
    pub answered_asks: u64,
    /// The keys of memory, each with its namespace in front.
    pub memory: Vec<String>,
    /// The number of keys of memory, of which at most 100 are listed.
    pub memory_keys: u64,
    /// Conversations.
    pub threads: u64,
    /// Answers in the cache.
    pub cached: u64,
    /// The time at which something was last recorded.
    pub last_written: Option<SystemTime>,
}

impl Store {
    /// Returns whether the rows of the store are known to be written by its user.
    pub fn authenticity(&self) -> Authenticity {
        self.known_as()
    }

    /// Summarizes what the store holds. Nothing of it is authenticated by that.
    pub fn holdings(&self) -> Result<Holdings, StoreError> {
        let (file, what) = (self.file(), "look what the store holds");
        self.read(|conn| holdings(conn).explain(file, what))
    }

    /// Makes the store the user's own: gives it a key, and seals every row with it. From then on
    /// everything in it counts as what the user recorded, so look at [`Store::holdings`] first.
    ///
    /// Returns the store as it is then; it is returned as it is if it is the user's already. The
    /// whole file is checked before, and a damaged one is refused. It is done in one transaction,
    /// after the key is on disk.
    pub fn adopt(&self) -> Result<Self, StoreError> {
        if self.authenticity() == Authenticity::Authenticated {
            return Ok(self.clone());
        }
        let file = self.file();
        let _lock = DriverLock::take(file, "tenure: adopting the store")?;
        // A copy of it may be another user's, or a stranger's who knows its name.
        let identity = Identity(random(file)?);
        let key = file.keys().make(identity, file)?;
        let sealed = file.sealed(identity, Seals::new(&key, identity));
        // Of what was refused nothing was written, so the key is nothing's.
        let refused = |error: &StoreError| {
            if error.is_damaged() {
                file.keys().forget(identity);
            }
        };
        reseal(file, &sealed).inspect_err(refused)?;
        self.reopened()
    }

    /// Gives the store another key, and seals every row with it. No other process may drive its runs
    /// at that time; one that has the store open otherwise has to open it again.
    ///
    /// If it is cut short, the store has one of the two keys, and both are kept until it is done. Then
    /// the old one is worthless: what was sealed with it, such as a backup, is no one's until it is
    /// adopted. In a file of keys for all stores, the other stores keep theirs.
    pub fn rotate_key(&self) -> Result<Self, StoreError> {
        let file = self.file();
        let Some(identity) = file.identity() else { return Err(not_authenticated(file)) };
        let _lock = DriverLock::take(file, "tenure db rotate-key")?;
        let key = StoreKey::random(file)?;
        let mut keys = file.keys().of(identity)?;
        keys.insert(0, key.clone());
        file.keys().replace(identity, &keys)?;
        let sealed = file.sealed(identity, Seals::new(&key, identity));
        reseal(file, &sealed)?;
        file.keys().replace(identity, &keys[..1])?;
        self.reopened()
    }

    fn reopened(&self) -> Result<Self, StoreError> {
        Self::open_existing_with(self.path(), self.file().keys())
    }
}

/// Of a store that is not known to be its user's, where it would have to be.
pub(crate) fn not_authenticated(file: &StoreFile) -> StoreError {
    let keys = match file.keys().location() {
        Some(path) => format!("its key is not in {}", path.display()),
        None => "there is no place for keys: set HOME or XDG_DATA_HOME".to_owned(),
    };
    let message = format!(
        "{}: this store is not known to be yours ({keys}), so it can be read, and nothing else. If it \
         is, or if you want what is in it to count as yours, adopt it with --adopt-store",
        file.display()
    );
    StoreError::new(StoreErrorKind::NotAuthenticated, message)
}

/// Finds the user's key of a store, by its row of `identity`.
pub(super) fn recognize(conn: &Connection, file: StoreFile) -> Result<StoreFile, StoreError> {
    let what = "read whose the store is";
    let row: Option<(Vec<u8>, Value)> = conn
        .query_row("SELECT id, sum FROM identity", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .explain(&file, what)?;
    let Some(identity) = row.and_then(|(id, _)| id.try_into().ok()).map(Identity) else {
        return Err(StoreError::damaged(&file, "table identity: there is no name of the store"));
    };
    for key in file.keys().of(identity)? {
        let sealed = file.sealed(identity, Seals::new(&key, identity));
        if identity_fits(conn, &sealed)? {
            return Ok(sealed);
        }
    }
    if !identity_fits(conn, &file)? {
        return Err(StoreError::damaged(&file, "table identity: its checksum is wrong"));
    }
    // It may have the name of a store of the user's, and another key: a copy from before that was
    // rotated, or a forgery. Either is no one's until a person says whose.
    Ok(file)
}

fn identity_fits(conn: &Connection, file: &StoreFile) -> Result<bool, StoreError> {
    let fits = conn.prepare_cached("SELECT id, sum FROM identity").and_then(|mut select| {
        select.query_row([], |row| verify::whole(row, 2, 1, file, Table::Identity))
    });
    Ok(fits.explain(file, "read whose the store is")?.is_ok())
}

/// Makes sure, within a transaction, that the store still has the key that this process knows.
pub(crate) fn check_key(conn: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    match identity_fits(conn, file)? {
        true => Ok(()),
        false => {
            let message = format!(
                "{}: the store was given another key by another process. Start again",
                file.display()
            );
            Err(StoreError::new(StoreErrorKind::NotAuthenticated, message))
        }
    }
}

/// Writes the name of a new store.
pub(super) fn write_identity(conn: &Connection, file: &StoreFile) -> Result<(), StoreError> {
    let Some(Identity(id)) = file.identity() else { return Err(not_authenticated(file)) };
    let mut sum = crate::journal::Sum::new();
    let seal = sum.blob(&id).seal(file, Table::Identity);
    let what = "write whose the store is";
    conn.execute("DELETE FROM identity", []).explain(file, what)?;
    let sql = "INSERT INTO identity (id, sum) VALUES (?1, ?2)";
    conn.execute(sql, params![&id[..], seal]).explain(file, what)?;
    Ok(())
}

/// Seals every row anew, in one transaction, after everything was checked.
fn reseal(from: &StoreFile, to: &StoreFile) -> Result<(), StoreError> {
    let what = "seal the store";
    let conn = connect(from, Access::ReadWrite)?;
    conn.execute_batch("PRAGMA synchronous = FULL; BEGIN IMMEDIATE").explain(from, what)?;
    let done = reseal_all(&conn, from, to);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = conn.execute_batch(end).explain(from, what);
    done.and(ended)
}

fn reseal_all(conn: &Connection, from: &StoreFile, to: &StoreFile) -> Result<(), StoreError> {
    schema::bring_up(conn, from)?;
    if let Some(fault) = verify::check(conn, from)?.faults.first() {
        return Err(StoreError::damaged(from, fault));
    }
    for table in Table::ALL {
        match table {
            Table::Identity => write_identity(conn, to)?,
            Table::Heads => {}
            Table::Events => reseal_events(conn, to)?,
            table => reseal_table(conn, to, table).explain(to, "seal the store")?,
        }
    }
    index_anew(conn, to)
}

fn reseal_table(conn: &Connection, file: &StoreFile, table: Table) -> rusqlite::Result<()> {
    let name = table.name();
    let keys: Vec<String> = conn
        .prepare("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?
        .query_map([name], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut all = conn.prepare(&format!("SELECT * FROM {name}"))?;
    let (at, columns) = (all.column_index("sum")?, all.column_count());
    let places = keys.iter().map(|key| all.column_index(key)).collect::<Result<Vec<_>, _>>()?;
    let rows = all.query_map([], |row| {
        let key = places.iter().map(|at| row.get::<_, Value>(*at));
        Ok((verify::sum(row, columns, at)?.seal(file, table), key.collect::<Result<Vec<_>, _>>()?))
    })?;
    // All of them first: a table is not to be changed while it is read.
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let places = keys.iter().enumerate().map(|(at, key)| format!("{key} = ?{}", at + 2));
    let places = places.collect::<Vec<_>>().join(" AND ");
    let mut update = conn.prepare(&format!("UPDATE {name} SET sum = ?1 WHERE {places}"))?;
    for (seal, key) in rows {
        let mut values: Vec<&dyn rusqlite::ToSql> = vec![&seal];
        values.extend(key.iter().map(|value| value as &dyn rusqlite::ToSql));
        update.execute(params_from_iter(values))?;
    }
    Ok(())
}

/// No more keys of memory are listed.
const LISTED: i64 = 100;

fn holdings(conn: &Connection) -> rusqlite::Result<Holdings> {
    let mut holds = Holdings::default();
    let mut runs = conn.prepare("SELECT status, count(*) FROM runs GROUP BY status")?;
    let counted = runs.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
    for row in counted {
        let (status, number): (String, i64) = row?;
        holds.runs.insert(status, number.unsigned_abs());
    }
    let count =
        |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs);
    holds.open_asks = count("SELECT count(*) FROM asks WHERE status = 'open'")?;
    holds.answered_asks = count(
        "SELECT count(*) FROM asks a JOIN runs r ON r.id = a.run \
         WHERE a.status = 'answered' AND r.status <> 'ended'",
    )?;
    holds.memory_keys = count("SELECT count(*) FROM memory")?;
    holds.threads = count("SELECT count(*) FROM threads")?;
    // The first version had none.
    let has_cache = "SELECT count(*) FROM sqlite_schema WHERE name = 'cache' AND type = 'table'";
    if count(has_cache)? == 1 {
        holds.cached = count("SELECT count(*) FROM cache")?;
    }
    let keys = "SELECT namespace || '/' || key FROM memory ORDER BY namespace, key LIMIT ?1";
    holds.memory =
        conn.prepare(keys)?.query_map([LISTED], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let newest = "SELECT max(at) FROM (SELECT max(time) AS at FROM events UNION ALL \
                  SELECT max(updated) FROM memory UNION ALL SELECT max(updated) FROM threads)";
    let newest: Option<i64> = conn.query_row(newest, [], |row| row.get(0))?;
    holds.last_written = newest.map(time);
    Ok(holds)
}
