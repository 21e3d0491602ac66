//! One run in one life: what is recorded of it is served, everything else is done and recorded.
//!
//! [`RunLog`] is the `StepLog` of core's drive loop. It keeps what earlier lives have recorded in
//! memory and writes what is new through the one writer of the file. Which runs there are and who
//! may drive them is the business of [`Driver`](crate::Driver).

mod activity;
mod ask;
mod difference;
mod finish;
mod log;
mod open;
mod rows;
mod shared;
mod table;

pub use difference::{Change, Difference, Now};
pub(crate) use open::Opened;
pub(crate) use shared::Shared;

use crate::driver::Drive;
use crate::error::StoreError;
use crate::hand::hand;
use crate::journal::Tx;
use crate::store::{Store, lock};
use activity::Activity;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use table::Table;
use tenure_core::engine::RunInfo;
use tenure_core::step::StepKey;
use tenure_core::{CancelToken, Error, ErrorKind, RunId};
use tokio::sync::Notify;

/// In what way a run is taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// It goes on where it stopped.
    GoOn,
    /// It is given up: what is on record is served, what is not is not done, and everything that
    /// began gets its end, once, with the outcome `abandoned`.
    Abandon,
    /// The same, with the outcome `cancelled`.
    Cancel,
    /// It is held against its record: nothing is done and nothing is recorded. It stops where the
    /// record ends, or at the first difference.
    Replay,
}

/// The record of one run, in one life of it. Clones are one log.
///
/// Give it to whatever does the run's work, as a [`StepLog`](tenure_core::step::StepLog), and say
/// what came of that with [`RunLog::finish`]. If it is dropped without that, the run is as a process
/// leaves it that dies: it goes on from its record when it is taken up again.
#[derive(Clone)]
pub struct RunLog(Arc<Inner>);

pub(crate) struct Inner {
    info: RunInfo,
    mode: Resume,
    store: Store,
    /// None in a replay.
    drive: Option<Drive>,
    /// What jobs on the writer's thread need of it.
    shared: Arc<Shared>,
    table: Mutex<Table>,
    activity: Activity,
    difference: OnceLock<Difference>,
    end_of_record: OnceLock<StepKey>,
    /// Whether a run that is given up came to the end of its record.
    stopped: AtomicBool,
    /// Whether nothing was on record when this life began.
    is_new: bool,
    /// Whether this life has done something that was not on record.
    beyond: AtomicBool,
    /// Whether somebody wants it cancelled.
    cancel_later: AtomicBool,
    cancel: CancelToken,
    killed: CancelToken,
    /// The questions that wait here, by their ids.
    asks: Mutex<HashMap<String, Arc<Notify>>>,
}

/// A short wait before a run counts as waiting for a person: what runs beside a question may not
/// have begun its step yet.
const SETTLED: Duration = Duration::from_millis(20);

impl RunLog {
    /// The run's id.
    pub fn id(&self) -> RunId {
        self.0.info.id
    }

    /// What is known of the run since it was begun or taken up.
    pub fn info(&self) -> &RunInfo {
        &self.0.info
    }

    /// What the run was started with.
    pub fn input(&self) -> &Value {
        &self.0.info.input
    }

    /// In what way the run was taken up; a new one goes on.
    pub fn mode(&self) -> Resume {
        self.0.mode
    }

    /// Is cancelled when somebody wants the run cancelled, from any process.
    pub fn cancel(&self) -> CancelToken {
        self.0.cancel.clone()
    }

    /// Is cancelled when somebody wants the run stopped at once, without its ends. Whoever drives it
    /// then drops its work and calls [`RunLog::finish`] with
    /// [`Error::abandoned`](tenure_core::Error::abandoned).
    pub fn killed(&self) -> CancelToken {
        self.0.killed.clone()
    }

    /// Where the run and its record differ, if they do.
    pub fn difference(&self) -> Option<Difference> {
        self.0.difference.get().cloned()
    }

    /// The step at which a replay came to the end of the record. None before, and in every other
    /// mode.
    pub fn end_of_record(&self) -> Option<StepKey> {
        self.0.end_of_record.get().cloned()
    }

