//! Runs on this machine: who starts them, finds them again after a crash, and knows what became of
//! them.

mod work;

use crate::driver::{Begun, Driver};
use crate::error::StoreError;
use crate::key::StoreKeys;
use crate::run::{Resume, RunLog};
use crate::store::{Store, lock};
use crate::wish::Wish;
use async_trait::async_trait;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::ask::Answer;
use tenure_core::engine::{
    Engine, NewRun, RunInfo, RunQuery, RunStatus, Runnable, Signalled, Started,
};
use tenure_core::{CancelToken, Error, RunId};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// How long what was dropped may take to stop.
const GRACE: Duration = Duration::from_secs(30);

/// What to do with runs that an earlier process has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// They go on. Those that are parked are left to somebody who looks at them.
    Resume,
    /// They are given up: each of their ends is delivered and recorded once, with the outcome
    /// `abandoned`.
    Abandon,
    /// They are left as they are.
    Keep,
}

/// What was found of runs that an earlier process has left.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// They go on.
    pub resumed: Vec<RunInfo>,
    /// They were given up, and are over.
    pub abandoned: Vec<RunInfo>,
    /// They were left as they are, as wanted, or because they are parked.
    pub kept: Vec<RunInfo>,
    /// Nobody is registered who knows what they do.
    pub unknown: Vec<RunInfo>,
    /// They could not be taken up, and why.
    pub failed: Vec<(RunInfo, Error)>,
}

/// Drives the runs of a file, on tasks of its own. Clones are one engine.
///
/// Everything that a run does is a [`Runnable`], registered by the name that runs have as their
/// kind. Register them all, then call [`LocalEngine::recover`]; then start runs.
///
/// A run that waits for a person stays in memory and goes on when there is an answer, from any
/// process. If the process dies, or after [`LocalEngine::shutdown`], runs go on from their record
/// when they are recovered.
#[derive(Clone)]
pub struct LocalEngine(Arc<Inner>);

struct Inner {
    driver: Driver,
    kinds: Mutex<HashMap<String, Arc<dyn Runnable>>>,
    tasks: TaskTracker,
    room: Arc<Semaphore>,
    stop: CancelToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody is left who could ask what became of its runs. They are parked, as by a shutdown.
        self.stop.cancel();
    }
}

impl LocalEngine {
    /// Opens the file, makes it if it is not there, and takes the right to drive its runs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, &StoreKeys::of_user())
    }

    /// Opens the file as [`LocalEngine::open`] does, with keys from another place.
    pub fn open_with(path: impl AsRef<Path>, keys: &StoreKeys) -> Result<Self, StoreError> {
        let store = Store::open_with(path, keys)?;
        Ok(Self::new(store.drive("an engine")?))
    }

    /// An engine for the runs of a file that this process may drive.
    pub fn new(driver: Driver) -> Self {
        Self::with_room(driver, Semaphore::MAX_PERMITS)
    }

    /// An engine that has at most `most` runs in memory at once, those that wait for a person
    /// included. Others are on record and begin when there is room.
    pub fn with_room(driver: Driver, most: usize) -> Self {
        Self(Arc::new(Inner {
            driver,
            kinds: Mutex::default(),
            tasks: TaskTracker::new(),
            room: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))),
            stop: CancelToken::new(),
        }))
    }

    /// The file.
    pub fn store(&self) -> &Store {
        self.0.driver.store()
    }

    /// Says what runs of this kind do. The last one that is registered counts.
    pub fn register(&self, kind: impl Into<String>, runnable: Arc<dyn Runnable>) {
        lock(&self.0.kinds).insert(kind.into(), runnable);
    }

    /// Looks for runs that earlier processes have left, and does with them what `recovery` says.
    /// Those that are given up are over when this returns.
    pub async fn recover(&self, recovery: Recovery) -> Result<Recovered, Error> {
        let mut recovered = Recovered::default();
        let mut ending = Vec::new();
        for info in self.0.driver.unfinished()? {
            if self.0.driver.drives(info.id) {
                continue;
            }
            let mode = match recovery {
                Recovery::Resume if info.status != RunStatus::Parked => Resume::GoOn,
                Recovery::Abandon => Resume::Abandon,
                Recovery::Resume | Recovery::Keep => {
                    recovered.kept.push(info);
                    continue;
                }
            };
            let Some(runnable) = self.runnable(&info.kind) else {
                recovered.unknown.push(info);
                continue;
            };
            match self.0.driver.resume(info.id, mode).await {
                Ok(log) if recovery == Recovery::Abandon => {
                    ending.push((info, self.spawn(runnable, log)));
                }
                Ok(log) => {
                    self.spawn(runnable, log);
                    recovered.resumed.push(info);
                }
                Err(error) => recovered.failed.push((info, error)),
            }
        }
        for (info, task) in ending {
            match task.await {
                Ok(Some(Ok(info))) if info.status == RunStatus::Ended => {
                    recovered.abandoned.push(info);
                }
                Ok(Some(Ok(info))) => recovered.kept.push(info),
                Ok(Some(Err(error))) => recovered.failed.push((info, error)),
                Ok(None) | Err(_) => recovered.kept.push(info),
            }
        }
        Ok(recovered)
    }

    /// Stops driving, and returns once nothing is driven any more. What runs is dropped where it
    /// stands: nothing that is on record is lost, and it goes on when it is recovered.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
        // Agents that were dropped stop on tasks of their own, and record that.
        let mut watch = self.0.driver.drive().watch();
        let stopped = async { while self.0.driver.drive().is_busy() && watch.changed().await {} };
        if timeout(GRACE, stopped).await.is_err() {
            tracing::warn!("some agents of runs that were stopped have not stopped yet");
        }
        // What they sent to the file is there when this returns.
        if let Err(error) = self.store().write_with_async(|_| Ok(())).await {
            tracing::error!(%error, "what was recorded last may be missing");
        }
    }

    fn runnable(&self, kind: &str) -> Option<Arc<dyn Runnable>> {
        lock(&self.0.kinds).get(kind).cloned()
    }

    fn nobody_knows(&self, kind: &str) -> Error {
        let kinds = lock(&self.0.kinds);
        let mut known: Vec<_> = kinds.keys().map(|kind| format!("`{kind}`")).collect();
        known.sort_unstable();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Error::invalid(format!(
            "no runnable is registered for runs of the kind `{kind}` (registered: {known}); call \
             `register` before starting or recovering them"
        ))
    }

    /// Drives a run to its end, on a task that does not keep the engine. None comes out of it if the
    /// run was dropped on the way.
    fn spawn(
        &self,
        runnable: Arc<dyn Runnable>,
        log: RunLog,
    ) -> tokio::task::JoinHandle<Option<Result<RunInfo, Error>>> {
        let (room, stop) = (self.0.room.clone(), self.0.stop.clone());
        self.0.tasks.spawn(async move {
            let done = work::drive(&*runnable, &log, &room, &stop).await;
            if let Some(Err(error)) = &done {
                tracing::error!(run = %log.id(), %error, "what came of a run could not be recorded");
            }
            done
        })
    }
}

