//! One instance: what it is made of, and what hooks may do to it.

use super::{AgentConfig, BlueprintInner, Registry, Untold};
use crate::ask::Asks;
use crate::cancel::Signal;
use crate::context::ExecutionContext;
use crate::error::Error;
use crate::event::{EventBus, EventKind, Listening, reason_of};
use crate::hook::{FaultKind, HookError, HookFailure, Point, Points};
use crate::id::InstanceId;
use crate::kernel::{ScopeData, caught};
use crate::life::{LifeCell, LifecycleConfig, Metrics, Own};
use crate::memory::{Found, Loaded, MemoryHandle, Search};
use crate::message::History;
use crate::model::Usage;
use crate::outcome::ExitReason;
use crate::phase::Phase;
use crate::resource::ResourceStack;
use crate::state::{Ownership, Slot, StateOwnership, StateStore};
use crate::step::{Baseline, StepLog, StepScope};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use serde_json::Value;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::time::sleep;

/// One live agent. Small, because there may be many; what few of them need is in [`Extra`].
pub(crate) struct Inner {
    pub(crate) blueprint: Arc<BlueprintInner>,
    pub(crate) id: InstanceId,
    pub(crate) cell: LifeCell,
    pub(crate) signal: Signal,
    pub(crate) metrics: Metrics,
    pub(crate) history: Mutex<History>,
    pub(crate) usage: Mutex<Usage>,
    pub(crate) bus: Option<EventBus>,
    /// Whoever spawned it; what it costs is charged there too.
    pub(crate) parent: Option<Arc<Inner>>,
    /// How many handles users hold. Tasks of the agent's own hold none.
    pub(crate) handles: AtomicUsize,
    label: Label,
    name: OnceLock<Arc<str>>,
    /// Why it is over; see [`ExitReason::ALL`].
    exit: AtomicU8,
    stop_requested: AtomicBool,
    fatal_requested: AtomicBool,
    extra: OnceLock<Box<Extra>>,
}

/// How an instance is named after its blueprint.
pub(crate) enum Label {
    /// As the blueprint.
    Root,
    /// `name#n`.
    Numbered(u64),
    /// `name#n[tool]`.
    Tool(u64),
    /// As whoever spawned it said.
    Given(Arc<str>),
}

/// What an instance has once it needs it.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) state: StateStore,
    pub(crate) resources: ResourceStack,
    pub(crate) asks: Asks,
    pub(crate) memory: Loaded,
    pub(crate) data: ScopeData,
    /// Whether the instance's scope has begun, and not ended yet.
    pub(crate) began: AtomicBool,
    /// How many entries of the chain it has passed.
    pub(crate) entered: AtomicUsize,
    /// How many of them have ended, from the last one on.
    pub(crate) ended: AtomicUsize,
    /// Transitions that have happened and are not told yet.
    pub(crate) untold: Untold,
    /// The type of one's own whose life this is, once it is held in an [`Arc`].
    pub(crate) own: Mutex<Option<Weak<dyn Own>>>,
    /// Whether its `do_startup` was called, and its `do_shutdown` not yet.
    pub(crate) own_began: AtomicBool,
    /// What is wrong with what the life of a type of one's own was made of.
    pub(crate) problem: OnceLock<Error>,
    /// Why the startup failed, for those who waited for it.
    pub(crate) startup_error: OnceLock<Error>,
    pub(crate) registered: AtomicBool,
    pub(crate) config: Mutex<Option<LifecycleConfig>>,
    pub(crate) context: OnceLock<Arc<ExecutionContext>>,
    /// Where the life of the instance is recorded, if it is part of a recorded run.
    pub(crate) steps: OnceLock<StepScope>,
    /// What is on record of its state and its memory.
    pub(crate) recorded: Mutex<(Baseline, Baseline)>,
}

