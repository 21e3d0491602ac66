//! Whether the files that a command runs are still those that were trusted.

use super::command::files;
use super::digest::sha256_of;
use super::python::{Rest, environment_of, importable, own_interpreter, program};
use super::{ItemKind, UNREADABLE};
use crate::hook::CommandRef;
use crate::project::Project;
use std::collections::BTreeMap;

/// What of the project a command runs, with the hashes of its contents: that which the inventory
/// says of this command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandState(BTreeMap<String, Option<String>>);

impl CommandState {
    /// As it is now. Executes nothing.
    pub(crate) fn now(command: &CommandRef, project: &Project) -> Self {
        let found = files(command, project);
        let interpreter = own_interpreter(project);
        let venv = interpreter.as_deref().and_then(environment_of);
        let imported = importable(&found.imports, venv);
        let own = interpreter.as_ref().filter(|_| imported.has_venv);
        let programs = found.program.iter().chain(own);
        let items = programs.flat_map(|path| program(path, ItemKind::CommandFile, project));
        let mut all: BTreeMap<String, Option<String>> =
            items.map(|item| (item.what, item.sha256)).collect();
        for file in found.files.iter().chain(&imported.files) {
            let sha256 = sha256_of(file).unwrap_or_else(|_| UNREADABLE.into());
            all.insert(project.relative(file), Some(sha256));
        }
        // Files that nobody looks at cannot be compared.
        if let Some(Rest::Hashed(sha256)) = imported.rest {
            all.insert("one of the files that it may import".to_owned(), Some(sha256));
        }
        Self(all)
    }

    /// What is another one in `now`, or is in one of both only.
    pub(crate) fn changed<'a>(&'a self, now: &'a Self) -> Option<&'a str> {
        let mut all = self.0.keys().chain(now.0.keys());
        all.find(|what| self.0.get(*what) != now.0.get(*what)).map(String::as_str)
    }
}
