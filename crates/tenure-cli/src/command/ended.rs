//! A run that is over: its answer, its exit code, and what is said about it.

use super::recorded::Kept;
use crate::exit::Exit;
use crate::terminal::sink::print_answer;
use crate::terminal::style::{BAD, WARN, paint};
use crate::terminal::text::{clean_block, clean_line};
use crate::terminal::{Screen, print_plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt;
use std::io::IsTerminal as _;
use tenure_cards::team::{Run, TeamError, TeamErrorKind};
use tenure_core::drive::TurnReport;
use tenure_core::hook::{HookFailure, Limit};
use tenure_core::{Error, Outcome};

/// How a line about a failure begins.
pub(super) const ERROR: &str = "error:";
/// What a turn says whose time was up.
const TURN_TIMED_OUT: &str = "the turn did not end within its limit";
/// Why a run is denied that went on without an answer.
pub(super) const UNANSWERED: &str =
    "a question was denied because there is no terminal to ask a person on";

/// What bounded the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// `--timeout`, for all of it.
    Run(Limit),
    /// `[limits] turn` of the project, for the turn.
    Turn(Limit),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(limit) => write!(f, "the run did not end within {limit} (--timeout)"),
            Self::Turn(limit) => write!(f, "the turn did not end within {limit} ([limits] turn)"),
        }
    }
}

/// How the team was driven, and where to.
#[derive(Default)]
pub(super) struct Drove {
    /// `None` if it was stopped before it began.
    pub(super) result: Option<Result<Run, TeamError>>,
    /// What failed at starts and shutdowns, beside the run.
    pub(super) failures: Vec<HookFailure>,
    /// The limit that held at the end.
    pub(super) bound: Option<Bound>,
    /// Whether somebody wanted it stopped at once, without its ends.
    pub(super) killed: bool,
}

/// A run that is over.
pub(super) struct Ended {
    agent: String,
    drove: Drove,
    stopped: Option<Exit>,
    unanswered: bool,
    kept: Option<Kept>,
    screen: Screen,
}

impl Ended {
    pub(super) fn new(agent: &str, drove: Drove, stopped: Option<Exit>, screen: Screen) -> Self {
        let (agent, unanswered, kept) = (agent.to_owned(), false, None);
        Self { agent, drove, stopped, unanswered, kept, screen }
    }

    /// What is on record of it.
    pub(super) fn on_record(mut self, kept: Option<Kept>) -> Self {
        self.kept = kept;
        self
    }

    /// What is on record of it.
    pub(super) fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    fn parked(&self) -> Option<&Kept> {
        self.kept().filter(|kept| kept.is_parked())
    }

    /// A question came up that nobody could answer: that is a denial, however the turn went on.
    pub(super) fn unanswered(mut self) -> Self {
        self.unanswered = true;
        self
    }

    /// The code that the program ends with. A signal counts before everything else.
    pub(super) fn exit(&self) -> Exit {
        match (self.stopped, self.kept().and_then(Kept::exit)) {
            (Some(cause), _) => cause,
            (None, Some(exit)) => exit,
            (None, None) if self.unanswered => Exit::Denied,
            (None, None) => Exit::from(self.outcome()),
        }
    }

    fn outcome(&self) -> Outcome {
        match &self.drove.result {
            None if self.drove.killed => Outcome::Abandoned,
            None if self.stopped == Some(Exit::TimedOut) => Outcome::TimedOut,
            None => Outcome::Cancelled,
            Some(Ok(_)) => Outcome::Ok,
            Some(Err(error)) => error.outcome(),
        }
    }

    fn run(&self) -> Option<&Run> {
        self.drove.result.as_ref().and_then(|result| result.as_ref().ok())
    }

    fn error(&self) -> Option<&TeamError> {
        self.drove.result.as_ref().and_then(|result| result.as_ref().err())
    }

    fn report(&self) -> Option<&TurnReport> {
        let turn = self.run().and_then(|run| run.turn.as_ref());
        turn.or_else(|| self.error().and_then(TeamError::error).and_then(Error::report))
    }

