//! What is said of a result, to whoever keeps it or is told of it.

use crate::ready::Refusal;
use crate::words::Moment;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tenure_core::Outcome;
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::HookError;
use tenure_core::message::Message;

/// A part of what is said of a result. Its delivery, its time, the agent and the run always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// What the agent answered.
    Output,
    /// What it was asked, as it went into the conversation.
    Input,
    /// How the turn ended, and why if it did not end well.
    Outcome,
    /// What it cost in tokens.
    Usage,
    /// What it cost in dollars.
    Cost,
    /// How long it took, in milliseconds.
    Duration,
    /// The trace that it belongs to.
    Trace,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Output,
        Self::Input,
        Self::Outcome,
        Self::Usage,
        Self::Cost,
        Self::Duration,
        Self::Trace,
    ];
}

/// An outcome as options name it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct OutcomeName(pub(super) Outcome);

impl JsonSchema for OutcomeName {
    fn schema_name() -> Cow<'static, str> {
        "Outcome".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let turns = [
            Outcome::Ok,
            Outcome::Denied,
            Outcome::Failed,
            Outcome::Cancelled,
            Outcome::TimedOut,
            Outcome::Panicked,
            Outcome::MaxSteps,
        ];
        json_schema!({ "type": "string", "enum": turns.map(Outcome::as_str) })
    }
}

/// Of which turns something is said, and what.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) parts: Vec<Part>,
    /// All of them, if it is empty.
    pub(super) on: Vec<Outcome>,
}

/// What a begin leaves for its end.
#[derive(Serialize, Deserialize)]
struct Begun {
    millis: u64,
    /// How many messages there were.
    messages: usize,
}

impl Report {
    /// Whether the begin of a turn has to be seen.
    pub(super) fn needs_begin(&self) -> bool {
        self.has(Part::Duration) || self.has(Part::Input)
    }

    pub(super) fn concerns(&self, end: &TurnEnd<'_>) -> bool {
        self.on.is_empty() || self.on.contains(&end.outcome())
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(super) fn begin(&self, cx: TurnCx<'_>) -> Result<(), HookError> {
        let messages = cx.agent().history().len();
        Ok(cx.carry_recorded(&Begun { millis: Moment::now().millis, messages })?)
    }

    pub(super) fn record(&self, cx: TurnCx<'_>, end: &TurnEnd<'_>, now: Moment) -> Value {
        let begun: Option<Begun> = cx.carried_recorded();
        let mut record = Map::new();
        let mut say = |key: &str, value: Value| record.insert(key.to_owned(), value);
        say("delivery", cx.delivery_id().into());
        say("time", now.rfc3339().into());
        say("agent", cx.agent_name().into());
        say("run", cx.run_id().to_string().into());
        if self.has(Part::Outcome) {
            say("outcome", end.outcome().as_str().into());
            if let Some(error) = end.error() {
                say("error", error.to_string().into());
            }
        }
        if self.has(Part::Input) {
            let earlier = begun.as_ref().map_or(0, |begun| begun.messages);
            let said = end.history().iter().skip(earlier).filter_map(|it| match it {
                Message::User { text } => Some(text.as_str()),
                _ => None,
            });
            say("input", said.last().into());
        }
        if self.has(Part::Output) {
            say("output", end.output().into());
        }
        let usage = end.usage();
        if self.has(Part::Usage) {
            say(
                "usage",
                json!({
                    "input": usage.input,
                    "output": usage.output,
                    "cached": usage.cached,
                    "reasoning": usage.reasoning,
                    "calls": usage.calls,
                }),
            );
        }
        if self.has(Part::Cost) {
            // A sum is none if a part of it is not known.
            let known = usage.unpriced == 0;
            say("cost_usd", known.then(|| usage.cost.usd()).into());
        }
        if self.has(Part::Duration) {
            let took = begun.map(|begun| now.millis.saturating_sub(begun.millis));
            say("duration_ms", took.into());
        }
        if self.has(Part::Trace) {
            say("trace", cx.trace_id().into());
        }
        Value::Object(record)
    }
}

/// The outcomes that options name, and a refusal of parts that say nothing.
pub(super) fn report(parts: Vec<Part>, on: Vec<OutcomeName>) -> Result<Report, Refusal> {
    if parts.is_empty() {
        return Err(Refusal::new("what", "it is empty; name a part, as in [output, outcome]"));
    }
    Ok(Report { parts, on: on.into_iter().map(|it| it.0).collect() })
}
