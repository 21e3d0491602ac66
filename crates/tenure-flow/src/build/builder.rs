//! From loaded files to a workflow that can be opened.

use super::Workflow;
use super::asker::SharedAsker;
use super::attach::Parts;
use super::explain::{self, WorkflowInspection};
use super::tools;
use super::trust::trust_items;
use crate::file::{AgentKind, LoadedWorkflow, WorkflowFile};
use crate::lifecycle::USER;
use crate::route::INSTRUCTION;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenure_cards::build::{HookCatalog, StandIn};
use tenure_cards::diagnostic::{Code, Diagnostic};
use tenure_cards::project::Written;
use tenure_cards::source::{Source, Span};
use tenure_cards::team::TeamBuilder;
use tenure_cards::trust::ItemKind;
use tenure_cards::{Loaded, Report, Team, UserConfig};
use tenure_core::ask::Asker;
use tenure_core::cache::Cache;
use tenure_core::event::EventBus;
use tenure_core::hook::Limit;
use tenure_core::memory::Memory;
use tenure_core::model::Model;
use tenure_hosts::PythonConfig;
use tenure_models::Silent;

/// What a run says beside the files.
#[derive(Clone, Default)]
pub(super) struct Settings {
    model: Option<String>,
    catalog: HookCatalog,
    user: Option<UserConfig>,
    pub(super) bus: Option<EventBus>,
    pub(super) asker: Option<SharedAsker>,
    python: Option<PythonConfig>,
    limit: Option<Duration>,
    memory: Option<Arc<dyn Memory>>,
    cache: Option<Arc<dyn Cache>>,
    now: Option<SystemTime>,
}

/// Says how a workflow is run.
#[must_use]
pub struct WorkflowBuilder {
    loaded: LoadedWorkflow,
    settings: Settings,
}

impl WorkflowBuilder {
    pub(super) fn new(loaded: LoadedWorkflow) -> Self {
        Self { loaded, settings: Settings::default() }
    }

    /// Every agent uses this model in place of its own, those of nested workflows and the one that
    /// picks speakers included. A path in it starts from the project.
    pub fn model_override(mut self, model: impl Into<String>) -> Self {
        self.settings.model = Some(model.into());
        self
    }

    /// The hooks and functions in Rust that files may name by `use`.
    pub fn hook_catalog(mut self, catalog: HookCatalog) -> Self {
        self.settings.catalog = catalog;
        self
    }

    /// The user's own configuration, in place of the one that the files were loaded with.
    pub fn user_config(mut self, user: UserConfig) -> Self {
        self.settings.user = Some(user);
        self
    }

    /// Where events go.
    pub fn events(mut self, bus: &EventBus) -> Self {
        self.settings.bus = Some(bus.clone());
        self
    }

    /// Who answers for the person, and when a hook or a tool asks.
    pub fn on_ask(mut self, asker: impl Asker) -> Self {
        self.settings.asker = Some(SharedAsker(Arc::new(asker)));
        self
    }

    /// How Python is run. By default its interpreter is looked for when the workflow is opened.
    pub fn python(mut self, config: PythonConfig) -> Self {
        self.settings.python = Some(config);
        self
    }

