//! The right to drive the runs of a file, and the runs that are driven now.

mod fork;
mod poll;

use crate::error::StoreError;
use crate::fail;
use crate::journal::{NewRow, Tx, Writer, millis};
use crate::run::{self, Opened, Resume, RunLog, Shared};
use crate::runs::{self, RunRow};
use crate::store::{Driving, Store, lock};
use crate::wish::{self, Wish};
use serde_json::json;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::Thread;
use std::time::SystemTime;
use tenure_core::engine::{NewRun, RunInfo, RunQuery, RunStatus};
use tenure_core::{Error, RunId};
use tokio::sync::watch;

/// The right to drive the runs of a file: one process at a time has it. Dropping it gives it back;
/// what is driven then stops, and goes on from its record when it is taken up again.
pub struct Driver {
    drive: Drive,
    /// Behind the rest: what was sent to the writer is written before the right is given back.
    driving: Driving,
}

/// What became of the beginning of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Begun {
    /// It is new; this is its record.
    New(RunLog),
    /// A run of that id was begun before.
    Known(Box<RunInfo>),
}

impl Store {
    /// Takes the right to drive the file's runs. `what` tells others what for, such as
    /// `tenure run a.md`.
    ///
    /// Another process may have it: then this fails with
    /// [`Driven`](crate::StoreErrorKind::Driven), and says which.
    pub fn drive(&self, what: &str) -> Result<Driver, StoreError> {
        let driving = self.take_over(what)?;
        let (store, writer) = (self.clone(), driving.writer().clone());
        let drive = Drive::start(store, writer)?;
        Ok(Driver { drive, driving })
    }

    /// Holds a run against its record, with [`Resume::Replay`]. That needs no right to drive:
    /// nothing is done, and nothing is recorded.
    pub fn replay(&self, run: RunId) -> Result<RunLog, StoreError> {
        let found = self.run(run)?;
        let info = found.ok_or_else(|| runs::unknown(self.path(), &run.to_string()))?;
        let life = info.lives.max(1);
        let shared = Shared::new(run, life, Arc::new(AtomicU32::new(life)), Arc::default());
        let (mode, shared) = (Resume::Replay, Arc::new(shared));
        Opened { info, mode, drive: None, shared }.load(self)
    }
}

impl Driver {
    /// The file.
    pub fn store(&self) -> &Store {
        self.driving.store()
    }

    /// Begins a run, and returns once that is on record. A run of this id that is known is left as
    /// it is, so whoever does not know whether it was begun may say it twice.
    pub async fn begin(&self, mut run: NewRun) -> Result<Begun, Error> {
        let (id, started) = (run.id, SystemTime::now());
        // What is used is what is recorded: a later life has nothing else.
        self.store().redact(&mut run.input);
        let mut row = RunRow::new(&run, started);
        (row.lives, row.driven) = (1, Some(row.started));
        let newest = Arc::new(AtomicU32::new(1));
        let is_new = self.store().write_with_async(move |tx| {
            if runs::find(tx.conn(), tx.path(), &row.id)?.is_some() {
                return Ok(false);
            }
            runs::insert(tx, &row)?;
            let data = json!({ "kind": row.kind, "name": row.name, "life": 1 });
            tx.append(&row.id, NewRow::new("run.started").data(&data))?;
            Ok(true)
        });
        if !is_new.await? {
            let known = self.store().run(id)?;
            return known.map(|info| Begun::Known(Box::new(info))).ok_or_else(|| self.unknown(id));
        }
        let mut info = RunInfo::new(&run, started);
        (info.lives, info.driven) = (1, true);
        let drive = Some(self.drive.clone());
        let shared = Arc::new(Shared::new(id, 1, newest, self.drive.closed()));
        Ok(Begun::New(Opened { info, mode: Resume::GoOn, drive, shared }.fresh(self.store())))
    }

    /// Takes up a run that is not over: another life of it. What an older one in this process still
    /// wants to record is refused from then on.
    ///
    /// With [`Resume::GoOn`], a run that somebody wants cancelled is taken up as with
    /// [`Resume::Cancel`].
    pub async fn resume(&self, run: RunId, mode: Resume) -> Result<RunLog, Error> {
        if mode == Resume::Replay {
            let store = self.store().clone();
            return blocking(move || store.replay(run)).await;
        }
        let newest = self.drive.newest(run);
        let taken = newest.clone();
        let (life, mode, wishes) =
            self.store().write_with_async(move |tx| take_up(tx, run, mode, &taken)).await?;
        fail::point(fail::RECOVERY_BEGUN);
        let shared = Arc::new(Shared::new(run, life, newest, self.drive.closed()));
        let info = self.store().run(run)?.ok_or_else(|| self.unknown(run))?;
        let opened = Opened { info, mode, drive: Some(self.drive.clone()), shared };
        let store = self.store().clone();
        let log = blocking(move || opened.load(&store)).await?;
        if wishes.contains(&Wish::Kill) {
            log.killed().cancel();
        }
        Ok(log)
    }

    /// The runs that are not over, newest first, those that are driven here included.
    pub fn unfinished(&self) -> Result<Vec<RunInfo>, StoreError> {
        let mut query = RunQuery::default();
        query.unfinished = true;
        self.store().runs(&query)
    }

    /// Whether the run is driven here.
    pub fn drives(&self, run: RunId) -> bool {
        self.drive.log(run).is_some()
    }

    pub(crate) fn drive(&self) -> &Drive {
        &self.drive
    }

