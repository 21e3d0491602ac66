//! What a type of one's own holds to have a life.

use super::own::{Own, OwnModel, OwnSlot};
use super::{LifecycleConfig, LifecycleMetrics};
use crate::agent::{Agent, AgentBuilder, Arrow, Inner, Registry, Telling};
use crate::context::ExecutionContext;
use crate::error::Error;
use crate::event::EventBus;
use crate::hook::{HookFailure, Point};
use crate::id::InstanceId;
use crate::kernel::Site;
use crate::memory::{Memory, MemoryHandle};
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase, PhaseHook};
use crate::resource::{ResourceHandle, ResourceStack, Resources};
use crate::state::{Ownership, StateOwnership};
use crate::sync::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use tokio::time::Instant;

/// The life of a type of one's own: put it in a field and implement
/// [`ManagedAgent`](super::ManagedAgent).
///
/// It is the life of an agent, with everything that has: transitions with hooks, an execution context,
/// memory, resources, a registry. What the agent would ask of a model, it asks of the type
/// ([`ManagedAgent::process`](super::ManagedAgent::process)).
///
/// Dropping it while it is alive shuts it down in the background, but nobody is left to run
/// `do_shutdown`. Use [`agent_lifecycle`](super::agent_lifecycle), or call `shutdown`.
pub struct Lifecycle {
    /// What it is made of, until it is used.
    builder: Mutex<Option<AgentBuilder>>,
    context: Option<Arc<ExecutionContext>>,
    agent: OnceLock<Agent>,
    own: OwnSlot,
}

impl Lifecycle {
    /// A life that has not begun.
    pub fn new(name: impl Into<String>) -> Self {
        let own = OwnSlot::default();
        let builder = builder(name.into().into(), &own);
        Self { builder: Mutex::new(Some(builder)), context: None, agent: OnceLock::new(), own }
    }

    fn with(self, change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let taken = self.builder.lock().take();
        match taken {
            Some(builder) => *self.builder.lock() = Some(change(builder)),
            None => {
                let problem = Error::invalid(
                    "a life was given something after it was used; give it everything first",
                );
                let _ = self.inner().extra().problem.set(problem);
            }
        }
        self
    }

    /// How startup and shutdown behave, unless `startup` is given something else.
    #[must_use]
    pub fn with_config(self, config: LifecycleConfig) -> Self {
        self.with(|builder| builder.lifecycle(config))
    }

    /// Who owns which key.
    #[must_use]
    pub fn with_ownership(self, ownership: Ownership) -> Self {
        let ownership = ownership.asking(self.own.clone());
        self.with(|builder| builder.ownership(ownership))
    }

    /// Where its events go.
    #[must_use]
    pub fn with_events(self, bus: EventBus) -> Self {
        self.with(|builder| builder.events(&bus))
    }

    /// What the orchestrator says: its trace is that of the events, and hooks see it.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<Arc<ExecutionContext>>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// What the type remembers across runs: loaded before `do_startup`, stored behind `do_shutdown`.
    #[must_use]
    pub fn with_memory(self, memory: impl Memory) -> Self {
        self.with(|builder| builder.memory(memory))
    }

    /// A hook on phase transitions. Those of requests run in the background, in order, because
    /// [`Lifecycle::requires_ready`] does not wait; the type is ready again when they have run.
    #[must_use]
    pub fn with_phase_hook(self, hook: impl PhaseHook) -> Self {
        self.with(|builder| builder.phase_hook(hook))
    }

    /// Where the type is registered while it lives. It can be found and used there as an agent, so it
    /// has to be held in an [`Arc`].
    #[must_use]
    pub fn with_registry(self, registry: Arc<dyn Registry>) -> Self {
        self.with(|builder| builder.registry(registry))
    }

