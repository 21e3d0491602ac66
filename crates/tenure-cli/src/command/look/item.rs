//! One line of a timeline: what it says, and how it is drawn.

use super::words::length;
use crate::terminal::style::{BAD, CALM, DIM, GOOD, PLAIN, WARN, paint};
use crate::terminal::text::{clean_line, columns_of, fit};
use crate::time::rfc3339;
use anstyle::Style;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A process takes the run up.
    Life,
    /// The run itself: it waits, is parked, is over.
    Run,
    Agent,
    Chat,
    Turn,
    Hook,
    Model,
    Tool,
    Ask,
    Step,
    Phase,
    /// A hook or a tool printed something.
    Log,
    /// What a workflow says of itself.
    Event,
}

impl What {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Life => "life",
            Self::Run => "run",
            Self::Agent => "agent",
            Self::Chat => "chat",
            Self::Turn => "turn",
            Self::Hook => "hook",
            Self::Model => "model",
            Self::Tool => "tool",
            Self::Ask => "ask",
            Self::Step => "step",
            Self::Phase => "phase",
            Self::Log => "log",
            Self::Event => "event",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Life | Self::Run => CALM,
            Self::Ask => WARN,
            Self::Phase | Self::Log | Self::Event | Self::Hook => DIM,
            _ => PLAIN,
        }
    }
}

/// How something came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It goes on, or nobody knows.
    Open,
    /// It happened, and there is no more to it.
    Moment,
    /// Well.
    Ok,
    /// Otherwise; in a word.
    Other(String),
}

/// One line of a timeline.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The record that it begins with.
    pub(super) seq: u64,
    /// The record of the step, if it is one.
    pub(super) step: Option<u64>,
    /// What the step is called.
    pub(super) key: Option<String>,
    pub(super) at: SystemTime,
    pub(super) took: Option<Duration>,
    /// How deep it is nested.
    pub(super) depth: usize,
    pub(super) agent: String,
    pub(super) instance: String,
    /// Of a question, its id.
    pub(super) ask: Option<String>,
    /// Of a tool's call, its id.
    pub(super) call: Option<String>,
    pub(super) what: What,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) ended: Ended,
    pub(super) reason: Option<String>,
    /// It was served from the record, and happened before.
    pub(super) is_hidden: bool,
}

/// How the lines of one timeline are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// What times are counted from.
    pub(super) since: SystemTime,
    pub(super) width: usize,
    /// Whether names of agents are told.
    pub(super) agents: bool,
    /// Whether lines come as things end: then that is when they are.
    pub(super) is_live: bool,
}

/// The step's number, the time, and how long it took.
const NUMBER: usize = 5;
const TIME: usize = 9;
const LABEL: usize = 5;

/// A few letters of what was said are of no use.
const LEAST_SAID: usize = 14;

/// A line while it is drawn, and how much room is left in it.
struct Drawn {
    line: String,
    left: usize,
}

impl Drawn {
    fn put(&mut self, style: Style, text: &str) {
        let text = fit(text, self.left);
        self.left = self.left.saturating_sub(columns_of(&text));
        if !text.is_empty() {
            self.line.push_str(&paint(style, text));
        }
    }
}

impl Item {
    /// The line, in at most as many columns as there are.
    pub(super) fn line(&self, look: &Look) -> String {
        let mut at = self.at.duration_since(look.since).unwrap_or_default();
        if look.is_live {
            at += self.took.unwrap_or_default();
        }
        let number = self.step.map_or(String::new(), |step| step.to_string());
        let took = self.took.map_or(String::new(), |took| match took.as_millis() {
            0 => "<1ms".to_owned(),
            _ => length(took),
        });
        let head = format!("{number:>NUMBER$} {:>TIME$} {took:>TIME$}", clock(at));
        let label = format!("{:<LABEL$}", self.what.name());
        let line = format!("{}  {}  ", paint(DIM, head), paint(self.label_style(), label));
        let mut drawn = Drawn { left: look.width.saturating_sub(columns_of(&line)), line };
        drawn.put(PLAIN, &"  ".repeat(self.depth.min(8)));
        let is_scope =
            matches!(self.what, What::Life | What::Run | What::Agent | What::Turn | What::Chat);
        if look.agents && !self.agent.is_empty() && !is_scope {
            drawn.put(DIM, &format!("{} · ", clean_line(&self.agent)));
        }
        drawn.put(self.title_style(), &clean_line(&self.title));
        let gap = if self.title.is_empty() { "" } else { "  " };
        let (said, wrong) = (clean_line(&self.detail), self.wrong());
        // What went wrong is not to be cut off by what was said.
        let taken = wrong.as_ref().map_or(0, |(_, wrong)| columns_of(wrong) + 2);
        let room = drawn.left.saturating_sub(taken);
        if !said.is_empty() && (wrong.is_none() || room >= LEAST_SAID) {
            drawn.put(DIM, &fit(&format!("{gap}{said}"), room));
        }
        if let Some((style, wrong)) = wrong {
            drawn.put(style, &format!("{gap}{wrong}"));
        }
        drawn.line.trim_end().to_owned()
    }

    /// How it ended, if that is to be told: in a word, and why.
    fn wrong(&self) -> Option<(Style, String)> {
        let Ended::Other(word) = &self.ended else { return None };
        let text = match &self.reason {
            Some(reason) => format!("{word}: {}", clean_line(reason)),
            None => word.clone(),
        };
        Some((style_of_word(word), text))
    }

    fn label_style(&self) -> Style {
        match &self.ended {
            Ended::Other(word) => style_of_word(word),
            Ended::Ok if matches!(self.what, What::Model | What::Tool | What::Turn) => GOOD,
            _ => self.what.style(),
        }
    }

    fn title_style(&self) -> Style {
        match self.what {
            What::Phase | What::Log | What::Event => DIM,
            _ => PLAIN,
        }
    }

    /// The line for programs.
    pub(super) fn to_json(&self) -> Value {
        let outcome = match &self.ended {
            Ended::Open => Value::Null,
            Ended::Moment => Value::Null,
            Ended::Ok => "ok".into(),
            Ended::Other(word) => word.as_str().into(),
        };
        json!({
            "seq": self.seq,
            "step": self.step,
            "key": self.key,
            "time": rfc3339(self.at),
            "took_ms": self.took.map(|took| took.as_secs_f64() * 1000.0),
            "depth": self.depth,
            "agent": self.agent,
            "what": self.what.name(),
            "title": self.title,
            "detail": self.detail,
            "open": self.ended == Ended::Open,
            "outcome": outcome,
            "reason": self.reason,
        })
    }
}

/// A moment of a run: `0.004s`, `12.4s`, `2m 03s`, `3h 04m`.
fn clock(at: Duration) -> String {
    match at.as_secs() {
        0..60 => format!("{:.3}s", at.as_secs_f64()),
        _ => length(at),
    }
}

fn style_of_word(word: &str) -> Style {
    match word {
        "ok" | "approve" => GOOD,
        "denied" | "cancelled" | "max_steps" | "max_turns" | "interrupted" | "not_executed"
        | "rejected" | "expired" | "set aside" => WARN,
        _ => BAD,
    }
}
