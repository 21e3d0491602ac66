//! What leaves a turn.

use crate::content::Content;
use crate::error::Error;
use crate::hook::HookFailure;
use crate::id::{InstanceId, RunId};
use crate::message::{History, Message};
use crate::model::Usage;
use crate::outcome::Outcome;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The answer of a turn that has none.
static NOTHING: Content = Content::new();

/// What a turn did, and how it ended.
#[derive(Clone)]
#[non_exhaustive]
pub struct TurnReport {
    /// The id of the turn.
    pub run: RunId,
    /// The instance that ran it.
    pub instance: InstanceId,
    /// How it ended.
    pub outcome: Outcome,
    /// What it cost, its clones included.
    pub usage: Usage,
    /// How many model calls it made.
    pub steps: usize,
    /// How long it took.
    pub duration: Duration,
    /// Hooks that failed without changing the outcome, and the one that decided it.
    pub failures: Vec<HookFailure>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) output: Option<Content>,
    pub(crate) history: History,
}

impl TurnReport {
    /// Returns the text that the agent answered; empty if the turn did not end well.
    pub fn output(&self) -> &str {
        self.content().text()
    }

    /// Returns everything that the agent answered; empty if the turn did not end well.
    pub fn content(&self) -> &Content {
        match &self.output {
            Some(output) => output,
            None if self.outcome.is_ok() => self.history.last().map_or(&NOTHING, Message::content),
            None => &NOTHING,
        }
    }

    /// The conversation as it was committed at the end of the turn.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The trace that the turn belongs to.
    pub fn trace_id(&self) -> String {
        self.trace.as_deref().map_or_else(|| self.run.to_string(), str::to_owned)
    }
}

impl fmt::Debug for TurnReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnReport")
            .field("run", &self.run)
            .field("outcome", &self.outcome)
            .field("output", &self.output())
            .field("steps", &self.steps)
            .field("usage", &self.usage)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// The end of a turn, as `after_agent` sees it.
pub struct TurnEnd<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<&'a Error>,
    pub(crate) output: &'a mut Option<Content>,
    pub(crate) history: &'a History,
    pub(crate) usage: Usage,
}

impl TurnEnd<'_> {
    /// How the turn ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Why, if it did not end well.
    pub fn error(&self) -> Option<&Error> {
        self.error
    }

    /// Returns the text that the agent answered, if the outcome is ok.
    pub fn output(&self) -> Option<&str> {
        self.content().map(Content::text)
    }

    /// Returns everything that the agent answered, if the outcome is ok.
    pub fn content(&self) -> Option<&Content> {
        if !self.outcome.is_ok() {
            return None;
        }
        Some(match &*self.output {
            Some(output) => output,
            None => self.history.last().map_or(&NOTHING, Message::content),
        })
    }

    /// Returns the answer, to change it; only if the outcome is ok. The conversation keeps what the
    /// model said.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        if !self.outcome.is_ok() {
            return None;
        }
        let history = self.history;
        let said = || history.last().map_or_else(Content::new, |last| last.content().clone());
        Some(self.output.get_or_insert_with(said))
    }

    /// The conversation, as it is committed.
    pub fn history(&self) -> &History {
        self.history
    }

    /// What the turn cost.
    pub fn usage(&self) -> Usage {
        self.usage
    }
}

impl fmt::Debug for TurnEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnEnd")
            .field("outcome", &self.outcome)
            .field("error", &self.error)
            .field("output", &self.output())
            .finish_non_exhaustive()
    }
}
