//! Loading a workflow.

use super::agents::{self, Read};
use super::data::{AgentKind, UiConfig, VariablesFile, WorkflowFile};
use super::folder::{self, folder_of};
use super::part::{Folder, Part, Slot, unknown_fields};
use super::platform::Replaced;
use super::said::Said;
use super::scope::Visible;
use super::team::Team;
use super::variables::Tools;
use super::{
    finish, handoffs, hooks, lifecycle, nested, orchestrator, outputs, pack, tools, variables,
};
use crate::lifecycle::Run;
use crate::output::OutputsSpec;
use crate::route::Pattern;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::diagnostic::{Code, Diagnostic, Report};
use tenure_cards::embed::{CardLoader, nearest};
use tenure_cards::source::{Source, Span};
use tenure_cards::{LoadOptions, Loaded};
use tenure_core::secret::Redactor;

/// The files of a workflow beside its orchestrator.
pub(super) const PARTS: [&str; 7] = [
    "agents",
    "tools",
    "handoffs",
    "context_variables",
    "structured_outputs",
    "hooks",
    "ui_config",
];

/// A workflow that was loaded, with everything that is wrong with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedWorkflow {
    /// What its files say. If the report has errors, it is not whole: nothing of it may run.
    pub workflow: WorkflowFile,
    /// The cards of its agents, and of the agents that those have as tools; also the project.
    pub cards: Loaded,
    /// The workflows that it names as agents and in journeys, each once, sorted by name.
    pub nested: Vec<LoadedWorkflow>,
    /// What is wrong, with it and with everything that it names.
    pub report: Report,
    /// What the project has in place of the platform's own lifecycle tools.
    pub(crate) platform: Arc<Replaced>,
}

impl LoadedWorkflow {
    /// The nested workflow of this name.
    pub fn nested(&self, name: &str) -> Option<&LoadedWorkflow> {
        self.nested.iter().find(|nested| &*nested.workflow.name == name)
    }

    /// Returns the redactor of the project, which knows the secrets of the workflow: those of its cards,
    /// and what its context variables take from the environment under a name like `API_KEY`; of the
    /// workflows that it names too.
    pub fn redactor(&self) -> Redactor {
        let definitions = &self.workflow.variables.definitions;
        let redactor = self.cards.redactor();
        redactor.learn(crate::variables::secrets(definitions, self.cards.environ()));
        for nested in &self.nested {
            // They were loaded with the same one.
            drop(nested.redactor());
        }
        redactor
    }
}

/// Loads the workflow of a folder, or of its orchestrator file, and those that it names. Executes
/// nothing, opens no connection and never fails: what is wrong is in the report.
pub fn load(path: &Path, options: &LoadOptions) -> LoadedWorkflow {
    nested::Loads::new(options).load(path)
}

/// Checks the pack of a project's workflows, `workflows/_pack/workflow_graph`: what it lists is
/// there, and nothing in it goes round in a circle. An empty report if there is no such file.
pub fn check_pack(root: &Path, options: &LoadOptions) -> Report {
    let path = root.join(folder::WORKFLOWS);
    let mut loader = CardLoader::new(root, options);
    let mut folder = begin(&mut loader, &path);
    let slot = folder.part("_pack/workflow_graph");
    if let Some(part) = slot.part() {
        let there = folder::siblings(&folder.dir);
        super::graph::check(&mut folder, part, &there);
    }
    folder.report
}

fn begin<'a, 'o>(loader: &'a mut CardLoader<'o>, path: &Path) -> Folder<'a, 'o> {
    let dir = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let shown = path.strip_prefix(".").unwrap_or(path).to_owned();
    Folder {
        loader,
        dir,
        shown,
        report: Report::new(),
        sources: Vec::new(),
        expansions: Vec::new(),
    }
}

/// The files of the folder.
struct Parts {
    orchestrator: Slot,
    agents: Slot,
    tools: Slot,
    handoffs: Slot,
    variables: Slot,
    outputs: Slot,
    hooks: Slot,
    ui: Slot,
    pack: Slot,
}