    /// Waits until the run has questions that wait for an answer and nothing else that goes on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn waits(&self) {
        loop {
            self.0.activity.until_waiting().await;
            tokio::time::sleep(SETTLED).await;
            if self.0.activity.is_waiting() {
                // That it waits is on record when this returns. If it cannot be, the run is parked,
                // and whoever asks what became of it hears that.
                self.0.say_whether_it_waits();
                let _ = self.0.commit(|_| Ok(())).await;
                return;
            }
        }
    }
}

impl Inner {
    pub(crate) fn run(&self) -> RunId {
        self.info.id
    }

    /// The questions that wait here.
    pub(crate) fn open_asks(&self) -> Vec<String> {
        lock(&self.asks).keys().cloned().collect()
    }

    /// A question may have been decided elsewhere.
    pub(crate) fn wake_ask(&self, id: &str) {
        if let Some(waiter) = lock(&self.asks).get(id) {
            waiter.notify_one();
        }
    }

    /// Somebody wants the run cancelled. A life that is still at what is on record takes that to its
    /// end first: what began in an earlier life is known by then, and gets its end.
    pub(crate) fn wants_cancel(&self) {
        if self.mode != Resume::GoOn {
            return;
        }
        self.cancel_later.store(true, Ordering::SeqCst);
        if self.is_new || self.beyond.load(Ordering::SeqCst) {
            self.cancel.cancel();
        }
    }

    /// In what way the run goes on from here.
    fn way(&self) -> Resume {
        let is_cancelled = || {
            let wanted = self.cancel_later.load(Ordering::SeqCst);
            wanted && !self.is_new && !self.beyond.load(Ordering::SeqCst)
        };
        match self.mode {
            Resume::GoOn if is_cancelled() => Resume::Cancel,
            mode => mode,
        }
    }

    pub(crate) fn wants_kill(&self) {
        self.killed.cancel();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Puts on record that only questions are left, or that something else goes on again.
    pub(crate) fn say_whether_it_waits(&self) {
        let waits = self.activity.is_waiting();
        if self.shared.is_over() || !self.shared.says_waiting(waits) {
            return;
        }
        let run = self.shared.name();
        self.send(move |tx| match waits {
            true => rows::waits(tx, &run),
            false => rows::goes_on(tx, &run),
        });
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Parks the run with what is different, once.
    fn differs(&self, difference: Difference) -> Error {
        let error = difference.error();
        let _ = self.difference.set(difference);
        self.shared.park(error)
    }

    /// Sends a job that nobody waits for. If it fails, the run is parked.
    fn send(&self, job: impl FnOnce(&mut Tx<'_>) -> Result<(), StoreError> + Send + 'static) {
        let Some(drive) = &self.drive else { return };
        let (shared, failed) = (self.shared.clone(), self.shared.clone());
        shared.queued_one();
        let job = Box::new(move |tx: &mut Tx<'_>| {
            shared.done_one();
            shared.fence()?;
            job(tx).map(|()| Value::Null)
        });
        drive.writer().send_or(job, move |error| {
            failed.park(error.into());
        });
    }

    /// Has a job done, and waits until its work is on the disk. If it fails, the run is parked.
    async fn commit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        let Some(drive) = &self.drive else {
            return Err(Error::replay("a replay records nothing"));
        };
        let shared = self.shared.clone();
        let (job, result) = hand(move |tx| {
            shared.fence()?;
            work(tx)
        });
        let done = drive.writer().commit(job).await;
        done.map_err(|error| self.shared.park(error.into()))?;
        Ok(result.take())
    }

    /// Waits while too much is on its way to the file.
    async fn room(&self) -> Result<(), Error> {
        if self.shared.is_behind() {
            self.commit(|_| Ok(())).await?;
        }
        Ok(())
    }

    /// Whether the end of an instance can be recorded: also of a run whose code has changed.
    fn records_ends(&self) -> bool {
        let writes = self.drive.is_some() && !self.shared.is_over() && self.shared.fence().is_ok();
        writes && self.shared.trouble().is_none_or(|error| error.kind() != ErrorKind::Store)
    }

    fn check(&self) -> Result<(), Error> {
        match self.shared.trouble() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(drive) = &self.drive else { return };
        if !self.shared.is_over() && self.shared.fence().is_ok() {
            let run = self.shared.name();
            self.send(move |tx| crate::runs::change(tx, &run, |row| row.driven = None));
        }
        drive.leave(self.run(), self.shared.life());
        drive.tell();
    }
}

impl fmt::Debug for RunLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunLog")
            .field("run", &self.id())
            .field("life", &self.0.shared.life())
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}
