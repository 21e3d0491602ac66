//! What an agent did, as it is known where it runs. A thread makes spans and numbers of it: that
//! takes longer than the agent should.

use super::super::clock::Clock;
use super::super::gather::Batch;
use super::super::texts::{Text, Texts};
use super::content::finish_reason;
use super::export::Exports;
use super::ids::Place;
use super::names::{
    CONVERSATION, INPUT_MESSAGES, OPERATION, OUTPUT_MESSAGES, OUTPUT_TYPE, PROVIDER,
    REQUEST_MAX_TOKENS, REQUEST_MODEL, REQUEST_STREAM, REQUEST_TEMPERATURE, RESPONSE_FINISH,
    RESPONSE_FIRST_CHUNK, RESPONSE_MODEL, RESUMED, SYSTEM_INSTRUCTIONS, TOOL_ARGUMENTS, TOOL_CALL,
    TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT, TOOL_TYPE,
};
use super::pipe::Being;
use super::span::{Failed, Over, outcome, usage};
use opentelemetry::trace::SpanKind;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::SpanEvents;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::Outcome;
use tenure_core::model::{StopReason, Usage};

/// Something that is over.
pub(super) enum Record {
    Model(Told, ModelTold),
    Tool(Told, ToolTold),
    /// What is counted of a turn whose span still takes a while.
    TurnCounts {
        being: Arc<Being>,
        took: Duration,
        error: Option<&'static str>,
        calls: (u64, u64),
    },
    /// A turn, with the calls of models and tools if it is still to be counted.
    Turn(TurnTold, SpanEvents, Option<(u64, u64)>),
}

/// What every call says.
pub(super) struct Told {
    pub(super) place: Place,
    pub(super) parent: Option<Place>,
    pub(super) began: Instant,
    pub(super) took: Duration,
    pub(super) error: Option<Failed>,
}

/// The name of a model, and another one that the request wants, if the model serves several.
pub(super) struct ModelName {
    pub(super) name: Text,
    pub(super) wanted: Option<Arc<str>>,
}

/// A model call.
pub(super) struct ModelTold {
    pub(super) model: ModelName,
    pub(super) conversation: Option<Text>,
    pub(super) asked: Asked,
    pub(super) answer: Option<Answer>,
}

/// What a model was asked for.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: Option<f32>,
    pub(super) has_schema: bool,
    pub(super) is_streaming: bool,
    pub(super) resumed: bool,
    /// What was said to it, if that may be told. It is rare, and would make every call larger.
    pub(super) content: Option<Box<AskedContent>>,
}

/// What was said to a model.
pub(super) struct AskedContent {
    pub(super) messages: String,
    pub(super) instruction: Option<String>,
}

/// What a model said.
pub(super) struct Answer {
    /// Who said it.
    pub(super) model: ModelName,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
    pub(super) first: Option<Duration>,
    pub(super) output: Option<String>,
}

/// A tool call.
pub(super) struct ToolTold {
    pub(super) name: Arc<str>,
    pub(super) id: Arc<str>,
    pub(super) description: Text,
    pub(super) arguments: Option<String>,
    pub(super) result: Option<String>,
}

/// A turn.
pub(super) struct TurnTold {
    pub(super) told: Told,
    pub(super) being: Arc<Being>,
    pub(super) end: TurnSaid,
}

/// What the end of a turn says.
pub(super) struct TurnSaid {
    pub(super) outcome: Outcome,
    pub(super) usage: Usage,
    pub(super) resumed: bool,
    pub(super) conversation: Option<String>,
    pub(super) output: Option<String>,
}

/// Records that wait together.
#[derive(Default)]
pub(super) struct Records {
    pub(super) list: Vec<Record>,
    pub(super) texts: Texts,
}

impl Batch for Records {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn clear(&mut self) {
        const KEPT: usize = 512;
        self.list.clear();
        self.list.shrink_to(KEPT);
        self.texts.clear();
    }
}

impl Exports {
    /// Makes spans and numbers of records, or only numbers.
    pub(super) fn work(&self, records: &mut Records, with_spans: bool) {
        let Records { list, texts } = records;
        let clock = self.clock();
        for record in list.drain(..) {
            match record {
                Record::Model(told, call) => self.model((told, clock), call, texts, with_spans),
                Record::Tool(told, call) => self.tool((told, clock), call, texts, with_spans),
                Record::TurnCounts { being, took, error, calls } => {
                    if let Some(meters) = &self.meters {
                        meters.turn(&being.name, took, error, calls);
                    }
                }
                Record::Turn(turn, events, calls) => {
                    if let (Some(meters), Some(calls)) = (&self.meters, calls) {
                        let kind = turn.told.error.as_ref().map(|error| error.kind);
                        meters.turn(&turn.being.name, turn.told.took, kind, calls);
                    }
                    if with_spans {
                        self.turn(turn, clock, events);
                    }
                }
            }
        }
    }

