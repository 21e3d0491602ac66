//! The loop as a whole: what is known, and who is told of it.

use super::log::{Book, Entry, Log};
use super::monitor::{Applied, registration};
use super::plan::{Decision, Knowledge, Observation, measure};
use super::policy::{Bounds, Goal, Goals, Latency, Policy, Setting};
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::Error;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::hook::{IntoRegistration, Registration};
use tenure_core::model::Model;

/// Self-adaptation: agents that change how they work when their goals are missed, within bounds.
///
/// It watches the turns of an agent, holds them against its [goals](Goals), and when one is missed
/// takes one step within its [bounds](Bounds): another model, another attempt, fewer calls at the
/// same time. **New instances** get the new setting; one that lives keeps what it began with. When
/// the goals have been met for a while, it goes back step by step towards the first choice.
///
/// Every change is an event, `adaptation.changed`, with its reason; `adaptation.considered` says that
/// a goal is missed and nothing may be done. What is known is kept in the agent's memory, if it has
/// one (under `memory/adapt`), and else for as long as this lives. Clones are one.
///
/// Settings of this builder come first: each of them begins anew.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::adapt::{Adaptation, Bounds, Goals};
/// # use tenure_models::{Passthrough, Slow};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let adaptation = Adaptation::new(Goals::new().latency_p95(Duration::from_secs(1)))
///     .bounds(Bounds::new().models(["good", "fast"]))
///     .min_samples(3);
/// let watched = adaptation.clone();
/// let agents = adaptation.agent(move |setting| {
///     let builder = match setting.model.as_deref() {
///         Some("fast") => Agent::builder("clerk").model(Passthrough::new()),
///         _ => Agent::builder("clerk").model(Slow::new()),
///     };
///     builder.with_lifecycle(watched.watching(setting)).blueprint()
/// });
/// let slow = agents.instance()?;
/// slow.startup().await?;
/// for _ in 0..3 {
///     slow.run("hello").await?;
/// }
/// assert_eq!(adaptation.setting().model.as_deref(), Some("fast"));
/// slow.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
#[doc(alias = "MAPE-K")]
pub struct Adaptation(Arc<Inner>);

struct Inner {
    policy: Policy,
    state: Mutex<State>,
}

struct State {
    knowledge: Knowledge,
    book: Book,
}

impl Adaptation {
    /// An adaptation to these goals, which may change nothing yet.
    pub fn new(goals: Goals) -> Self {
        Self::of(Policy::new(goals))
    }

    pub(super) fn of(policy: Policy) -> Self {
        let knowledge = Knowledge::new(&policy);
        let book = Book::new(knowledge.clone());
        Self(Arc::new(Inner { policy, state: Mutex::new(State { knowledge, book }) }))
    }

    fn with(self, change: impl FnOnce(&mut Policy)) -> Self {
        let mut policy = self.0.policy.clone();
        change(&mut policy);
        Self::of(policy)
    }

    /// What may be changed, and how far.
    pub fn bounds(self, bounds: Bounds) -> Self {
        self.with(|policy| policy.bounds = bounds)
    }

    /// Whose latency counts: that of model calls, unless said.
    pub fn latency_of(self, latency: Latency) -> Self {
        self.with(|policy| policy.latency = latency)
    }

    /// How many turns are looked at: the last 20, unless said.
    pub fn window(self, turns: usize) -> Self {
        self.with(|policy| policy.window = turns.max(1))
    }

    /// How many turns with a setting it takes to judge it: 5, unless said.
    pub fn min_samples(self, turns: usize) -> Self {
        self.with(|policy| policy.min_samples = turns.max(1))
    }

    /// How many turns have to pass between two changes: 5, unless said.
    pub fn cooldown(self, turns: usize) -> Self {
        self.with(|policy| policy.cooldown = turns)
    }

    /// For how many turns all goals have to be met before a step back: 20, unless said. After a step
    /// back that did not hold it is twice as many.
    pub fn recover_after(self, turns: usize) -> Self {
        self.with(|policy| policy.recover_after = turns.max(1))
    }

    /// All that decisions depend on, beside what is observed.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// The setting that new instances get.
    pub fn setting(&self) -> Setting {
        self.state().knowledge.setting.clone()
    }

    /// Changes nothing from here on. Turns are observed all the same.
    pub fn freeze(&self) {
        self.set_frozen(true);
    }

    /// Changes what has to be changed again.
    pub fn thaw(&self) {
        self.set_frozen(false);
    }

    fn set_frozen(&self, frozen: bool) {
        let mut state = self.state();
        let State { knowledge, book } = &mut *state;
        if knowledge.frozen != frozen {
            book.begin(knowledge, Entry::Frozen(frozen));
            knowledge.frozen = frozen;
        }
    }

