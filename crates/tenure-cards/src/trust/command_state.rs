//! Whether the files that a command runs are still those that were checked.

use super::command::files;
use super::digest::sha256_of;
use super::environment::{CACHE, Extent, environment_of, program};
use super::python::{Importable, Rest, importable, own_interpreter};
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

/// What of the project a command runs, as the inventory says it of this command.
#[derive(Clone, Debug)]
struct CommandState {
    /// The hashes of contents, by what they are of.
    contents: BTreeMap<String, Option<String>>,
    caches: Caches,
}

/// The compiled code that Python would find for the sources that a command may import.
#[derive(Clone, Debug)]
enum Caches {
    /// In these folders, each beside a source. Not all of them need be there.
    Folders(BTreeSet<PathBuf>),
    /// Anywhere beneath these folders: they hold more than is looked at.
    Beneath(BTreeSet<PathBuf>),
}

impl Caches {
    /// Those of what a command imports from `folders`.
    fn of(folders: BTreeSet<PathBuf>, imported: &Importable) -> Self {
        if matches!(imported.rest, Some(Rest::Unknown)) {
            return Self::Beneath(folders);
        }
        let others = imported.others.iter().map(|(file, _)| file);
        let holders: BTreeSet<_> =
            imported.files.iter().chain(others).filter_map(|file| file.parent()).collect();
        let real = holders.into_iter().filter_map(|folder| folder.canonicalize().ok());
        let real = real.filter(|folder| !folder.ends_with(CACHE));
        Self::Folders(real.map(|folder| folder.join(CACHE)).collect())
    }
}

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
        let mut contents: BTreeMap<String, Option<String>> =
            items.map(|item| (item.what, item.sha256)).collect();
        for file in found.files.iter().chain(&imported.files) {
            let sha256 = sha256_of(file).unwrap_or_else(|_| UNREADABLE.into());
            contents.insert(project.relative(file), Some(sha256));
        }
        // Files that nobody looks at cannot be compared.
        if let Some(Rest::Hashed(sha256)) = &imported.rest {
            let what = "one of the files that it may import".to_owned();
            contents.insert(what, Some(sha256.clone()));
        }
        let caches = Caches::of(found.imports, &imported);
        Self { contents, caches }
    }

    /// What is another one in `now`, or is in one of both only.
    fn changed<'a>(&'a self, now: &'a Self) -> Option<&'a String> {
        let mut all = self.contents.keys().chain(now.contents.keys());
        all.find(|what| self.contents.get(*what) != now.contents.get(*what))
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
        let (Caches::Folders(caches) | Caches::Beneath(caches)) = checked.caches.clone();
        let check = StartCheck::new(move || {
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
        });
        check.distrusting(caches)
    }

    /// Returns the folders of compiled code that no command may see, for each command that is known; none for one that
    /// has them anywhere.
    pub(crate) fn caches(&self) -> Vec<BTreeSet<PathBuf>> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let folders = states.values().filter_map(|state| match &state.caches {
            Caches::Folders(folders) => Some(folders.clone()),
            Caches::Beneath(_) => None,
        });
        folders.collect()
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
