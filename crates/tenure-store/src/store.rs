//! The store: a file that any process may read and answer in.

use crate::db::{self, Authenticity, Create, DriverInfo, DriverLock, Opened, StoreFile};
use crate::error::{StoreError, StoreErrorKind};
use crate::journal::{Job, Shelf, Writer, run_one};
use crate::key::StoreKeys;
use crate::thread::ThreadHeads;
use rusqlite::Connection;
use serde_json::Value;
use std::fmt;
use std::path::Path;
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
    file: Arc<StoreFile>,
    authenticity: Authenticity,
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
    /// Opens the file. Makes it, its key and its folder, if it is not there.
    ///
    /// Its key is where [`StoreKeys::of_user`] says. A file whose key is not there, because someone
    /// else wrote it or an earlier release did, can be read; everything that writes fails with
    /// [`StoreErrorKind::NotAuthenticated`] until it is adopted (see [`Store::adopt`]).
    ///
    /// A key stays when its store is deleted. Tests, and others whose stores do not last, keep the keys
    /// in a folder beside them: see [`Store::open_with`] and [`StoreKeys::folder`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, &StoreKeys::of_user())
    }

    /// Opens the file as [`Store::open`] does, with keys from another place.
    pub fn open_with(path: impl AsRef<Path>, keys: &StoreKeys) -> Result<Self, StoreError> {
        Self::new(path.as_ref(), Create::Yes, keys)
    }

    /// Opens a file that is there.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_existing_with(path, &StoreKeys::of_user())
    }

    /// Opens a file that is there, with keys from another place than the user's own.
    pub fn open_existing_with(
        path: impl AsRef<Path>,
        keys: &StoreKeys,
    ) -> Result<Self, StoreError> {
        Self::new(path.as_ref(), Create::No, keys)
    }

    fn new(path: &Path, create: Create, keys: &StoreKeys) -> Result<Self, StoreError> {
        // What looked at the file first reads it first.
        let Opened { file, authenticity, reader } = db::prepare(path, create, keys)?;
        Ok(Self(Arc::new(Inner {
            file: Arc::new(file),
            authenticity,
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
        &self.0.file
    }

    /// The file, with what its rows are sealed with.
    pub(crate) fn file(&self) -> &Arc<StoreFile> {
        &self.0.file
    }

    pub(crate) fn known_as(&self) -> Authenticity {
        self.0.authenticity
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
            None => db::reader(self.file())?,
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
            None => db::writer(self.file(), *lock(&self.0.durability))?,
        };
        let result = run_one(&conn, self.file(), job);
        if conn.is_autocommit() {
            *own = Some(conn);
        }
        result
    }

    /// Who drives the runs of the file now, if anybody does.
    pub fn driver(&self) -> Result<Option<DriverInfo>, StoreError> {
        DriverLock::holder(self.file())
    }

    /// Takes the right to drive the runs of the file. `what` tells others what for.
    pub(crate) fn take_over(&self, what: &str) -> Result<Driving, StoreError> {
        if self.file().seals().is_none() {
            return Err(db::not_authenticated(self.file()));
        }
        let lock = DriverLock::take(self.file(), what)?;
        if let Some(identity) = self.file().identity() {
            self.file().keys().note(identity, self.path());
        }
        let writer = self.start_writer()?;
        Ok(Driving { store: self.clone(), writer, _lock: lock })
    }

    /// From here on what this process writes goes through a writer, until [`Store::stop_writer`].
    fn start_writer(&self) -> Result<Writer, StoreError> {
        let conn = db::writer(self.file(), *lock(&self.0.durability))?;
        let writer = Writer::start(conn, self.file())?;
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
        f.debug_struct("Store").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// A poisoned lock is taken all the same: what it guards is whole at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
