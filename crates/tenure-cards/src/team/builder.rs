//! Building a team.

use super::explain::{Explanation, explanations};
use super::life::python_config;
use super::{Cast, Recording, Stage, Team, TeamError};
use crate::build::{Assembly, Attach, HookCatalog, Settings, SharedAsker, SharedMemory, StandIn};
use crate::check::Loaded;
use crate::diagnostic::Report;
use crate::sandbox::confined;
use crate::user::UserConfig;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tenure_core::ask::Asker;
use tenure_core::cache::Cache;
use tenure_core::event::EventBus;
use tenure_core::hook::HookRegistry;
use tenure_core::memory::Memory;
use tenure_core::model::Model;
use tenure_hosts::{Environment, Interpreter, PythonConfig, PythonHost};
use tokio_util::task::TaskTracker;

/// Says how the agents of some cards are run.
#[must_use]
pub struct TeamBuilder {
    loaded: Loaded,
    settings: Settings,
    python: Option<PythonConfig>,
    recording: Option<Recording>,
}

/// What can be said of cards without running them, also of cards that cannot be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Every agent that could be built, in the order in which they would start.
    pub agents: Vec<Explanation>,
    /// What is wrong: what checking found, and what cannot be run.
    pub report: Report,
    /// What is not wrong with the cards, and keeps them from running here: keys that are missing,
    /// variables that are not set.
    pub needs: Report,
}

impl TeamBuilder {
    pub(super) fn new(loaded: Loaded) -> Self {
        Self { loaded, settings: Settings::default(), python: None, recording: None }
    }

    /// A builder for other cards with the settings of a team. A run has one team, so the record is
    /// not among them.
    pub(super) fn after(team: &Team, loaded: Loaded) -> Self {
        let (settings, python) = (team.settings.clone(), team.python.clone());
        Self { loaded, settings, python, recording: None }
    }

    /// Every agent uses this model in place of its own, the planning models of composed agents
    /// included. A path in it starts from the project.
    pub fn model_override(mut self, model: impl Into<String>) -> Self {
        self.settings.model = Some(model.into());
        self
    }

    /// The user's own configuration, in place of the one that the cards were loaded with.
    pub fn user_config(mut self, user: UserConfig) -> Self {
        self.loaded.report.extend(user.report().clone());
        self.loaded.user = user;
        self
    }

    /// The hooks that cards may name by `use`.
    pub fn hook_registry(self, hooks: HookRegistry) -> Self {
        self.hook_catalog(HookCatalog::from(&hooks))
    }

    /// The hooks that cards may name by `use`, and configure by `with`.
    pub fn hook_catalog(mut self, catalog: HookCatalog) -> Self {
        self.settings.catalog = catalog;
        self
    }

    /// Where events go.
    pub fn events(mut self, bus: &EventBus) -> Self {
        self.settings.events = Some(bus.clone());
        self
    }

    /// Who answers when a hook or a tool asks.
    pub fn on_ask(mut self, asker: impl Asker) -> Self {
        self.settings.asker = Some(SharedAsker(Arc::new(asker)));
        self
    }

    /// Has the team run once, and what it does recorded: the life of each agent, the chat and the
    /// turn of [`Team::run`](super::Team::run), and those of every agent that is called in it. With
    /// the record of a run that has stopped somewhere, the run goes on there: what is on record is
    /// not done again.
    ///
    /// The cards, the message and the [`now`](Self::now) have to be those that the run began with;
    /// where they are not, the run is parked, and the error says at which step. A conversation is not
    /// recorded.
    pub fn recorded(mut self, recording: Recording) -> Self {
        self.recording = Some(recording);
        self
    }

    /// What every agent remembers across runs, each under its own name: loaded when it starts, and
    /// stored when it stops.
    pub fn memory(mut self, memory: Arc<dyn Memory>) -> Self {
        self.settings.memory = Some(SharedMemory(memory));
        self
    }

    /// Where hooks keep answers across runs, those that want it.
    pub fn cache(mut self, cache: Arc<dyn Cache>) -> Self {
        self.settings.cache = Some(cache);
        self
    }

