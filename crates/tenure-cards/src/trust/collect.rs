//! Collecting what would run.

use super::digest::sha256_of;
use super::{Inventory, Item, ItemKind, sha256_hex};
use crate::card::{Card, CardKind};
use crate::check::Loaded;
use crate::hook::{CommandRef, On, Run};
use crate::project::{CONFIG_FILE, Project};
use crate::source::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tenure_hosts::PythonFunction;

/// Folders that are not searched: they hold what tools made, or what was installed.
const SKIPPED: &[&str] =
    &[".venv", "venv", "node_modules", ".git", ".tenure", "__pycache__", ".mypy_cache"];
/// What Python can import, by suffix.
const IMPORTABLE: &[&str] = &["py", "pyc", "so", "pyd"];
/// The most files and folders that are looked at.
const MOST_FILES: usize = 5000;
/// What stands for the contents of a file that cannot be read.
const UNREADABLE: &str = "unreadable";

/// Everything that a run of these cards would execute, or let their models execute.
pub fn inventory(loaded: &Loaded) -> Inventory {
    let mut found =
        Collected { project: &loaded.project, items: Vec::new(), python: BTreeMap::new() };
    for card in &loaded.cards {
        found.card(card);
    }
    found.finish()
}

struct Collected<'a> {
    project: &'a Project,
    items: Vec<Item>,
    /// By file, its hash and its uses.
    python: BTreeMap<PathBuf, (String, Vec<String>)>,
}

impl Collected<'_> {
    fn card(&mut self, card: &Card) {
        let name = &card.name;
        for hook in &card.hooks.declared {
            let place = match &hook.on {
                On::Points(points) => {
                    points.iter().map(|point| point.as_str()).collect::<Vec<_>>().join("+")
                }
                On::Transition { from, to } => format!("{from} -> {to}"),
                On::Own => "its points".to_owned(),
            };
            let used = format!("{name}: {place}");
            match &hook.run {
                Run::Python(python) => self.function(&python.function, &used),
                Run::Command(command) => self.command(command, used),
                Run::Use { name, .. } => {
                    // What is hashed is what is written: a value of the environment is no part of
                    // the project, and may be a secret.
                    let written = sha256_hex(card.source.slice(hook.span).as_bytes());
                    self.registered(name, written, used);
                }
            }
        }
        for (place, hook) in card.hooks.tool_hooks.iter() {
            self.function(&hook.function, &format!("{name}: {place}"));
        }
        if let CardKind::Agent(agent) = &card.kind {
            for tool in &agent.function_tools {
                self.function(&tool.function, &format!("{name}: tool"));
            }
            let permissions = [
                (agent.shell, "shell: the model may run shell commands"),
                (agent.harness_tools, "harness_tools: the model may steer the program"),
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
            for target in targets(card) {
                let what = format!("tool server {target}");
                self.push(ItemKind::Permission, what, None, vec![name.to_string()]);
            }
        }
    }

    fn push(&mut self, kind: ItemKind, what: String, sha256: Option<String>, used: Vec<String>) {
        let same = self.items.iter_mut().find(|item| item.kind == kind && item.what == what);
        match same {
            Some(item) => item.used_by.extend(used),
            None => self.items.push(Item { kind, what, sha256, used_by: used }),
        }
    }

    fn registered(&mut self, name: &str, sha256: String, used: String) {
        // Two uses of one hook may be configured differently, so each is an item of its own.
        let used_by = vec![used];
        let kind = ItemKind::Registered;
        self.items.push(Item { kind, what: name.to_owned(), sha256: Some(sha256), used_by });
    }

    fn function(&mut self, function: &PythonFunction, used: &str) {
        let file = &function.file;
        let entry = self.python.entry(file.path().to_owned());
        // The hash is of the text that was checked, which is the text that runs.
        let entry = entry.or_insert_with(|| (sha256_hex(file.source().as_bytes()), Vec::new()));
        entry.1.push(format!("{used} {}", function.name));
    }

    fn command(&mut self, command: &CommandRef, used: String) {
        let line: Vec<String> = command.written.iter().map(|part| quoted(part)).collect();
        self.push(ItemKind::Command, line.join(" "), None, vec![used.clone()]);
        // A script that is given to an interpreter runs as much as the interpreter does.
        let mut files: BTreeSet<PathBuf> = command.file.iter().cloned().collect();
        for part in command.argv.iter().skip(1) {
            if let Ok(path) = self.project.confine(&command.dir, Path::new(part))
                && path.is_file()
            {
                files.insert(path);
            }
        }
        for file in files {
            let sha256 = sha256_of(&file).unwrap_or_else(|_| UNREADABLE.into());
            let what = self.project.relative(&file);
            self.push(ItemKind::CommandFile, what, Some(sha256), vec![used.clone()]);
        }
    }

    fn finish(mut self) -> Inventory {
        let python = std::mem::take(&mut self.python);
        let folders: BTreeSet<PathBuf> =
            python.keys().filter_map(|file| Some(file.parent()?.to_owned())).collect();
        for (path, truncated) in importable(&folders) {
            if truncated {
                let what = format!("more than {MOST_FILES} files beneath the folders of hooks");
                self.push(ItemKind::Importable, what, None, Vec::new());
            } else if !python.contains_key(&path) {
                let sha256 = sha256_of(&path).unwrap_or_else(|_| UNREADABLE.into());
                let what = self.project.relative(&path);
                self.push(ItemKind::Importable, what, Some(sha256), Vec::new());
            }
        }
        if !python.is_empty() {
            self.interpreter();
        }
        for (path, (sha256, used)) in python {
            let what = self.project.relative(&path);
            self.push(ItemKind::Python, what, Some(sha256), used);
        }
        let runs = !self.items.is_empty();
        if runs {
            for name in &self.project.config.hook_env.clone() {
                self.push(ItemKind::Environment, name.clone(), None, Vec::new());
            }
            if let Some(text) = &self.project.config_text {
                let sha256 = sha256_hex(text.as_bytes());
                self.push(ItemKind::Config, CONFIG_FILE.into(), Some(sha256), Vec::new());
            }
        }
        Inventory::new(self.items)
    }

    /// The interpreter that the project brings along.
    fn interpreter(&mut self) {
        let root = &self.project.root;
        let configured = self.project.config.interpreter.iter().map(|path| root.join(path));
        let usual = [".venv", "venv"].into_iter().map(|dir| root.join(dir).join("bin/python"));
        if let Some(path) = configured.chain(usual).find(|path| path.is_file()) {
            let sha256 = sha256_of(&path).unwrap_or_else(|_| UNREADABLE.into());
            let what = self.project.relative(&path);
            self.push(ItemKind::Interpreter, what, Some(sha256), Vec::new());
        }
    }
}

