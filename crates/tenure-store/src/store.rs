//! The store: a file that any process may read and answer in.

use crate::db::{self, Create, DriverInfo, DriverLock};
use crate::error::{StoreError, StoreErrorKind};
use crate::journal::{Job, Shelf, Writer, run_one};
use crate::thread::ThreadHeads;
use rusqlite::Connection;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::secret::Redactor;

/// What is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// What survives also if the machine loses its power.
    #[default]
    Full,
    /// What survives if the process dies. At a loss of power the last moments may be gone; what is
    /// left is whole.
    Relaxed,
}

/// A file of runs. Any process may read it, answer its questions and ask for a cancel; one process
/// at a time drives its runs. Clones are one store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    durability: Mutex<Durability>,
    redactor: Mutex<Option<Redactor>>,
    readers: Mutex<Vec<Connection>>,
    /// For writes of a process that does not drive.
    own: Mutex<Option<Connection>>,
    /// While this process drives.
    writer: Mutex<Option<Writer>>,
    shelf: Mutex<Shelf>,
    threads: Mutex<ThreadHeads>,
}

/// So many connections that read are kept open.
const READERS: usize = 8;

impl Store {
    /// Opens the file. Makes it, and its folder, if it is not there; brings its schema up to date.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::new(path.as_ref(), Create::Yes)
    }

    /// Opens a file that is there.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::new(path.as_ref(), Create::No)
    }

    fn new(path: &Path, create: Create) -> Result<Self, StoreError> {
        // What looked at the file first reads it first.
        let reader = db::prepare(path, create)?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            durability: Mutex::default(),
            redactor: Mutex::default(),
            readers: Mutex::new(vec![reader]),
            own: Mutex::default(),
            writer: Mutex::default(),
            shelf: Mutex::default(),
            threads: Mutex::default(),
        })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Takes secrets out of everything before it is written. The redactor is that of the project whose
    /// runs these are.
    #[must_use]
    pub fn redact_with(self, redactor: &Redactor) -> Self {
        *lock(&self.0.redactor) = Some(redactor.clone());
        self
    }

    /// What is acknowledged, of what this process drives from now on.
    #[must_use]
    pub fn durability(self, durability: Durability) -> Self {
        *lock(&self.0.durability) = durability;
        self
    }

    /// Takes out of a value what must not be written. Whether there was anything.
    pub(crate) fn redact(&self, value: &mut Value) -> bool {
        let redactor = lock(&self.0.redactor).clone();
        redactor.is_some_and(|redactor| redactor.redact_record(value))
    }

    /// Reads, with a connection of its own for as long as that takes.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let pooled = lock(&self.0.readers).pop();
        let conn = match pooled {
            Some(conn) => conn,
            None => db::reader(self.path())?,
        };
        let result = read(&conn);
        let mut readers = lock(&self.0.readers);
        // One that failed may have a transaction or a damaged page in its cache.
        if result.is_ok() && conn.is_autocommit() && readers.len() < READERS {
            readers.push(conn);
        }
        result
    }

    /// Writes, and returns once it is on disk: through the writer if this process drives, else in a
    /// transaction of its own. Blocks.
    pub(crate) fn write(&self, job: Job) -> Result<Value, StoreError> {
        let writer = lock(&self.0.writer).clone();
        match writer {
            Some(writer) => writer.commit_blocking(job),
            None => self.write_here(job),
        }
    }

    /// As [`Store::write`], without blocking the thread while the writer of this process works.
    pub(crate) async fn write_async(&self, job: Job) -> Result<Value, StoreError> {
        let writer = lock(&self.0.writer).clone();
        match writer {
            Some(writer) => writer.commit(job).await,
            None => {
                let store = self.clone();
                let written = tokio::task::spawn_blocking(move || store.write_here(job)).await;
                written.unwrap_or_else(|error| {
                    let message = format!("{}: cannot write: {error}", self.path().display());
                    Err(StoreError::new(StoreErrorKind::Io, message))
                })
            }
        }
    }

    fn write_here(&self, job: Job) -> Result<Value, StoreError> {
        let mut own = lock(&self.0.own);
        let conn = match own.take() {
            Some(conn) => conn,
            None => db::writer(self.path(), *lock(&self.0.durability))?,
        };
        let result = run_one(&conn, self.path(), job);
        if conn.is_autocommit() {
            *own = Some(conn);
        }
        result
    }

    /// Who drives the runs of the file now, if anybody does.
    pub fn driver(&self) -> Result<Option<DriverInfo>, StoreError> {
        DriverLock::holder(self.path())
    }

    /// Takes the right to drive the runs of the file. `what` tells others what for.
    pub(crate) fn take_over(&self, what: &str) -> Result<Driving, StoreError> {
        let lock = DriverLock::take(self.path(), what)?;
        let writer = self.start_writer()?;
        Ok(Driving { store: self.clone(), writer, _lock: lock })
    }

    /// From here on what this process writes goes through a writer, until [`Store::stop_writer`].
    fn start_writer(&self) -> Result<Writer, StoreError> {
        let conn = db::writer(self.path(), *lock(&self.0.durability))?;
        let writer = Writer::start(conn, self.path())?;
        *lock(&self.0.writer) = Some(writer.clone());
        Ok(writer)
    }

    /// What was sent to the writer before is on disk when this returns.
    fn stop_writer(&self) {
        let writer = lock(&self.0.writer).take();
        if let Some(writer) = writer {
            writer.stop();
        }
    }

    /// What this process saved last of conversations.
    pub(crate) fn thread_heads(&self) -> MutexGuard<'_, ThreadHeads> {
        lock(&self.0.threads)
    }

    /// What was read of content that is kept apart.
    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        lock(&self.0.shelf)
    }
}

/// The right to drive the runs of a file. Dropping it ends the writer, after what was sent to it,
/// and gives the right back.
pub(crate) struct Driving {
    store: Store,
    writer: Writer,
    _lock: DriverLock,
}

impl Driving {
    /// The file.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Who writes.
    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.store.stop_writer();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// A poisoned lock is taken all the same: what it guards is whole at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