    /// The moment that `{{currentDate}}` in an instruction is taken from. By default it is the one at
    /// which the agents are built; a run that goes on needs the one at which it began.
    pub fn now(mut self, now: SystemTime) -> Self {
        self.settings.now = Some(now);
        self
    }

    /// Adds to what the cards say of their agents.
    pub fn attach(mut self, attach: Arc<dyn Attach>) -> Self {
        self.settings.attach.push(attach);
        self
    }

    /// Adds an agent that no card is written for.
    pub fn stand_in(mut self, agent: &StandIn) -> Self {
        if let Some(card) = agent.card(&mut self.loaded) {
            self.loaded.cards.push(card);
        }
        self
    }

    /// Adds an agent that no card is written for, with a model of its own, which the run's model
    /// does not replace.
    pub fn stand_in_with(mut self, agent: &StandIn, model: impl Model) -> Self {
        if let Some(card) = agent.card(&mut self.loaded) {
            self.settings.brought.insert(card.name.clone(), Arc::new(model));
            self.loaded.cards.push(card);
        }
        self
    }

    /// Has files listed, when agents are started, that decide over processes beside the cards: no hook and no tool
    /// may write them.
    pub fn guarding(mut self, files: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static) -> Self {
        self.settings.guarding = Some(Arc::new(files));
        self
    }

    /// How Python is run. By default its interpreter is looked for when the team starts.
    pub fn python(mut self, config: PythonConfig) -> Self {
        self.python = Some(config);
        self
    }

    /// Looks at the cards without running anything of them, also at those that cannot be run.
    pub fn inspect(mut self) -> Inspection {
        self.settings.providers = Some(self.loaded.providers());
        let plan = self.plan();
        let agents = explanations(&plan, &self.loaded);
        let mut report = self.loaded.report.clone();
        report.extend(plan.report);
        Inspection { agents, report, needs: plan.needs }
    }

    /// Builds the team. On failure the report says everything that is wrong, and nothing was
    /// started; nor is anything started on success. The key of every model over the network has to
    /// be there; nothing is sent.
    pub fn build(mut self) -> Result<Team, Report> {
        if self.loaded.report.has_errors() {
            return Err(self.loaded.report);
        }
        self.settings.providers = Some(self.loaded.providers());
        let mut plan = self.plan();
        plan.report.extend(self.loaded.report.clone());
        plan.report.extend(plan.needs.clone());
        if plan.report.has_errors() {
            return Err(plan.report);
        }
        let Self { loaded, settings, python, recording } = self;
        let (life, background) = (Mutex::new(Stage::Built), TaskTracker::new());
        Ok(Team { loaded, settings, python, recording, plan, life, background })
    }

    /// Builds the agents to be started by somebody else, one chat after another or many at once.
    /// Looks for Python, if any of them needs it; starts no agent. Whoever starts them records them.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left behind if the future is dropped.
    pub async fn cast(mut self) -> Result<Cast, TeamError> {
        self.settings.providers = Some(self.loaded.providers());
        let needs_python = self.plan().python;
        let Self { loaded, settings, python, .. } = self;
        let environment = confined(environment(&loaded), &loaded, settings.guarding.as_deref());
        let config = python_config(&loaded, python.as_ref(), needs_python, &environment).await?;
        Cast::new(&loaded, &settings, config, &environment)
    }

    /// Builds everything around a Python host that is never used.
    fn plan(&self) -> Assembly {
        let environment = environment(&self.loaded);
        let config = self.python.clone().unwrap_or_else(|| PythonConfig {
            interpreter: Interpreter::at("python3"),
            environment: environment.clone(),
            dir: self.loaded.project.root.clone(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        });
        Assembly::new(&self.loaded, &self.settings, &PythonHost::new(config), &environment)
    }
}

/// What hooks and tools in other processes get to see of our environment.
pub(super) fn environment(loaded: &Loaded) -> Environment {
    let passed = loaded.project.config.hook_env.iter();
    let environment = passed.fold(Environment::new(), |it, name| it.pass(name.clone()));
    environment.set("TENURE_PROJECT", loaded.project.root.to_string_lossy())
}

impl fmt::Debug for TeamBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TeamBuilder").field("model", &self.settings.model).finish_non_exhaustive()
    }
}