    /// The agent whose life it is, made when it is first asked for.
    pub(super) fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let builder = self.builder.lock().take().expect("it is taken here, once");
            let name = builder.config().name.clone();
            let agent = builder.build().unwrap_or_else(|problem| self.broken(name, problem));
            if let Some(context) = &self.context {
                // It is new; nobody has given it another.
                let _ = agent.set_context(context.clone());
            }
            agent
        })
    }

    /// An agent that was made of something that cannot be: whoever starts it is told.
    #[cold]
    fn broken(&self, name: Arc<str>, problem: Error) -> Agent {
        let agent = builder(name, &self.own)
            .build()
            .or_else(|_| builder("unnamed".into(), &self.own).build())
            .expect("an agent with a name and a model can be built");
        let _ = agent.inner().extra().problem.set(problem);
        agent
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        self.agent().inner()
    }

    /// Notes whose life it is, for whoever starts, asks or stops the agent.
    pub(super) fn bind(&self, own: Weak<dyn Own>) {
        self.own.set(own.clone());
        *self.inner().extra().own.lock() = Some(own);
    }

    /// Its id, unique for ever.
    pub fn id(&self) -> InstanceId {
        self.agent().id()
    }

    /// The phase it is in.
    pub fn phase(&self) -> Phase {
        self.agent().phase()
    }

    /// The state it is in.
    pub fn state(&self) -> AgentState {
        self.agent().state()
    }

    /// Why it is terminated, once it is.
    pub fn exit_reason(&self) -> Option<ExitReason> {
        self.agent().exit_reason()
    }

    /// Its numbers so far.
    pub fn metrics(&self) -> LifecycleMetrics {
        self.agent().metrics()
    }

    /// What failed at startup, shutdown and transitions.
    pub fn failures(&self) -> Vec<HookFailure> {
        self.agent().failures()
    }

    /// Who owns `key`, as [`Lifecycle::with_ownership`] declares it, or by default.
    pub fn owner(&self, key: &str) -> StateOwnership {
        self.inner().blueprint.ownership.declared_owner(key)
    }

    /// A value that the agent owns or shares.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.agent().state_value(key)
    }

    /// Every value that the agent owns or shares. Empty after shutdown.
    #[doc(alias = "_agent_state")]
    pub fn values(&self) -> BTreeMap<String, Value> {
        self.agent().state_values()
    }

    /// What it remembers across runs, if it has a memory.
    pub fn memory(&self) -> Option<MemoryHandle<'_>> {
        self.agent().memory()
    }

    /// What the orchestrator says, if it says anything.
    pub fn context(&self) -> Option<&ExecutionContext> {
        self.context.as_deref()
    }

    /// Where it registers what it acquires.
    pub fn resources(&self) -> &ResourceStack {
        &self.inner().extra().resources
    }

    /// Runs `task` in the background for as long as it lives. At release it is aborted.
    pub fn spawn<Fut>(&self, name: impl Into<Arc<str>>, task: Fut) -> ResourceHandle
    where
        Fut: Future<Output = ()> + Send + 'static,
    {
        Resources::new(self.inner()).spawn(name, task)
    }

    /// Waits until it is ready, and says so; or fails, once it never will be.
    pub async fn ready(&self) -> Result<(), Error> {
        self.agent().ready().await
    }

    /// The precondition of a request method, checked and taken in one step: the agent is ready, and
    /// busy until the guard is dropped. Of two concurrent calls one passes.
    ///
    /// ```
    /// use tenure_core::life::{BusyGuard, Lifecycle};
    ///
    /// fn process(life: &Lifecycle) -> Result<(), tenure_core::Error> {
    ///     let busy: BusyGuard<'_> = life.requires_ready()?;
    ///     // … work …
    ///     busy.succeeded();
    ///     Ok(())
    /// }
    /// let error = process(&Lifecycle::new("worker")).unwrap_err();
    /// assert!(error.to_string().contains("must be in ready state"));
    /// ```
    pub fn requires_ready(&self) -> Result<BusyGuard<'_>, Error> {
        let inner = self.inner();
        let begun =
            inner.claim_aloud().map_err(|phase| Error::not_ready_alone(phase.state(), "ready"))?;
        inner.metrics.took_on();
        inner.signal.clear();
        // A stop that came between the claim and here has seen it; its signal may be gone.
        if matches!(inner.cell.life(), Phase::ShuttingDown | Phase::Terminated) {
            inner.signal.set();
        }
        tell_detached(inner, begun, || {});
        Ok(BusyGuard { life: self, since: Instant::now(), outcome: RequestEnd::Failed })
    }

    /// The precondition of any other method: the agent is in one of these states, now. Nothing
    /// keeps it there; a request method takes [`Lifecycle::requires_ready`], which does.
    pub fn requires_state(&self, states: &[AgentState]) -> Result<(), Error> {
        let state = self.state();
        if states.contains(&state) {
            return Ok(());
        }
        let wanted: Vec<_> = states.iter().map(|state| state.as_str()).collect();
        Err(Error::not_ready_alone(state, &wanted.join(" or ")))
    }
}

/// An agent whose work is done by the type in `own`, and whose state the type has a say in.
fn builder(name: Arc<str>, own: &OwnSlot) -> AgentBuilder {
    let ownership = Ownership::new().asking(own.clone());
    Agent::builder(name).model(OwnModel(own.clone())).ownership(ownership)
}