    fn unknown(&self, run: RunId) -> Error {
        runs::unknown(self.store().path(), &run.to_string()).into()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.drive.close();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("path", &self.store().path()).finish_non_exhaustive()
    }
}

/// Counts another life of a run, on the writer's thread: nothing of an older one comes after it.
fn take_up(
    tx: &mut Tx<'_>,
    run: RunId,
    mut mode: Resume,
    newest: &AtomicU32,
) -> Result<(u32, Resume, Vec<Wish>), StoreError> {
    let id = run.to_string();
    let row = runs::find(tx.conn(), tx.path(), &id)?;
    let row = row.ok_or_else(|| runs::unknown(tx.path(), &id))?;
    if row.is_over() {
        let message = format!(
            "run {id} is over (outcome {}); it cannot be taken up again. Begin a new one from one of \
             its steps with `tenure restart {id} --from <step>`",
            row.outcome.as_deref().unwrap_or("unknown")
        );
        return Err(StoreError::new(crate::StoreErrorKind::Unknown, message));
    }
    // Its end is on record with the row that says so: this row is from before.
    if tx.last_type(&id)?.is_some_and(|of| of == "run.ended") {
        let found = format!("table runs, run {id}: its row is from before its end");
        return Err(StoreError::damaged(tx.path(), found));
    }
    let wishes = wish::of(tx, run)?;
    if mode == Resume::GoOn && wishes.contains(&Wish::Cancel) {
        mode = Resume::Cancel;
    }
    let life = row.lives + 1;
    let name = match mode {
        Resume::Abandon => "abandon",
        Resume::Cancel => "cancel",
        Resume::GoOn | Resume::Replay => "go_on",
    };
    tx.append(&id, NewRow::new("run.resumed").data(&json!({ "life": life, "mode": name })))?;
    runs::change(tx, &id, |row| {
        row.lives = life;
        row.driven = Some(millis(SystemTime::now()));
        row.status = RunStatus::Running.as_str().to_owned();
        row.error = None;
    })?;
    newest.store(life, Ordering::Release);
    Ok((life, mode, wishes))
}

/// Reads a long record without keeping a thread of the runtime from other work.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(read).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::store(format!("the record of a run could not be read: {error}"))),
    }
}

/// What the logs of driven runs have of their driver. It does not keep the right to drive.
#[derive(Clone)]
pub(crate) struct Drive(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    writer: Writer,
    closed: Arc<AtomicBool>,
    live: Mutex<HashMap<RunId, Live>>,
    /// Counts what may interest those who wait for a run's end.
    changed: watch::Sender<u64>,
    /// How many wait for the end of a run that may be driven elsewhere.
    watchers: AtomicUsize,
    thread: OnceLock<Thread>,
}

struct Live {
    log: Weak<run::Inner>,
    newest: Arc<AtomicU32>,
}

impl Drive {
    fn start(store: Store, writer: Writer) -> Result<Self, StoreError> {
        let inner = Arc::new(Inner {
            store,
            writer,
            closed: Arc::default(),
            live: Mutex::default(),
            changed: watch::Sender::new(0),
            watchers: AtomicUsize::new(0),
            thread: OnceLock::new(),
        });
        let thread = poll::start(&inner)?;
        let _ = inner.thread.set(thread);
        Ok(Self(inner))
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.0.writer
    }

    fn closed(&self) -> Arc<AtomicBool> {
        self.0.closed.clone()
    }

    fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        self.look_now();
        self.tell();
    }

    /// The cell that says which life of a run is the newest: one for all logs of the run here.
    fn newest(&self, run: RunId) -> Arc<AtomicU32> {
        let mut live = lock(&self.0.live);
        let new = || Live { log: Weak::new(), newest: Arc::default() };
        live.entry(run).or_insert_with(new).newest.clone()
    }

    /// A log is there. What it waits for is looked for from now on.
    pub(crate) fn enter(&self, log: &Arc<run::Inner>) {
        let live = Live { log: Arc::downgrade(log), newest: log.shared().newest() };
        lock(&self.0.live).insert(log.run(), live);
        self.look_now();
    }

    /// A log is gone, or its run is over. A newer life stays.
    pub(crate) fn leave(&self, run: RunId, life: u32) {
        let mut live = lock(&self.0.live);
        if live.get(&run).is_some_and(|live| live.newest.load(Ordering::Acquire) == life) {
            live.remove(&run);
        }
    }

    /// The log of a run that is driven here.
    pub(crate) fn log(&self, run: RunId) -> Option<Arc<run::Inner>> {
        lock(&self.0.live).get(&run)?.log.upgrade()
    }

    /// Whether any run is driven here.
    pub(crate) fn is_busy(&self) -> bool {
        lock(&self.0.live).values().any(|live| !live.log.ptr_eq(&Weak::new()))
    }

    /// Has the file looked at soon.
    pub(crate) fn look_now(&self) {
        if let Some(thread) = self.0.thread.get() {
            thread.unpark();
        }
    }

    /// Something happened that may interest those who wait for a run's end.
    pub(crate) fn tell(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// What is told when something happens; while this is there, also what other processes do.
    pub(crate) fn watch(&self) -> Watch {
        self.0.watchers.fetch_add(1, Ordering::Relaxed);
        self.look_now();
        Watch { changed: self.0.changed.subscribe(), drive: self.clone() }
    }
}

pub(crate) struct Watch {
    changed: watch::Receiver<u64>,
    drive: Drive,
}

impl Watch {
    /// Waits until something happens. False once the driver is gone.
    pub(crate) async fn changed(&mut self) -> bool {
        self.changed.changed().await.is_ok() && !self.drive.0.closed.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.drive.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}
