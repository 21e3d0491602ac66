//! One line of progress for each thing that matters: events in, lines out.

use super::record::{Happening, Record, is_own_hook};
use super::style::{BAD, BOLD, CALM, DIM, GOOD, PLAIN, WARN, paint};
use super::text::{clean_line, fit, human};
use anstyle::Style;
use std::time::Duration;
use tenure_core::event::EventKind;
use tenure_core::message::ToolStatus;
use tenure_core::phase::Phase;
use tenure_core::{ExitReason, Outcome};

/// Whether a line says what is going on or what has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A live display shows it in the line of the instance, and forgets it.
    Passing,
    /// It stays.
    Lasting,
}

/// One line of progress.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) weight: Weight,
    label: &'static str,
    style: Style,
    at: Duration,
    agent: String,
    agent_width: usize,
    what: String,
    detail: String,
}

/// Where lines go on that were too long: below the time.
const INDENT: usize = 12;
/// Nobody reads more of a line that a hook printed.
const MOST_LOG: usize = 500;

fn width_of(line: &str) -> usize {
    anstream::adapter::strip_str(line).to_string().chars().count()
}

/// No name pushes the rest of the line further than this.
const MOST_NAME: usize = 20;

impl Line {
    fn new(happening: &Happening<'_>, record: &Record, label: &'static str, style: Style) -> Self {
        Self {
            weight: Weight::Passing,
            label,
            style,
            at: happening.at,
            agent: clean_line(happening.agent),
            agent_width: record.name_width.min(MOST_NAME),
            what: String::new(),
            detail: String::new(),
        }
    }

