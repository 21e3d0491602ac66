//! A chat that is over: its exit code, and what is said about it.

use super::super::ended::{Bound, ERROR, UNANSWERED};
use super::super::recorded::Kept;
use super::drive::Went;
use crate::exit::Exit;
use crate::terminal::sink::print_answer;
use crate::terminal::style::{BAD, WARN, paint};
use crate::terminal::text::{clean_block, clean_line, fit};
use crate::terminal::{Screen, print_plain};
use anyhow::Result;
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use tenure_cards::team::TeamError;
use tenure_core::hook::{HookFailure, Limit};
use tenure_core::{Error, Outcome};
use tenure_flow::chat::Speaker;
use tenure_flow::{ChatReport, ChatStatus};

/// Of what a person is to answer, a line says no more.
const MOST_OF_QUESTION: usize = 200;

/// A chat that is over.
pub(crate) struct Ended {
    pub(super) workflow: String,
    pub(super) went: Went,
    /// What is on record of it.
    pub(super) kept: Option<Kept>,
    pub(super) screen: Screen,
    pub(super) stopped: Option<Exit>,
    /// Whether a question came up that nobody could answer.
    pub(super) unanswered: bool,
    pub(super) timeout: Option<Limit>,
}

impl Ended {
    /// The code that the program ends with. A signal counts before everything else.
    pub(crate) fn exit(&self) -> Exit {
        if let (None, Some(exit)) = (self.stopped, self.kept().and_then(Kept::exit)) {
            return exit;
        }
        match (self.stopped, self.status()) {
            (Some(cause), _) => cause,
            (None, ChatStatus::Paused) => Exit::Waiting,
            // That is a denial, however the chat went on.
            (None, _) if self.unanswered => Exit::Denied,
            (None, ChatStatus::MaxTurns) => Exit::MaxSteps,
            (None, ChatStatus::Cancelled) => Exit::Cancelled,
            (None, ChatStatus::Completed) => Exit::Ok,
            (None, _) => Exit::from(self.outcome()),
        }
    }

    /// What is on record of it.
    pub(crate) fn kept(&self) -> Option<&Kept> {
        self.kept.as_ref()
    }

    fn parked(&self) -> Option<&Kept> {
        self.kept().filter(|kept| kept.is_parked())
    }

    /// Prints timeline and usage.
    pub(crate) fn conclude(&self) {
        self.screen.conclude();
    }

    fn report(&self) -> Option<&ChatReport> {
        self.went.as_ref().and_then(|went| went.as_ref().ok())
    }

    fn not_opened(&self) -> Option<&TeamError> {
        self.went.as_ref().and_then(|went| went.as_ref().err())
    }

    fn error(&self) -> Option<&Error> {
        self.report().and_then(|report| report.error.as_ref())
    }

    /// What state it is in. One whose time was up has failed, though it was cancelled for it.
    fn status(&self) -> ChatStatus {
        let is_late = self.stopped == Some(Exit::TimedOut);
        match (self.report(), self.not_opened()) {
            (Some(report), _) if report.status == ChatStatus::Cancelled && is_late => {
                ChatStatus::Failed
            }
            (Some(report), _) => report.status,
            (None, Some(_)) => ChatStatus::Failed,
            (None, None) if is_late => ChatStatus::Failed,
            (None, None) => ChatStatus::Cancelled,
        }
    }

    fn outcome(&self) -> Outcome {
        match (self.report(), self.not_opened(), self.stopped) {
            (Some(report), ..) if report.outcome != Outcome::Cancelled => report.outcome,
            (_, Some(error), _) => error.outcome(),
            (_, None, Some(Exit::TimedOut)) => Outcome::TimedOut,
            (_, None, _) => Outcome::Cancelled,
        }
    }

    /// Why it did not end well, in words that say what to do.
    fn said(&self) -> Option<String> {
        if let Some(kept) = self.parked() {
            return kept.why();
        }
        if self.stopped == Some(Exit::TimedOut) && self.outcome() == Outcome::TimedOut {
            return self.timeout.map(|limit| Bound::Run(limit).to_string());
        }
        let said = match (self.error(), self.not_opened()) {
            (Some(error), _) => error.to_string(),
            (None, Some(error)) => error.to_string(),
            (None, None) => return None,
        };
        Some(match self.status() {
            ChatStatus::Paused => self.waits(),
            // Whatever it was in the middle of: a turn, the choice of the next speaker, a start.
            ChatStatus::Cancelled => "the chat was cancelled".to_owned(),
            ChatStatus::MaxTurns => {
                format!("{said}; allow more with `max_turns` in the orchestrator file")
            }
            _ if self.outcome() == Outcome::Denied => format!("denied: {said}"),
            _ => said,
        })
    }

