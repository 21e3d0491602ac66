//! The one error of this crate.

use rusqlite::ErrorCode;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What went wrong with a store, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// There is no such file.
    Missing,
    /// The file belongs to another program.
    Foreign,
    /// The file was written by a newer version.
    Newer,
    /// The file is damaged; the message says where.
    Damaged,
    /// Another process drives the runs of the file.
    Driven,
    /// The file is not known to be its user's, and can only be read until it is adopted.
    NotAuthenticated,
    /// The disk is full.
    Full,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// Another process held the file for too long.
    Busy,
    /// A short id names several.
    Ambiguous,
    /// An id names nothing.
    Unknown,
    /// Anything else that the system said.
    Io,
}

/// Why a store could not do what it was asked. The message says which file, what failed, and what
/// to do.
#[derive(Clone)]
pub struct StoreError(Arc<Repr>);

struct Repr {
    kind: StoreErrorKind,
    message: String,
    /// What was found, by itself.
    found: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    #[cold]
    pub(crate) fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Repr { kind, message: message.into(), found: None, source: None }))
    }

    #[cold]
    fn caused(
        kind: StoreErrorKind,
        message: String,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self(Arc::new(Repr { kind, message, found: None, source: Some(source.into()) }))
    }

    /// Something in the file is not as it was written.
    #[cold]
    pub(crate) fn damaged(path: &Path, found: impl fmt::Display) -> Self {
        let found = found.to_string();
        let message = format!(
            "{} is damaged: {found}; nothing was changed. Check it with `tenure db verify`, or put \
             a backup in its place",
            path.display()
        );
        let kind = StoreErrorKind::Damaged;
        Self(Arc::new(Repr { kind, message, found: Some(found), source: None }))
    }

    /// What was found, for a report that says which file it is about.
    pub(crate) fn found(&self) -> &str {
        self.0.found.as_deref().unwrap_or(&self.0.message)
    }

    /// What went wrong, in one word.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Whether SQLite does not take the file for one of its own.
    pub(crate) fn is_no_database(&self) -> bool {
        let source = self.0.source.as_ref().and_then(|error| error.downcast_ref());
        source.and_then(rusqlite::Error::sqlite_error_code) == Some(ErrorCode::NotADatabase)
    }

    /// Whether the file is damaged.
    pub fn is_damaged(&self) -> bool {
        self.0.kind == StoreErrorKind::Damaged
    }

    /// Whether the file is not known to be its user's.
    pub fn is_not_authenticated(&self) -> bool {
        self.0.kind == StoreErrorKind::NotAuthenticated
    }

    /// Whether another process drives the file's runs.
    pub fn is_driven(&self) -> bool {
        self.0.kind == StoreErrorKind::Driven
    }

    #[cold]
    fn of_sqlite(path: &Path, what: &str, error: rusqlite::Error) -> Self {
        use StoreErrorKind::{Busy, Damaged, Full, Io, ReadOnly};
        let code = error.sqlite_error_code();
        let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
        let (kind, help) = match code {
            Some(ErrorCode::DiskFull) => (
                Full,
                "the disk is full; what was acknowledged before is safe. Make room and go on",
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (
                ReadOnly,
                "the file or its folder cannot be written. Change its permissions, or record to \
                 another file",
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
                Damaged,
                "the file is damaged. Check it with `tenure db verify`, or put a backup in its \
                 place",
            ),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (Busy, "another process held the file for too long. Try again")
            }
            Some(ErrorCode::CannotOpen) if folder_is_closed(path) => (
                ReadOnly,
                "the file's folder cannot be written, and a store needs two more files beside it. \
                 Change its permissions, or use a copy of the file elsewhere",
            ),
            Some(ErrorCode::CannotOpen) => {
                (Io, "the file cannot be opened. Check that its folder exists and can be written")
            }
            // A write beyond a limit of the process or a quota is no full disk to SQLite.
            Some(ErrorCode::SystemIoFailure)
                if extended == IOERR_WRITE || extended == IOERR_SHMSIZE =>
            {
                (
                    Full,
                    "the file could not be written, as on a disk that is full. Make room and go on",
                )
            }
            Some(ErrorCode::SystemIoFailure) => (Io, "the system could not read or write the file"),
            _ => match error {
                // A value of another type than the column's: nobody wrote that.
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => (
                    Damaged,
                    "a row does not hold what was written. Check the file with `tenure db verify`, \
                     or put a backup in its place",
                ),
                _ => (Io, "SQLite refused"),
            },
        };
        let message = format!("{}: cannot {what}: {help} ({error})", path.display());
        let found = (kind == Damaged).then(|| error.to_string());
        Self(Arc::new(Repr { kind, message, found, source: Some(error.into()) }))
    }

    #[cold]
    fn of_io(path: &Path, what: &str, error: io::Error) -> Self {
        use io::ErrorKind;
        let (kind, help) = match error.kind() {
            ErrorKind::NotFound => (StoreErrorKind::Missing, "there is no such file or folder"),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => (
                StoreErrorKind::ReadOnly,
                "it cannot be written. Change its permissions, or use another place",
            ),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                (StoreErrorKind::Full, "the disk is full. Make room and go on")
            }
            _ => (StoreErrorKind::Io, "the system refused"),
        };
        let message = format!("{}: cannot {what}: {help} ({error})", path.display());
        Self::caused(kind, message, error)
    }
}

/// `SQLITE_IOERR_WRITE`.
const IOERR_WRITE: i32 = 778;
/// `SQLITE_IOERR_SHMSIZE`: there is no room for the index of the log.
const IOERR_SHMSIZE: i32 = 4874;

fn folder_is_closed(path: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    folder.is_dir() && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err()
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .finish_non_exhaustive()
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<StoreError> for tenure_core::Error {
    fn from(error: StoreError) -> Self {
        tenure_core::Error::store(error.to_string())
    }
}

/// Says which file and what was tried, where a library says only what it did not like.
pub(crate) trait Explain<T> {
    /// `what` completes "cannot ...".
    fn explain(self, path: &Path, what: &str) -> Result<T, StoreError>;
}

impl<T> Explain<T> for Result<T, rusqlite::Error> {
    fn explain(self, path: &Path, what: &str) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::of_sqlite(path, what, error))
    }
}

impl<T> Explain<T> for Result<T, io::Error> {
    fn explain(self, path: &Path, what: &str) -> Result<T, StoreError> {
        self.map_err(|error| StoreError::of_io(path, what, error))
    }
}