/// Loads one workflow; those that it names by `loads`.
pub(super) fn one(path: &Path, loads: &mut nested::Loads<'_>) -> LoadedWorkflow {
    let options = loads.options;
    let root = folder_of(path).unwrap_or_else(|| path.to_owned());
    let mut loader = CardLoader::new(&root, options);
    let mut folder = begin(&mut loader, &root);
    if folder_of(path).is_none() {
        not_a_workflow(&mut folder, path);
    }
    let parts = Parts {
        orchestrator: folder.part(folder::ORCHESTRATOR),
        agents: folder.part("agents"),
        tools: folder.part("tools"),
        handoffs: folder.part("handoffs"),
        variables: folder.part("context_variables"),
        outputs: folder.part("structured_outputs"),
        hooks: folder.part("hooks"),
        ui: folder.part("ui_config"),
        pack: folder.part("_pack/workflow_graph"),
    };
    stray(&mut folder);
    let (mut workflow, found) = read(&mut folder, &parts);
    let own = loads.nested(&mut folder, &workflow, &found);
    finish::agents(&mut folder, &mut workflow, &found, &own);
    finish::journeys(&mut folder, &mut workflow, found.journeys, &parts.pack, &own);
    let Folder { mut report, sources, expansions, .. } = folder;
    workflow.sources = sources;
    let platform = Arc::new(Replaced::of(&loader.project, &mut loader.python));
    let mut cards = loader.finish(path);
    finish::tools(&mut cards, &workflow, parts.tools.part(), &mut report);
    workflow.expansions = expansions;
    cards.also_takes(&workflow.expansions);
    report.extend(cards.report.clone());
    for nested in &own.loaded {
        report.extend(nested.report.clone());
    }
    LoadedWorkflow { workflow, cards, nested: own.loaded, report, platform }
}

/// What is still to be checked when everything is read.
pub(super) struct Found {
    pub(super) agents: Vec<Read>,
    pub(super) journeys: Vec<pack::Read>,
    pub(super) agents_part: Option<Arc<Source>>,
    pub(super) pack_part: Option<Arc<Source>>,
    pub(super) outputs_whole: bool,
}

fn read(folder: &mut Folder<'_, '_>, parts: &Parts) -> (WorkflowFile, Found) {
    let (drafts, team) = match parts.agents.part() {
        Some(part) => agents::names(folder, part),
        None => {
            if matches!(parts.agents, Slot::Absent) && !matches!(parts.orchestrator, Slot::Absent) {
                absent(folder, "agents");
            }
            (Vec::new(), Team::default())
        }
    };
    let empty = || Arc::new(Source::new(folder_file(folder), ""));
    let source = parts.orchestrator.part().map_or_else(empty, |part| Arc::clone(&part.source));
    let orchestrator = match parts.orchestrator.part() {
        Some(part) => orchestrator::read(folder, part, &team),
        None => orchestrator::defaults(source),
    };
    let own_name = folder.dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = parts.orchestrator.part().and_then(orchestrator::name).map(str::to_owned);
    let outputs = match parts.outputs.part() {
        Some(part) => outputs::read(folder, part, &team),
        None => OutputsSpec::default(),
    };
    let (tools, lifecycle) = match parts.tools.part() {
        Some(part) => {
            folder.entry(&part.source, "", |scope| {
                let known = ["tools", "lifecycle_tools"];
                unknown_fields(scope.reader, &part.tree, "the file", &known);
                if part.tree.map().is_none() {
                    let wanted = "a mapping with `tools` and `lifecycle_tools`";
                    scope.reader.wrong_kind("the file", wanted, &part.tree);
                }
            });
            (tools::read(folder, part, &team), lifecycle::read(folder, part, &team))
        }
        None => (Vec::new(), Vec::new()),
    };
    let named = tools_named(parts.tools.part());
    let files = tools.iter().map(|tool| tool.tool.function.file.clone());
    let around = lifecycle.iter().filter_map(|tool| match &tool.run {
        Run::Python(function) => Some(function.file.clone()),
        _ => None,
    });
    let files = files.chain(around).collect();
    let known = Tools { names: named, is_whole: !parts.tools.is_broken(), files };
    let (mut variables, visible) = match parts.variables.part() {
        Some(part) => variables::read(folder, part, &team, &known),
        None => {
            let definitions = variables::provided(folder, &known, &[]);
            let names = definitions.iter().map(|it| it.name.clone()).collect();
            let visible = Visible { names, is_whole: !parts.variables.is_broken() };
            (VariablesFile { definitions, ..VariablesFile::default() }, visible)
        }
    };
    let agents = match parts.agents.part() {
        Some(part) => agents::read(folder, part, &drafts, &variables, &visible),
        None => Vec::new(),
    };
    let mut said = Said::default();
    let rules = match parts.handoffs.part() {
        Some(part) => {
            let rules = handoffs::read(folder, part, &team, &mut said, &visible);
            let pattern = orchestrator.pattern;
            let is_known = match &parts.orchestrator {
                Slot::There(part) => orchestrator::has_known_pattern(part),
                Slot::Absent => true,
                Slot::Broken => false,
            };
            if pattern != Pattern::Default && !rules.is_empty() && is_known {
                unused(folder, part, pattern);
            }
            rules
        }
        None => Vec::new(),
    };
    variables.definitions.extend(said.definitions());
    let message_hooks =
        parts.hooks.part().map(|part| hooks::read(folder, part, &team)).unwrap_or_default();
    let ui = match parts.ui.part() {
        Some(part) => hooks::read_ui(folder, part, &team),
        None => UiConfig::default(),
    };
    let journeys =
        parts.pack.part().map(|part| pack::read(folder, part, &team, &visible)).unwrap_or_default();
    let workflow = WorkflowFile {
        name: name.or(own_name).unwrap_or_default().into(),
        dir: folder.dir.clone(),
        shown: folder.shown.clone(),
        orchestrator,
        agents: agents.iter().map(|read| read.entry.clone()).collect(),
        tools,
        lifecycle,
        handoffs: rules,
        variables,
        outputs,
        message_hooks,
        ui,
        journeys: Vec::new(),
        sources: Vec::new(),
        expansions: Vec::new(),
    };
    let source = |slot: &Slot| slot.part().map(|part| Arc::clone(&part.source));
    let found = Found {
        agents,
        journeys,
        agents_part: source(&parts.agents),
        pack_part: source(&parts.pack),
        outputs_whole: !parts.outputs.is_broken(),
    };
    (workflow, found)
}