    /// What it waits for, and what to do about it.
    fn waits(&self) -> String {
        let said = self.report().and_then(|report| {
            let mut heard = report.messages.iter().rev();
            heard.find(|message| !message.hidden && message.speaker != Speaker::User)
        });
        let Some(said) = said else {
            return "the user is to speak first\n  there is no terminal to ask on: run it in one, or \
                    say it with -m"
                .to_owned();
        };
        let who = match &said.speaker {
            Speaker::Agent(name) => format!(" {}", clean_line(name)),
            _ => String::new(),
        };
        let text = fit(&clean_line(&said.text), MOST_OF_QUESTION);
        // What comes with -m is said before everything else, and so answers a greeting only.
        let or = if said.turn == 0 { ", or say it with -m" } else { "" };
        format!(
            "the user is to answer{who}: {text}\n  there is no terminal to ask on: run it in one{or}"
        )
    }

    /// Every hook that failed without deciding anything.
    fn failures(&self) -> impl Iterator<Item = &HookFailure> {
        let is_paused = self.status() == ChatStatus::Paused;
        let all = self.report().into_iter().flat_map(|report| &report.failures);
        // That a person is waited for is all that a pause says.
        all.filter(move |failure| !is_paused || &*failure.hook != "ask_person")
    }

    /// Says on standard error what went wrong. Failures that changed nothing are left out where
    /// nothing but the answer is wanted.
    pub(crate) fn complain(&self, is_quiet: bool) {
        let said = self.said();
        if let Some(said) = &said {
            let head = match self.status() {
                _ if let Some(kept) = self.parked()
                    && kept.head() != ERROR =>
                {
                    paint(WARN, kept.head())
                }
                ChatStatus::Paused => paint(WARN, "paused:"),
                _ => paint(BAD, "error:"),
            };
            print_plain(&format!("{head} {}", clean_block(said)));
        }
        if is_quiet {
            return;
        }
        for failure in self.failures() {
            if !said.as_ref().is_some_and(|said| said.contains(&failure.message)) {
                let text = clean_line(&failure.to_string());
                print_plain(&format!("{} {text}", paint(WARN, "warning:")));
            }
        }
    }

    /// Prints the chat's output on standard output, if there is one: as it is into files and pipes,
    /// and without what could steer it on a terminal.
    pub(crate) fn answer(&self) -> Result<()> {
        let Some(report) = self.report().filter(|report| !report.output.is_empty()) else {
            return Ok(());
        };
        let is_seen = std::io::stdout().is_terminal();
        let text = if is_seen { clean_block(&report.output) } else { report.output.clone() };
        Ok(print_answer(&text)?)
    }

    /// Prints the output if nobody said it: a hook finished the chat with it.
    pub(crate) fn answer_unsaid(&self) -> Result<()> {
        let was_said = self.report().is_none_or(|report| {
            let mut shown = report.messages.iter().filter(|message| !message.hidden);
            shown.any(|message| *message.text == *report.output)
        });
        if was_said { Ok(()) } else { self.answer() }
    }

    /// The result as a line of JSON.
    pub(crate) fn to_json(&self) -> Value {
        let report = self.report();
        let failures: Vec<_> = self.failures().collect();
        let mut line = json!({
            "type": "result",
            "workflow": self.workflow,
            "chat_id": report.map(|report| &report.chat_id),
            "status": self.status(),
            "outcome": self.outcome().as_str(),
            "output": report.map(|report| &report.output),
            "error": self.said().or_else(|| self.unanswered.then(|| UNANSWERED.to_owned())),
            "messages": report.map(|report| &report.messages),
            "turns": report.map(|report| report.turns),
            "variables": report.map(|report| &report.variables),
            "usage": report.map(|report| report.usage),
            "metrics": report.map(|report| report.metrics),
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
