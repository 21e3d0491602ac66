//! A workflow as it was read.

use super::super::project::{complain_about, load_options, summary};
use crate::terminal::print_plain;
use crate::trust::Item;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tenure_cards::diagnostic::{Diagnostic, Report};
use tenure_flow::{LoadedWorkflow, Workflow, WorkflowInspection, load, trust_items};

/// A workflow as it was read, and how long that took.
pub(crate) struct OpenedWorkflow {
    pub(crate) loaded: LoadedWorkflow,
    pub(crate) took: Duration,
}

impl OpenedWorkflow {
    /// Reads the workflow at `path`, its folder or its orchestrator file. Executes nothing.
    pub(crate) fn at(path: &Path) -> Self {
        let began = Instant::now();
        let loaded = load(path, &load_options());
        // Its secrets are known before anything of it is said.
        drop(loaded.redactor());
        Self { loaded, took: began.elapsed() }
    }

    /// Looks also at what a run would refuse. Executes nothing.
    pub(crate) fn inspected(mut self) -> Self {
        let began = Instant::now();
        let mut refused = Vec::new();
        reports(Workflow::builder(self.loaded.clone()).inspect(), &mut refused);
        let mut known: HashSet<_> =
            self.report().iter().map(|it| it.to_json().to_string()).collect();
        refused.retain(|diagnostic| known.insert(diagnostic.to_json().to_string()));
        self.loaded.report.extend_built(refused);
        self.took += began.elapsed();
        self
    }

    /// Prints errors and warnings on standard error, as `check` prints them. Says whether the
    /// workflow can be used.
    pub(crate) fn complain(&self) -> bool {
        let report = self.report();
        complain_about(report);
        if report.has_errors() {
            print_plain(&summary(&[(1, "workflow"), self.agents()], report, self.took));
        }
        !report.has_errors()
    }

    /// How many agents it has, for a summary.
    pub(crate) fn agents(&self) -> (usize, &'static str) {
        (self.loaded.workflow.agents.len(), "agent")
    }

    /// How many lifecycle tools it has, for a summary.
    pub(crate) fn lifecycle_tools(&self) -> (usize, &'static str) {
        (self.loaded.workflow.lifecycle.len(), "lifecycle tool")
    }

    /// Everything that a run would execute.
    pub(crate) fn items(&self) -> Vec<Item> {
        items_of(&self.loaded)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.loaded.cards.project.root
    }

    pub(crate) fn report(&self) -> &Report {
        &self.loaded.report
    }
}

/// What was found in a workflow, and in those that it names.
fn reports(inspection: WorkflowInspection, all: &mut Vec<Diagnostic>) {
    all.extend(inspection.report);
    for nested in inspection.nested {
        reports(nested, all);
    }
}

/// Everything that a run of this workflow would execute.
pub(super) fn items_of(loaded: &LoadedWorkflow) -> Vec<Item> {
    trust_items(loaded).items.iter().map(Item::from).collect()
}
