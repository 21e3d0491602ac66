//! What is tested, whoever the engine is: processes that drive runs, a person who answers, and a
//! record. The cases and the checks know only this.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use tenure_core::ask::Answer;
use tenure_core::step::StepKey;
use tenure_core::{Outcome, RunId};

/// An engine whose processes can be killed.
pub(crate) trait Subject: Send + Sync {
    /// A process that drives runs.
    type Process: Send;

    /// Starts a process. It takes up what is unfinished in the folder, starts what is not there yet,
    /// and ends when all of it is over.
    fn start(&self, folder: &Path, orders: &Orders<'_>) -> Self::Process;

    /// How the process ended, if it has.
    fn ended(&self, process: &mut Self::Process) -> Option<Exit>;

    /// Kills the process, and returns once it is dead.
    fn kill(&self, process: &mut Self::Process);

    /// The questions that wait for an answer.
    fn questions(&self, folder: &Path) -> Vec<Question>;

    /// Answers one, whether or not a process is there.
    fn answer(&self, folder: &Path, question: &str, answer: Answer) -> Result<(), String>;

    /// Has a run cancelled that no process drives.
    fn cancel(&self, folder: &Path, scenario: Scenario) -> Result<(), String>;

    /// What is on record.
    fn record(&self, folder: &Path) -> Result<Whole, String>;
}

/// What a process is to do.
#[derive(Clone, Debug)]
pub(crate) struct Orders<'a> {
    pub(crate) scenarios: &'a [Scenario],
    pub(crate) recovery: Recovery,
    /// Where it kills itself, as the environment says it.
    pub(crate) fail_point: Option<String>,
    /// Which process of the folder it is.
    pub(crate) life: usize,
}

/// What becomes of unfinished runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    GoOn,
    Abandon,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All of its runs are over.
    Done,
    /// By SIGKILL.
    Killed,
    /// In any other way.
    Broken(String),
}

/// One kind of run; a folder has at most one run of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scenario {
    Steps,
    Children,
    Leave,
    Talk,
}

impl Scenario {
    pub(crate) const ALL: [Scenario; 4] = [Self::Steps, Self::Children, Self::Leave, Self::Talk];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Children => "children",
            Self::Leave => "leave",
            Self::Talk => "talk",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name)
    }

    /// The same in every folder, so that records can be compared.
    pub(crate) fn run(self) -> RunId {
        format!("7e57-{:x}", self as u8 + 1).parse().expect("it is an id")
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A question that somebody has to answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) id: String,
    /// Where in its run it is asked.
    pub(crate) path: Option<String>,
    pub(crate) prompt: String,
    pub(crate) form: Option<Value>,
    pub(crate) answer: Option<Answer>,
}

/// Everything that is on record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) runs: BTreeMap<Scenario, Recorded>,
    /// What is wrong with the record itself.
    pub(crate) damage: Vec<String>,
}

/// What is on record of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) status: String,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) output: Option<Value>,
    pub(crate) error: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) questions: Vec<Question>,
}

/// One row of the record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) of: String,
    pub(crate) step: Option<StepKey>,
    pub(crate) scope: Option<String>,
    pub(crate) data: Value,
}
