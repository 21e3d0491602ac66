//! What really happened, whatever the record says: a file to which everything that has an effect
//! appends a line, in every life.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::tool::Effect;

/// One line: something was done, on behalf of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The run's scenario; a case has one run of each.
    pub(crate) scenario: String,
    #[serde(flatten)]
    pub(crate) deed: Deed,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub(crate) enum Deed {
    /// A tool did what it is for.
    Tool { tool: String, call: String, key: String, class: Effect },
    /// A model was asked: the how manieth call of a turn, which is known by a token.
    Model { turn: String, call: usize },
    /// A hook was called. `of` says what it is a call of, in words of the scenario itself.
    Hook {
        point: String,
        hook: String,
        of: String,
        delivery: String,
        outcome: Option<String>,
        resumed: bool,
    },
    /// The body of a `context.step` ran. The mark is what it gave.
    Step { label: String, mark: String },
}

/// Where lines are written. Clones write to one file.
#[derive(Clone)]
pub(crate) struct Ledger {
    file: Arc<File>,
    scenario: &'static str,
}

impl Ledger {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("ledger.jsonl")
    }

    pub(crate) fn open(folder: &Path, scenario: &'static str) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(Self::path(folder));
        Self { file: Arc::new(file.expect("the ledger can be opened")), scenario }
    }

    /// Appends a line, in one write.
    pub(crate) fn write(&self, deed: Deed) {
        let is_effect = matches!(deed, Deed::Tool { .. });
        let line = Line { scenario: self.scenario.to_owned(), deed };
        let mut text = serde_json::to_string(&line).expect("a line is JSON");
        text.push('\n');
        (&*self.file).write_all(text.as_bytes()).expect("the ledger can be written");
        if is_effect {
            self.file.sync_data().expect("the ledger can be synced");
        }
    }

    /// Every line so far.
    pub(crate) fn read(folder: &Path) -> Vec<Line> {
        let text = match std::fs::read_to_string(Self::path(folder)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => panic!("the ledger cannot be read: {error}"),
        };
        let line = |line| serde_json::from_str(line).expect("every line of the ledger is whole");
        text.lines().map(line).collect()
    }
}
