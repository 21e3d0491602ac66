//! The stages of an orchestration, and the one table of what may follow what.

use serde::Serialize;
use std::fmt;

/// How far an orchestration has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[doc(alias = "LifecycleStage")]
pub enum Stage {
    /// The agents are started.
    Initialize,
    /// What is to be done is decided.
    Plan,
    /// Who does the next part of it is decided.
    Route,
    /// Somebody does it.
    Execute,
    /// What was done is put together.
    Aggregate,
    /// It is done. Nothing follows.
    Complete,
    /// It failed. Nothing follows.
    Failed,
    /// Somebody cancelled it. Nothing follows.
    Cancelled,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 8] = [
        Self::Initialize,
        Self::Plan,
        Self::Route,
        Self::Execute,
        Self::Aggregate,
        Self::Complete,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The stage's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Plan => "plan",
            Self::Route => "route",
            Self::Execute => "execute",
            Self::Aggregate => "aggregate",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The name of the event that says that it was entered.
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::Initialize => "orchestrator.initialize",
            Self::Plan => "orchestrator.plan",
            Self::Route => "orchestrator.route",
            Self::Execute => "orchestrator.execute",
            Self::Aggregate => "orchestrator.aggregate",
            Self::Complete => "orchestrator.complete",
            Self::Failed => "orchestrator.failed",
            Self::Cancelled => "orchestrator.cancelled",
        }
    }

    /// Whether nothing follows it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Complete | Self::Failed | Self::Cancelled)
    }

    /// The stages that may follow this one.
    pub const fn next(self) -> &'static [Stage] {
        match self {
            Self::Initialize => &[Self::Plan, Self::Failed, Self::Cancelled],
            Self::Plan => &[Self::Route, Self::Aggregate, Self::Failed, Self::Cancelled],
            Self::Route => {
                &[Self::Execute, Self::Route, Self::Aggregate, Self::Failed, Self::Cancelled]
            }
            Self::Execute => {
                &[Self::Route, Self::Execute, Self::Aggregate, Self::Failed, Self::Cancelled]
            }
            Self::Aggregate => &[Self::Complete, Self::Failed, Self::Cancelled],
            Self::Complete | Self::Failed | Self::Cancelled => &[],
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where an orchestration stands. Only what the table allows can be entered.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    now: Option<Stage>,
}

impl Stages {
    /// Not begun.
    pub const fn new() -> Self {
        Self { now: None }
    }

    /// The stage that was entered last.
    pub const fn now(&self) -> Option<Stage> {
        self.now
    }

    /// Enters a stage.
    pub fn enter(&mut self, next: Stage) -> Result<(), IllegalStage> {
        let legal = match self.now {
            None => next == Stage::Initialize,
            Some(now) => now.next().contains(&next),
        };
        if !legal {
            return Err(IllegalStage { from: self.now, to: next });
        }
        self.now = Some(next);
        Ok(())
    }
}

/// A stage that the table does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalStage {
    /// Where it stood.
    pub from: Option<Stage>,
    /// What was to be entered.
    pub to: Stage,
}

impl fmt::Display for IllegalStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(from) = self.from else {
            return write!(f, "the first stage is initialize, not {}", self.to);
        };
        write!(f, "{} cannot follow {from}; ", self.to)?;
        match from.next() {
            [] => write!(f, "{from} is the last stage"),
            next => {
                let next: Vec<_> = next.iter().map(|stage| stage.as_str()).collect();
                write!(f, "what can is: {}", next.join(", "))
            }
        }
    }
}

impl std::error::Error for IllegalStage {}
