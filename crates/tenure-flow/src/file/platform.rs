//! The project's own in place of the platform's lifecycle tools.

use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_cards::embed::{Origin, PythonFiles, Reader, SpecScope, Use};
use tenure_cards::project::ConfineError;
use tenure_cards::source::{Source, Span, read_bytes};
use tenure_cards::{Code, Diagnostic, Project, Report};
use tenure_hosts::PythonFunction;

/// The file of a project that replaces the platform's own lifecycle tools.
pub(crate) const PLATFORM: &str = "logs/workflow_lifecycle.py";

/// The functions that it may have.
const FUNCTIONS: [&str; 2] = ["log_workflow_start", "log_workflow_completion"];

/// What a project has in place of the platform's own.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    pub(crate) functions: Vec<PythonFunction>,
    pub(crate) problems: Vec<Diagnostic>,
}

impl Replaced {
    /// Of this project, read with its other Python files. Of what its file does not define the
    /// platform's own stays.
    pub(super) fn of(project: &Project, python: &mut PythonFiles) -> Self {
        let mut replaced = Self::default();
        // What leads out of the project is not read, and what cannot be read is told.
        let file = match project.confine(&project.root, Path::new(PLATFORM)) {
            Err(ConfineError::Missing) => return replaced,
            found => found.ok(),
        };
        let text = file.and_then(|file| read_bytes(&file).ok());
        let text = text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
        let source = Arc::new(Source::new(PLATFORM, &*text));
        let (environ, mut report) = (Environ::process(), Report::new());
        let mut reader = Reader::new(&source, &mut report, &environ);
        let origin = Origin { project, dir: &project.root, shown: Path::new("") };
        let mut scope = SpecScope { reader: &mut reader, origin, python, registered: None };
        for name in FUNCTIONS {
            let span = match text.find(&format!("def {name}")) {
                Some(at) => Span::new(at, at + "def ".len() + name.len()),
                None => Span::at(0),
            };
            let spec = format!("{PLATFORM}:{name}");
            if let Some(found) = scope.python(&spec, span, Use::LifecycleTool) {
                replaced.functions.push(found.function);
            }
            // What is wrong with the file itself is wrong with both.
            if scope.reader.report.iter().any(|it| is_of_file(it.code)) {
                break;
            }
        }
        // Of what it does not define the platform's own stays.
        let wrong = report.iter().filter(|it| it.code != Code::FunctionMissing);
        replaced.problems.extend(wrong.cloned());
        replaced
    }

    /// The project's own of this name.
    pub(crate) fn named(&self, name: &str) -> Option<PythonFunction> {
        self.functions.iter().find(|function| &*function.name == name).cloned()
    }
}

/// Whether it is said of a file, and of no function in it.
fn is_of_file(code: Code) -> bool {
    matches!(
        code,
        Code::PythonSyntax
            | Code::PythonUnreadable
            | Code::NotAFile
            | Code::OutsideProject
            | Code::LinkOutsideProject
    )
}
