//! What is to be run, and how it is shown this time.

use crate::args::{OfWorkflow, Run, Yes};
use crate::trust::Item;
use std::path::{Path, PathBuf};
use tenure_cards::check::Loaded;
use tenure_cards::trust::{self, Collector, inventory, inventory_with};
use tenure_core::hook::Limit;

/// What is to be run: everything that counts for doing it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// A card, a directory of cards, or a workflow.
    pub(super) path: PathBuf,
    pub(super) agent: Option<String>,
    pub(super) message: Option<String>,
    /// Whether the message may come by standard input.
    pub(super) may_be_piped: bool,
    /// The model for every agent.
    pub(super) model: Option<String>,
    /// Whose choice the model is.
    pub(super) model_by: ModelChoice,
    /// How long all of it may take.
    pub(super) timeout: Option<Limit>,
    /// What only workflows know.
    pub(super) of_workflow: OfWorkflow,
}

impl Asked {
    /// What the command line asks for, of what is at `path`.
    pub(super) fn of(args: &Run, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            agent: args.agent.clone(),
            message: args.message.clone(),
            may_be_piped: true,
            model: args.model.clone(),
            model_by: ModelChoice::Person,
            timeout: args.timeout,
            of_workflow: args.of_workflow.clone(),
        }
    }
}

/// The one who chose the model of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ModelChoice {
    /// The person, on this command line.
    #[default]
    Person,
    /// A record. It is held to be the project's choice: a store may have been adopted.
    Record,
}

impl Asked {
    /// What the model of the record leads to, beyond what the cards do: the address, and the key that
    /// would go there. None of a model that a person has chosen.
    pub(super) fn reached_by_record(&self, loaded: &Loaded) -> Vec<Item> {
        let Some(model) = self.model.as_deref().filter(|_| self.model_by == ModelChoice::Record)
        else {
            return Vec::new();
        };
        let known = inventory(loaded).items;
        let with = |found: &mut Collector<'_>| found.model(loaded, Some(model), "a run on record");
        let all = inventory_with(loaded, with).items;
        let is_new = |item: &&trust::Item| {
            !known.iter().any(|it| it.kind == item.kind && it.what == item.what)
        };
        all.iter().filter(is_new).map(Item::from).collect()
    }
}

/// How a run is shown, and what it is allowed. That holds for one command, and is on no record: a
/// project must not be able to grant itself anything.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Everything goes to standard output as lines of JSON.
    pub(super) json: bool,
    /// Nothing but the answer is shown.
    pub(super) quiet: bool,
    /// The project is trusted for this command.
    pub(super) trust: bool,
    /// What is approved without asking.
    pub(super) yes: Yes,
}

impl View {
    /// What the command line says of it.
    pub(super) fn of(args: &Run) -> Self {
        Self { json: args.json, quiet: args.quiet, trust: args.trust, yes: args.yes.clone() }
    }
}