    fn model(&self, (told, clock): (Told, Clock), call: ModelTold, texts: &Texts, with_span: bool) {
        let ModelTold { model, conversation, asked, answer } = call;
        let (provider, model) = model_of(&model, texts);
        let answered = answer.as_ref().map(|answer| model_of(&answer.model, texts));
        if let Some(meters) = &self.meters {
            // An answer counts for the model that gave it, which a hook further in may have chosen.
            let (provider, model) = match &answered {
                Some((provider, model)) => (provider, model),
                None => (&provider, &model),
            };
            if let Some(answer) = &answer {
                meters.answered(provider, model, &answer.usage, answer.first);
            }
            let kind = told.error.as_ref().map(|error| error.kind);
            meters.model(provider, model, told.took, kind);
        }
        if !with_span || !told.place.sampled {
            return;
        }
        let mut attributes = Vec::with_capacity(16);
        attributes.push(KeyValue::new(OPERATION, "chat"));
        attributes.push(KeyValue::new(PROVIDER, provider));
        attributes.push(KeyValue::new(REQUEST_MODEL, model.clone()));
        attributes
            .extend(conversation.map(|id| KeyValue::new(CONVERSATION, texts.get(id).to_owned())));
        if let Some(tokens) = asked.max_tokens {
            attributes.push(KeyValue::new(REQUEST_MAX_TOKENS, i64::from(tokens)));
        }
        if let Some(temperature) = asked.temperature {
            attributes.push(KeyValue::new(REQUEST_TEMPERATURE, f64::from(temperature)));
        }
        if asked.has_schema {
            attributes.push(KeyValue::new(OUTPUT_TYPE, "json"));
        }
        if asked.is_streaming {
            attributes.push(KeyValue::new(REQUEST_STREAM, true));
        }
        if asked.resumed {
            attributes.push(KeyValue::new(RESUMED, true));
        }
        if let Some(content) = asked.content {
            attributes.push(KeyValue::new(INPUT_MESSAGES, content.messages));
            let instruction = content.instruction;
            attributes.extend(instruction.map(|said| KeyValue::new(SYSTEM_INSTRUCTIONS, said)));
        }
        if let (Some(answer), Some((_, answered))) = (answer, answered) {
            attributes.push(KeyValue::new(RESPONSE_MODEL, answered));
            let reason = StringValue::from(finish_reason(answer.stop));
            let reasons = Value::Array(Array::String(vec![reason]));
            attributes.push(KeyValue::new(RESPONSE_FINISH, reasons));
            usage(&answer.usage, &mut attributes);
            if let Some(first) = answer.first {
                attributes.push(KeyValue::new(RESPONSE_FIRST_CHUNK, first.as_secs_f64()));
            }
            attributes.extend(answer.output.map(|said| KeyValue::new(OUTPUT_MESSAGES, said)));
        }
        self.export(told.over(clock, SpanKind::Client, format!("chat {model}"), attributes));
    }

    fn tool(&self, (told, clock): (Told, Clock), call: ToolTold, texts: &Texts, with_span: bool) {
        if let Some(meters) = &self.meters {
            meters.tool(&call.name, told.took, told.error.as_ref().map(|error| error.kind));
        }
        if !with_span || !told.place.sampled {
            return;
        }
        let mut attributes = Vec::with_capacity(8);
        attributes.push(KeyValue::new(OPERATION, "execute_tool"));
        attributes.push(KeyValue::new(TOOL_NAME, call.name.clone()));
        attributes.push(KeyValue::new(TOOL_CALL, call.id));
        attributes.push(KeyValue::new(TOOL_TYPE, "function"));
        let description = texts.get(call.description);
        if !description.is_empty() {
            attributes.push(KeyValue::new(TOOL_DESCRIPTION, description.to_owned()));
        }
        attributes.extend(call.arguments.map(|said| KeyValue::new(TOOL_ARGUMENTS, said)));
        attributes.extend(call.result.map(|said| KeyValue::new(TOOL_RESULT, said)));
        let name = format!("execute_tool {}", call.name);
        self.export(told.over(clock, SpanKind::Internal, name, attributes));
    }

    fn turn(&self, turn: TurnTold, clock: Clock, events: SpanEvents) {
        let TurnTold { told, being, end } = turn;
        if !told.place.sampled {
            return;
        }
        let mut attributes = Vec::with_capacity(10);
        attributes.push(KeyValue::new(OPERATION, "invoke_agent"));
        attributes.extend(being.attributes());
        attributes.extend(end.conversation.map(|id| KeyValue::new(CONVERSATION, id)));
        attributes.push(outcome(end.outcome));
        usage(&end.usage, &mut attributes);
        if end.resumed {
            attributes.push(KeyValue::new(RESUMED, true));
        }
        attributes.extend(end.output.map(|said| KeyValue::new(OUTPUT_MESSAGES, said)));
        let name = format!("invoke_agent {}", being.name);
        self.export_with(told.over(clock, SpanKind::Internal, name, attributes), events);
    }
}

impl Told {
    fn over(self, clock: Clock, kind: SpanKind, name: String, attributes: Vec<KeyValue>) -> Over {
        let Self { place, parent, began, took, error } = self;
        let start = clock.at(began);
        Over { place, parent, kind, name: name.into(), start, took, attributes, error }
    }
}

/// Who provides a model, and which one it is.
fn model_of(model: &ModelName, texts: &Texts) -> (Arc<str>, Arc<str>) {
    let name = texts.get(model.name);
    let (provider, model_name) = match name.split_once('.') {
        Some(("gemini", model)) => ("gcp.gemini", model),
        Some((provider, model)) => (provider, model),
        // One that no provider has: a script, a recording.
        None => ("tenure", name),
    };
    (provider.into(), model.wanted.clone().unwrap_or_else(|| model_name.into()))
}
