//! The host: which worker a call goes to, and the spare that stands by.

use super::folding::Folding;
use super::life::LULL;
use super::lock;
use super::seats::{Chair, EnvironmentId, Groups, Key, Seat, Sharing};
use super::starts::Starts;
use super::worker::Worker;
use super::{
    MessageHookKind, PythonConfig, PythonFile, PythonFunction, PythonHook, PythonLifecycleTool,
    PythonLimits, PythonMessageHook, PythonTool, ToolHooks, ToolHooksAdapter, WorkerKeeper,
};
use crate::{Environment, Role};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::InstanceId;
use tenure_core::context::Cx;
use tenure_core::hook::{FaultKind, HookError, Points};
use tenure_core::tool::ToolSpec;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// Runs Python functions in worker processes.
///
/// Instances of one family (a root, its clones and forks) share a worker, and so do instances that
/// [`join`](PythonHost::join) the same group. Their guards share another, in which nothing else runs, and so do
/// functions that run in an environment of their own. A function's module is loaded once in each worker, so what
/// one hook leaves in a global, or an object that it puts into `ctx.state`, is there for the next.
///
/// All functions of an instance run on one thread with one event loop. A plain function keeps it until it
/// returns; only one that waits for `next`, `ask` or `step` has a thread of its own, the same at every call.
///
/// A call that is cancelled or takes too long gets a `CancelledError`. If it has not ended a second later its
/// thread is given up, and the instance has another; other instances do not notice. A worker that crashed, or
/// was killed because it did not answer, is replaced by a spare that has been started already: calls that had
/// not begun go there, and an instance's `on_start` is called again, with the reason `worker_replaced`, before
/// its next call.
///
/// It is a handle: clones are the same host. Nothing is started before it is needed. When the last
/// handle is gone, hooks and tools included, every worker is killed with everything it started.
///
/// The host belongs to the tokio runtime that it was first used on.
#[derive(Clone)]
pub struct PythonHost {
    inner: Arc<Inner>,
}

struct Inner {
    config: PythonConfig,
    tracker: TaskTracker,
    seats: Mutex<HashMap<Key, Seat, Folding>>,
    groups: Mutex<Groups>,
    has_groups: AtomicBool,
    spare: Mutex<Option<oneshot::Receiver<Started>>>,
    catalog: Mutex<Catalog>,
    /// The environments that functions run in beside that of the configuration, by their numbers less one.
    environments: Mutex<Vec<Environment>>,
    starts: Starts,
    is_closed: AtomicBool,
}

type Started = Result<Arc<Worker>, String>;

/// The files and functions that were ever asked for, by number.
#[derive(Default)]
struct Catalog {
    files: Vec<Arc<PythonFile>>,
    functions: u32,
}

/// A function with its numbers.
pub(super) struct Entry {
    pub(super) function: PythonFunction,
    pub(super) id: u32,
    pub(super) file: u32,
}