    /// Whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.state().knowledge.frozen
    }

    /// What was observed and decided, in order.
    pub fn log(&self) -> Log {
        self.state().book.log().clone()
    }

    /// What is known: the setting, what the last turns with it come to, and the last changes with
    /// their reasons. It can be kept, and [recalled](Adaptation::recall).
    pub fn knowledge(&self) -> Value {
        let knowledge = self.state().knowledge.clone();
        let measured = |goal| measure(goal, self.0.policy.latency, &knowledge.window);
        let summary = json!({
            "turns": knowledge.window.len(),
            "latency_p50": measured(Goal::LatencyP50),
            "latency_p95": measured(Goal::LatencyP95),
            "error_rate": measured(Goal::ErrorRate),
            "cost_per_turn": measured(Goal::CostPerTurn),
        });
        let mut value = serde_json::to_value(&knowledge).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("summary".to_owned(), summary);
        }
        value
    }

    /// Goes on with what was known somewhere else, if that is more than is known here. What does not
    /// fit the bounds any more is brought within them. Whether it was taken; an error, if it is no
    /// knowledge.
    pub fn recall(&self, knowledge: &Value) -> Result<bool, Error> {
        let recalled: Knowledge = serde::Deserialize::deserialize(knowledge).map_err(|error| {
            Error::invalid(format!("this is nothing that adaptation has known: {error}"))
        })?;
        let mut state = self.state();
        let known = &state.knowledge;
        let is_new = known.setting.revision == 0 && known.window.is_empty();
        if !is_new && recalled.setting.revision <= known.setting.revision {
            return Ok(false);
        }
        let frozen = known.frozen;
        state.knowledge = recalled.fit(&self.0.policy);
        state.knowledge.frozen = frozen;
        state.book = Book::new(state.knowledge.clone());
        Ok(true)
    }

    /// Agents that are made by a setting: whenever it has changed, `make` makes another blueprint.
    /// Have it watched by [`Adaptation::watching`].
    pub fn agent(
        &self,
        make: impl Fn(&Setting) -> Result<Blueprint, Error> + Send + Sync + 'static,
    ) -> Adaptive {
        Adaptive { adaptation: self.clone(), make: Box::new(make), made: Mutex::default() }
    }

    /// A hook that watches an agent which was made by this setting, and does nothing else.
    pub fn watching(&self, setting: &Setting) -> Registration {
        registration(self.clone(), Applied::Elsewhere(Some(Arc::new(setting.clone()))))
    }

    /// A hook that watches, and has each new instance work by the setting of its start: the model is
    /// one of these, by name; calls that fail are repeated, and wait for a place.
    pub fn applying(
        &self,
        models: impl IntoIterator<Item = (String, Arc<dyn Model>)>,
    ) -> Registration {
        registration(self.clone(), Applied::Here(models.into_iter().collect()))
    }

    /// Takes an observation in. What is decided is in force when this returns.
    pub(super) fn observe(&self, seen: Observation) -> Option<Decision> {
        let (seen, mut state) = (Arc::new(seen), self.state());
        let State { knowledge, book } = &mut *state;
        book.begin(knowledge, Entry::Observed(seen.clone()));
        let decision = knowledge.observe(&self.0.policy, seen);
        if let Some(decision) = &decision {
            book.decided(decision.clone());
        }
        decision
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hook that watches, and does nothing else. The setting of an instance is the one that is in force
/// when it starts; see [`Adaptation::watching`] for agents that are made by one.
impl IntoRegistration for Adaptation {
    fn into_registration(self) -> Registration {
        registration(self, Applied::Elsewhere(None))
    }
}

impl fmt::Debug for Adaptation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adaptation")
            .field("policy", &self.0.policy)
            .field("setting", &self.setting())
            .field("frozen", &self.is_frozen())
            .finish_non_exhaustive()
    }
}

/// An agent whose new instances are made by the setting of the moment.
pub struct Adaptive {
    adaptation: Adaptation,
    make: Box<Make>,
    made: Mutex<Option<(u64, Blueprint)>>,
}

type Make = dyn Fn(&Setting) -> Result<Blueprint, Error> + Send + Sync;

impl Adaptive {
    /// The blueprint of the moment. It is made anew only if the setting has changed.
    pub fn blueprint(&self) -> Result<Blueprint, Error> {
        let setting = self.adaptation.setting();
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((revision, blueprint)) = made
            && revision == setting.revision
        {
            return Ok(blueprint);
        }
        let blueprint = (self.make)(&setting)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may have been faster, with a later one.
        if made.as_ref().is_none_or(|(revision, _)| *revision < setting.revision) {
            *made = Some((setting.revision, blueprint.clone()));
        }
        Ok(blueprint)
    }

    /// A new instance of it, not yet started. Those that live are left as they are.
    pub fn instance(&self) -> Result<Agent, Error> {
        Ok(self.blueprint()?.instance())
    }
}

impl fmt::Debug for Adaptive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adaptive").field("adaptation", &self.adaptation).finish_non_exhaustive()
    }
}
