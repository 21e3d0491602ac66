//! What is known of runs.

use crate::ask::{Answer, Misfit};
use crate::id::RunId;
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::SystemTime;

/// A run to be started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewRun {
    /// Its id; a second run of the same id is the first one.
    pub id: RunId,
    /// What it does: the name that a [`Runnable`](super::Runnable) is registered under.
    pub kind: String,
    /// What it is called where people read of it: an agent's or a workflow's name.
    pub name: String,
    /// What it is started with.
    pub input: Value,
    /// The conversation it belongs to.
    pub thread: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
}

impl NewRun {
    /// A run of this kind, with an id of its own.
    pub fn new(kind: impl Into<String>, input: Value) -> Self {
        let kind = kind.into();
        let (thread, user) = (None, None);
        Self { id: RunId::unique(), name: kind.clone(), kind, input, thread, user }
    }

    /// Its id.
    #[must_use]
    pub fn id(mut self, id: RunId) -> Self {
        self.id = id;
        self
    }

    /// What it is called.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The conversation it belongs to.
    #[must_use]
    pub fn thread(mut self, thread: impl Into<String>) -> Self {
        self.thread = Some(thread.into());
        self
    }

    /// Whose it is.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }
}

/// What became of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Started {
    /// It is new.
    New,
    /// It was started before.
    Known(RunStatus),
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Signalled {
    /// It counts.
    Accepted,
    /// Another answer came first; this one.
    AlreadyDecided(Answer),
    /// There is no such question.
    Unknown,
    /// It does not have the form that was asked for, and the question stays open.
    Unfit(Misfit),
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// It goes on, or would if its process were not dead: see [`RunInfo::driven`].
    Running,
    /// It waits for a person.
    Waiting,
    /// Its record and its code differ, or it could not be recorded; somebody has to look.
    Parked,
    /// It is over; its outcome says how.
    Ended,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 4] = [Self::Running, Self::Waiting, Self::Parked, Self::Ended];

    /// The status's name as records spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RunInfo {
    /// Its id.
    pub id: RunId,
    /// What it does.
    pub kind: String,
    /// What it is called.
    pub name: String,
    /// Where it stands.
    pub status: RunStatus,
    /// Whether a process drives it now.
    pub driven: bool,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// What it was started with.
    pub input: Value,
    /// What came of it.
    pub output: Option<Value>,
    /// Why it did not end well, or is parked.
    pub error: Option<String>,
    /// The conversation it belongs to.
    pub thread: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// How many processes have driven it.
    pub lives: u32,
    /// How many questions of it wait for an answer.
    pub asks: usize,
    /// When it was started.
    pub started: SystemTime,
    /// When something was last recorded of it.
    pub updated: SystemTime,
    /// When it ended.
    pub ended: Option<SystemTime>,
}

impl RunInfo {
    /// A run that was started now. For engines, which know the rest.
    pub fn new(run: &NewRun, started: SystemTime) -> Self {
        Self {
            id: run.id,
            kind: run.kind.clone(),
            name: run.name.clone(),
            status: RunStatus::Running,
            driven: false,
            outcome: None,
            input: run.input.clone(),
            output: None,
            error: None,
            thread: run.thread.clone(),
            user: run.user.clone(),
            lives: 0,
            asks: 0,
            started,
            updated: started,
            ended: None,
        }
    }
}

/// Which runs are asked for. Empty, it means all of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunQuery {
    /// Only with this status.
    pub status: Option<RunStatus>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only of this conversation.
    pub thread: Option<String>,
    /// Only those that are not over.
    pub unfinished: bool,
    /// At most so many.
    pub limit: Option<usize>,
}
