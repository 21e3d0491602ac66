//! One line of progress for each thing that matters: events in, lines out.

use super::calls::Told;
use super::flow_line::{Chat, line_of_announced};
use super::group::{Group, MOST_FAILURES, Queue};
use super::record::{
    Happening, Instance, Record, Standing, is_lifecycle_tool, is_own_hook, lifecycle_tool,
};
use super::style::{BAD, BOLD, CALM, DIM, GOOD, PLAIN, WARN, paint};
use super::text::{clean_line, columns_of, fit, human};
use super::words::waits_for_person;
use anstyle::Style;
use std::collections::BTreeMap;
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
    /// Somebody has come to a good end. It stays, unless they are many.
    Ending,
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

    pub(super) fn what(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }

    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn lasting(mut self) -> Self {
        self.weight = Weight::Lasting;
        self
    }

    pub(super) fn ending(mut self) -> Self {
        self.weight = Weight::Ending;
        self
    }

    /// What many clones of an agent have come to, in one line.
    fn of_group(group: &Group, at: Duration, label: &'static str, style: Style) -> Self {
        Self {
            weight: Weight::Lasting,
            label,
            style,
            at,
            agent: clean_line(&group.name),
            agent_width: 0,
            what: String::new(),
            detail: String::new(),
        }
    }

    /// How far many clones of an agent are.
    pub(crate) fn progress_of(group: &Group, queue: Queue, at: Duration) -> Self {
        Self::of_group(group, at, "PROGRESS", CALM).what(group.counts(queue))
    }

    /// The end of many clones of an agent.
    pub(crate) fn end_of(group: &Group) -> Self {
        let (label, style) = match (group.failed.len(), group.cancelled) {
            (0, 0) => ("COMPLETED", GOOD),
            (failed, _) if failed == group.total => ("FAILED", BAD),
            (_, cancelled) if cancelled == group.total => ("CANCELLED", WARN),
            _ => ("ENDED", WARN),
        };
        let took = human(group.ended.saturating_sub(group.since));
        let line = Self::of_group(group, group.ended, label, style);
        line.what(group.counts(Queue::default())).detail(format!("after {took}"))
    }

    /// What it says, whenever that was; of a call, whichever clone made it.
    fn gist(&self) -> String {
        let is_call = matches!(self.label, "MODEL" | "TOOL");
        let end = self.agent.find(['[', '#']).filter(|at| *at > 0 && is_call);
        let agent = &self.agent[..end.unwrap_or(self.agent.len())];
        let parts = [self.label, agent, &self.what, &self.detail];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
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
            Some(columns) if columns_of(&line) > columns => self.folded(head, columns),
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

/// What went wrong again and again in the same way: after a few times it is only counted.
#[derive(Default)]
pub(crate) struct Repeats {
    times: BTreeMap<String, usize>,
}

/// So many are told.
const MOST_ALIKE: usize = 3;

impl Repeats {
    /// Whether the line of this event is still told.
    pub(crate) fn is_told(&mut self, kind: &EventKind, line: &Line) -> bool {
        let is_spoken = matches!(
            kind,
            EventKind::Log { .. }
                | EventKind::Asked { .. }
                | EventKind::Answered { .. }
                | EventKind::AskEnded { .. }
        );
        if line.weight != Weight::Lasting || is_spoken {
            return true;
        }
        let times = self.times.entry(line.gist()).or_default();
        *times += 1;
        *times <= MOST_ALIKE
    }

    /// What was not told, and how often. Everything is told again from here on.
    pub(crate) fn end(&mut self) -> Vec<String> {
        let times = std::mem::take(&mut self.times);
        let more = times.into_iter().filter(|(_, times)| *times > MOST_ALIKE);
        more.map(|(gist, times)| {
            let more = times - MOST_ALIKE;
            paint(DIM, format_args!("{:INDENT$}… {more} more of these: {gist}", ""))
        })
        .collect()
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
    let it = record.instance(happening.instance);
    let why = it.and_then(|it| it.why.as_deref());
    Some(match happening.kind {
        EventKind::PhaseEntered { to: Phase::Bootstrapping, .. } => line("STARTING", CALM),
        EventKind::PhaseEntered { to: Phase::ShuttingDown, .. } => line("STOPPING", CALM),
        EventKind::PhaseEntered { to: Phase::Terminated, reason, .. } => {
            let (label, style) = end_label(*reason, it.and_then(|it| it.outcome));
            let after = format!("after {took}");
            // Of others the end of the turn has said it.
            let why = why.filter(|_| is_clone(happening, record) && says_why(label));
            let line = line(label, style).detail(with_reason(&after, why));
            if style == GOOD { line.ending() } else { line.lasting() }
        }
        EventKind::PhaseEntered { to: Phase::Error, .. } => line("ERROR", BAD).lasting(),
        EventKind::PhaseEntered { to: Phase::Paused, .. } => line("PAUSED", WARN).lasting(),
        EventKind::TurnStarted => line("RUNNING", CALM),
        // Of a clone the end says it.
        EventKind::TurnEnded { .. } if is_clone(happening, record) => return None,
        EventKind::TurnEnded { reason, .. } if waits_for_person(reason.as_deref()) => {
            line("PAUSED", WARN).what("the turn").detail("nobody is there to ask").lasting()
        }
        EventKind::TurnEnded { outcome, .. } if !outcome.is_ok() => {
            let why = why.filter(|_| *outcome != Outcome::Cancelled);
            let line = line(outcome_label(*outcome), BAD).what("the turn");
            line.detail(with_reason(&took, why)).lasting()
        }
        EventKind::HookEnded { hook, .. } if is_own_hook(hook) || took.is_empty() => return None,
        // The tool has told it itself.
        EventKind::HookEnded { hook, outcome: Outcome::Ok | Outcome::Failed, .. }
            if is_lifecycle_tool(hook) =>
        {
            return None;
        }
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
        EventKind::ModelEnded { step, outcome: Outcome::Cancelled, .. } => {
            line("MODEL", WARN).what(format!("call {step}")).detail("cancelled")
        }
        EventKind::ModelEnded { step, outcome, .. } if !outcome.is_ok() => {
            let detail = with_reason(outcome.as_str(), why);
            line("MODEL", BAD).what(format!("call {step}")).detail(detail).lasting()
        }
        EventKind::ToolEnded { tool, status, .. } => {
            let tool = clean_line(tool);
            match (it.map_or(&Told::Alone, |it| &it.told), status) {
                (Told::Together(how, is_well), _) => {
                    let style = if *is_well { GOOD } else { WARN };
                    return Some(line("TOOL", style).what(tool).detail(how));
                }
                (Told::Later, ToolStatus::Ok | ToolStatus::Cancelled) => return None,
                // What is new is said all the same.
                (Told::Later, _) if why.is_none() => return None,
                _ => {}
            }
            match status {
                // What was called stays to be read; of clones their end says enough.
                ToolStatus::Ok if is_clone(happening, record) => {
                    line("TOOL", GOOD).what(tool).detail(took)
                }
                ToolStatus::Ok => line("TOOL", GOOD).what(tool).detail(took).ending(),
                ToolStatus::Denied => {
                    let detail = with_reason("it did not run", why);
                    line("DENIED", WARN).what(tool).detail(detail).lasting()
                }
                ToolStatus::Error => {
                    line("TOOL", BAD).what(tool).detail(with_reason("error", why)).lasting()
                }
                ToolStatus::Cancelled => line("TOOL", WARN).what(tool).detail("cancelled"),
                _ => line("TOOL", WARN).what(tool).detail("not executed"),
            }
        }
        // That it is the person's turn is said where they are to speak.
        EventKind::Asked { .. } | EventKind::Answered { .. } | EventKind::AskEnded { .. }
            if it.is_some_and(|it| it.is_person) =>
        {
            return None;
        }
        EventKind::Asked { prompt, hook, tool, .. } => {
            let by = hook.as_deref().and_then(lifecycle_tool);
            let by = by.map(|tool| format!("by {}", clean_line(tool)));
            let about = tool.as_ref().map(|tool| format!("about {}", clean_line(tool)));
            let about = by.or(about);
            let line = line("ASKING", WARN).what(fit(&clean_line(prompt), MOST_LOG));
            line.detail(about.unwrap_or_default()).lasting()
        }
        EventKind::Answered { decision, .. } => {
            line("ANSWERED", GOOD).what(*decision).detail(format!("after {took}")).lasting()
        }
        EventKind::AskEnded { outcome, .. } => line("ASKED", WARN)
            .what("no answer")
            .detail(format!("{outcome} after {took}"))
            .lasting(),
        EventKind::Log { source, line: text, .. } => line("LOG", DIM)
            .detail(format!("{}: {}", clean_line(source), fit(&clean_line(text), MOST_LOG)))
            .lasting(),
        EventKind::Announced { name, data } => {
            let chat = match record.host == Some(happening.instance) {
                true => Chat::Own,
                false => Chat::Nested,
            };
            return line_of_announced(name, data, chat, line);
        }
        EventKind::ResourceLeaked { resource, reason } => {
            let detail = format!("{}: {}", clean_line(resource), clean_line(reason));
            line("LEAKED", BAD).detail(detail).lasting()
        }
        EventKind::MemoryFlushFailed { reason, .. } => {
            line("MEMORY", BAD).what("not stored").detail(clean_line(reason)).lasting()
        }
        _ => return None,
    })
}

/// What happened, and why, if that is known and has not been told.
fn with_reason(what: &str, why: Option<&str>) -> String {
    match why {
        Some(why) if what.is_empty() => why.to_owned(),
        Some(why) => format!("{what}: {why}"),
        None => what.to_owned(),
    }
}

fn is_clone(happening: Happening<'_>, record: &Record) -> bool {
    record.instance(happening.instance).is_some_and(Instance::is_clone)
}

/// Whether the event is the end of somebody who is no clone, or of their turn.
pub(crate) fn ends_all(happening: Happening<'_>, record: &Record) -> bool {
    let is_end = matches!(
        happening.kind,
        EventKind::TurnEnded { .. } | EventKind::PhaseEntered { to: Phase::Terminated, .. }
    );
    is_end && !is_clone(happening, record)
}

/// Whether the line of an event is left out because its instance is one of many, and they have lines
/// together.
pub(crate) fn is_in_crowd(happening: Happening<'_>, line: &Line, record: &Record) -> bool {
    let Some(group) = record.group_of(happening.instance).filter(|group| group.is_crowd()) else {
        return false;
    };
    match happening.kind {
        EventKind::Log { .. }
        | EventKind::Asked { .. }
        | EventKind::Answered { .. }
        | EventKind::AskEnded { .. }
        | EventKind::MemoryFlushFailed { .. }
        | EventKind::ResourceLeaked { .. } => false,
        // Those that were cancelled are counted.
        EventKind::PhaseEntered { to: Phase::Terminated, .. }
            if record.instance(happening.instance).is_some_and(is_cancelled) =>
        {
            true
        }
        _ => line.weight != Weight::Lasting || group.failed.len() > MOST_FAILURES,
    }
}

fn is_cancelled(it: &Instance) -> bool {
    it.standing() == Standing::Cancelled
}

/// Whether an end of this name has a reason worth a word.
fn says_why(label: &str) -> bool {
    !matches!(label, "COMPLETED" | "CANCELLED" | "STOPPED")
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
        Outcome::MaxTurns => "MAX TURNS",
        Outcome::Abandoned => "ABANDONED",
        _ => "FAILED",
    }
}
