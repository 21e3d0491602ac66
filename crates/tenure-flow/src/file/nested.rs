//! The workflows that a workflow names.

use super::data::WorkflowFile;
use super::folder::{is_workflow, siblings};
use super::load::{self, Found, LoadedWorkflow};
use super::part::{Folder, meant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_cards::LoadOptions;
use tenure_cards::diagnostic::Code;
use tenure_cards::source::{Source, Span};

/// The most workflows that one may be made of.
const MOST: usize = 64;

/// Workflows that are being loaded, one inside the other.
pub(super) struct Loads<'o> {
    pub(super) options: &'o LoadOptions,
    /// Folders, from the outermost to the one that is being loaded.
    open: Vec<PathBuf>,
    /// How many were loaded so far.
    count: usize,
}

/// The nested workflows of one workflow.
pub(super) struct Nested {
    /// Each once, sorted by name.
    pub(super) loaded: Vec<LoadedWorkflow>,
    /// By folder, the name of the workflow in it.
    pub(super) names: BTreeMap<String, Arc<str>>,
}

impl<'o> Loads<'o> {
    pub(super) fn new(options: &'o LoadOptions) -> Self {
        Self { options, open: Vec::new(), count: 0 }
    }

    pub(super) fn load(&mut self, path: &Path) -> LoadedWorkflow {
        let dir = super::folder::folder_of(path).unwrap_or_else(|| path.to_owned());
        self.open.push(dir.canonicalize().unwrap_or(dir));
        self.count += 1;
        let loaded = load::one(path, self);
        self.open.pop();
        loaded
    }

    /// Loads what the agents and the journeys of a workflow name.
    pub(super) fn nested(
        &mut self,
        folder: &mut Folder<'_, '_>,
        workflow: &WorkflowFile,
        found: &Found,
    ) -> Nested {
        let mut own = Nested { loaded: Vec::new(), names: BTreeMap::new() };
        let agents = found.agents.iter().filter_map(|read| {
            let (name, span) = read.workflow.as_ref()?;
            Some((found.agents_part.as_ref()?, read.label.as_str(), name, *span))
        });
        let journeys = found.journeys.iter().filter_map(|read| {
            let (name, span) = &read.workflow;
            Some((found.pack_part.as_ref()?, read.label.as_str(), name, *span))
        });
        for (source, label, name, span) in agents.chain(journeys) {
            self.named(folder, workflow, (source, label), (name, span), &mut own);
        }
        own.loaded.sort_by(|a, b| a.workflow.name.cmp(&b.workflow.name));
        own
    }

    fn named(
        &mut self,
        folder: &mut Folder<'_, '_>,
        workflow: &WorkflowFile,
        (source, label): (&Arc<Source>, &str),
        (name, span): (&str, Span),
        own: &mut Nested,
    ) {
        if own.names.contains_key(name) {
            return;
        }
        let mut problem = |code: Code, message: String, help: String| {
            folder.entry(source, label, |scope| {
                scope.reader.problem_help(code, span, message, help);
            });
        };
        let parent = workflow.dir.parent().unwrap_or(&workflow.dir);
        let is_plain = !name.contains(['/', '\\']) && name != "." && name != "..";
        let path = parent.join(name);
        if !is_plain || !is_workflow(&path) {
            let there = siblings(parent);
            let known: Vec<&str> = there.iter().map(String::as_str).collect();
            let message = format!("there is no workflow `{name}` beside this one");
            problem(Code::UnknownWorkflow, message, meant(name, &known, "workflow"));
            return;
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if let Some(begin) = self.open.iter().position(|open| *open == real) {
            let last = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default();
                format!("`{}`", name.to_string_lossy())
            };
            let mut names: Vec<String> = self.open[begin..].iter().map(last).collect();
            names.push(last(&real));
            let message =
                format!("these workflows need each other in a circle: {}", names.join(" -> "));
            problem(Code::WorkflowCycle, message, "a chat would never end; remove one".to_owned());
            return;
        }
        if self.count >= MOST {
            let message = format!("this workflow is made of more than {MOST} others");
            problem(Code::WorkflowCycle, message, "make it of fewer".to_owned());
            return;
        }
        let shown = match folder.shown.parent() {
            Some(parent) => parent.join(name),
            None => path,
        };
        // The path as messages show it starts where the user is, as the folder's own does.
        let loaded = self.load(if is_workflow(&shown) { &shown } else { &real });
        own.names.insert(name.to_owned(), Arc::clone(&loaded.workflow.name));
        own.loaded.push(loaded);
    }
}
