//! The project's own in place of the platform's lifecycle tools.

use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_cards::embed::{Origin, PythonFiles, Reader, SpecScope, Use};
use tenure_cards::source::{Source, Span};
use tenure_cards::{Diagnostic, Project, Report};
use tenure_hosts::PythonFunction;

/// The file of a project that replaces the platform's own lifecycle tools.
pub(super) const PLATFORM: &str = "logs/workflow_lifecycle.py";

/// The functions that it may have.
const FUNCTIONS: [&str; 2] = ["log_workflow_start", "log_workflow_completion"];

/// What a project has in place of the platform's own.
#[derive(Default)]
pub(super) struct Replaced {
    pub(super) functions: Vec<PythonFunction>,
    pub(super) problems: Vec<Diagnostic>,
}

impl Replaced {
    /// Of this project. Of what its file does not define the platform's own stays.
    pub(super) fn of(project: &Project) -> Self {
        let mut replaced = Self::default();
        let Ok(text) = std::fs::read_to_string(project.root.join(PLATFORM)) else {
            return replaced;
        };
        let source = Arc::new(Source::new(PLATFORM, &*text));
        let (environ, mut python, mut report) =
            (Environ::process(), PythonFiles::default(), Report::new());
        let mut reader = Reader::new(&source, &mut report, &environ);
        let origin = Origin { project, dir: &project.root, shown: Path::new("") };
        let mut scope =
            SpecScope { reader: &mut reader, origin, python: &mut python, registered: None };
        for name in FUNCTIONS {
            let Some(at) = text.find(&format!("def {name}(")) else { continue };
            let span = Span::new(at, at + "def ".len() + name.len());
            let spec = format!("{PLATFORM}:{name}");
            if let Some(found) = scope.python(&spec, span, Use::LifecycleTool) {
                replaced.functions.push(found.function);
            }
        }
        replaced.problems.extend(report.iter().cloned());
        replaced
    }

    /// The project's own of this name.
    pub(super) fn named(&self, name: &str) -> Option<PythonFunction> {
        self.functions.iter().find(|function| &*function.name == name).cloned()
    }
}
