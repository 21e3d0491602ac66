//! Whether the files that a command runs are still those that were checked.

use super::command::files;
use super::digest::sha256_of;
use super::environment::{Extent, environment_of, program};
use super::python::{Rest, importable, own_interpreter};
use super::{ItemKind, UNREADABLE};
use crate::hook::CommandRef;
use crate::project::Project;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tenure_hosts::StartCheck;

/// The kind of thing that has a command started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandUser {
    /// A hook, which may declare files that it writes.
    Hook,
    /// A tool server, which may not.
    Server,
}

/// What of the project a command runs, with the hashes of its contents: that which the inventory
/// says of this command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CommandState(BTreeMap<String, Option<String>>);

impl CommandState {
    /// As it is now. Executes nothing.
    fn now(command: &CommandRef, project: &Project) -> Self {
        let found = files(command, project);
        let interpreter = own_interpreter(project);
        let venv = interpreter.as_deref().and_then(environment_of);
        let imported = importable(&found.imports, venv, &project.root);
        let own = interpreter.as_ref().filter(|_| imported.has_venv);
        let programs = found.program.iter().chain(own);
        let items =
            programs.flat_map(|path| program(path, ItemKind::CommandFile, project, Extent::Start));
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
    fn changed<'a>(&'a self, now: &'a Self) -> Option<&'a String> {
        let mut all = self.0.keys().chain(now.0.keys());
        all.find(|what| self.0.get(*what) != now.0.get(*what))
    }
}

/// The commands of a project, each with its files as they were checked: when what would run was listed, or else when
/// the agents were built. Clones are one.
#[derive(Clone, Debug)]
pub struct CommandChecks {
    project: Arc<Project>,
    states: Arc<Mutex<HashMap<Key, Arc<CommandState>>>>,
}

/// A command line, where it runs, and what it is declared to write.
type Key = (Vec<String>, PathBuf, BTreeSet<PathBuf>);

impl CommandChecks {
    pub(crate) fn new(project: &Project) -> Self {
        Self { project: Arc::new(project.clone()), states: Arc::default() }
    }

    /// Notes how the files of a command are, unless that is known.
    pub(crate) fn note(&self, command: &CommandRef) {
        self.state(command);
    }

    /// Returns what has the files of a command looked at before each start: that may be long after it was trusted.
    pub(crate) fn check(&self, command: &CommandRef, user: CommandUser) -> StartCheck {
        let checked = self.state(command);
        let command = command.clone();
        let project = self.project.clone();
        StartCheck::new(move || {
            let Some(what) = checked.changed(&CommandState::now(&command, &project)).cloned()
            else {
                return Ok(());
            };
            let hint = match user {
                CommandUser::Hook => hint(&what, &command, &project),
                CommandUser::Server => String::new(),
            };
            Err(format!(
                "`{what}` changed since it was checked; start again to be asked about it{hint}"
            ))
        })
    }

    /// Returns the check before each start of a hook's command in a folder: every file that its line names is as it was
    /// checked, and so is everything that Python would import for it. What it `writes` does not count.
    pub fn check_argv(&self, argv: &[String], dir: &Path, writes: &[PathBuf]) -> StartCheck {
        let command = CommandRef::of(argv, dir, &self.project).writing(writes);
        self.check(&command, CommandUser::Hook)
    }

    fn state(&self, command: &CommandRef) -> Arc<CommandState> {
        let key = (command.argv.clone(), command.dir.clone(), command.writes.clone());
        let known = || self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = known().get(&key) {
            return state.clone();
        }
        let state = Arc::new(CommandState::now(command, &self.project));
        known().entry(key).or_insert(state).clone()
    }
}

/// Returns advice on a file that the command itself may have changed: one that its line names beside its program.
fn hint(what: &str, command: &CommandRef, project: &Project) -> String {
    let file = project.root.join(what);
    if command.file.as_ref() == Some(&file) || !files(command, project).files.contains(&file) {
        return String::new();
    }
    let shown = file.strip_prefix(&command.dir).map_or(what.into(), Path::to_string_lossy);
    format!(", or declare `writes: [{shown}]` if the command is there to change it")
}
