//! What is said of a result, to whoever keeps it or is told of it.

use crate::ready::Refusal;
use crate::words::Moment;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::HookError;
use tenure_core::message::Message;
use tenure_core::model::Usage;
use tenure_core::{Outcome, RunId};

/// A part of what is said of a result. Its delivery, its time, the agent and the run always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

impl Serialize for OutcomeName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

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
#[derive(Clone, Copy, Serialize, Deserialize)]
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
        let begun = Begun { millis: Moment::now().millis, messages };
        // What nobody can resume need not survive a resume.
        match cx.steps() {
            Some(_) => cx.carry_recorded(&begun)?,
            None => cx.carry(begun),
        }
        Ok(())
    }

    pub(super) fn record(&self, cx: TurnCx<'_>, end: &TurnEnd<'_>, now: Moment) -> Record {
        let begun = cx.carried::<Begun>().map(|begun| *begun).or_else(|| cx.carried_recorded());
        let outcome = self.has(Part::Outcome);
        let clean = |text: &str| cx.redactor().redact(text).into_owned();
        Record {
            delivery: cx.delivery_id(),
            time: now,
            agent: cx.agent_name().to_owned(),
            run: cx.run_id(),
            outcome: outcome.then(|| end.outcome()),
            error: end.error().filter(|_| outcome).map(|error| clean(&error.to_string())),
            input: self.has(Part::Input).then(|| {
                let earlier = begun.map_or(0, |begun| begun.messages);
                let said = end.history().iter().skip(earlier).filter_map(|it| match it {
                    Message::User { content } => Some(content.text()),
                    _ => None,
                });
                said.last().map(&clean)
            }),
            output: self.has(Part::Output).then(|| end.output().map(&clean)),
            usage: end.usage(),
            has_usage: self.has(Part::Usage),
            has_cost: self.has(Part::Cost),
            duration: self
                .has(Part::Duration)
                .then(|| begun.map(|begun| now.millis.saturating_sub(begun.millis))),
            trace: self.has(Part::Trace).then(|| {
                // A trace that nobody has given is the turn's own id, and that is known already.
                cx.context().map(|context| context.trace_id().to_owned())
            }),
        }
    }
}

/// What is said of one result. A part that is none is not said; one of `Some(None)` is `null`.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) delivery: String,
    time: Moment,
    agent: String,
    run: RunId,
    outcome: Option<Outcome>,
    error: Option<String>,
    input: Option<Option<String>>,
    output: Option<Option<String>>,
    usage: Usage,
    has_usage: bool,
    has_cost: bool,
    /// In milliseconds.
    duration: Option<Option<u64>>,
    /// `Some(None)` is the run's id.
    trace: Option<Option<String>>,
}

impl From<Record> for Value {
    fn from(it: Record) -> Self {
        let mut record = Map::new();
        let mut say = |key: &str, value: Value| record.insert(key.to_owned(), value);
        let run = it.run.to_string();
        say("delivery", it.delivery.into());
        say("time", it.time.rfc3339().into());
        say("agent", it.agent.into());
        say("run", run.clone().into());
        if let Some(outcome) = it.outcome {
            say("outcome", outcome.as_str().into());
        }
        if let Some(error) = it.error {
            say("error", error.into());
        }
        if let Some(input) = it.input {
            say("input", input.into());
        }
        if let Some(output) = it.output {
            say("output", output.into());
        }
        let usage = it.usage;
        if it.has_usage {
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
        if it.has_cost {
            // A sum is none if a part of it is not known.
            let known = usage.unpriced == 0;
            say("cost_usd", known.then(|| usage.cost.usd()).into());
        }
        if let Some(duration) = it.duration {
            say("duration_ms", duration.into());
        }
        if let Some(trace) = it.trace {
            say("trace", trace.unwrap_or(run).into());
        }
        Value::Object(record)
    }
}

/// The record that a memory has: as this process has left it, or as the memory has read it.
#[derive(Clone)]
pub(super) enum Remembered {
    Here(Arc<Record>),
    Read(Value),
}

impl Remembered {
    /// Whether it is of this delivery.
    pub(super) fn is_of(&self, delivery: &str) -> bool {
        match self {
            Self::Here(record) => record.delivery == delivery,
            Self::Read(record) => record["delivery"] == delivery,
        }
    }
}

impl From<Remembered> for Value {
    fn from(it: Remembered) -> Self {
        match it {
            Remembered::Here(record) => Arc::unwrap_or_clone(record).into(),
            Remembered::Read(record) => record,
        }
    }
}

impl<'de> Deserialize<'de> for Remembered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::Read)
    }
}

/// The outcomes that options name, and a refusal of parts that say nothing.
pub(super) fn report(parts: Vec<Part>, on: Vec<OutcomeName>) -> Result<Report, Refusal> {
    if parts.is_empty() {
        return Err(Refusal::new("what", "it is empty; name a part, as in [output, outcome]"));
    }
    Ok(Report { parts, on: on.into_iter().map(|it| it.0).collect() })
}
