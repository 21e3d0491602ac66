//! How an agent behaves as a tool.

use crate::agent::Blueprint;
use crate::message::History;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What a clone knows when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryIn {
    /// Nothing.
    #[default]
    None,
    /// What earlier clones left with [`HistoryOut::Child`].
    Child,
    /// What its parent has said and heard before this turn.
    Parent,
    /// What [`ChildOptions::given`] says.
    Given,
}

/// Where the clone's conversation goes when it is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryOut {
    /// Nowhere.
    #[default]
    None,
    /// To the clones that come after it with [`HistoryIn::Child`].
    Child,
    /// Into the parent's conversation, behind the results of the batch.
    Parent,
}

/// How an agent behaves as a tool of another.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ChildOptions {
    /// The tool's name; `agent__` and the child's name by default, with `_` for what models do not
    /// take in a name.
    pub name: Option<Arc<str>>,
    /// How many clones may live at the same time. More calls wait their turn; none is dropped.
    pub max_parallel: Option<usize>,
    /// The most time that a clone's turn may take. Exceeding it is a tool error.
    pub limit: Option<Duration>,
    /// What a clone knows when it starts.
    pub history_in: HistoryIn,
    /// Where its conversation goes.
    pub history_out: HistoryOut,
    /// What a clone knows with [`HistoryIn::Given`].
    pub given: History,
    /// The JSON Schema of the tool's arguments. Without one there is a single `message`; with one
    /// the clone is told the arguments as JSON, unless `message` is the only one.
    pub parameters: Option<Value>,
    /// Arguments that the clone is not told: they are in its state when it starts, each under its
    /// name behind a `_`.
    pub state_arguments: Vec<Arc<str>>,
}

impl ChildOptions {
    /// The tool's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How many clones may live at the same time.
    #[must_use]
    pub fn max_parallel(mut self, clones: usize) -> Self {
        self.max_parallel = Some(clones);
        self
    }

    /// The most time that a clone's turn may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// What a clone knows when it starts.
    #[must_use]
    pub fn history_in(mut self, history: HistoryIn) -> Self {
        self.history_in = history;
        self
    }

    /// Where its conversation goes.
    #[must_use]
    pub fn history_out(mut self, history: HistoryOut) -> Self {
        self.history_out = history;
        self
    }

    /// What every clone knows when it starts.
    #[must_use]
    pub fn given(mut self, history: History) -> Self {
        self.history_in = HistoryIn::Given;
        self.given = history;
        self
    }

    /// The JSON Schema of the tool's arguments. The clone is then told the arguments as JSON.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = Some(schema);
        self
    }

    /// Puts an argument into the clone's state, under its name behind a `_`, instead of telling it.
    #[must_use]
    pub fn state_argument(mut self, name: impl Into<Arc<str>>) -> Self {
        self.state_arguments.push(name.into());
        self
    }

    pub(crate) fn tool_name(&self, child: &Blueprint) -> Arc<str> {
        // Models take letters, digits, `_` and `-` in a tool's name.
        let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        let named = || format!("agent__{}", child.config().name.replace(odd, "_"));
        self.name.clone().unwrap_or_else(|| named().into())
    }

    pub(crate) fn check(&self, child: &Blueprint, problems: &mut Vec<String>) {
        let name = self.tool_name(child);
        if self.max_parallel == Some(0) {
            problems.push(format!(
                "max_parallel of the agent tool `{name}` is zero, so no call could run; allow at \
                 least one, or leave it out"
            ));
        }
        if self.limit.is_some_and(|limit| limit.is_zero()) {
            problems.push(format!(
                "the limit of the agent tool `{name}` is zero; give it more than zero, or leave it \
                 out"
            ));
        }
    }
}
