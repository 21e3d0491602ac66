//! Collecting what would run.

use super::command::files;
use super::digest::sha256_of;
use super::environment::{Extent, environment_of, program};
use super::instructions::link_of;
use super::python::{MOST_FILES, Rest, importable, own_interpreter};
use super::ready::UsedHook;
use super::{Inventory, Item, ItemKind, UNREADABLE, sha256_hex};
use crate::card::{Card, CardKind};
use crate::check::Loaded;
use crate::hook::{CardHooks, CommandRef, DeclaredHook, On, Run};
use crate::project::{CONFIG_FILE, Project};
use crate::sandbox::Grant;
use crate::server::quoted;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use tenure_hosts::PythonFunction;

/// Everything that a run of these cards would execute, or let their models execute. Executes nothing.
///
/// Guards and what agents are told (cards, instructions, skills, histories, the answers of `script:` models) count if
/// anything would run. Of a command the files are known that its line names; which files those use in turn is known
/// for Python only.
pub fn inventory(loaded: &Loaded) -> Inventory {
    inventory_with(loaded, |_| {})
}

/// The same with what else would run, beside what the cards say: `more` names it.
pub fn inventory_with(loaded: &Loaded, more: impl FnOnce(&mut Collector<'_>)) -> Inventory {
    let mut found = Collector {
        loaded,
        project: &loaded.project,
        items: Vec::new(),
        python: BTreeMap::new(),
        folders: BTreeSet::new(),
        guards: Vec::new(),
    };
    found.project_guards();
    found.configured_scripts();
    for card in &loaded.cards {
        found.card(card);
    }
    found.servers(loaded);
    found.models(loaded);
    found.addresses(loaded);
    more(&mut found);
    found.finish()
}

/// Collects what would run. See [`inventory_with`].
pub struct Collector<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) project: &'a Project,
    items: Vec<Item>,
    /// By file, its hash and its uses.
    python: BTreeMap<PathBuf, (String, Vec<String>)>,
    /// Folders that commands import Python from.
    folders: BTreeSet<PathBuf>,
    /// The guards of all of that, and what agents are told: they count if anything would run.
    pub(super) guards: Vec<Item>,
}

