//! Which tables there are, by version; whether the file has them.

use crate::error::{Explain, StoreError, StoreErrorKind};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

/// "TENU": what makes the file ours, see `PRAGMA application_id`.
pub(super) const APPLICATION_ID: i32 = 0x5445_4e55;

/// What each version of the schema added to the one before it. A file of version n has had the first
/// n of them.
const MIGRATIONS: &[&[&str]] = &[
    &[
        include_str!("schema/journal.sql"),
        include_str!("schema/asks.sql"),
        include_str!("schema/memory.sql"),
        include_str!("schema/threads.sql"),
        include_str!("schema/views.sql"),
    ],
    &[include_str!("schema/cache.sql")],
    &[include_str!("schema/identity.sql")],
];

/// The version of the schema that this code reads and writes.
pub(super) const VERSION: usize = MIGRATIONS.len();

/// The first version that says whose a file is.
pub(super) const FIRST_WITH_IDENTITY: usize = 3;

/// The file's version; none if there is nothing in it yet.
pub(super) fn version(conn: &Connection, path: &Path) -> Result<Option<usize>, StoreError> {
    let number = |pragma: &str| {
        conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
            .explain(path, "read the store's version")
    };
    let (application, version) = (number("application_id")?, number("user_version")?);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 =
        conn.query_row(count, [], |row| row.get(0)).explain(path, "read the store's schema")?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(None);
    }
    if application != i64::from(APPLICATION_ID) {
        let message = format!(
            "{}: this is a SQLite file of another program (its application id is {application:#x}, \
             a store's is {APPLICATION_ID:#x}), or its first page is damaged; nothing was changed. \
             Name another file",
            path.display()
        );
        return Err(StoreError::new(StoreErrorKind::Foreign, message));
    }
    match usize::try_from(version) {
        Ok(found) if found > VERSION => {
            let message = format!(
                "{}: the store has version {found} of its schema, this program knows {VERSION}; \
                 nothing was changed. Use the newer program that wrote it",
                path.display()
            );
            Err(StoreError::new(StoreErrorKind::Newer, message))
        }
        Ok(found) if found > 0 => Ok(Some(found)),
        _ => Err(StoreError::damaged(path, format_args!("its schema has version {version}"))),
    }
}

/// Brings the file to the newest version, in one transaction.
pub(super) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let what = "bring the store's schema up to date";
    // Kept in the file: every connection finds it so. It cannot be set within a transaction.
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).explain(path, what)?;
    conn.pragma_update(None, "synchronous", "FULL").explain(path, what)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).explain(path, what)?;
    bring_up(&tx, path)?;
    tx.commit().explain(path, what)
}

/// Brings the file to the newest version, within a transaction of the caller's.
pub(super) fn bring_up(conn: &Connection, path: &Path) -> Result<(), StoreError> {
    // Another process may have been faster.
    let found = version(conn, path)?.unwrap_or(0);
    apply(conn, found, VERSION).explain(path, "bring the store's schema up to date")
}

/// Makes the tables of a new file, and leaves it as every connection is to find it.
pub(super) fn create(
    conn: &Connection,
    path: &Path,
    fill: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let what = "make a store";
    // With a log of its own it would be whole only after the log is moved into it, and closing a file
    // does not say if that failed.
    conn.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).explain(path, what)?;
    conn.pragma_update(None, "synchronous", "FULL").explain(path, what)?;
    conn.execute_batch("BEGIN IMMEDIATE").explain(path, what)?;
    apply(conn, 0, VERSION).explain(path, what)?;
    fill()?;
    conn.execute_batch("COMMIT").explain(path, what)?;
    conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).explain(path, what)
}

fn apply(conn: &Connection, found: usize, wanted: usize) -> rusqlite::Result<()> {
    for sql in MIGRATIONS[found..wanted].iter().copied().flatten() {
        conn.execute_batch(sql)?;
    }
    conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    conn.pragma_update(None, "user_version", wanted as i64)
}

/// What a schema says of its tables, indexes, views and triggers.
type Schema = BTreeSet<(String, String, Option<String>)>;