/// Every importable file beneath the folders; the last is marked if there were more.
fn importable(folders: &BTreeSet<PathBuf>) -> Vec<(PathBuf, bool)> {
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<PathBuf> = folders.iter().rev().cloned().collect();
    let mut looked = 0;
    let mut truncated = false;
    while let Some(folder) = open.pop() {
        // Links are followed as Python follows them, each folder once.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if !seen.insert(real) {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        paths.sort();
        for path in paths.into_iter().rev() {
            looked += 1;
            if looked > MOST_FILES {
                truncated = true;
                break;
            }
            if path.is_dir() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if !SKIPPED.contains(&&*name) {
                    open.push(path);
                }
            } else if path
                .extension()
                .is_some_and(|end| IMPORTABLE.iter().any(|known| end.eq_ignore_ascii_case(known)))
            {
                found.insert(path);
            }
        }
        if truncated {
            break;
        }
    }
    let mut all: Vec<(PathBuf, bool)> = found.into_iter().map(|path| (path, false)).collect();
    if truncated {
        all.push((PathBuf::new(), true));
    }
    all
}

/// The targets of `mcp_connect` as they are written.
fn targets(card: &Card) -> Vec<String> {
    let Some(node) = card.tree().field("mcp_connect") else { return Vec::new() };
    let listed = node.list().unwrap_or_default().iter();
    let mapped = node.map().unwrap_or_default().iter().map(|(_, server)| server);
    let target = |server: &Node| server.field("target").and_then(Node::text).map(str::to_owned);
    listed.chain(mapped).filter_map(target).collect()
}

fn quoted(part: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:+,@%".contains(c);
    if !part.is_empty() && part.chars().all(plain) {
        part.to_owned()
    } else {
        format!("'{}'", part.replace('\'', "'\\''"))
    }
}
