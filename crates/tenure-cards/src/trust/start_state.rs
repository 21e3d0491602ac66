//! The start of Python, held against what was checked.

use super::environment::start_of;
use super::python::found_interpreter;
use crate::project::Project;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tenure_hosts::StartCheck;

/// The interpreter of a project and all that it runs at its start, as they were when what would run was listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct PythonStart {
    /// None, if the system's is used and no file of the project leads there.
    interpreter: Option<PathBuf>,
    state: BTreeMap<String, String>,
}

impl PythonStart {
    pub(super) fn read(project: &Project) -> Self {
        let interpreter = found_interpreter(project).filter(|it| it.starts_with(&project.root));
        let state = interpreter.as_deref().map(|it| start_of(it, project)).unwrap_or_default();
        Self { interpreter, state }
    }

    /// Returns what has all of it looked at before each start of a worker, which may be long after it was trusted.
    pub(crate) fn check(&self, project: &Project) -> Option<StartCheck> {
        let interpreter = self.interpreter.clone()?;
        let was = self.state.clone();
        let project = project.clone();
        Some(StartCheck::new(move || {
            let now = start_of(&interpreter, &project);
            let mut all = was.keys().chain(now.keys());
            match all.find(|file| was.get(*file) != now.get(*file)) {
                Some(file) => Err(format!(
                    "`{file}` changed since it was checked; start again to be asked about it"
                )),
                None => Ok(()),
            }
        }))
    }
}
