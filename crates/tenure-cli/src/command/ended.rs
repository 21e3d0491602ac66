//! A run that is over: its answer, its exit code, and what is said about it.

use crate::exit::Exit;
use crate::terminal::style::{BAD, WARN, paint};
use crate::terminal::text::{clean_block, clean_line};
use crate::terminal::{Screen, print_plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use tenure_cards::team::{Run, TeamError};
use tenure_core::drive::TurnReport;
use tenure_core::hook::HookFailure;
use tenure_core::{Error, Outcome};

/// A run that is over.
pub(super) struct Ended {
    /// `None` if it was stopped before it began.
    result: Option<Result<Run, TeamError>>,
    /// What failed at starts and shutdowns, beside the run.
    failures: Vec<HookFailure>,
    stopped: Option<Exit>,
    unanswered: bool,
    screen: Screen,
}

impl Ended {
    pub(super) fn new(
        result: Option<Result<Run, TeamError>>,
        failures: Vec<HookFailure>,
        stopped: Option<Exit>,
        screen: Screen,
    ) -> Self {
        Self { result, failures, stopped, unanswered: false, screen }
    }

    /// A question came up that nobody could answer: that is a denial, however the turn went on.
    pub(super) fn unanswered(mut self) -> Self {
        self.unanswered = true;
        self
    }

    /// The code that the program ends with. A signal counts before everything else.
    pub(super) fn exit(&self) -> Exit {
        match self.stopped {
            Some(cause) => cause,
            None if self.unanswered => Exit::Denied,
            None => Exit::from(self.outcome()),
        }
    }

    fn outcome(&self) -> Outcome {
        match &self.result {
            None => Outcome::Cancelled,
            Some(Ok(_)) => Outcome::Ok,
            Some(Err(error)) => error.outcome(),
        }
    }

    fn run(&self) -> Option<&Run> {
        self.result.as_ref().and_then(|result| result.as_ref().ok())
    }

    fn error(&self) -> Option<&TeamError> {
        self.result.as_ref().and_then(|result| result.as_ref().err())
    }

    fn report(&self) -> Option<&TurnReport> {
        let turn = self.run().and_then(|run| run.turn.as_ref());
        turn.or_else(|| self.error().and_then(TeamError::error).and_then(Error::report))
    }

    /// Every hook that failed, those that decided the turn first.
    fn failures(&self) -> impl Iterator<Item = &HookFailure> {
        let of_turn = self.report().into_iter().flat_map(|report| &report.failures);
        let of_chat = self.run().into_iter().flat_map(|run| &run.failures);
        of_turn.chain(of_chat).chain(&self.failures)
    }

    /// Says on standard error what went wrong. Failures that changed nothing are left out where
    /// nothing but the answer is wanted.
    pub(super) fn complain(&self) {
        let said = self.error().map(ToString::to_string);
        if let Some(said) = &said {
            print_plain(&format!("{} {}", paint(BAD, "error:"), clean_block(said)));
        }
        if self.screen.is_quiet() {
            return;
        }
        for failure in self.failures() {
            if !said.as_ref().is_some_and(|said| said.contains(&failure.message)) {
                let text = clean_line(&failure.to_string());
                print_plain(&format!("{} {text}", paint(WARN, "warning:")));
            }
        }
    }

    /// Prints the answer on standard output, if there is one: as it is into files and pipes, and
    /// without what could steer it on a terminal.
    pub(super) fn answer(&self) -> Result<()> {
        let Some(run) = self.run() else { return Ok(()) };
        let stdout = std::io::stdout();
        let text = if stdout.is_terminal() { clean_block(&run.output) } else { run.output.clone() };
        let mut stdout = stdout.lock();
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        Ok(stdout.flush()?)
    }

    /// Prints timeline and usage.
    pub(super) fn conclude(&self) {
        self.screen.conclude();
    }

    /// The result as a line of JSON.
    pub(super) fn to_json(&self) -> Value {
        let report = self.report();
        let failures: Vec<_> = self.failures().collect();
        json!({
            "type": "result",
            "agent": self.run().map(|run| &*run.agent),
            "outcome": self.outcome().as_str(),
            "output": self.run().map(|run| &run.output),
            "error": self.error().map(ToString::to_string),
            "usage": report.map(|report| report.usage),
            "steps": report.map(|report| report.steps),
            "duration_ms": report.map(|report| report.duration.as_secs_f64() * 1000.0),
            "failures": failures,
            "exit_code": self.exit().code(),
        })
    }
}
