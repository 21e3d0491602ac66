//! The file: how it is opened, what is in it, which version of us wrote it.

mod backup;
mod compact;
mod lock;
mod make;
mod patience;
mod schema;
#[cfg(test)]
mod tests;
mod verify;

pub use compact::{Compacted, Compaction};
pub use lock::DriverInfo;
pub(crate) use lock::DriverLock;
pub use verify::{Fault, Verified};

use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::store::Durability;
use patience::Patience;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Makes sure that the file is ours, is there, and has the newest schema. A connection that reads it.
pub(crate) fn prepare(path: &Path, create: Create) -> Result<Connection, StoreError> {
    if !path.exists() {
        match create {
            Create::No => {
                let message = format!(
                    "{}: there is no such store; it is made by the first run that is recorded to it",
                    path.display()
                );
                return Err(StoreError::new(StoreErrorKind::Missing, message));
            }
            Create::Yes => make::store(path)?,
        }
    }
    open(path).map_err(|error| unusable(path, error))
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let mut conn = connect(path)?;
    match schema::version(&conn, path)? {
        Some(schema::VERSION) => {}
        Some(_) => schema::migrate(&mut conn, path)?,
        None => return Err(empty(path)),
    }
    schema::check(&conn, path)?;
    only_reading(conn, path)
}

/// Of a file in which SQLite sees nothing yet. A store has its tables from its first moment on, so it
/// is none, and must not be made one: to SQLite any file that is short enough is a new one.
fn empty(path: &Path) -> StoreError {
    let file = path.display();
    if !make::was_store(path) {
        let message = format!(
            "{file} is no store: it is no database at all; nothing was changed. Name another file"
        );
        return StoreError::new(StoreErrorKind::Foreign, message);
    }
    StoreError::damaged(path, "it is empty: whatever was in it is gone")
}

/// Of a file that is so damaged that nothing in it can be looked at, or that is something else.
fn unusable(path: &Path, error: StoreError) -> StoreError {
    if !error.is_damaged() {
        return error;
    }
    let (file, found) = (path.display(), error.found());
    if error.is_no_database() && !make::was_store(path) {
        let message = format!(
            "{file} is no store: it is no database at all; nothing was changed. Name another file, \
             or put a backup in its place if it was a store once ({found})"
        );
        return StoreError::new(StoreErrorKind::Foreign, message);
    }
    let message = format!(
        "{file} is damaged: {found}; its runs cannot be read, and nothing was changed. Put a backup \
         in its place"
    );
    StoreError::new(StoreErrorKind::Damaged, message)
}

/// Whether a file that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create {
    /// It is.
    Yes,
    /// It is not.
    No,
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).explain(path, "open the store")?;
    let mut patience = Patience::new();
    let wait = move |attempt| patience.wait(attempt);
    conn.busy_handler(Some(wait)).explain(path, "open the store")?;
    conn.set_prepared_statement_cache_capacity(64);
    // A statement that names a column in double quotes by mistake must not read a text; a damaged
    // schema must not run anything.
    let settings = "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
                    PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";
    conn.execute_batch(settings).explain(path, "open the store")?;
    Ok(conn)
}

/// A connection that writes.
pub(crate) fn writer(path: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let conn = connect(path)?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    conn.pragma_update(None, "synchronous", synchronous).explain(path, "open the store")?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20).explain(path, "open the store")?;
    Ok(conn)
}

/// A connection that only reads.
pub(crate) fn reader(path: &Path) -> Result<Connection, StoreError> {
    only_reading(connect(path)?, path)
}

fn only_reading(conn: Connection, path: &Path) -> Result<Connection, StoreError> {
    conn.pragma_update(None, "query_only", true).explain(path, "open the store")?;
    Ok(conn)
}
