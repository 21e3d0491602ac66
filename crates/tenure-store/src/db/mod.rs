//! The file: how it is opened, what is in it, which version of us wrote it.

mod adopt;
mod backup;
mod compact;
mod file;
mod lock;
mod make;
mod patience;
mod schema;
#[cfg(test)]
mod tests;
mod verify;

pub use adopt::{Authenticity, Holdings};
pub(crate) use adopt::{check_key, not_authenticated};
pub use compact::{Compacted, Compaction};
pub(crate) use file::StoreFile;
pub use lock::DriverInfo;
pub(crate) use lock::DriverLock;
pub(crate) use make::Draft;
pub use verify::{Fault, Verified};

use crate::error::{Explain, StoreError, StoreErrorKind};
use crate::key::StoreKeys;
use crate::store::Durability;
use patience::Patience;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// A file that is there, and what is known of it.
pub(crate) struct Opened {
    pub(crate) file: StoreFile,
    pub(crate) authenticity: Authenticity,
    /// A connection that reads it.
    pub(crate) reader: Connection,
}

/// Makes sure that the file is ours, is there, and has a schema of ours; the newest, if it is known to
/// be its user's.
pub(crate) fn prepare(path: &Path, create: Create, keys: &StoreKeys) -> Result<Opened, StoreError> {
    if !path.exists() {
        match create {
            Create::No => {
                let message = format!(
                    "{}: there is no such store; it is made by the first run that is recorded to it",
                    path.display()
                );
                return Err(StoreError::new(StoreErrorKind::Missing, message));
            }
            Create::Yes => make::store(path, keys)?,
        }
    }
    let opened = make::check_beside(path).and_then(|()| {
        let opened = open(path, keys, Access::ReadWrite);
        match opened {
            Err(error) if error.kind() == StoreErrorKind::ReadOnly && make::is_at_rest(path) => {
                open(path, keys, Access::AtRest)
            }
            opened => opened,
        }
    });
    opened.map_err(|error| unusable(path, error))
}

fn open(path: &Path, keys: &StoreKeys, access: Access) -> Result<Opened, StoreError> {
    let file = StoreFile::new(path, access, keys);
    let mut conn = connect(path, access)?;
    let Some(version) = schema::version(&conn, path)? else { return Err(empty(path)) };
    // Nothing of the file is run or believed before this.
    schema::check(&conn, path, version)?;
    if version < schema::FIRST_WITH_IDENTITY {
        let reader = only_reading(conn, path)?;
        return Ok(Opened { file, authenticity: Authenticity::Earlier, reader });
    }
    let file = adopt::recognize(&conn, file)?;
    let authenticity = match file.seals() {
        Some(_) => Authenticity::Authenticated,
        None => Authenticity::Unknown,
    };
    if file.seals().is_some() && version < schema::VERSION {
        schema::migrate(&mut conn, path)?;
    }
    Ok(Opened { file, authenticity, reader: only_reading(conn, path)? })
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

/// The way in which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// As files are that others may write.
    ReadWrite,
    /// As one that does not change: where neither it nor anything beside it can be written.
    AtRest,
}

fn connect(path: &Path, access: Access) -> Result<Connection, StoreError> {
    let what = "open the store";
    let mut conn = match access {
        Access::ReadWrite => {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags).explain(path, what)?
        }
        Access::AtRest => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(make::uri_at_rest(path), flags).explain(path, what)?
        }
    };
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
pub(crate) fn writer(file: &StoreFile, durability: Durability) -> Result<Connection, StoreError> {
    if file.seals().is_none() {
        return Err(not_authenticated(file));
    }
    let path: &Path = file;
    lock::check_names(path)?;
    let conn = connect(path, file.access())?;
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Relaxed => "NORMAL",
    };
    conn.pragma_update(None, "synchronous", synchronous).explain(path, "open the store")?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20).explain(path, "open the store")?;
    Ok(conn)
}

/// A connection that only reads.
pub(crate) fn reader(file: &StoreFile) -> Result<Connection, StoreError> {
    only_reading(connect(file, file.access())?, file)
}

fn only_reading(conn: Connection, path: &Path) -> Result<Connection, StoreError> {
    conn.pragma_update(None, "query_only", true).explain(path, "open the store")?;
    Ok(conn)
}