/// Every tool that the file names, also those with mistakes.
fn tools_named(part: Option<&Part>) -> Vec<String> {
    let mut names = Vec::new();
    for field in ["tools", "lifecycle_tools"] {
        let list = part.and_then(|part| part.tree.field(field)).and_then(|list| list.list());
        for node in list.unwrap_or_default() {
            let name = node.field("function").and_then(|it| it.text());
            names.extend(name.map(|name| name.trim().to_owned()));
        }
    }
    names
}

fn folder_file(folder: &Folder<'_, '_>) -> PathBuf {
    folder.shown.join(format!("{}.yaml", folder::ORCHESTRATOR))
}

fn not_a_workflow(folder: &mut Folder<'_, '_>, path: &Path) {
    let source = Arc::new(Source::new(path, ""));
    let (message, help) = match path.exists() {
        true => (
            "this is not a workflow: it has no orchestrator file",
            "a workflow is a folder with orchestrator.yaml or orchestrator.json",
        ),
        false => ("there is no such file or folder", "correct the path"),
    };
    let code = if path.exists() { Code::NoWorkflow } else { Code::PathMissing };
    folder.report.push(Diagnostic::new(code, &source, Span::at(0), message).help(help));
}

fn absent(folder: &mut Folder<'_, '_>, stem: &str) {
    let source = Arc::new(Source::new(&folder.shown, ""));
    let message = format!("this workflow has no file `{stem}`");
    let help = format!("add {stem}.yaml or {stem}.json");
    let found = Diagnostic::new(Code::PathMissing, &source, Span::at(0), message);
    folder.report.push(found.help(help));
}

fn unused(folder: &mut Folder<'_, '_>, part: &Part, pattern: Pattern) {
    let span = super::part::head(&part.tree);
    let message = format!("these handoffs mean nothing: the pattern is {pattern}");
    let help = "write `orchestration_pattern: DefaultPattern`, or remove the file";
    let found = Diagnostic::new(Code::UnusedHandoffs, &part.source, span, message);
    folder.report.push(found.help(help));
}

/// Files that look like a slip of somebody who meant one of the workflow's.
fn stray(folder: &mut Folder<'_, '_>) {
    let entries = std::fs::read_dir(&folder.dir).into_iter().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    for name in names {
        let Some((stem, suffix)) = name.rsplit_once('.') else { continue };
        let known = PARTS.iter().chain([&folder::ORCHESTRATOR]);
        if !folder::SUFFIXES.contains(&suffix) || known.clone().any(|part| *part == stem) {
            continue;
        }
        let Some(near) = nearest(stem, known.copied()) else { continue };
        let has_it =
            folder::SUFFIXES.iter().any(|it| folder.dir.join(format!("{near}.{it}")).exists());
        if has_it {
            continue;
        }
        let source = Arc::new(Source::new(folder.shown.join(&name), ""));
        let message = format!("`{name}` is none of a workflow's files, so it is not read");
        let help = format!("did you mean `{near}.{suffix}`?");
        let found = Diagnostic::new(Code::StrayFile, &source, Span::at(0), message);
        folder.report.push(found.help(help));
    }
}

/// The workflow that an agent is, by its folder's name.
pub(super) fn workflow_of(kind: &AgentKind) -> Option<&str> {
    match kind {
        AgentKind::Workflow(name) => Some(name),
        AgentKind::Card(_) => None,
    }
}
