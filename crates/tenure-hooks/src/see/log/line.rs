//! A line as an agent leaves it, and as it is written: the agent only says what happened, and the
//! thread that writes finds the words.

use super::super::clock::Clock;
use super::super::gather::Batch;
use super::super::texts::{Text, Texts};
use super::Level;
use crate::words::Moment;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::time::{Duration, Instant};
use tenure_core::model::Usage;
use tenure_core::{InstanceId, Outcome, RunId};

/// A line on its way. Its texts are in the [`Lines`] that it is one of.
pub(super) struct Line {
    pub(super) at: Instant,
    pub(super) level: Level,
    pub(super) agent: Text,
    pub(super) instance: InstanceId,
    pub(super) run: Option<RunId>,
    /// The trace if it has a name of its own, else it is called after the run.
    pub(super) trace: Option<Text>,
    pub(super) chat: Option<Text>,
    pub(super) event: Event,
}

/// What happened.
pub(super) enum Event {
    TurnStarted { resumed: bool },
    TurnEnded { outcome: Outcome, took: Option<Duration>, steps: usize, end: End },
    ModelStarted { model: Text, step: usize, messages: usize, input: Option<Text> },
    ModelEnded { model: Text, step: usize, outcome: Outcome, took: Duration, end: Answer },
    ToolStarted { tool: Text, call: Text, arguments: Option<Text> },
    ToolEnded { tool: Text, call: Text, took: Duration, end: Returned },
}

/// What a turn came to.
pub(super) struct End {
    pub(super) usage: Usage,
    pub(super) failure: Option<Failure>,
    pub(super) output: Option<Text>,
}

/// What a model call came to: how many calls it asks for, if it did not fail.
pub(super) type Answer = Result<(Usage, usize), Failure>;
/// What a tool call came to: its status, and what it said.
pub(super) type Returned = Result<(&'static str, Option<Text>), Failure>;

/// Why something failed: in one word, and in as many as there are if content may be told.
pub(super) struct Failure {
    pub(super) kind: &'static str,
    pub(super) reason: Option<Text>,
}

/// Lines that wait together.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) lines: Vec<Line>,
    pub(super) texts: Texts,
}

impl Batch for Lines {
    fn len(&self) -> usize {
        self.lines.len()
    }

    fn clear(&mut self) {
        const KEPT: usize = 1024;
        self.lines.clear();
        self.lines.shrink_to(KEPT);
        self.texts.clear();
    }
}

/// A line with all that it takes to write it.
pub(super) struct Said<'a> {
    pub(super) line: &'a Line,
    pub(super) texts: &'a Texts,
    pub(super) clock: Clock,
}

impl Said<'_> {
    /// Writes it as JSON, without an end of line.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // Bytes take whatever is written, and no part of it is anything that JSON does not know.
        let _ = serde_json::to_writer(out, self);
    }

    fn event<S: SerializeMap>(&self, map: &mut S) -> Result<(), S::Error> {
        let text = |text: Text| self.texts.get(text);
        match &self.line.event {
            Event::TurnStarted { resumed } => {
                if *resumed {
                    map.serialize_entry("resumed", &true)?;
                }
            }
            Event::TurnEnded { outcome, took, steps, end } => {
                map.serialize_entry("outcome", outcome.as_str())?;
                if let Some(took) = took {
                    map.serialize_entry("took_ms", &millis(*took))?;
                }
                map.serialize_entry("steps", steps)?;
                map.serialize_entry("usage", &Told(&end.usage))?;
                if let Some(failure) = &end.failure {
                    self.failure(failure, map)?;
                }
                self.maybe("output", end.output, map)?;
            }
            Event::ModelStarted { model, step, messages, input } => {
                map.serialize_entry("model", text(*model))?;
                map.serialize_entry("step", step)?;
                map.serialize_entry("messages", messages)?;
                self.maybe("input", *input, map)?;
            }
            Event::ModelEnded { model, step, outcome, took, end } => {
                map.serialize_entry("model", text(*model))?;
                map.serialize_entry("step", step)?;
                map.serialize_entry("outcome", outcome.as_str())?;
                map.serialize_entry("took_ms", &millis(*took))?;
                match end {
                    Ok((usage, calls)) => {
                        map.serialize_entry("usage", &Told(usage))?;
                        map.serialize_entry("calls", calls)?;
                    }
                    Err(failure) => self.failure(failure, map)?,
                }
            }
            Event::ToolStarted { tool, call, arguments } => {
                map.serialize_entry("tool", text(*tool))?;
                map.serialize_entry("call", text(*call))?;
                self.maybe("arguments", *arguments, map)?;
            }
            Event::ToolEnded { tool, call, took, end } => {
                map.serialize_entry("tool", text(*tool))?;
                map.serialize_entry("call", text(*call))?;
                map.serialize_entry("took_ms", &millis(*took))?;
                match end {
                    Ok((status, result)) => {
                        map.serialize_entry("status", status)?;
                        self.maybe("result", *result, map)?;
                    }
                    Err(failure) => self.failure(failure, map)?,
                }
            }
        }
        Ok(())
    }

    fn failure<S: SerializeMap>(&self, failure: &Failure, map: &mut S) -> Result<(), S::Error> {
        map.serialize_entry("error", failure.kind)?;
        self.maybe("reason", failure.reason, map)
    }

    fn maybe<S: SerializeMap>(
        &self,
        name: &'static str,
        text: Option<Text>,
        map: &mut S,
    ) -> Result<(), S::Error> {
        match text {
            Some(text) => map.serialize_entry(name, self.texts.get(text)),
            None => Ok(()),
        }
    }
}

