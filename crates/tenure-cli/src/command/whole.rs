//! Everything that a path stands for: a card, cards, a workflow, or a project with both.

use super::project::{Opened, hook_count, load_options, summary};
use super::workflow::OpenedWorkflow;
use crate::trust::Item;
use anyhow::Result;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::time::Duration;
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::{Code, Diagnostic, Report};
use tenure_cards::team::{Explanation, Team};
use tenure_flow::file::{check_folders, check_pack};
use tenure_flow::variables::Source;
use tenure_flow::{LoadedWorkflow, Workflow, WorkflowInspection, is_workflow, workflows_of};

/// What was read of a path.
pub(super) struct Whole {
    /// The cards, unless it is a workflow, or a project with workflows and no card.
    pub(super) cards: Option<Opened>,
    pub(super) workflows: Vec<OpenedWorkflow>,
    /// What is wrong with the pack of a project's workflows, and which of them lack the file that
    /// makes them workflows.
    pack: Report,
}

impl Whole {
    /// Reads what is at `path`: of a project its cards and every workflow. Executes nothing.
    pub(super) fn at(path: &Path) -> Result<Self> {
        if is_workflow(path) {
            let workflows = vec![OpenedWorkflow::at(path)];
            return Ok(Self { cards: None, workflows, pack: Report::new() });
        }
        let mut cards = Opened::at(path)?;
        let folders = if path.is_dir() { workflows_of(path) } else { Vec::new() };
        let workflows: Vec<_> = folders.iter().map(|folder| OpenedWorkflow::at(folder)).collect();
        if !workflows.is_empty() {
            cards.loaded.report = without(&cards.loaded.report, Code::NoCards);
        }
        let pack = match path.is_dir() {
            true => {
                let mut pack = check_pack(path, &load_options());
                pack.extend(check_folders(path));
                pack
            }
            false => Report::new(),
        };
        Ok(Self { cards: Some(cards), workflows, pack })
    }

    /// Looks also at what a run would refuse. Executes nothing.
    pub(super) fn inspected(self) -> Self {
        // Of cards that are not there, nobody can say what is wrong with them.
        let cards = self.cards.map(|cards| match cards.loaded.cards.is_empty() {
            true => cards,
            false => cards.inspected(),
        });
        let workflows = self.workflows.into_iter().map(OpenedWorkflow::inspected).collect();
        Self { cards, workflows, pack: self.pack }
    }

    /// Everything that is wrong, each thing once.
    pub(super) fn report(&self) -> Report {
        let reports = self.cards.iter().map(Opened::report);
        let reports = reports.chain(self.workflows.iter().map(OpenedWorkflow::report));
        let mut seen = HashSet::new();
        let mut report = Report::new();
        for diagnostic in reports.flat_map(Report::iter).chain(self.pack.iter()) {
            // What the project's configuration or a shared card has wrong is found again and again.
            if seen.insert(diagnostic.to_json().to_string()) {
                report.push(diagnostic.clone());
            }
        }
        report
    }

    /// What was looked at, and what was found: the last line of a check.
    pub(super) fn summary(&self, report: &Report) -> String {
        let cards = self.cards.iter().flat_map(|opened| &opened.loaded.cards);
        let hooks: usize = cards.clone().map(hook_count).sum();
        let agents: usize = self.workflows.iter().map(|it| it.agents().0).sum();
        let tools: usize = self.workflows.iter().map(|it| it.lifecycle_tools().0).sum();
        let took: Duration = self.workflows.iter().map(|it| it.took).sum();
        let took = took + self.cards.as_ref().map(|opened| opened.took).unwrap_or_default();
        let cards = cards.count();
        let of_cards = [(cards, "card"), (hooks, "hook")];
        let of_workflows =
            [(self.workflows.len(), "workflow"), (agents, "agent"), (tools, "lifecycle tool")];
        let counts = match (cards, self.workflows.is_empty()) {
            (_, true) => of_cards.to_vec(),
            (0, false) => of_workflows.to_vec(),
            (_, false) => [&of_cards[..], &of_workflows[..]].concat(),
        };
        summary(&counts, report, took)
    }

    /// Everything that would be executed, each thing once with all of its uses.
    pub(super) fn items(&self) -> Vec<Item> {
        let cards = self.cards.iter().flat_map(Opened::items);
        let mut all: Vec<Item> = Vec::new();
        for item in cards.chain(self.workflows.iter().flat_map(OpenedWorkflow::items)) {
            let is_same = |it: &&mut Item| {
                (&it.kind, &it.what, &it.sha256) == (&item.kind, &item.what, &item.sha256)
            };
            match all.iter_mut().find(is_same) {
                Some(same) => {
                    same.used_by.extend(item.used_by);
                    same.used_by.sort();
                    same.used_by.dedup();
                }
                None => all.push(item),
            }
        }
        all
    }

    /// The agents of all of it, and what they need of the machine. Executes nothing.
    pub(super) fn agents(&self) -> (Vec<Explanation>, Vec<Diagnostic>) {
        let (mut agents, mut needs) = (Vec::new(), Vec::new());
        if let Some(opened) = &self.cards {
            let inspection = Team::builder(opened.loaded.clone()).inspect();
            agents.extend(inspection.agents);
            needs.extend(inspection.needs);
        }
        for opened in &self.workflows {
            of_workflow(
                Workflow::builder(opened.loaded.clone()).inspect(),
                &mut agents,
                &mut needs,
            );
        }
        (agents, needs)
    }

    /// The environment variables whose values context variables take, sorted.
    pub(super) fn environment(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.workflows.iter().for_each(|it| taken(&it.loaded, &mut names));
        names
    }

    /// The project's folder.
    pub(super) fn root(&self) -> &Path {
        let workflow = || self.workflows.first().map(OpenedWorkflow::root);
        self.cards.as_ref().map(Opened::root).or_else(workflow).unwrap_or(Path::new("."))
    }

    /// The cards, and those of each workflow's agents.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &Loaded> {
        let workflows = self.workflows.iter().map(|it| &it.loaded.cards);
        self.cards.iter().map(|opened| &opened.loaded).chain(workflows)
    }
}

fn taken(loaded: &LoadedWorkflow, names: &mut BTreeSet<String>) {
    for definition in &loaded.workflow.variables.definitions {
        if let Source::Config(config) = &definition.source {
            names.insert(config.env_var.clone());
        }
    }
    loaded.nested.iter().for_each(|nested| taken(nested, names));
}

fn of_workflow(
    inspection: WorkflowInspection,
    agents: &mut Vec<Explanation>,
    needs: &mut Vec<Diagnostic>,
) {
    let speakers = inspection.workflow.agents.into_iter().filter_map(|speaker| speaker.agent);
    agents.extend(speakers.chain(inspection.workflow.others));
    needs.extend(inspection.needs);
    for nested in inspection.nested {
        of_workflow(nested, agents, needs);
    }
}

fn without(report: &Report, code: Code) -> Report {
    let mut rest = Report::new();
    report.iter().filter(|it| it.code != code).for_each(|it| rest.push(it.clone()));
    rest
}
