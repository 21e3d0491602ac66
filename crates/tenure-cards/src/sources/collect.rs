//! Which files some cards come from.

use super::Sources;
use crate::card::{Card, CardKind, Skills, included};
use crate::check::Loaded;
use crate::hook::Run;
use crate::project::{CONFIG_FILE, card_folders, plain};
use crate::source::{Node, Value};
use crate::trust::{ItemKind, inventory};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// No path is longer.
const LONGEST: usize = 300;
impl Sources {
    /// The files that these cards come from, with those that they name and that are not there yet.
    /// Executes nothing. If the cards have errors, what could be read of them is told.
    pub fn of(loaded: &Loaded) -> Self {
        let root = loaded.project.root.clone();
        let mut found = Self { root: root.clone(), ..Self::default() };
        found.insert(root.join(CONFIG_FILE));
        found.extend_models(loaded);
        let asked = absolute(&loaded.asked);
        if asked.is_dir() {
            found.insert(asked.join(CONFIG_FILE));
            found.cards = card_folders(&asked).map_or_else(|| [asked].into(), BTreeSet::from);
        } else {
            found.insert(&asked);
            found.extend_links(&asked);
            if is_incomplete(loaded) {
                found.cards = asked.parent().map(Path::to_owned).into_iter().collect();
            }
        }
        for card in &loaded.cards {
            found.card(card);
        }
        found.executed(loaded);
        found
    }

    /// Counts the script of a `script:` model that is used in place of the cards' own; its path
    /// starts from the project. Any other model is no file.
    #[must_use]
    pub fn with_model(mut self, model: Option<&str>) -> Self {
        if let Some(path) = model.and_then(|model| model.trim().strip_prefix("script:")) {
            let file = plain(&self.root.join(path.trim()));
            self.insert(file);
        }
        self
    }

    /// The configuration of fast-agent, and the scripts that a configuration names.
    fn extend_models(&mut self, loaded: &Loaded) {
        let project = &loaded.project;
        if let Some(config) = &project.fast_agent {
            self.insert(&config.file);
        }
        let models = &project.config.models;
        for model in models.default_model.iter().chain(models.aliases.values()) {
            if let Some(path) = model.text.strip_prefix("script:") {
                self.insert(plain(&project.root.join(path.trim())));
            }
        }
    }

    fn card(&mut self, card: &Card) {
        let name = &card.name;
        self.agents.insert(name.clone());
        let file = absolute(card.source.path());
        self.add(file, name);
        for history in &card.messages {
            self.add(history.path.clone(), name);
        }
        for file in included(card) {
            let file = plain(&self.root.join(file));
            self.add(file, name);
        }
        if let CardKind::Agent(agent) = &card.kind
            && let Skills::Named(folders) = &agent.skills
        {
            for folder in folders {
                let folder = plain(&card.dir().join(folder));
                self.skills.entry(folder).or_default().insert(name.clone());
            }
        }
        self.named(card.tree(), card);
        let commands = card.hooks.declared.iter().map(|hook| matches!(hook.run, Run::Python(_)));
        let tools = matches!(&card.kind, CardKind::Agent(it) if !it.function_tools.is_empty());
        if tools || !card.hooks.tool_hooks.is_empty() || commands.into_iter().any(|it| it) {
            self.pythonic.insert(name.clone());
        }
    }

    /// What would be executed, as the inventory knows it.
    fn executed(&mut self, loaded: &Loaded) {
        for item in inventory(loaded).items {
            let file = self.root.join(&item.what);
            let users = item.used_by.iter().filter_map(|used| Some(used.split_once(": ")?.0));
            let users: Vec<Arc<str>> = users.map(Arc::from).collect();
            match item.kind {
                ItemKind::Python => self.python.extend(file.parent().map(Path::to_owned)),
                ItemKind::CommandFile => {}
                _ => continue,
            }
            if users.is_empty() {
                self.insert(&file);
            }
            for user in users {
                self.add(file.clone(), &user);
            }
        }
        let users = self.pythonic.clone();
        for file in &loaded.python.reached {
            // The folders of hooks are looked at as a whole.
            if !self.python.iter().any(|folder| file.starts_with(folder)) {
                users.iter().for_each(|user| self.add(file.clone(), user));
            }
        }
    }

    /// Every path in the fields of a card. What is no path is a file that is never there.
    fn named(&mut self, node: &Node, card: &Card) {
        match &node.value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    // A command's words are known to the inventory, long texts are no paths, and what a hook writes
                    // changes with every call.
                    let is_command = &*key.text == "run" && value.list().is_some();
                    let is_other = matches!(&*key.text, "instruction" | "description" | "writes");
                    if !is_command && !is_other {
                        self.named(value, card);
                    }
                }
            }
            Value::List(values) => values.iter().for_each(|value| self.named(value, card)),
            _ => {
                let file = node.text().and_then(|text| path_in(text, card.dir()));
                if let Some(file) = file.filter(|file| file.starts_with(&self.root)) {
                    self.add(file, &card.name);
                }
            }
        }
    }

    fn add(&mut self, file: PathBuf, agent: &Arc<str>) {
        for file in [file.canonicalize().ok(), Some(file)].into_iter().flatten() {
            let users: &mut BTreeSet<_> = self.files.entry(file).or_default();
            users.insert(agent.clone());
        }
    }

    /// What a link leads to counts as much as the link.
    fn extend_links(&mut self, file: &Path) {
        if let Ok(real) = file.canonicalize() {
            self.insert(real);
        }
    }
}

/// Whether a card names another one that was not found: it may come to be among the files beside it.
fn is_incomplete(loaded: &Loaded) -> bool {
    let mut named = loaded.cards.iter().flat_map(Card::references);
    named.any(|reference| loaded.card(&reference.name).is_none())
}

/// The file that a text of a card means, if it means one.
fn path_in(text: &str, dir: &Path) -> Option<PathBuf> {
    let text = text.trim();
    let text = text.strip_prefix("script:").map_or(text, str::trim);
    let text = match text.rsplit_once(':') {
        Some((file, _)) if file.ends_with(".py") => file,
        _ => text,
    };
    if text.is_empty() || text.len() > LONGEST || text.contains(['\n', '\0']) {
        return None;
    }
    let file = plain(&dir.join(text));
    let is_file = file.extension().is_some() && !file.is_dir();
    is_file.then_some(file)
}

fn absolute(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (full.parent().and_then(|folder| folder.canonicalize().ok()), full.file_name()) {
        _ if full.is_dir() => full.canonicalize().unwrap_or(full),
        (Some(folder), Some(name)) => folder.join(name),
        _ => plain(&full),
    }
}
