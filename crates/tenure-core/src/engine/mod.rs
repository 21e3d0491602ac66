//! Who drives runs: the second seam of durability.
//!
//! A [`StepLog`] is what a run is recorded in; an [`Engine`] starts runs, brings answers and cancels
//! to them, and knows what became of them, also after a crash. What a run *does* is a [`Runnable`].

mod agent;
mod info;

pub use info::{NewRun, RunInfo, RunQuery, RunStatus, Signalled, Started};

use crate::ask::Answer;
use crate::cancel::CancelToken;
use crate::error::Error;
use crate::id::RunId;
use crate::step::{StepLog, Steps};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;

/// Drives runs.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Starts a run, and returns once that is on record. Starting a run again that is known changes
    /// nothing, so whoever does not know whether it was started may say it twice.
    async fn start(&self, run: NewRun) -> Result<Started, Error>;

    /// Answers a question, by the id that [`Engine::list`] and events have. The first answer counts.
    /// `by` says who answers.
    async fn signal(&self, ask: &str, answer: Answer, by: &str) -> Result<Signalled, Error>;

    /// Has a run cancelled, in good order. Returns once that is on record; whether there is such a
    /// run that is not over.
    async fn cancel(&self, run: RunId) -> Result<bool, Error>;

    /// Waits until a run is over, and says what became of it. None if there is no such run.
    async fn result(&self, run: RunId) -> Result<Option<RunInfo>, Error>;

    /// The runs that fit, newest first.
    async fn list(&self, query: &RunQuery) -> Result<Vec<RunInfo>, Error>;
}

/// What a run does. The same code is called in every life of the run, with the same input.
#[async_trait]
pub trait Runnable: Send + Sync + 'static {
    /// Does it. Everything that must not happen twice is a step of `run.steps`.
    async fn run(&self, run: RunCx) -> Result<Value, Error>;
}

/// A run, as a [`Runnable`] gets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunCx {
    /// Its id.
    pub id: RunId,
    /// What it was started with.
    pub input: Value,
    /// Where its steps are recorded.
    pub steps: Steps,
    /// Cancels it.
    pub cancel: CancelToken,
}

impl RunCx {
    /// A run, for engines.
    pub fn new(input: Value, log: Arc<dyn StepLog>, cancel: CancelToken) -> Self {
        Self { id: log.run_id(), input, steps: Steps::new(log), cancel }
    }
}
