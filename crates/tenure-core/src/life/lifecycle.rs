//! What a type of one's own holds to have a life.

use super::{LifeCell, LifecycleConfig, LifecycleMetrics, Metrics};
use crate::cancel::Signal;
use crate::error::Error;
use crate::event::{EventBus, EventKind, Origin};
use crate::id::InstanceId;
use crate::outcome::ExitReason;
use crate::phase::{AgentState, Phase};
use crate::resource::ResourceStack;
use crate::state::{Ownership, StateOwnership, StateStore};
use crate::sync::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// The life of a type of one's own: put it in a field and implement
/// [`ManagedAgent`](super::ManagedAgent).
///
/// Dropping it while it is alive only releases memory: nobody is left to run `do_shutdown`. Use
/// [`agent_lifecycle`](super::agent_lifecycle), or call `shutdown`.
pub struct Lifecycle {
    pub(super) id: InstanceId,
    pub(super) name: String,
    pub(super) cell: LifeCell,
    pub(super) metrics: Metrics,
    pub(super) signal: Signal,
    pub(super) config: LifecycleConfig,
    pub(super) active: Mutex<Option<LifecycleConfig>>,
    pub(super) exit: Mutex<Option<ExitReason>>,
    pub(super) state: StateStore,
    pub(super) ownership: Ownership,
    pub(super) resources: ResourceStack,
    pub(super) bus: Option<EventBus>,
}

impl Lifecycle {
    /// A life that has not begun.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: InstanceId::unique(),
            name: name.into(),
            cell: LifeCell::new(),
            metrics: Metrics::default(),
            signal: Signal::default(),
            config: LifecycleConfig::default(),
            active: Mutex::new(None),
            exit: Mutex::new(None),
            state: StateStore::default(),
            ownership: Ownership::default(),
            resources: ResourceStack::default(),
            bus: None,
        }
    }

    /// How startup and shutdown behave, unless `startup` is given something else.
    #[must_use]
    pub fn with_config(mut self, config: LifecycleConfig) -> Self {
        self.config = config;
        self
    }

    /// Who owns which key.
    #[must_use]
    pub fn with_ownership(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    /// Where its events go.
    #[must_use]
    pub fn with_events(mut self, bus: EventBus) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Its id, unique for ever.
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// The phase it is in.
    pub fn phase(&self) -> Phase {
        self.cell.phase()
    }

    /// The state it is in.
    pub fn state(&self) -> AgentState {
        self.phase().state()
    }

    /// Why it is terminated, once it is.
    pub fn exit_reason(&self) -> Option<ExitReason> {
        *self.exit.lock()
    }

    /// Its numbers so far.
    pub fn metrics(&self) -> LifecycleMetrics {
        self.metrics.read()
    }

    /// Who owns `key`.
    pub fn owner(&self, key: &str) -> StateOwnership {
        self.ownership.owner(key)
    }

    /// A value that the agent owns or shares.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.state.read(key)
    }

    /// Every value that the agent owns or shares. Empty after shutdown.
    #[doc(alias = "_agent_state")]
    pub fn values(&self) -> BTreeMap<String, Value> {
        self.state.all()
    }

    /// Where it registers what it acquires.
    pub fn resources(&self) -> &ResourceStack {
        &self.resources
    }

    pub(super) fn announce(&self, from: Phase, to: Phase, reason: Option<ExitReason>) {
        if let Some(bus) = self.bus.as_ref().filter(|bus| bus.is_listening()) {
            let origin = Origin { agent: &self.name, instance: self.id, run: None, trace: None };
            bus.announce(&origin, EventKind::PhaseEntered { from, to, reason });
        }
    }

    /// Waits until it is ready, and says so; or fails, once it never will be.
    pub async fn ready(&self) -> Result<(), Error> {
        super::contract::wait_ready(&self.cell).await
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
        match self.cell.claim_turn() {
            Ok(()) => {
                self.signal.clear();
                // A stop that came between the claim and here has seen it; its signal may be gone.
                if matches!(self.cell.life(), Phase::ShuttingDown | Phase::Terminated) {
                    self.signal.set();
                }
                self.announce(Phase::Idle, Phase::ProcessingUserInput, None);
                Ok(BusyGuard { life: self, since: Instant::now(), ok: false })
            }
            Err(phase) => Err(Error::not_ready(phase.state(), "ready")),
        }
    }

    /// The precondition of any other method: the agent is in one of these states, now. Nothing
    /// keeps it there; a request method takes [`Lifecycle::requires_ready`], which does.
    pub fn requires_state(&self, states: &[AgentState]) -> Result<(), Error> {
        let state = self.state();
        if states.contains(&state) {
            return Ok(());
        }
        let wanted: Vec<_> = states.iter().map(|state| state.as_str()).collect();
        Err(Error::not_ready(state, &wanted.join(" or ")))
    }
}

impl fmt::Debug for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifecycle")
            .field("name", &self.name)
            .field("id", &self.id)
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
    ok: bool,
}

impl BusyGuard<'_> {
    /// Ends the request well.
    pub fn succeeded(mut self) {
        self.ok = true;
    }

    /// Waits until somebody shuts the agent down in the middle of the request.
    pub async fn cancelled(&self) {
        self.life.signal.wait().await;
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.life.metrics.request(self.since.elapsed(), self.ok, 2);
        if self.life.cell.life() == Phase::Idle {
            self.life.announce(Phase::ProcessingUserInput, Phase::Idle, None);
        }
        self.life.cell.release_turn();
    }
}