impl Collector<'_> {
    /// Adds a Python function. `used` says who uses it and how, as in `desk: before_chat`.
    pub fn python(&mut self, function: &PythonFunction, used: &str) {
        self.function(function, used, "");
    }

    /// Adds a command that runs in `dir`, and the files that it is declared to write.
    pub fn program(&mut self, argv: &[String], dir: &Path, writes: &[PathBuf], used: &str) {
        let command = CommandRef::of(argv, dir, self.project).writing(writes);
        self.command(&command, used.to_owned());
        self.written(writes, used);
    }

    /// Adds a hook that is part of the program, with everything that its options name.
    pub fn uses(&mut self, hook: &UsedHook<'_>, used: &str) {
        self.used_hook(hook, used, "");
    }

    fn used_hook(&mut self, hook: &UsedHook<'_>, used: &str, how: &str) {
        self.ready_made(hook, used);
        // What is hashed is what is written: a value of the environment is no part of the project, and may be a secret.
        let (source, span) = hook.at;
        let written = sha256_hex(source.slice(span).as_bytes());
        self.registered(hook.name, written, format!("{used}{how}"));
    }

    /// Adds a file that is read, with its contents if they count, or one that is written.
    pub fn data(&mut self, file: &Path, is_written: bool, used: &str) {
        let sha256 = match is_written {
            // What a run itself changes is another one after each run.
            true => None,
            false => Some(sha256_of(file).unwrap_or_else(|_| UNREADABLE.into())),
        };
        let what = self.project.relative(file);
        self.push(ItemKind::Data, what, sha256, vec![used.to_owned()]);
    }

    /// Adds the files that a command is declared to write.
    fn written(&mut self, files: &[PathBuf], used: &str) {
        for file in files {
            self.data(file, true, &format!("{used}, which writes it"));
        }
    }

    /// Adds what a confinement grants beyond the usual.
    pub(super) fn granted(&mut self, grant: &Grant, used: &str) {
        for what in grant.beyond_usual() {
            self.push(ItemKind::Permission, what, None, vec![used.to_owned()]);
        }
    }

    /// Adds the hooks that a file declares.
    pub fn hooks(&mut self, hooks: &CardHooks, name: &str, source: &Source) {
        for hook in &hooks.declared {
            let used = format!("{name}: {}", place_of(hook));
            let how = how(hook, source);
            if let Some(grant) = &hook.sandbox {
                self.granted(grant, &format!("{used} {}", hook.name));
            }
            self.written(&hook.writes, &used);
            match &hook.run {
                Run::Python(python) => self.function(&python.function, &used, &how),
                Run::Command(command) => self.command(command, used + &how),
                Run::Use { name, with, dir, places } => {
                    let at = (source, hook.span);
                    let own = UsedHook::new(name, with, places, at, dir);
                    self.used_hook(&UsedHook { writes: &hook.writes, ..own }, &used, &how);
                }
            }
        }
        for (place, hook) in hooks.tool_hooks.iter() {
            self.function(&hook.function, &format!("{name}: {place}"), "");
        }
    }

    fn card(&mut self, card: &Card) {
        let name = &card.name;
        self.variables(card);
        self.card_guards(card);
        self.instructions(card);
        self.hooks(&card.hooks, name, &card.source);
        if let CardKind::Agent(agent) = &card.kind {
            for tool in &agent.function_tools {
                let used = format!("{name}: tool");
                if let Some(grant) = &tool.sandbox {
                    self.granted(grant, &format!("{used} {}", tool.spec.name));
                }
                self.function(&tool.function, &used, "");
            }
            let permissions = [
                (agent.shell, "shell: the model may run any command, as you"),
                (agent.shell, "shell: the model may read and write files of the project"),
                (agent.subagents == Some(true), "subagents: the model may start helpers"),
            ];
            for (given, what) in permissions {
                if given {
                    self.push(ItemKind::Permission, what.into(), None, vec![name.to_string()]);
                }
            }
            for command in &agent.commands {
                let what = format!("command /{} runs {}", command.name, command.handler);
                self.push(ItemKind::Permission, what, None, vec![name.to_string()]);
            }
        }
    }

    pub(super) fn push(
        &mut self,
        kind: ItemKind,
        what: String,
        sha256: Option<String>,
        used: Vec<String>,
    ) {
        put(&mut self.items, Item { kind, what, sha256, used_by: used });
    }

    fn registered(&mut self, name: &str, sha256: String, used: String) {
        // Two uses of one hook may be configured differently, so each is an item of its own.
        let used_by = vec![used];
        let kind = ItemKind::Registered;
        self.items.push(Item { kind, what: name.to_owned(), sha256: Some(sha256), used_by });
    }

    fn function(&mut self, function: &PythonFunction, used: &str, how: &str) {
        let file = &function.file;
        let entry = self.python.entry(file.path().to_owned());
        // The hash is of the text that was checked, which is the text that runs.
        let entry = entry.or_insert_with(|| (sha256_hex(file.source().as_bytes()), Vec::new()));
        entry.1.push(format!("{used} {}{how}", function.name));
    }

    pub(super) fn command(&mut self, command: &CommandRef, used: String) {
        let line: Vec<String> = command.written.iter().map(|part| quoted(part)).collect();
        self.push(ItemKind::Command, line.join(" "), None, vec![used.clone()]);
        self.command_files(command, &[used]);
    }

    /// What of the project a command runs.
    pub(super) fn command_files(&mut self, command: &CommandRef, used: &[String]) {
        // Before anything is hashed here: what changes in between is then noticed before it runs.
        self.loaded.commands.note(command);
        let found = files(command, self.project);
        self.folders.extend(found.imports);
        if let Some(path) = found.program {
            for item in program(&path, ItemKind::CommandFile, self.project, Extent::Whole) {
                self.push(item.kind, item.what, item.sha256, used.to_vec());
            }
        }
        for file in found.files {
            let sha256 = sha256_of(&file).unwrap_or_else(|_| UNREADABLE.into());
            let what = self.project.relative(&file);
            self.push(ItemKind::CommandFile, what, Some(sha256), used.to_vec());
        }
    }

    fn finish(mut self) -> Inventory {
        let python = std::mem::take(&mut self.python);
        let modules = match python.is_empty() {
            true => None,
            false => Some(self.loaded.modules().clone()),
        };
        // What hooks import comes from the contents that these hashes are of. A command reads its files itself.
        let hashes = modules.iter().flat_map(|modules| modules.hashes.clone());
        let mut hashes: BTreeMap<PathBuf, String> = hashes.collect();
        let mut folders = std::mem::take(&mut self.folders);
        let known =
            |folder: &PathBuf| modules.as_ref().is_some_and(|it| it.folders.contains(folder));
        let of_hooks = python.keys().filter_map(|file| Some(file.parent()?.to_owned()));
        folders.extend(of_hooks.filter(|folder| !known(folder)));
        let interpreter = own_interpreter(self.project);
        let venv = interpreter.as_deref().and_then(environment_of);
        let found = importable(&folders, venv, &self.project.root);
        for path in found.files {
            let hash = || sha256_of(&path).unwrap_or_else(|_| UNREADABLE.into());
            hashes.entry(path.clone()).or_insert_with(hash);
        }
        for (path, sha256) in hashes.into_iter().filter(|(path, _)| !python.contains_key(path)) {
            let what = self.project.relative(&path);
            let known = |item: &Item| item.kind == ItemKind::CommandFile && item.what == what;
            if !self.items.iter().any(known) {
                self.push(ItemKind::Importable, what, Some(sha256), Vec::new());
            }
        }
        let has_venv = found.has_venv || modules.as_ref().is_some_and(|modules| modules.has_venv);
        let rest_of_hooks = modules.and_then(|modules| modules.rest.clone());
        for (rest, whose) in [(rest_of_hooks, "hooks"), (found.rest, "commands")] {
            let Some(sha256) = rest.map(Rest::sha256) else { continue };
            // Those are too many to be read, but none of them changes unnoticed.
            let what = format!(
                "more than {MOST_FILES} files beneath the folders of {whose}, the others known by \
                 their names, sizes and times"
            );
            self.push(ItemKind::Importable, what, Some(sha256), Vec::new());
        }
        if let Some(path) = interpreter {
            let items = program(&path, ItemKind::Interpreter, self.project, Extent::Whole);
            let is_used = |item: &Item| match item.kind {
                ItemKind::Venv => !python.is_empty() || has_venv,
                _ => !python.is_empty(),
            };
            for item in items.into_iter().filter(is_used) {
                self.push(item.kind, item.what, item.sha256, item.used_by);
            }
        }
        for (path, (sha256, used)) in python {
            let what = self.project.relative(&path);
            self.push(ItemKind::Python, what, Some(sha256), used);
        }
        let runs = !self.items.is_empty();
        if runs {
            self.items.append(&mut self.guards);
            let grant = self.project.config.sandbox.grant.clone();
            self.granted(&grant, "every process");
            for name in &self.project.config.hook_env.clone() {
                self.push(ItemKind::Environment, name.clone(), None, Vec::new());
            }
            if let Some(text) = &self.project.config_text {
                let sha256 = sha256_hex(text.as_bytes());
                let link = link_of(&self.project.root.join(CONFIG_FILE), self.project);
                let link = link.into_iter().collect();
                self.push(ItemKind::Config, CONFIG_FILE.into(), Some(sha256), link);
            }
            if let Some(config) = &self.project.fast_agent {
                let sha256 = sha256_hex(config.text.as_bytes());
                let what = self.project.relative(&config.file);
                self.push(ItemKind::Config, what, Some(sha256), Vec::new());
            }
        }
        Inventory::new(self.items)
    }
}

