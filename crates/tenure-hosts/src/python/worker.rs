//! One worker process: its lanes, and what its main thread is told.

use super::control::{Control, Progress};
use super::desk::CallId;
use super::folding::Folding;
use super::frame;
use super::lane::{Gone, Lane, NotSent};
use super::life::{End, Life};
use super::seats::Chair;
use super::{PythonFile, lock, start};
use crate::Role;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::hook::FaultKind;
use tokio::sync::oneshot;
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
    /// A lane that no instance has yet. Its thread has an event loop and waits: to make both is half of the
    /// time that a first call takes.
    prepared: Mutex<Option<Arc<Lane>>>,
    /// The files that it has been sent, by their numbers.
    files: Mutex<Vec<bool>>,
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
            prepared: Mutex::default(),
            files: Mutex::default(),
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
        !self.is_gone() && (self.control.abandoned() < MOST_ABANDONED || self.life.flights() > 0)
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
        if !self.is_gone() && self.control.send(frame::of(&json!({ "exit": true }))).is_ok() {
            let _ = tokio::time::timeout(FAREWELL, self.life.gone()).await;
        }
        self.kill("the worker was dismissed");
    }

    /// Lets go of what an instance that has ended left in the worker.
    pub(super) fn forget(&self, instance: InstanceId) {
        // Its threads end when their pipes are closed.
        drop(lock(&self.lanes).remove(&instance));
    }

    /// Sends a file, unless it has been. It is compiled at once, and does not run.
    pub(super) fn send_file(&self, number: u32, file: &PythonFile) -> Result<(), NotSent> {
        let at = number as usize;
        let mut files = lock(&self.files);
        if files.get(at).copied().unwrap_or(false) {
            return Ok(());
        }
        let path = file.path().to_string_lossy();
        let told = json!({ "file": number, "path": path, "source": &**file.source() });
        self.control.send(frame::of(&told))?;
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

    /// Opens a lane ahead of the first instance that needs one.
    pub(super) fn prepare_lane(&self) {
        // Without it the first call opens its own, and says what is wrong.
        *lock(&self.prepared) = self.start_lane(0).ok();
    }

    /// Has the worker start a thread. `first` is the number of its instance's first lane, if that is another.
    fn start_lane(&self, first: u32) -> Result<Arc<Lane>, Unopened> {
        let (ours, theirs) = start::pipes().map_err(Unopened::Here)?;
        let number = self.last_lane.fetch_add(1, Ordering::Relaxed) + 1;
        let lane = Arc::new(Lane::new(number, self.life.clone(), ours));
        self.control.open(&lane, &json!({ "lane": number, "first": first }), theirs)?;
        Ok(lane)
    }

    /// Opens a lane for an instance. A first one is held, so that the instance can be set up on it; `None` is
    /// that another call was faster. A further one is claimed.
    pub(super) fn open_lane(
        &self,
        instance: InstanceId,
        about: Value,
        depth: Depth,
        chair: Chair,
    ) -> Result<Option<Arc<Lane>>, Unopened> {
        let mut lanes = lock(&self.lanes);
        let of = lanes.entry(instance).or_default();
        let lane = match depth {
            Depth::First if of.first().is_some_and(|lane| lane.is_open()) => return Ok(None),
            Depth::First => {
                of.clear();
                let prepared = lock(&self.prepared).take().filter(|lane| lane.is_open());
                let lane = prepared.map_or_else(|| self.start_lane(0), Ok)?;
                lane.hold();
                lane
            }
            Depth::Further => {
                let first = of.first().filter(|first| first.is_open());
                let lane = self.start_lane(first.map_or(0, |first| first.number()))?;
                of.retain(|lane| lane.is_open());
                lane.claim();
                lane
            }
        };
        lane.assign(&json!({ "instance": about, "guard": chair.role == Role::Guard }));
        of.push(lane.clone());
        Ok(Some(lane))
    }

    /// Notes that a call is cut: [`Worker::end_call`] ends it.
    pub(super) fn cut(&self, lane: &Lane, id: CallId) -> Cut {
        Cut { id, answer: self.control.cut(id, lane.number()) }
    }

    /// Ends a call whose future was dropped. One that has not begun never will; one that runs is cancelled, then
    /// its thread is given up. Only a process that does not answer is killed, and one in which a module does not
    /// stop loading, because that holds up all others.
    pub(super) async fn end_call(&self, lane: &Arc<Lane>, cut: Cut, hook: &str) {
        let Cut { id, mut answer } = cut;
        self.control.interrupt();
        let mut progress = None;
        let mut ended = pin!(async {
            lane.cancel(id).await;
            while lane.receive(id).await.is_ok_and(|heard| !heard.is_end()) {}
        });
        let mut patience = pin!(tokio::time::sleep(FAREWELL));
        loop {
            tokio::select! {
                biased;
                () = &mut ended => return,
                heard = &mut answer, if progress.is_none() => match heard {
                    Ok(Progress::Unbegun) => return,
                    heard => progress = Some(heard),
                },
                () = &mut patience => break,
            }
        }
        let progress = match progress {
            Some(heard) => heard.ok(),
            None => tokio::time::timeout(FAREWELL, answer).await.ok().and_then(Result::ok),
        };
        match progress {
            Some(Progress::Unbegun) => {}
            Some(Progress::Runs) => self.give_up(lane, id, hook).await,
            Some(Progress::Loads) => {
                let why = format!(
                    "the worker was killed because the module of `{hook}` did not stop loading"
                );
                self.life.kill(End::Killed { why: why.into(), by: Some(id) });
            }
            None => self.kill_silent(id, hook),
        }
    }

    /// Gives up the thread of a call that does not end.
    async fn give_up(&self, lane: &Arc<Lane>, id: CallId, hook: &str) {
        let begun = tokio::time::timeout(FAREWELL, self.control.abandon(lane.number())).await;
        let Ok(Ok(begun)) = begun else { return self.kill_silent(id, hook) };
        let why = format!(
            "the thread of the agent was given up because `{hook}` did not stop when it was cancelled"
        );
        self.life.stray(why.as_bytes());
        let gone = Gone::new(FaultKind::Panicked, why.into());
        self.lose(lane, Gone { culprit: Some(id), begun: begun.into(), ..gone });
    }

    /// Takes no more calls on a lane. Its thread ends when it comes back and finds its pipes closed.
    fn lose(&self, lane: &Lane, gone: Gone) {
        lane.lose(gone);
        for lanes in lock(&self.lanes).values_mut() {
            // A further lane never becomes the first.
            if lanes.first().is_some_and(|first| !first.is_open()) {
                lanes.clear();
            }
        }
    }

    fn kill_silent(&self, id: CallId, hook: &str) {
        let why = format!(
            "the worker was killed because `{hook}` did not stop when it was cancelled, and the \
             process no longer answered"
        );
        self.life.kill(End::Killed { why: why.into(), by: Some(id) });
    }

    /// Gives up a lane on which the instance could not be set up. A start that runs there is interrupted, and counts as a
    /// thread that was given up until it returns.
    pub(super) fn close_lane(&self, lane: &Lane) {
        if lane.is_open() {
            // In this order: a lane that was given up is not found any more.
            self.control.interrupt();
            drop(self.control.abandon(lane.number()));
        }
        let why = "the agent could not be started again in its worker".into();
        self.lose(lane, Gone::new(FaultKind::NotStarted, why));
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

/// A call that is about to be ended, and what is heard of that.
pub(super) struct Cut {
    id: CallId,
    answer: oneshot::Receiver<Progress>,
}

/// Why a lane was not opened.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The worker takes nothing any more.
    NotSent,
    /// It lies with this process, which has no descriptors left.
    Here(io::Error),
}

impl From<NotSent> for Unopened {
    fn from(NotSent: NotSent) -> Self {
        Self::NotSent
    }
}

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
