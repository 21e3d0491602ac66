//! The file: how it is opened, what is in it, which version of us wrote it.

mod backup;
mod compact;
mod lock;
mod patience;
mod schema;
mod verify;

pub use compact::{Compacted, Compaction};
pub use lock::DriverInfo;
pub(crate) use lock::DriverLock;
pub use verify::{Fault, Verified};

use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::store::Durability;
use patience::Patience;
use rusqlite::{Connection, OpenFlags};
use std::fs;
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
            Create::Yes => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                if let Some(folder) = folder {
                    fs::create_dir_all(folder).explain(folder, "create the folder of a store")?;
                }
            }
        }
    }
    let mut conn = connect(path, create)?;
    if schema::version(&conn, path)? != Some(schema::VERSION) {
        schema::migrate(&mut conn, path)?;
    }
    schema::check(&conn, path)?;
    only_reading(conn, path)
}

/// Whether a file that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create {
    /// It is.
    Yes,
    /// It is not.
    No,
}

fn connect(path: &Path, create: Create) -> Result<Connection, StoreError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create == Create::Yes {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
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
    let conn = connect(path, Create::No)?;
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
    only_reading(connect(path, Create::No)?, path)
}

fn only_reading(conn: Connection, path: &Path) -> Result<Connection, StoreError> {
    conn.pragma_update(None, "query_only", true).explain(path, "open the store")?;
    Ok(conn)
}
