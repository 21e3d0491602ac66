//! Why an orchestration did not do what it was asked.

use super::Stage;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use tenure_core::context::ExecutionContext;
use tenure_core::{Error, Outcome};

/// Why an orchestration, or one step of it, did not do what it was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrchestrationError {
    /// The stage in which it happened.
    pub stage: Stage,
    /// What happened, and what to do.
    pub message: String,
    /// The context in which it happened: that of the task, if it was a task's.
    pub context: Arc<ExecutionContext>,
    /// The task in which it happened, if it was in one.
    pub task: Option<Arc<str>>,
    /// What led to it.
    pub cause: Option<Error>,
    /// Whether the same may well succeed later.
    pub recoverable: bool,
    /// How that ends the whole, if it does.
    pub outcome: Outcome,
}

impl OrchestrationError {
    /// An error in this stage.
    pub fn new(
        stage: Stage,
        message: impl Into<String>,
        context: impl Into<Arc<ExecutionContext>>,
    ) -> Self {
        Self {
            stage,
            message: message.into(),
            context: context.into(),
            task: None,
            cause: None,
            recoverable: false,
            outcome: Outcome::Failed,
        }
    }

    /// The same error with what led to it. Whether it is recoverable follows from that: a model that
    /// may answer later, and a step that was too slow.
    #[must_use]
    pub fn because(mut self, cause: Error) -> Self {
        self.recoverable = cause.is_retryable() || cause.is_timeout();
        self.outcome = cause.outcome();
        self.cause = Some(cause);
        self
    }

    /// The same error in this task.
    #[must_use]
    pub fn in_task(mut self, task: impl Into<Arc<str>>) -> Self {
        self.task = Some(task.into());
        self
    }

    #[must_use]
    pub(crate) fn ending(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    /// Whether somebody cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.outcome == Outcome::Cancelled
    }

    /// The stage that it ends the whole with.
    pub const fn terminal(&self) -> Stage {
        match self.outcome {
            Outcome::Cancelled => Stage::Cancelled,
            _ => Stage::Failed,
        }
    }

    /// The error as events tell it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "stage": self.stage,
            "message": self.message,
            "task": self.task,
            "outcome": self.outcome,
            "recoverable": self.recoverable,
            "trace_id": self.context.trace_id(),
        })
    }
}

impl fmt::Display for OrchestrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {} (trace {})", self.stage, self.message, self.context.trace_id())
    }
}

impl std::error::Error for OrchestrationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

impl From<OrchestrationError> for Error {
    fn from(error: OrchestrationError) -> Self {
        if error.is_cancelled() {
            return Error::cancelled();
        }
        let outer = Error::orchestration(error.to_string());
        match error.cause {
            // What was stopped because the whole took too long was cancelled, but the whole was not.
            Some(cause) if cause.outcome() == error.outcome => outer.because(cause),
            _ => outer,
        }
    }
}
