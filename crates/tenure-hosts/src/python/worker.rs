//! One worker process: its lanes, and what its main thread is told.

use super::control::Control;
use super::desk::CallId;
use super::folding::Folding;
use super::frame;
use super::lane::{Gone, Lane, NotSent};
use super::life::{End, Life};
use super::{PythonFile, lock, start};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::hook::FaultKind;
use tokio_util::task::TaskTracker;

/// The time that a worker has to go when it is asked to, and a call to end when it is cancelled.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);
/// A worker with this many threads that were given up is replaced as soon as it is idle.
const MOST_ABANDONED: u32 = 8;

/// A worker that has said that it is ready. Dropping it kills it.
pub(super) struct Worker {
    life: Arc<Life>,
    pid: u32,
    control: Arc<Control>,
    lanes: Mutex<HashMap<InstanceId, Vec<Arc<Lane>>, Folding>>,
    last_lane: AtomicU32,
    /// The files that it has been sent, by their numbers.
    files: Mutex<Vec<bool>>,
    abandoned: AtomicU32,
    /// The changes of each chat's variables that were made here and decided on.
    decided: Mutex<HashMap<Box<str>, Decided>>,
}

impl Worker {
    /// Starts a worker and waits until it is ready. The error says why it is not.
    pub(super) async fn start(
        config: &super::PythonConfig,
        tracker: &TaskTracker,
    ) -> Result<Worker, String> {
        start::start(config, tracker).await
    }

