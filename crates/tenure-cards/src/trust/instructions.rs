//! The files that say what agents are told, and those that speak for a model.
//!
//! They guard as a hook does: an agent leaves alone what it is told to leave alone. So each counts by its contents, if
//! anything would run, and no confined process writes it.

use super::collect::{Collector, put};
use super::{Item, ItemKind, UNREADABLE, sha256_hex, sha256_of};
use crate::build::manifests;
use crate::card::{Card, CardKind, Skills, included};
use crate::project::{Project, plain};
use std::path::Path;

impl Collector<'_> {
    /// Adds a file that says what agents are told, with its text as it was read. `used` says who is told.
    pub fn instruction(&mut self, file: &Path, text: &str, used: &str) {
        self.told(ItemKind::Instruction, file, Some(sha256_hex(text.as_bytes())), used);
    }

    /// Adds a card and every file that it names beside its code.
    pub(super) fn instructions(&mut self, card: &Card) {
        let (name, dir) = (&card.name, card.dir());
        let file = card.source.path().file_name().unwrap_or_default();
        self.instruction(&dir.join(file), card.source.text(), name);
        let root = self.project.root.clone();
        for taken in included(card) {
            self.named(ItemKind::Instruction, &root, taken, &format!("{name}: instruction"));
        }
        for history in &card.messages {
            self.named(ItemKind::Data, dir, &history.written, &format!("{name}: messages"));
        }
        if let CardKind::Agent(agent) = &card.kind {
            if let Skills::Named(folders) = &agent.skills {
                for manifest in folders.iter().flat_map(|folder| manifests(&dir.join(folder))) {
                    let manifest = manifest.to_string_lossy();
                    self.named(ItemKind::Instruction, dir, &manifest, &format!("{name}: skill"));
                }
            }
            self.script(agent.subagent_model.as_deref(), dir, name);
        }
        if let Some(fields) = card.kind.model_fields() {
            let own = [&fields.request_params.model, &fields.model];
            own.into_iter().for_each(|model| self.script(model.as_deref(), dir, name));
        }
    }

    /// Adds the scripts that the configuration names in place of models.
    pub(super) fn configured_scripts(&mut self) {
        let models = &self.project.config.models;
        for model in models.default_model.iter().chain(models.aliases.values()) {
            self.script(Some(&model.text), &self.project.root, "every agent");
        }
    }

    /// Adds the script of a `script:` model, whose path starts from `base`. Any other model is no file.
    pub(super) fn script(&mut self, model: Option<&str>, base: &Path, used: &str) {
        if let Some(path) = model.and_then(|model| model.trim().strip_prefix("script:")) {
            self.named(ItemKind::Data, base, path.trim(), &format!("{used}: script"));
        }
    }

    /// Adds a file by the name that it is given in `base`. One that is not there is none: it is asked about once it is.
    pub(super) fn named(&mut self, kind: ItemKind, base: &Path, written: &str, used: &str) {
        let Ok(real) = self.project.confine(base, Path::new(written)) else { return };
        let mut hooks = self.loaded.cards.iter().flat_map(|card| &card.hooks.declared);
        // What a run itself changes is another one after each run.
        let sha256 = match hooks.any(|hook| hook.writes.contains(&real)) {
            true => None,
            false => Some(sha256_of(&real).unwrap_or_else(|_| UNREADABLE.into())),
        };
        if real.is_file() {
            self.told(kind, &plain(&base.join(written)), sha256, used);
        }
    }

    fn told(&mut self, kind: ItemKind, file: &Path, sha256: Option<String>, used: &str) {
        let mut used_by = vec![used.to_owned()];
        used_by.extend(link_of(file, self.project));
        let what = self.project.relative(file);
        put(&mut self.guards, Item { kind, what, sha256, used_by });
    }
}

/// Says where a file is, if a link leads there: the same contents elsewhere are another file.
pub(super) fn link_of(file: &Path, project: &Project) -> Option<String> {
    let real = file.canonicalize().ok().filter(|real| real != file)?;
    Some(format!("a link to {}", project.relative(&real)))
}