impl PythonHost {
    /// A host. It starts nothing yet.
    pub fn new(config: PythonConfig) -> Self {
        let inner = Inner {
            config,
            tracker: TaskTracker::new(),
            seats: Mutex::default(),
            groups: Mutex::default(),
            has_groups: AtomicBool::new(false),
            spare: Mutex::default(),
            catalog: Mutex::default(),
            environments: Mutex::default(),
            starts: Starts::default(),
            is_closed: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts the spare ahead of the first use, and waits until it is ready. That it cannot be
    /// started is said by the first call.
    pub async fn warm(&self) {
        if let Ok(worker) = self.inner.take_spare().await {
            let (give, spare) = oneshot::channel();
            *lock(&self.inner.spare) = Some(spare);
            let _ = give.send(Ok(worker));
        }
    }

    /// Puts an instance, with its clones and forks, into a group. All of a group share their workers.
    pub fn join(&self, instance: InstanceId, group: impl Into<Arc<str>>) {
        lock(&self.inner.groups).join(instance, group.into());
        self.inner.has_groups.store(true, Ordering::Release);
    }

    /// Forgets a group, and ends its workers: each is asked to go, and killed if it has not gone within
    /// a second. For when everything that joined the group is over.
    pub async fn leave(&self, group: &str) {
        lock(&self.inner.groups).forget(group);
        self.dismiss(Sharing::Group(group.into())).await;
    }

    /// Ends the workers of a family or group.
    async fn dismiss(&self, of: Sharing) {
        let seats = {
            let keys = self.inner.keys(&of);
            let mut seats = lock(&self.inner.seats);
            keys.filter_map(|key| seats.remove(&key)).collect::<Vec<_>>()
        };
        let workers = seats.into_iter().filter_map(|seat| seat.worker);
        let workers: Vec<_> = workers.filter(|worker| !worker.is_gone()).collect();
        futures_util::future::join_all(workers.iter().map(|worker| worker.dismiss())).await;
    }

    /// How many groups are known, for whoever wants to see that none is left behind.
    pub fn groups(&self) -> usize {
        lock(&self.inner.groups).members.len()
    }

    /// A function as a hook of these points.
    pub fn hook(&self, function: PythonFunction, points: impl Into<Points>) -> PythonHook {
        PythonHook::new(self.clone(), self.entry(function), points.into())
    }

    /// A function as a tool.
    pub fn tool(&self, function: PythonFunction, spec: ToolSpec) -> PythonTool {
        PythonTool::new(self.clone(), self.entry(function), spec)
    }

    /// A function as a lifecycle tool of a workflow.
    pub fn lifecycle_tool(&self, function: PythonFunction) -> PythonLifecycleTool {
        PythonLifecycleTool::new(self.clone(), self.entry(function))
    }

    /// A function as a message hook of a workflow.
    pub fn message_hook(
        &self,
        kind: MessageHookKind,
        function: PythonFunction,
    ) -> PythonMessageHook {
        PythonMessageHook::new(self.clone(), self.entry(function), kind)
    }

    /// fast-agent's five tool hooks as one hook.
    pub fn tool_hooks(&self, hooks: ToolHooks) -> ToolHooksAdapter {
        ToolHooksAdapter::new(self.clone(), hooks)
    }

    /// A hook that ends the worker of a family when its root instance has shut down. Register it
    /// before every other hook: then its end is the last.
    pub fn keeper(&self) -> WorkerKeeper {
        WorkerKeeper::new(self.clone())
    }

    /// The ids of the processes that run now, the spare's left out.
    pub fn processes(&self) -> Vec<u32> {
        let seats = lock(&self.inner.seats);
        seats.values().filter_map(Seat::sitting).map(|worker| worker.pid()).collect()
    }

    /// Ends every worker: each is asked to go, and killed if it has not gone within a second. Calls
    /// that come later fail.
    pub async fn shutdown(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        let spare = lock(&self.inner.spare).take();
        let seats = std::mem::take(&mut *lock(&self.inner.seats));
        let all: Vec<_> = seats.into_values().filter_map(|seat| seat.worker).collect();
        futures_util::future::join_all(all.iter().map(|worker| worker.dismiss())).await;
        drop((all, spare));
        self.inner.tracker.close();
        // What is left of the tasks ends with the processes that they wait for.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.inner.tracker.wait()).await;
    }

    /// Kills every worker, with everything it started, before it returns. Calls that come later
    /// fail.
    pub fn kill(&self) {
        self.inner.is_closed.store(true, Ordering::Release);
        drop(lock(&self.inner.spare).take());
        let seats = std::mem::take(&mut *lock(&self.inner.seats));
        for worker in seats.into_values().filter_map(|seat| seat.worker) {
            worker.kill("the worker was killed because the program ends");
        }
    }

    pub(super) fn entry(&self, function: PythonFunction) -> Arc<Entry> {
        let mut catalog = lock(&self.inner.catalog);
        let known = catalog.files.iter().position(|file| *file == function.file);
        let file = known.unwrap_or_else(|| {
            catalog.files.push(function.file.clone());
            catalog.files.len() - 1
        }) as u32;
        catalog.functions += 1;
        let id = catalog.functions;
        Arc::new(Entry { function, id, file })
    }

    /// Returns the number of an environment: the same one for an equal one.
    pub(super) fn environment_id(&self, environment: Environment) -> EnvironmentId {
        if environment == self.inner.config.environment {
            return EnvironmentId::default();
        }
        let mut all = lock(&self.inner.environments);
        let known = all.iter().position(|it| *it == environment);
        let at = known.unwrap_or_else(|| {
            all.push(environment);
            all.len() - 1
        });
        EnvironmentId(at + 1)
    }

    pub(super) fn tracker(&self) -> &TaskTracker {
        &self.inner.tracker
    }

    pub(super) fn starts(&self) -> &Starts {
        &self.inner.starts
    }

    pub(super) fn environment(&self) -> &Environment {
        &self.inner.config.environment
    }

    pub(super) fn limits(&self) -> &PythonLimits {
        &self.inner.config.limits
    }

    /// Returns the worker that serves this context, if one does.
    pub(super) fn sitting(
        &self,
        cx: &Cx<'_>,
        chair: Chair,
    ) -> Result<Option<Arc<Worker>>, HookError> {
        if self.inner.is_closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        Ok(self.inner.sitting(&self.inner.key(cx, chair)))
    }

    /// Returns the worker that serves this context from now on.
    pub(super) async fn seated(&self, cx: &Cx<'_>, chair: Chair) -> Result<Arc<Worker>, HookError> {
        let key = self.inner.key(cx, chair);
        let filling = lock(&self.inner.seats).entry(key.clone()).or_default().filling.clone();
        let _filling = filling.lock().await;
        if let Some(worker) = self.inner.sitting(&key) {
            return Ok(worker);
        }
        let started = match self.inner.environment_of(chair) {
            None => self.inner.take_spare().await,
            Some(environment) => self.inner.start_in(environment).await,
        };
        let worker = started.map_err(|why| HookError::of_kind(FaultKind::NotStarted, why))?;
        let before = {
            let mut seats = lock(&self.inner.seats);
            // Behind the lock: a host that is closed empties the seats afterwards.
            if self.inner.is_closed.load(Ordering::Acquire) {
                return Err(closed());
            }
            seats.entry(key).or_default().worker.replace(worker.clone())
        };
        if let Some(before) = before.filter(|before| !before.is_gone()) {
            // It has threads that never came back, and is idle.
            self.inner.tracker.spawn(async move { before.dismiss().await });
        }
        if chair.environment == EnvironmentId::default() {
            self.inner.start_spare();
        }
        Ok(worker)
    }

    /// Forgets what an instance left behind; the last of a family takes the workers with it.
    pub(super) async fn release(&self, cx: &Cx<'_>) {
        let of = self.inner.sharing(cx);
        self.inner.starts.forget(cx.instance_id());
        if cx.instance_id() == cx.family_id() && matches!(of, Sharing::Family(_)) {
            return self.dismiss(of).await;
        }
        let workers: Vec<_> = {
            let keys = self.inner.keys(&of);
            let seats = lock(&self.inner.seats);
            keys.filter_map(|key| seats.get(&key)?.worker.clone()).collect()
        };
        for worker in workers {
            worker.forget(cx.instance_id());
        }
    }
}

impl Inner {
    fn key(&self, cx: &Cx<'_>, chair: Chair) -> Key {
        Key { of: self.sharing(cx), chair }
    }

    /// Returns the seats that the instances have or could have.
    fn keys(&self, of: &Sharing) -> impl Iterator<Item = Key> + use<> {
        let (of, others) = (of.clone(), lock(&self.environments).len());
        let chairs = (0..=others).flat_map(|number| {
            let environment = EnvironmentId(number);
            [Role::Guard, Role::Other].map(|role| Chair { role, environment })
        });
        chairs.map(move |chair| Key { of: of.clone(), chair })
    }

    /// Returns the environment of a worker, if it is not that of the configuration.
    fn environment_of(&self, chair: Chair) -> Option<Environment> {
        let at = chair.environment.0.checked_sub(1)?;
        lock(&self.environments).get(at).cloned()
    }

    /// Starts a worker in another environment. There is no spare for it: few functions ask for one.
    async fn start_in(&self, environment: Environment) -> Started {
        let config = PythonConfig { environment, ..self.config.clone() };
        Worker::start(&config, &self.tracker).await.map(Arc::new)
    }

    fn sharing(&self, cx: &Cx<'_>) -> Sharing {
        let family = cx.family_id();
        if !self.has_groups.load(Ordering::Acquire) {
            return Sharing::Family(family);
        }
        let groups = lock(&self.groups);
        let group = groups.of.get(&cx.instance_id()).or_else(|| groups.of.get(&family));
        group.map_or(Sharing::Family(family), |group| Sharing::Group(group.clone()))
    }

    fn sitting(&self, key: &Key) -> Option<Arc<Worker>> {
        lock(&self.seats).get(key).and_then(|seat| seat.sitting().cloned())
    }

    /// The worker that stands by, or a new one.
    async fn take_spare(&self) -> Started {
        let spare = lock(&self.spare).take();
        if let Some(spare) = spare
            && let Ok(Ok(worker)) = spare.await
            && !worker.is_gone()
        {
            return Ok(worker);
        }
        Worker::start(&self.config, &self.tracker).await.map(Arc::new)
    }

    /// Starts a worker that stands by, beside whatever else goes on.
    fn start_spare(&self) {
        let mut spare = lock(&self.spare);
        if spare.is_some() || self.is_closed.load(Ordering::Acquire) {
            return;
        }
        let (give, take) = oneshot::channel();
        *spare = Some(take);
        let (config, tracker) = (self.config.clone(), self.tracker.clone());
        let files = lock(&self.catalog).files.clone();
        self.tracker.spawn(async move {
            // A start holds up its thread for a moment, and somebody waits for an answer just now.
            tokio::time::sleep(LULL).await;
            let started = Worker::start(&config, &tracker).await;
            if let Ok(worker) = &started {
                for (number, file) in files.iter().enumerate() {
                    // A worker that takes nothing any more is found out by the first call.
                    let _ = worker.send_file(number as u32, file);
                }
            }
            // If nobody wants it any more, it is dropped, and killed with that.
            let _ = give.send(started.map(Arc::new));
        });
    }
}

#[cold]
fn closed() -> HookError {
    HookError::of_kind(FaultKind::NotStarted, "the Python host has been shut down")
}

impl fmt::Debug for PythonHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonHost").field("config", &self.inner.config).finish_non_exhaustive()
    }
}
