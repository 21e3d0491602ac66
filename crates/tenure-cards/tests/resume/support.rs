//! Projects in temporary folders, and the lives of their runs.

pub(crate) use crate::support::Project;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_cards::Team;
use tenure_cards::diagnostic::Report;
use tenure_cards::team::{Recording, Run, TeamBuilder, TeamError};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::step::{
    MemoryStepLog, ScopeEnd, ScopeRecord, StepKey, StepLog, Steps, WhenWaiting,
};
use tenure_core::{BoxFuture, Error, RunId};
use tenure_testkit::cases;

/// Python functions that write down what they do.
const NOTES: &str = r#"
import os

LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log.txt")

def note(line):
    with open(LOG, "a") as file:
        file.write(line + "\n")
"#;

/// A project of these files, with functions that write down what they do.
pub(crate) fn noting<const N: usize>(files: [(&str, &str); N]) -> Project {
    Project::with(("notes.py", NOTES), files)
}

/// What was written down since the last time.
pub(crate) fn take_notes(project: &Project) -> Notes {
    let notes = Notes(project.log());
    let _ = std::fs::remove_file(project.path().join("log.txt"));
    notes
}

/// Lines that were written down.
#[derive(Debug)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    /// How many lines begin with this word.
    pub(crate) fn count(&self, word: &str) -> usize {
        self.of(word).len()
    }

    /// What stands behind this word, in each line that begins with it.
    pub(crate) fn of(&self, word: &str) -> Vec<&str> {
        let parts = self.0.iter().map(|line| line.split_once(' ').unwrap_or((line, "")));
        parts.filter(|(first, _)| *first == word).map(|(_, rest)| rest).collect()
    }
}

/// What is wrong, and what to do about it.
pub(crate) fn messages(report: &Report) -> Vec<String> {
    let help = |it: &tenure_cards::Diagnostic| it.help.clone().unwrap_or_default();
    report.iter().map(|it| format!("{} {}: {}", it.code, it.message, help(it))).collect()
}

pub(crate) fn built(builder: TeamBuilder) -> Team {
    builder.build().unwrap_or_else(|report| panic!("{:#?}", messages(&report)))
}

/// One life of a run, in good order: start, run, stop.
pub(crate) async fn life(
    builder: TeamBuilder,
    log: impl StepLog,
    agent: &str,
    when_waiting: WhenWaiting,
) -> Result<Run, TeamError> {
    let recording = Recording::new(Steps::new(Arc::new(log))).when_waiting(when_waiting);
    let team = built(builder.recorded(recording));
    team.start().await?;
    let result = team.run(Some(agent), "go").await;
    team.shutdown().await;
    team.settled().await;
    result
}

/// Runs once without a cut, and then again from the record of each number of steps; in the short form of every third,
/// and of each that ends with an intent, behind which nobody knows what was done. `check` is given how many steps were
/// on record, the log afterwards, and the answer.
pub(crate) async fn cut_everywhere(
    builder: impl Fn() -> TeamBuilder,
    agent: &str,
    mut check: impl FnMut(usize, &[StepKey], &MemoryStepLog, Result<Run, TeamError>),
) -> MemoryStepLog {
    let whole = MemoryStepLog::new();
    let result = life(builder(), whole.clone(), agent, WhenWaiting::Stay).await;
    let keys = whole.keys();
    check(keys.len(), &[], &whole, result);
    let stride = 3 / cases(1, 3);
    let is_intent = |cut: usize| cut > 0 && &*keys[cut - 1].kind == "intent";
    for cut in (0..keys.len()).filter(|cut| cut % stride == 0 || is_intent(*cut)) {
        let log = whole.cut_after(cut);
        let result = life(builder(), log.clone(), agent, WhenWaiting::Stay).await;
        check(cut, &keys[cut..], &log, result);
    }
    whole
}

/// Every begin has its one end.
pub(crate) fn assert_ended(log: &MemoryStepLog) {
    for (scope, end) in log.scopes() {
        assert!(end.is_some(), "{} has no end", scope.id);
    }
}

/// A log that keeps questions, and takes answers from elsewhere.
#[derive(Clone)]
pub(crate) struct Keeping {
    pub(crate) log: MemoryStepLog,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
}

impl Keeping {
    pub(crate) fn new() -> Self {
        Self { log: MemoryStepLog::new(), answers: Arc::default() }
    }

    pub(crate) fn resumed(&self) -> Self {
        Self { log: self.log.resumed(), answers: self.answers.clone() }
    }

    pub(crate) fn answer(&self, id: &str, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(id.to_owned(), answer);
    }

    fn answered(&self, id: &str) -> Option<Answer> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

impl StepLog for Keeping {
    fn run_id(&self) -> RunId {
        self.log.run_id()
    }

    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        self.log.step(key, effect)
    }

    fn is_resumed(&self) -> bool {
        self.log.is_resumed()
    }

    fn life(&self) -> u32 {
        self.log.life()
    }

    fn trouble(&self) -> Option<Error> {
        self.log.trouble()
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        self.log.begin(scope)
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        self.log.end(scope, end)
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        self.log.unended(path)
    }

    fn keeps_asks(&self) -> bool {
        true
    }

    fn ask<'a>(
        &'a self,
        key: StepKey,
        question: &'a PendingAsk,
        mut here: BoxFuture<'a, Result<Answer, Error>>,
    ) -> BoxFuture<'a, Result<Answer, Error>> {
        let effect = async move {
            let answer = loop {
                if let Some(answer) = self.answered(&question.id) {
                    break answer;
                }
                tokio::select! {
                    answer = &mut here => break answer?,
                    () = tokio::time::sleep(Duration::from_millis(5)) => {}
                }
            };
            Ok(serde_json::to_value(answer).expect("an answer is JSON"))
        };
        Box::pin(async move {
            let answer = self.log.step(key, Box::pin(effect)).await?;
            Ok(serde_json::from_value(answer).expect("it was an answer"))
        })
    }
}