    fn what(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn lasting(mut self) -> Self {
        self.weight = Weight::Lasting;
        self
    }

    /// The line with its colours. Where there are only so many columns, what does not fit goes to
    /// lines of its own.
    pub(crate) fn render(&self, columns: Option<usize>) -> String {
        let seconds = self.at.as_secs_f64();
        let label = paint(self.style, format_args!("{:>11}", self.label));
        let room = self.agent_width.saturating_sub(self.agent.chars().count());
        let agent = paint(BOLD, &self.agent);
        let head = format!("{label} [{seconds:>7.3}s] {agent}");
        let tail = match (self.what.is_empty(), self.detail.is_empty()) {
            (true, true) => return head,
            (false, true) => self.what.clone(),
            (true, false) => paint(DIM, &self.detail),
            (false, false) => format!("{:<15} {}", self.what, paint(DIM, &self.detail)),
        };
        let line = format!("{head} {:room$}{tail}", "");
        match columns {
            Some(columns) if width_of(&line) > columns => self.folded(head, columns),
            _ => line,
        }
    }

    fn folded(&self, head: String, columns: usize) -> String {
        let mut folded = head;
        let room = columns.saturating_sub(INDENT).max(1);
        for (text, style) in [(&self.what, PLAIN), (&self.detail, DIM)] {
            let text: Vec<char> = text.chars().collect();
            for piece in text.chunks(room) {
                let piece: String = piece.iter().collect();
                folded.push_str(&format!("\n{:INDENT$}{}", "", paint(style, piece)));
            }
        }
        folded
    }
}

/// The line that an event is worth, if any. `took` is what [`Record::note`] returned for it.
pub(crate) fn line_of(
    happening: Happening<'_>,
    took: Option<Duration>,
    record: &Record,
) -> Option<Line> {
    let line = |label, style| Line::new(&happening, record, label, style);
    let took = took.map(human).unwrap_or_default();
    Some(match happening.kind {
        EventKind::PhaseEntered { to: Phase::Bootstrapping, .. } => line("STARTING", CALM),
        EventKind::PhaseEntered { to: Phase::ShuttingDown, .. } => line("STOPPING", CALM),
        EventKind::PhaseEntered { to: Phase::Terminated, reason, .. } => {
            let outcome = record.instance(happening.instance).and_then(|it| it.outcome);
            let (label, style) = end_label(*reason, outcome);
            line(label, style).detail(format!("after {took}")).lasting()
        }
        EventKind::PhaseEntered { to: Phase::Error, .. } => line("ERROR", BAD).lasting(),
        EventKind::PhaseEntered { to: Phase::Paused, .. } => line("PAUSED", WARN).lasting(),
        EventKind::TurnStarted => line("RUNNING", CALM),
        EventKind::TurnEnded { outcome, .. } if !outcome.is_ok() => {
            line(outcome_label(*outcome), BAD).what("the turn").detail(took).lasting()
        }
        EventKind::HookEnded { hook, .. } if is_own_hook(hook) || took.is_empty() => return None,
        EventKind::HookEnded { hook, point, outcome, took, .. } => {
            let detail = format!("{} {}", clean_line(hook), hook_end(*outcome, *took));
            let line = match outcome {
                Outcome::Ok => line("HOOK", GOOD),
                Outcome::Denied => line("DENIED", WARN).lasting(),
                Outcome::Cancelled => line("HOOK", WARN),
                _ => line("HOOK", BAD).lasting(),
            };
            line.what(point.as_str()).detail(detail)
        }
        EventKind::ModelEnded { step, outcome, .. } if !outcome.is_ok() => {
            line("MODEL", BAD).what(format!("call {step}")).detail(outcome.as_str()).lasting()
        }
        EventKind::ToolEnded { tool, status, .. } => {
            let tool = clean_line(tool);
            match status {
                ToolStatus::Ok => line("TOOL", GOOD).what(tool).detail(took),
                ToolStatus::Denied => {
                    line("DENIED", WARN).what(tool).detail("it did not run").lasting()
                }
                ToolStatus::Error => line("TOOL", BAD).what(tool).detail("error").lasting(),
                ToolStatus::Cancelled => line("TOOL", WARN).what(tool).detail("cancelled"),
                _ => line("TOOL", WARN).what(tool).detail("not executed"),
            }
        }
        EventKind::Asked { prompt, .. } => line("ASKING", WARN).what(clean_line(prompt)).lasting(),
        EventKind::Answered { decision, .. } => {
            line("ANSWERED", GOOD).what(*decision).detail(format!("after {took}")).lasting()
        }
        EventKind::Log { source, line: text, .. } => line("LOG", DIM)
            .detail(format!("{}: {}", clean_line(source), fit(&clean_line(text), MOST_LOG)))
            .lasting(),
        EventKind::ResourceLeaked { resource, reason } => {
            let detail = format!("{}: {}", clean_line(resource), clean_line(reason));
            line("LEAKED", BAD).detail(detail).lasting()
        }
        _ => return None,
    })
}

fn hook_end(outcome: Outcome, took: Duration) -> String {
    let took = human(took);
    match outcome {
        Outcome::Ok => took,
        Outcome::TimedOut => format!("timed out after {took}"),
        other => format!("{other} after {took}"),
    }
}

fn end_label(reason: Option<ExitReason>, outcome: Option<Outcome>) -> (&'static str, Style) {
    match (reason, outcome) {
        (Some(ExitReason::StartupFailed), _) => ("NOT STARTED", BAD),
        (Some(ExitReason::Fatal), _) => ("FATAL", BAD),
        (Some(ExitReason::Forced), _) => ("FORCED", BAD),
        (Some(ExitReason::Crashed), _) => ("CRASHED", BAD),
        (_, Some(Outcome::Ok)) => ("COMPLETED", GOOD),
        (_, Some(outcome)) => (outcome_label(outcome), BAD),
        (_, None) => ("STOPPED", GOOD),
    }
}

fn outcome_label(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "COMPLETED",
        Outcome::Denied => "DENIED",
        Outcome::Cancelled => "CANCELLED",
        Outcome::TimedOut => "TIMED OUT",
        Outcome::Panicked => "PANICKED",
        Outcome::MaxSteps => "MAX STEPS",
        Outcome::Abandoned => "ABANDONED",
        _ => "FAILED",
    }
}