    /// How long a turn may take, in place of what the project says.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.settings.limit = Some(limit);
        self
    }

    /// What every agent remembers across chats, each under its own name.
    pub fn memory(mut self, memory: Arc<dyn Memory>) -> Self {
        self.settings.memory = Some(memory);
        self
    }

    /// Where hooks keep answers across chats, those that want it.
    pub fn cache(mut self, cache: Arc<dyn Cache>) -> Self {
        self.settings.cache = Some(cache);
        self
    }

    /// The moment that `{{currentDate}}` in an instruction is taken from. A recorded chat that goes on
    /// needs the one at which it began.
    pub fn now(mut self, now: SystemTime) -> Self {
        self.settings.now = Some(now);
        self
    }

    /// Looks at the workflow without running anything of it, also at one that cannot be run.
    pub fn inspect(self) -> WorkflowInspection {
        let Self { loaded, settings } = self;
        let parts = Arc::new(Parts::of(&loaded));
        let mut inspection = team(&loaded, &settings, &parts, &BTreeMap::new()).inspect();
        inspection.report.extend(echoing_selector(&loaded, &settings, &parts));
        let nested =
            loaded.nested.iter().cloned().map(|loaded| Self { loaded, settings: settings.clone() });
        let nested = nested.map(Self::inspect).collect();
        explain::inspection(&loaded, inspection, nested)
    }

    /// Builds the workflow. On failure the report says everything that is wrong. Nothing is started
    /// and no interpreter is looked for.
    pub fn build(self) -> Result<Workflow, Report> {
        let Self { loaded, settings } = self;
        if loaded.report.has_errors() {
            return Err(loaded.report);
        }
        let parts = Arc::new(Parts::of(&loaded));
        let mut warnings = loaded.report.clone();
        let plan = match team(&loaded, &settings, &parts, &BTreeMap::new()).build() {
            Ok(plan) => plan,
            Err(report) => {
                warnings.extend(report);
                return Err(warnings);
            }
        };
        warnings.extend(plan.warnings().clone());
        let mut nested = Vec::new();
        for loaded in loaded.nested.clone() {
            nested.push(Self { loaded, settings: settings.clone() }.build()?);
        }
        Ok(Workflow::new(loaded, settings, parts, plan, nested, warnings))
    }
}

/// The files of a workflow that decide over its processes: its own, and those that it would run.
fn guarding(loaded: &LoadedWorkflow) -> Vec<PathBuf> {
    let root = &loaded.cards.project.root;
    let runs = trust_items(loaded).items.into_iter().filter(|item| {
        use ItemKind::{CommandFile, Data, Importable, Instruction, Python, Venv};
        match item.kind {
            Python | Importable | CommandFile | Venv | Instruction => true,
            // What is only read is known by its contents.
            Data => item.sha256.is_some(),
            _ => false,
        }
    });
    let mut files: Vec<PathBuf> = runs.map(|item| root.join(item.what)).collect();
    let mut workflows = vec![loaded];
    while let Some(workflow) = workflows.pop() {
        workflows.extend(&workflow.nested);
        let entries = std::fs::read_dir(&workflow.workflow.dir).into_iter().flatten().flatten();
        let is_own = |path: &PathBuf| {
            let kind = path.extension().and_then(|kind| kind.to_str());
            matches!(kind, Some("json" | "yaml" | "yml" | "toml" | "md"))
        };
        files.extend(entries.map(|entry| entry.path()).filter(is_own));
    }
    files
}