impl Extra {
    /// The log of the run that the instance is part of, if it takes events.
    #[cold]
    fn log_of_events(&self) -> Option<&dyn StepLog> {
        self.steps.get().map(StepScope::log).filter(|log| log.takes_events())
    }
}

impl Inner {
    #[inline]
    pub(crate) fn new(
        blueprint: Arc<BlueprintInner>,
        label: Label,
        bus: Option<EventBus>,
        parent: Option<Arc<Inner>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            blueprint,
            id: InstanceId::unique(),
            cell: LifeCell::new(),
            signal: Signal::default(),
            metrics: Metrics::default(),
            history: Mutex::new(History::new()),
            usage: Mutex::new(Usage::default()),
            bus,
            parent,
            handles: AtomicUsize::new(0),
            label,
            name: OnceLock::new(),
            exit: AtomicU8::new(u8::MAX),
            stop_requested: AtomicBool::new(false),
            fatal_requested: AtomicBool::new(false),
            extra: OnceLock::new(),
        })
    }

    #[inline]
    pub(crate) fn config(&self) -> &AgentConfig {
        &self.blueprint.config
    }

    pub(crate) fn name(&self) -> &str {
        match &self.label {
            Label::Root => &self.blueprint.config.name,
            Label::Given(name) => name,
            Label::Numbered(n) => {
                self.name.get_or_init(|| format!("{}#{n}", self.blueprint.config.name).into())
            }
            Label::Tool(n) => {
                self.name.get_or_init(|| format!("{}#{n}[tool]", self.blueprint.config.name).into())
            }
        }
    }

    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.cell.phase()
    }

    pub(crate) fn extra(&self) -> &Extra {
        self.extra.get_or_init(Default::default)
    }

    /// What it has, if it ever needed it.
    #[inline]
    pub(crate) fn if_extra(&self) -> Option<&Extra> {
        self.extra.get().map(|extra| &**extra)
    }

    /// The instance, whoever spawned it, and so on.
    pub(crate) fn lineage(&self) -> impl Iterator<Item = &Inner> {
        std::iter::successors(Some(self), |inner| inner.parent.as_deref())
    }

    /// The one that nobody spawned.
    pub(crate) fn eldest(&self) -> &Inner {
        self.lineage().last().unwrap_or(self)
    }

    /// Whoever gets to know what happens, if anybody does.
    #[inline]
    pub(crate) fn listening(&self) -> Option<Listening<'_>> {
        if self.is_watched() { self.listeners() } else { None }
    }

    #[cold]
    fn listeners(&self) -> Option<Listening<'_>> {
        let bus = self.bus.as_ref().filter(|bus| bus.is_listening());
        Some(Listening { bus, log: self.if_extra().and_then(Extra::log_of_events) })
    }

    /// Whether what happens is announced. Asked at every turn of the loop, so it comes down to two
    /// loads where nobody listens.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.bus.as_ref().is_some_and(EventBus::is_listening)
            || self.extra.get().is_some_and(|extra| extra.log_of_events().is_some())
    }

    /// Claims the turn where no hook and no listener is told of it. Cancels of the turn before it are over.
    #[inline]
    pub(crate) fn claim_turn(&self) -> Result<(), Phase> {
        self.cell.claim_turn(|| self.signal.clear())
    }

    /// Whether somebody listens who may answer a question.
    #[inline(always)]
    pub(crate) fn is_heard(&self) -> bool {
        self.bus.as_ref().is_some_and(EventBus::may_answer)
    }

    /// Fails if it was made of something that cannot be.
    pub(crate) fn check_made(&self) -> Result<(), Error> {
        let problem = self.if_extra().and_then(|extra| extra.problem.get());
        problem.map_or(Ok(()), |problem| Err(problem.clone()))
    }

    pub(crate) fn registry(&self) -> Option<&Arc<dyn Registry>> {
        self.blueprint.registry.as_ref()
    }

    pub(crate) fn context(&self) -> Option<&ExecutionContext> {
        self.if_extra()?.context.get().map(|context| &**context)
    }

    pub(crate) fn trace(&self) -> Option<Arc<str>> {
        self.context().map(ExecutionContext::shared_trace_id)
    }

    pub(crate) fn resumed(&self) -> bool {
        self.steps().is_some_and(|scope| scope.log().is_resumed())
    }

    /// Where its life is recorded, if it is.
    #[inline]
    pub(crate) fn steps(&self) -> Option<&StepScope> {
        self.if_extra()?.steps.get()
    }

    pub(crate) fn exit_reason(&self) -> Option<ExitReason> {
        ExitReason::ALL.get(self.exit.load(Ordering::Acquire) as usize).copied()
    }

    pub(crate) fn set_exit_reason(&self, reason: ExitReason) {
        self.exit.store(reason as u8, Ordering::Release);
    }

    /// A hook asked for a shutdown.
    pub(crate) fn request_shutdown(&self) {
        self.stop_requested.store(true, Ordering::Release);
        if self.cell.is_held() {
            self.signal.set();
        }
    }

    /// A hook failed in a way that the agent cannot survive, where the turn itself goes on.
    pub(crate) fn request_fatal(&self) {
        self.fatal_requested.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn stop_requested(&self) -> bool {
        self.stop_requested.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn fatal_requested(&self) -> bool {
        self.fatal_requested.load(Ordering::Relaxed)
    }

    pub(crate) fn read_state(&self, key: &str) -> Option<Value> {
        self.if_extra()?.state.read(key)
    }

    pub(crate) fn write_state(&self, patch: Vec<(String, Value)>) -> Result<(), Error> {
        Ok(self.state_to_write()?.write(&self.blueprint.ownership, patch)?)
    }

    /// Writes a value whose owner a type of one's own has named itself.
    pub(crate) fn write_own_state(
        &self,
        key: &str,
        value: Value,
        owner: StateOwnership,
    ) -> Result<(), Error> {
        let ownership = &self.blueprint.ownership;
        if owner == ownership.owner(key) {
            return self.write_state(vec![(key.to_owned(), value)]);
        }
        let declared = Ownership::clone(ownership).declare(key, owner);
        Ok(self.state_to_write()?.write(&declared, vec![(key.to_owned(), value)])?)
    }

    pub(crate) fn keep_state(&self, key: &str, slot: Slot) -> Result<(), Error> {
        Ok(self.state_to_write()?.keep(&self.blueprint.ownership, key, slot)?)
    }

    fn state_to_write(&self) -> Result<&StateStore, Error> {
        // What is written now would outlive the clearing at shutdown.
        if self.cell.life() == Phase::Terminated {
            return Err(Error::not_ready(Phase::Terminated.state(), "ready"));
        }
        Ok(&self.extra().state)
    }

    pub(crate) fn check_writes<'k>(
        &self,
        keys: impl Iterator<Item = &'k str>,
    ) -> Result<(), Error> {
        for key in keys {
            self.blueprint.ownership.check_agent_write(key)?;
        }
        Ok(())
    }

    pub(crate) fn memory(&self) -> Option<MemoryHandle<'_>> {
        self.blueprint.memory.as_ref()?;
        Some(MemoryHandle::new(self, &self.extra().memory))
    }

    /// Under which name memory keeps what this agent knows. Clones share it with their template.
    fn namespace(&self) -> &str {
        &self.blueprint.config.name
    }

    pub(crate) async fn load_memory(&self) -> Result<(), Error> {
        if let Some(memory) = &self.blueprint.memory {
            let kept = memory.recall(self.namespace()).await.map_err(|error| {
                Error::new(crate::ErrorKind::State, format!("memory cannot be loaded: {error}"))
                    .caused_by(error)
            })?;
            self.extra().memory.load(kept);
        }
        Ok(())
    }

    /// Stores what has changed. What cannot be stored stays dirty.
    pub(crate) async fn flush_memory(&self) -> Result<(), Error> {
        let Some(memory) = &self.blueprint.memory else {
            return Ok(());
        };
        let loaded = &self.extra().memory;
        let taken = loaded.take();
        if taken.changes.is_empty() {
            return Ok(());
        }
        let changes = taken.changes.clone();
        match memory.commit(self.namespace(), &self.id.to_string(), changes).await {
            Ok(kept) => {
                taken.stored(kept);
                Ok(())
            }
            Err(error) => {
                let message = format!("memory cannot be stored: {error}");
                Err(Error::new(crate::ErrorKind::State, message).caused_by(error))
            }
        }
    }

    /// Stores what has changed at the end of a life. Whatever memory does, this returns in time, and
    /// what went wrong is a failure of the instance and an event.
    pub(crate) async fn flush_memory_within(&self, left: Duration) {
        let limit = self.config().limits.flush.min(left);
        let mut flush = pin!(self.flush_memory());
        // Armed when it is pending: a memory that is ready at once needs no runtime.
        let mut timer = None;
        let flushed = poll_fn(|cx| match caught(|| flush.as_mut().poll(cx)) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending => {
                let timer = timer.get_or_insert_with(|| Box::pin(sleep(limit)));
                timer.as_mut().poll(cx).map(|()| None)
            }
        });
        let error = match flushed.await {
            Some(Ok(Ok(()))) => return,
            Some(Ok(Err(error))) => HookError::new(error),
            Some(Err(panic)) => HookError::of_kind(FaultKind::Panicked, panic),
            None => HookError::of_kind(
                FaultKind::TimedOut,
                format!("memory was not stored within {limit:?}"),
            ),
        };
        let failure = HookFailure::new(&"memory".into(), Point::OnShutdown, &error);
        tracing::error!(agent = self.name(), instance = %self.id, "{failure}");
        if let Some(bus) = self.listening() {
            let reason = reason_of(&failure.message).unwrap_or_default();
            bus.emit(self, None, EventKind::MemoryFlushFailed { fault: failure.kind, reason });
        }
        self.extra().data.failures.lock().push(failure);
    }

    pub(crate) async fn search_memory(
        &self,
        search: &Search,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let Some(memory) = &self.blueprint.memory else {
            return Ok(Vec::new());
        };
        memory.search(self.namespace(), search, limit).await.map_err(|error| {
            let message = format!("memory cannot be searched: {error}");
            Error::new(crate::ErrorKind::State, message).caused_by(error)
        })
    }

    /// Charges a turn to this instance and to whoever spawned it.
    pub(crate) fn charge(&self, usage: Usage) {
        let mut payer = Some(self);
        while let Some(inner) = payer {
            *inner.usage.lock() += usage;
            payer = inner.parent.as_deref();
        }
    }

    /// Whether startup and shutdown have nothing to do but move the cells.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        const LOUD: Points =
            Points::NONE.with(Point::OnStart).with(Point::OnShutdown).with(Point::OnTransition);
        !self.blueprint.chain.mask.intersects(LOUD)
            && self.extra.get().is_none()
            && self.blueprint.memory.is_none()
            && self.blueprint.registry.is_none()
    }

    /// Whether it is quiet, and no listener is told either.
    #[inline]
    pub(crate) fn is_unheard(&self) -> bool {
        self.is_quiet() && !self.is_watched()
    }

    /// The configuration that counts: the one passed to startup, else the agent's own.
    pub(crate) fn with_lifecycle_config<T>(&self, read: impl FnOnce(&LifecycleConfig) -> T) -> T {
        match self.if_extra().map(|extra| extra.config.lock()) {
            Some(config) => read(config.as_ref().unwrap_or(&self.blueprint.config.lifecycle)),
            None => read(&self.blueprint.config.lifecycle),
        }
    }
}