fn schema(conn: &Connection) -> rusqlite::Result<Schema> {
    let mut all = conn.prepare("SELECT type, name, sql FROM sqlite_schema")?;
    all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

/// Makes sure that the file has what its version has, as it was made, and nothing else. SQLite has no
/// checksum of that; with another column name or order, rows would be read as what they are not, and
/// a trigger would write what nobody asked for.
pub(super) fn check(conn: &Connection, path: &Path, version: usize) -> Result<(), StoreError> {
    static EXPECTED: [OnceLock<Schema>; VERSION] = [const { OnceLock::new() }; VERSION];
    let what = "check the store's schema";
    let cell = &EXPECTED[version - 1];
    let expected = match cell.get() {
        Some(expected) => expected,
        None => {
            let fresh = Connection::open_in_memory().explain(path, what)?;
            let made =
                apply(&fresh, 0, version).and_then(|()| schema(&fresh)).explain(path, what)?;
            cell.get_or_init(|| made)
        }
    };
    let found = schema(conn).explain(path, what)?;
    if let Some((kind, name, _)) = expected.difference(&found).next() {
        let found = format!("the {kind} {name} is missing in its schema, or another one");
        return Err(StoreError::damaged(path, found));
    }
    if let Some((kind, name, _)) = found.difference(expected).next() {
        let found = format!("the {kind} {name:?} in its schema is none of a store's");
        return Err(StoreError::damaged(path, found));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{VERSION, apply, check, migrate, version};
    use crate::db::{Access, Authenticity, StoreFile};
    use crate::journal::Sum;
    use crate::key::Table;
    use crate::{StoreErrorKind, testing};
    use rusqlite::Connection;
    use tenure_core::cache::Cache;

    fn made() -> (tempfile::TempDir, std::path::PathBuf, Connection) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tenure.db");
        let conn = Connection::open(&path).expect("it opens");
        (folder, path, conn)
    }

    #[test]
    fn a_file_of_version_zero_is_brought_to_the_newest() {
        let (_folder, path, mut conn) = made();
        assert_eq!(version(&conn, &path).expect("it is read"), None);
        migrate(&mut conn, &path).expect("it is brought up to date");
        assert_eq!(version(&conn, &path).expect("it is read"), Some(VERSION));
        check(&conn, &path, VERSION).expect("it has what it should");
        migrate(&mut conn, &path).expect("a second time changes nothing");
        check(&conn, &path, VERSION).expect("it has what it should");
    }

    #[tokio::test]
    async fn a_file_of_each_earlier_version_keeps_what_is_in_it_and_gets_what_is_new() {
        for earlier in 1..VERSION {
            let (_folder, path, conn) = made();
            apply(&conn, 0, earlier).expect("it is made as it was then");
            check(&conn, &path, VERSION).expect_err("it lacks what came later");
            let file = StoreFile::new(&path, Access::ReadWrite, &testing::keys(&path));
            let mut sum = Sum::new();
            sum.text("t").text("clerk").text("[]").int(0).null().null().int(7);
            let sum = sum.seal(&file, Table::Threads);
            let run = "INSERT INTO threads VALUES ('t', 'clerk', '[]', 0, NULL, NULL, 7, ?1)";
            conn.execute(run, [sum]).expect("it is written");
            conn.pragma_update(None, "journal_mode", "WAL").expect("it is set");
            drop(conn);
            let store = testing::open_existing(&path).expect("it can be read");
            assert_eq!(store.authenticity(), Authenticity::Earlier);
            let found = store.threads().list(10).expect("it is read");
            assert_eq!(found[0].thread, "t", "it is read as it is");
            let store = store.adopt().expect("it is brought up to date");
            assert_eq!(store.authenticity(), Authenticity::Authenticated);
            let threads = "SELECT count(*) FROM threads WHERE thread = 't' AND updated = 7";
            let conn = Connection::open(&path).expect("it opens");
            assert_eq!(version(&conn, &path).expect("it is read"), Some(VERSION));
            check(&conn, &path, VERSION).expect("it has what it should");
            let kept: i64 = conn.query_row(threads, [], |row| row.get(0)).expect("it is read");
            assert_eq!(kept, 1, "what was in it is there");
            let cache = store.cache();
            cache.put("a", 1.into(), None).await.expect("it is kept");
            assert_eq!(cache.get("a").await.expect("it is read"), Some(1.into()));
        }
    }

    #[test]
    fn newer_foreign_and_changed_files_are_refused_and_say_so() {
        let (_folder, path, mut conn) = made();
        migrate(&mut conn, &path).expect("it is brought up to date");
        conn.pragma_update(None, "user_version", VERSION as i64 + 1).expect("it is set");
        let error = version(&conn, &path).expect_err("it is newer");
        assert_eq!(error.kind(), StoreErrorKind::Newer);
        conn.pragma_update(None, "user_version", VERSION as i64).expect("it is set");
        conn.execute_batch("DROP VIEW v_timeline").expect("it is dropped");
        let error = check(&conn, &path, VERSION).expect_err("a view is missing");
        assert_eq!(error.kind(), StoreErrorKind::Damaged);
        assert!(error.to_string().contains("v_timeline"), "{error}");
        conn.pragma_update(None, "application_id", 7).expect("it is set");
        let error = version(&conn, &path).expect_err("it is another program's");
        assert_eq!(error.kind(), StoreErrorKind::Foreign);
        assert!(error.to_string().contains("0x7"), "{error}");
    }
}