/// Tells a transition of a request, in the background if it has hooks, and then does the rest.
fn tell_detached(
    inner: &Arc<Inner>,
    telling: Option<Telling>,
    then: impl FnOnce() + Send + 'static,
) {
    let then = Finally(Some(then));
    match telling {
        Some(telling) if inner.blueprint.chain.has(Point::OnTransition) => {
            let told = inner.clone();
            inner.blueprint.run_detached(async move {
                telling.tell(&Site::of_instance(&told, 1), None).await;
                drop(then);
                // A type that is only borrowed is shut down by its owner.
                if told.stop_requested() && told.own().is_some() {
                    told.shutdown(ExitReason::Completed, None).await;
                }
            });
        }
        telling => {
            drop(telling);
            drop(then);
        }
    }
}

/// Does something when it is dropped: also where no runtime is left.
struct Finally<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Finally<F> {
    fn drop(&mut self) {
        if let Some(then) = self.0.take() {
            then();
        }
    }
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifecycle")
            .field("name", &self.agent().name())
            .field("id", &self.id())
            .field("phase", &self.phase())
            .finish_non_exhaustive()
    }
}

/// The agent is busy while this lives. Dropping it ends the request: as failed, unless
/// [`BusyGuard::succeeded`] was called.
#[must_use = "the agent is ready again as soon as this is dropped"]
#[derive(Debug)]
pub struct BusyGuard<'a> {
    life: &'a Lifecycle,
    since: Instant,
    outcome: RequestEnd,
}

/// How a request of a type of one's own ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestEnd {
    Succeeded,
    Failed,
    Fatal,
}

impl BusyGuard<'_> {
    /// Ends the request well.
    pub fn succeeded(mut self) {
        self.outcome = RequestEnd::Succeeded;
    }

    /// Ends the request with an error that the type cannot survive: it is in the error state then,
    /// takes no other request, and the `shutdown` that follows need not wait for this one.
    ///
    /// ```
    /// # use async_trait::async_trait;
    /// # use std::time::Duration;
    /// # use tenure_core::{Error, ExitReason};
    /// # use tenure_core::hook::HookError;
    /// use tenure_core::life::{AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent};
    ///
    /// struct Worker {
    ///     life: Lifecycle,
    /// }
    /// # #[async_trait]
    /// # impl ManagedAgent for Worker {
    /// #     fn lifecycle(&self) -> &Lifecycle { &self.life }
    /// #     async fn do_startup(&self, _: &LifecycleConfig) -> Result<(), HookError> { Ok(()) }
    /// #     async fn do_shutdown(&self, _: Duration) -> Result<(), HookError> { Ok(()) }
    /// # }
    ///
    /// impl Worker {
    ///     async fn lose_the_disk(&self) -> Result<(), Error> {
    ///         let busy = self.life.requires_ready()?;
    ///         busy.fatal();
    ///         self.shutdown(None).await;
    ///         Err(Error::invalid("the disk is gone"))
    ///     }
    /// }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let worker = Worker { life: Lifecycle::new("worker") };
    /// worker.startup(None).await?;
    /// worker.lose_the_disk().await.unwrap_err();
    /// assert_eq!(worker.life.exit_reason(), Some(ExitReason::Fatal));
    /// # Ok::<_, Error>(()) }).unwrap();
    /// ```
    pub fn fatal(mut self) {
        self.outcome = RequestEnd::Fatal;
    }

    /// Waits until somebody shuts the agent down in the middle of the request.
    pub async fn cancelled(&self) {
        self.life.inner().signal.wait().await;
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        let inner = self.life.inner();
        let fatal = self.outcome == RequestEnd::Fatal;
        if fatal {
            inner.request_fatal();
        }
        let to = if fatal { Phase::Error } else { Phase::Idle };
        let mut to_idle = false;
        let left = inner.transition(None, |cell| {
            let from = cell.turn();
            match to {
                Phase::Error => cell.go(Phase::Idle, to)?,
                _ if cell.life() == Phase::Idle => {
                    cell.settle_turn();
                    to_idle = true;
                }
                _ => return Err(cell.life()),
            }
            Ok::<_, Phase>(Arrow::new(from, to))
        });
        let is_ok = self.outcome == RequestEnd::Succeeded;
        // Life counts the move to the error state itself.
        inner.metrics.request(self.since.elapsed(), is_ok, 1 + u64::from(to_idle));
        let released = inner.clone();
        tell_detached(inner, left.ok().flatten(), move || released.cell.release_turn());
    }
}