impl fmt::Debug for Collector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("items", &self.items).finish_non_exhaustive()
    }
}

/// Adds a thing, or its uses if it is there.
pub(super) fn put(items: &mut Vec<Item>, item: Item) {
    let mut known = items.iter_mut();
    match known.find(|known| known.kind == item.kind && known.what == item.what) {
        Some(known) => known.used_by.extend(item.used_by),
        None => items.push(item),
    }
}

/// What a use says about when a hook is called and what its failure means: a guard that is switched
/// off is another use.
fn how(hook: &DeclaredHook, source: &Source) -> String {
    let said = how_called(hook, source);
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}

/// The points of a hook.
pub(super) fn place_of(hook: &DeclaredHook) -> String {
    match &hook.on {
        On::Points(points) => {
            points.iter().map(|point| point.as_str()).collect::<Vec<_>>().join("+")
        }
        On::Transition { from, to } => format!("{from} -> {to}"),
        On::Own => "its own points".to_owned(),
    }
}

/// The policy of a hook and its condition.
pub(super) fn how_called(hook: &DeclaredHook, source: &Source) -> Vec<String> {
    let policy = hook.policy.map(|policy| format!("policy {}", policy.as_str()));
    let when = hook.when.as_ref().map(|when| {
        // As it is written, if it takes something from the environment.
        let written = source.slice(when.span);
        let shown = if written.contains("${") { written } else { &when.expression };
        format!("when {}", shown.trim())
    });
    policy.into_iter().chain(when).collect()
}