impl Serialize for Said<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Line { at, level, agent, instance, run, trace, chat, event } = self.line;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("time", &Moment::from(self.clock.at(*at)).rfc3339())?;
        map.serialize_entry("level", level.as_str())?;
        map.serialize_entry("event", event.name())?;
        map.serialize_entry("agent", self.texts.get(*agent))?;
        map.serialize_entry("instance", instance)?;
        if let Some(run) = run {
            map.serialize_entry("run", run)?;
        }
        match (trace, run) {
            (Some(trace), _) => map.serialize_entry("trace", self.texts.get(*trace))?,
            (None, Some(run)) => map.serialize_entry("trace", run)?,
            (None, None) => map.serialize_entry("trace", instance)?,
        }
        self.maybe("chat", *chat, &mut map)?;
        self.event(&mut map)?;
        map.end()
    }
}

impl Event {
    fn name(&self) -> &'static str {
        match self {
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnEnded { .. } => "turn.ended",
            Self::ModelStarted { .. } => "model.started",
            Self::ModelEnded { .. } => "model.ended",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolEnded { .. } => "tool.ended",
        }
    }
}

/// A time in milliseconds, with as many places as say something.
fn millis(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e6).round() / 1e3
}

/// What calls cost, as a line says it. What there was none of is left out.
struct Told<'a>(&'a Usage);

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usage = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input", &usage.input)?;
        map.serialize_entry("output", &usage.output)?;
        map.serialize_entry("calls", &usage.calls)?;
        if usage.cached > 0 {
            map.serialize_entry("cached", &usage.cached)?;
        }
        if usage.reasoning > 0 {
            map.serialize_entry("reasoning", &usage.reasoning)?;
        }
        if usage.cost.nano_usd() > 0 {
            map.serialize_entry("cost_usd", &usage.cost.usd())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;
    use tenure_core::model::Cost;

    #[test]
    fn a_line_has_its_fields_in_their_order_and_the_time_at_which_it_was_said() {
        let mut texts = Texts::default();
        let (instance, run) = (InstanceId::unique(), RunId::unique());
        let at = Instant::now();
        let mut usage = Usage::new(20, 10);
        (usage.cached, usage.reasoning, usage.cost) = (5, 3, Cost::from_nano_usd(1_500_000));
        let line = Line {
            at,
            level: Level::Error,
            agent: texts.keep("the \"clerk\""),
            instance,
            run: Some(run),
            trace: None,
            chat: Some(texts.keep("c1")),
            event: Event::TurnEnded {
                outcome: Outcome::Failed,
                took: Some(Duration::from_nanos(1_234_567)),
                steps: 2,
                end: End {
                    usage,
                    failure: Some(Failure { kind: "timeout", reason: Some(texts.keep("é\n")) }),
                    output: None,
                },
            },
        };
        let wall = UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
        let clock = Clock::new(wall, at + Duration::from_millis(250));
        let mut out = Vec::new();
        Said { line: &line, texts: &texts, clock }.write(&mut out);
        let wanted = format!(
            "{{\"time\":\"2023-11-14T22:13:20.250Z\",\"level\":\"error\",\
             \"event\":\"turn.ended\",\"agent\":\"the \\\"clerk\\\"\",\"instance\":\"{instance}\",\
             \"run\":\"{run}\",\"trace\":\"{run}\",\"chat\":\"c1\",\"outcome\":\"failed\",\
             \"took_ms\":1.235,\"steps\":2,\"usage\":{{\"input\":20,\"output\":10,\"calls\":1,\
             \"cached\":5,\"reasoning\":3,\"cost_usd\":0.0015}},\"error\":\"timeout\",\
             \"reason\":\"é\\n\"}}"
        );
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