    pub(super) fn new(life: Arc<Life>, pid: u32, control: Arc<Control>) -> Self {
        Self {
            life,
            pid,
            control,
            lanes: Mutex::default(),
            last_lane: AtomicU32::new(0),
            files: Mutex::default(),
            abandoned: AtomicU32::new(0),
            decided: Mutex::default(),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) fn is_gone(&self) -> bool {
        self.life.end().is_some()
    }

    /// Returns `true` if it takes calls: it lives, and has not so many abandoned threads that it is to be
    /// replaced while it is idle.
    pub(super) fn is_fit(&self) -> bool {
        !self.is_gone()
            && (self.abandoned.load(Ordering::Relaxed) < MOST_ABANDONED || self.life.flights() > 0)
    }

    /// Kills the worker and everything that it started, now.
    pub(super) fn kill(&self, why: &str) {
        self.life.kill(End::Killed { why: why.into(), by: None });
    }

    /// Gives up a worker that takes no more frames.
    pub(super) fn abandon(&self, why: &str, tracker: &TaskTracker) {
        self.life.kill_elsewhere(End::Silent(why.into()), tracker);
    }

    /// Asks the worker to go, so that what it registered for its end runs; then makes it.
    pub(super) async fn dismiss(&self) {
        if !self.is_gone() && self.control.send(&frame::of(&json!({ "exit": true }))).await.is_ok()
        {
            let _ = tokio::time::timeout(FAREWELL, self.life.gone()).await;
        }
        self.kill("the worker was dismissed");
    }

    /// Lets go of what an instance that has ended left in the worker.
    pub(super) fn forget(&self, instance: InstanceId) {
        // Its threads end when their sockets are closed.
        drop(lock(&self.lanes).remove(&instance));
    }

    /// Sends a file, unless it has been. It is compiled at once, and does not run.
    pub(super) async fn send_file(&self, number: u32, file: &PythonFile) -> Result<(), NotSent> {
        let at = number as usize;
        let is_known = lock(&self.files).get(at).copied().unwrap_or(false);
        if is_known {
            return Ok(());
        }
        let path = file.path().to_string_lossy();
        let told = json!({ "file": number, "path": path, "source": &**file.source() });
        self.control.send(&frame::of(&told)).await?;
        let mut files = lock(&self.files);
        let length = files.len().max(at + 1);
        files.resize(length, false);
        files[at] = true;
        Ok(())
    }

    /// Returns the first lane of an instance, if it is open.
    pub(super) fn first_lane(&self, instance: InstanceId) -> Option<Arc<Lane>> {
        lock(&self.lanes).get(&instance)?.first().filter(|lane| lane.is_open()).cloned()
    }

    /// Returns a further lane of an instance that no plain function has, and takes it.
    pub(super) fn claim_further(&self, instance: InstanceId) -> Option<Arc<Lane>> {
        let lanes = lock(&self.lanes);
        let further = lanes.get(&instance)?.iter().skip(1);
        further.filter(|lane| lane.is_open() && !lane.is_held()).find(|lane| lane.claim()).cloned()
    }

    /// Opens a lane for an instance. A first one is held, so that the instance can be set up on it; `None` is
    /// that another call was faster. A further one is claimed.
    pub(super) async fn open_lane(
        &self,
        instance: InstanceId,
        about: Value,
        depth: Depth,
    ) -> Result<Option<Arc<Lane>>, NotSent> {
        let (ours, theirs) = start::sockets().map_err(|_| NotSent)?;
        let number = self.last_lane.fetch_add(1, Ordering::Relaxed) + 1;
        let lane = Arc::new(Lane::new(number, self.life.clone(), ours));
        let first = match depth {
            Depth::First => 0,
            Depth::Further => self.first_lane(instance).map_or(0, |first| first.number()),
        };
        let told = json!({ "lane": number, "first": first, "instance": about });
        self.control.send_with(&told, theirs).await?;
        let mut lanes = lock(&self.lanes);
        let of = lanes.entry(instance).or_default();
        match depth {
            Depth::First if of.first().is_some_and(|lane| lane.is_open()) => return Ok(None),
            Depth::First => {
                lane.hold();
                of.clear();
            }
            Depth::Further => {
                of.retain(|lane| lane.is_open());
                lane.claim();
            }
        }
        of.push(lane.clone());
        Ok(Some(lane))
    }

    /// Ends a call whose future was dropped: it is cancelled, then its thread is given up. Only a
    /// process that does not answer is killed.
    pub(super) async fn end_call(&self, lane: &Arc<Lane>, id: CallId, hook: &str) {
        let ended = async {
            loop {
                match lane.receive(id).await {
                    Ok(heard) if !heard.is_end() => {}
                    _ => return,
                }
            }
        };
        let interrupted = async {
            lane.cancel(id).await;
        };
        let mut heard = self.control.interrupt(id, lane.number()).await;
        let both = async { tokio::join!(ended, interrupted) };
        if tokio::time::timeout(FAREWELL, both).await.is_ok() {
            return;
        }
        let answers = heard.try_recv().is_ok()
            || tokio::time::timeout(FAREWELL, heard).await.is_ok_and(|heard| heard.is_ok());
        if !answers {
            let why = format!(
                "the worker was killed because `{hook}` did not stop when it was cancelled, and the \
                 process no longer answered"
            );
            self.life.kill(End::Killed { why: why.into(), by: Some(id) });
            return;
        }
        let why = format!(
            "the thread of the agent was given up because `{hook}` did not stop when it was cancelled"
        );
        self.life.stray(why.as_bytes());
        let number = lane.number();
        lane.lose(Gone { kind: FaultKind::Panicked, why: why.into(), culprit: Some(id) });
        self.abandoned.fetch_add(1, Ordering::Relaxed);
        let _ = self.control.send(&frame::of(&json!({ "abandon": number }))).await;
    }

    /// Ends a call that has not begun: its module is being loaded, or others of its instance run. A load that
    /// does not stop holds up all others, so the process is killed.
    pub(super) async fn end_load(&self, lane: &Arc<Lane>, id: CallId, hook: &str) {
        self.end_call(lane, id, hook).await;
        if !lane.is_open() {
            let why = format!(
                "the worker was killed because the module of `{hook}` did not stop loading"
            );
            self.life.kill(End::Killed { why: why.into(), by: Some(id) });
        }
    }

    /// Gives up a lane on which the instance could not be set up.
    pub(super) fn close_lane(&self, lane: &Lane) {
        let why = "the agent could not be started again in its worker".into();
        lane.lose(Gone { kind: FaultKind::NotStarted, why, culprit: None });
    }

    /// Decides on a change of a chat's variables. Lanes are read at the same time, so that a change may come
    /// before one that was made earlier: `write` gets the keys that no later one has changed.
    pub(super) fn decide<T>(
        &self,
        chat: &str,
        patch: u64,
        keys: impl IntoIterator<Item = String>,
        write: impl FnOnce(&dyn Fn(&str) -> bool) -> T,
    ) -> T {
        let mut decided = lock(&self.decided);
        let of = decided.entry(chat.into()).or_default();
        let written = write(&|key| of.get(key).is_none_or(|last| *last < patch));
        for key in keys {
            let last = of.entry(key).or_default();
            *last = patch.max(*last);
        }
        written
    }

    /// Returns which changes of a chat's variables were decided on.
    pub(super) fn decided(&self, chat: Option<&str>) -> Decided {
        chat.and_then(|chat| lock(&self.decided).get(chat).cloned()).unwrap_or_default()
    }

    /// Takes lines that belong to no call, once.
    pub(super) fn take_stray(&self) -> VecDeque<String> {
        self.life.take_stray()
    }
}

/// The number of the last change that was decided on, by the key of a variable: it is part of the chat, or was
/// refused.
pub(super) type Decided = BTreeMap<String, u64>;

/// Which lane of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    First,
    Further,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill("the host of the worker is gone");
    }
}