    /// Every hook that failed, those that decided the turn first.
    fn failures(&self) -> impl Iterator<Item = &HookFailure> {
        let of_turn = self.report().into_iter().flat_map(|report| &report.failures);
        let of_chat = self.run().into_iter().flat_map(|run| &run.failures);
        of_turn.chain(of_chat).chain(&self.drove.failures)
    }

    /// Why it did not end well, in words that say who decided it and what to do.
    fn said(&self) -> Option<String> {
        if let Some(kept) = self.parked() {
            return kept.why();
        }
        let Some(error) = self.error() else {
            return match self.outcome() {
                Outcome::Abandoned => {
                    Some("the run was stopped at once, and no hook was told".into())
                }
                Outcome::TimedOut => self.drove.bound.map(|bound| format!("{bound}")),
                _ => None,
            };
        };
        let said = error.to_string();
        Some(match error.outcome() {
            Outcome::TimedOut if said == TURN_TIMED_OUT => {
                self.drove.bound.map_or(said, |bound| bound.to_string())
            }
            // A start that failed tells it all by itself.
            Outcome::Denied if error.kind() == TeamErrorKind::Run => match self.denier(&said) {
                Some((hook, point)) => format!("denied by `{hook}` at {point}: {said}"),
                None => format!("denied: {said}"),
            },
            Outcome::MaxSteps => {
                format!("{said}; allow more with `request_params: {{ max_iterations: N }}`")
            }
            _ => match self.raised(&said) {
                Some(place) => format!("{said} ({place})"),
                None => said,
            },
        })
    }

    /// The hook that refused the turn, and its point. A guard that failed names itself.
    fn denier(&self, said: &str) -> Option<(String, &'static str)> {
        if self.failures().any(|failure| said.contains(&*failure.hook)) {
            return None;
        }
        self.screen.denier(self.report().map(|report| report.instance), &self.agent)
    }

    /// The line of the file that raised what decided the run, if a hook told.
    fn raised(&self, said: &str) -> Option<String> {
        let place = self.screen.raised(self.report().map(|report| report.instance), &self.agent);
        place.filter(|place| !said.contains(place))
    }

    /// Says on standard error what went wrong. Failures that changed nothing are left out where
    /// nothing but the answer is wanted.
    pub(super) fn complain(&self) {
        let said = self.said();
        if let Some(said) = &said {
            let head = match self.parked().map(Kept::head) {
                Some(head) if head != ERROR => paint(WARN, head),
                _ => paint(BAD, ERROR),
            };
            print_plain(&format!("{head} {}", clean_block(said)));
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
        // What is parked has no answer yet.
        let Some(run) = self.run().filter(|_| self.parked().is_none()) else { return Ok(()) };
        let is_seen = std::io::stdout().is_terminal();
        let text = if is_seen { clean_block(&run.output) } else { run.output.clone() };
        Ok(print_answer(&text)?)
    }

    /// Prints timeline and usage.
    pub(super) fn conclude(&self) {
        self.screen.conclude();
    }

    /// The result as a line of JSON.
    pub(super) fn to_json(&self) -> Value {
        let report = self.report();
        let failures: Vec<_> = self.failures().collect();
        let run = self.run().filter(|_| self.parked().is_none());
        let mut line = json!({
            "type": "result",
            "agent": self.agent,
            "outcome": self.outcome().as_str(),
            "output": run.map(|run| &run.output),
            "error": self.said().or_else(|| self.unanswered.then(|| UNANSWERED.to_owned())),
            "usage": report.map(|report| report.usage),
            "steps": report.map(|report| report.steps),
            "duration_ms": report.map(|report| report.duration.as_secs_f64() * 1000.0),
            "failures": failures,
            "exit_code": self.exit().code(),
        });
        if let Some(kept) = self.kept() {
            kept.to_json(&mut line);
        }
        line
    }
}