/// The agents of a workflow, with those that stand for the chat, for the person and for whoever
/// picks the speakers.
pub(super) fn team(
    loaded: &LoadedWorkflow,
    settings: &Settings,
    parts: &Arc<Parts>,
    models: &BTreeMap<Arc<str>, Arc<dyn Model>>,
) -> TeamBuilder {
    let mut cards = loaded.cards.clone();
    // What is wrong with them is in the workflow's own report.
    cards.report = Report::new();
    rename(&loaded.workflow, &mut cards);
    tools::take_out(&loaded.workflow, &mut cards);
    if let Some(limit) = settings.limit.and_then(|limit| Limit::new(limit).ok()) {
        cards.project.config.turn_limit = Some(limit);
    }
    let file = &loaded.workflow;
    let source = &file.orchestrator.source;
    let mut team = Team::builder(cards).hook_catalog(settings.catalog.clone());
    if let Some(memory) = &settings.memory {
        team = team.memory(memory.clone());
    }
    if let Some(cache) = &settings.cache {
        team = team.cache(cache.clone());
    }
    if let Some(now) = settings.now {
        team = team.now(now);
    }
    let stand_in = |name: &str| StandIn::new(name, source, &file.dir);
    team = team.stand_in_with(&stand_in(&parts.host), Silent::new());
    if parts.has_user {
        team = team.stand_in_with(&stand_in(USER), Silent::new());
    }
    for entry in file.agents.iter().filter(|it| matches!(it.kind, AgentKind::Workflow(_))) {
        team = match models.get(&entry.name) {
            Some(model) => team.stand_in_with(&stand_in(&entry.name), model.clone()),
            None => team.stand_in_with(&stand_in(&entry.name), Silent::new()),
        };
    }
    if let Some(selector) = &parts.selector {
        let mut picks = stand_in(selector).instruction(INSTRUCTION).without_history();
        picks.model = file
            .orchestrator
            .selector_model
            .as_ref()
            .map(|text| Written::new(text, source, written(source, text)));
        team = team.stand_in(&picks);
    }
    team = team.attach(parts.clone());
    let guarded = loaded.clone();
    team = team.guarding(move || guarding(&guarded));
    if let Some(model) = &settings.model {
        team = team.model_override(model);
    }
    if let Some(user) = &settings.user {
        team = team.user_config(user.clone());
    }
    if let Some(bus) = &settings.bus {
        team = team.events(bus);
    }
    if let Some(asker) = &settings.asker {
        team = team.on_ask(asker.clone());
    }
    if let Some(python) = &settings.python {
        team = team.python(python.clone());
    }
    team
}

/// Gives the cards of agents the names that the workflow has for them. A card that others name as
/// their child stays under its own name too.
fn rename(file: &WorkflowFile, cards: &mut Loaded) {
    for entry in &file.agents {
        let AgentKind::Card(name) = &entry.kind else { continue };
        if *name == entry.name {
            continue;
        }
        let mut named = cards.cards.iter().flat_map(|card| card.references());
        let is_child = named.any(|child| child.name == *name);
        let Some(at) = cards.cards.iter().position(|card| card.name == *name) else { continue };
        if is_child {
            let card = cards.cards[at].clone();
            cards.cards.push(card);
        }
        cards.cards[at].name = entry.name.clone();
    }
}

/// Warns if nobody names a model for whoever picks speakers: the default one repeats what it is told,
/// and that names nobody.
fn echoing_selector(loaded: &LoadedWorkflow, settings: &Settings, parts: &Parts) -> Report {
    let orchestrator = &loaded.workflow.orchestrator;
    let user = settings.user.as_ref().unwrap_or(&loaded.cards.user);
    let configs = [&loaded.cards.project.config.models, &user.models];
    let is_named = orchestrator.selector_model.is_some()
        || settings.model.is_some()
        || configs.iter().any(|it| it.default_model.is_some());
    let mut report = Report::new();
    if parts.selector.is_none() || is_named {
        return report;
    }
    let source = &orchestrator.source;
    let key = "orchestration_pattern";
    let span = match source.text().find(key) {
        Some(at) => Span::new(at, at + key.len()),
        None => Span::at(0),
    };
    let message = format!(
        "a model picks speakers or judges handoffs here ({}), and none is named for that: \
         `passthrough` repeats the question, and nobody can be picked by that",
        orchestrator.pattern
    );
    let help = "write `selector_model` into this file, or `default_model` into tenure.toml, or \
                choose another pattern";
    report.push(Diagnostic::new(Code::MeaninglessField, source, span, message).help(help));
    report
}

/// Where a file says which model picks speakers.
fn written(source: &Source, model: &str) -> Span {
    let text = source.text();
    let key = text.find("selector_model").unwrap_or_default();
    match text[key..].find(model) {
        Some(at) => Span::new(key + at, key + at + model.len()),
        None => Span::at(key),
    }
}

impl fmt::Debug for WorkflowBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkflowBuilder")
            .field("workflow", &self.loaded.workflow.name)
            .field("model", &self.settings.model)
            .finish_non_exhaustive()
    }
}