#[async_trait]
impl Engine for LocalEngine {
    async fn start(&self, run: NewRun) -> Result<Started, Error> {
        let Some(runnable) = self.runnable(&run.kind) else {
            return Err(self.nobody_knows(&run.kind));
        };
        match self.0.driver.begin(run).await? {
            Begun::New(log) => {
                self.spawn(runnable, log);
                Ok(Started::New)
            }
            Begun::Known(info) => Ok(Started::Known(info.status)),
        }
    }

    async fn signal(&self, ask: &str, answer: Answer, by: &str) -> Result<Signalled, Error> {
        let (store, ask, by) = (self.store().clone(), ask.to_owned(), by.to_owned());
        let answered = tokio::task::spawn_blocking(move || store.answer(&ask, answer, &by)).await;
        self.0.driver.drive().look_now();
        Ok(answered
            .map_err(|error| Error::store(format!("an answer was not given: {error}")))??)
    }

    /// A run that is driven is cancelled where it stands. One that nobody drives is taken up for its
    /// ends.
    async fn cancel(&self, run: RunId) -> Result<bool, Error> {
        let Some(info) = self.store().run(run)? else { return Ok(false) };
        if !self.store().request_async(run, Wish::Cancel).await? {
            return Ok(false);
        }
        if let Some(log) = self.0.driver.drive().log(run) {
            log.wants_cancel();
        } else if let Some(runnable) = self.runnable(&info.kind) {
            let log = self.0.driver.resume(run, Resume::Cancel).await?;
            self.spawn(runnable, log);
        }
        Ok(true)
    }

    /// Also of runs of earlier processes. A run that is parked is not waited for: what is returned
    /// says why it is.
    async fn result(&self, run: RunId) -> Result<Option<RunInfo>, Error> {
        let mut watch = self.0.driver.drive().watch();
        loop {
            let Some(info) = self.store().run(run)? else { return Ok(None) };
            if matches!(info.status, RunStatus::Ended | RunStatus::Parked) {
                return Ok(Some(info));
            }
            if !watch.changed().await {
                return Err(Error::store(format!(
                    "run {run} is not over, and the engine is; recover it to go on"
                )));
            }
        }
    }

    async fn list(&self, query: &RunQuery) -> Result<Vec<RunInfo>, Error> {
        Ok(self.store().runs(query)?)
    }
}

impl fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEngine").field("path", &self.store().path()).finish_non_exhaustive()
    }
}
