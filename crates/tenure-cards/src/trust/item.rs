//! What an inventory holds.

use super::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What kind of thing would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ItemKind {
    /// A Python file with hooks or tools.
    Python,
    /// A file that those could import.
    Importable,
    /// A command.
    Command,
    /// A file of the project that a command runs or is given.
    CommandFile,
    /// Something that a card lets its model do.
    Permission,
    /// An environment variable that hooks get beside the usual ones, or whose value a card takes.
    Environment,
    /// The Python interpreter, if the project brings its own or names one.
    Interpreter,
    /// The virtual environment that it belongs to, with what that runs whenever Python starts.
    Venv,
    /// The project's configuration.
    Config,
    /// A hook that is part of the program, by name.
    Registered,
    /// A tool server: a program that is started, or an address that is connected to.
    Server,
    /// An address that requests to a model go to, because the project chose it or the model.
    Address,
    /// A file or a database whose contents agents get to see or hooks decide by, or that hooks write.
    Data,
    /// An address that a hook sends something to.
    Receiver,
    /// All that guards a card, a workflow or the project: hooks, policies and limits, none included.
    Guard,
    /// A file that says what agents are told: a card, a file of a workflow, what an instruction takes in, a skill.
    Instruction,
}

impl ItemKind {
    /// Every kind, the most dangerous first: what lets others act as the user, what leaves the machine, what runs, and
    /// what is read.
    pub const BY_DANGER: [Self; 16] = [
        Self::Permission,
        Self::Command,
        Self::Server,
        Self::Receiver,
        Self::Address,
        Self::Environment,
        Self::Python,
        Self::CommandFile,
        Self::Interpreter,
        Self::Venv,
        Self::Guard,
        Self::Instruction,
        Self::Registered,
        Self::Config,
        Self::Data,
        Self::Importable,
    ];

    /// The kind as people read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python file",
            Self::Importable => "importable file",
            Self::Command => "command",
            Self::CommandFile => "file of a command",
            Self::Permission => "permission",
            Self::Environment => "environment variable",
            Self::Interpreter => "interpreter",
            Self::Venv => "virtual environment",
            Self::Config => "configuration",
            Self::Registered => "hook of the program",
            Self::Server => "tool server",
            Self::Address => "model address",
            Self::Data => "data",
            Self::Receiver => "address of a hook",
            Self::Guard => "guards",
            Self::Instruction => "instruction",
        }
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that would run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Item {
    /// What kind of thing.
    pub kind: ItemKind,
    /// What it is: a file relative to the project, a command line, a name.
    pub what: String,
    /// The SHA-256 of its contents, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Who uses it and how, as in `writer: on_start start_agent` or `writer: wrap_tool_call guard
    /// (policy deny, when tool.name == 'shell')`; sorted.
    #[serde(default)]
    pub used_by: Vec<String>,
}

/// Everything that would run, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// The items, sorted, each once.
    pub items: Vec<Item>,
}

impl Inventory {
    pub(super) fn new(mut items: Vec<Item>) -> Self {
        for item in &mut items {
            item.used_by.sort();
            item.used_by.dedup();
        }
        items.sort();
        items.dedup();
        Self { items }
    }

    /// All that would run of both.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        for item in other.items {
            let same = |it: &&mut Item| {
                it.kind == item.kind
                    && it.what == item.what
                    && it.sha256 == item.sha256
                    && item.kind != ItemKind::Registered
            };
            match self.items.iter_mut().find(same) {
                Some(known) => known.used_by.extend(item.used_by),
                None => self.items.push(item),
            }
        }
        Self::new(self.items)
    }

    /// Whether nothing of the project would run.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// A hash over all of it: kinds, names, contents and uses. Two inventories have the same only if
    /// they are the same.
    pub fn fingerprint(&self) -> String {
        let mut bytes = Vec::new();
        let mut put = |text: &str| {
            // With its length before it, no text can pass for the end of another.
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        };
        for item in &self.items {
            put(item.kind.as_str());
            put(&item.what);
            put(item.sha256.as_deref().unwrap_or(""));
            put(&item.used_by.len().to_string());
            item.used_by.iter().for_each(|used| put(used));
        }
        sha256_hex(&bytes)
    }
}

/// A difference between two inventories.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// This would run now and did not before.
    Added(Item),
    /// This ran before and would not now.
    Removed(Item),
    /// The contents or the uses are others.
    Changed {
        /// As it was.
        old: Item,
        /// As it is.
        new: Item,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(item) => write!(f, "added {} {}", item.kind, item.what),
            Self::Removed(item) => write!(f, "removed {} {}", item.kind, item.what),
            Self::Changed { old, new } if old.sha256 == new.sha256 => {
                write!(f, "used otherwise: {} {}", new.kind, new.what)
            }
            Self::Changed { new, .. } => write!(f, "changed {} {}", new.kind, new.what),
        }
    }
}

/// What is different in `new`, in the order of kinds and names.
pub fn changes(old: &Inventory, new: &Inventory) -> Vec<Change> {
    // A registered hook may be there several times; the others have names of their own.
    let by_name = |inventory: &Inventory| -> BTreeMap<(ItemKind, String, usize), Item> {
        let mut named = BTreeMap::new();
        for item in &inventory.items {
            let mut number = 0;
            while named.contains_key(&(item.kind, item.what.clone(), number)) {
                number += 1;
            }
            named.insert((item.kind, item.what.clone(), number), item.clone());
        }
        named
    };
    let (mut before, after) = (by_name(old), by_name(new));
    let mut changes = Vec::new();
    for (key, new) in after {
        match before.remove(&key) {
            None => changes.push((key, Change::Added(new))),
            Some(old) if old != new => changes.push((key, Change::Changed { old, new })),
            Some(_) => {}
        }
    }
    changes.extend(before.into_iter().map(|(key, old)| (key, Change::Removed(old))));
    changes.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.into_iter().map(|(_, change)| change).collect()
}
