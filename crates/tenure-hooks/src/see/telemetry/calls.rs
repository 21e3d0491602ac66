//! A call that is under way: its span is exported when it ends, also if it is given up.

use super::Pipeline;
use super::ids::Place;
use super::names::{COST, USAGE_CACHED, USAGE_INPUT, USAGE_OUTPUT, USAGE_REASONING};
use super::pipe::{Failed, Over};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tenure_core::model::Usage;

/// What is called.
pub(super) enum Called {
    Model { provider: Arc<str>, model: Arc<str> },
    Tool(Arc<str>),
}

/// A call that is under way.
pub(super) struct Call {
    pipe: Pipeline,
    called: Called,
    pub(super) place: Place,
    parent: Option<Place>,
    start: SystemTime,
    began: Instant,
    attributes: Vec<KeyValue>,
    is_over: bool,
}

impl Call {
    pub(super) fn new(
        pipe: Pipeline,
        called: Called,
        (place, parent): (Place, Option<Place>),
        attributes: Vec<KeyValue>,
    ) -> Self {
        let (start, began) = (SystemTime::now(), Instant::now());
        Self { pipe, called, place, parent, start, began, attributes, is_over: false }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Says more of it.
    pub(super) fn says(&mut self, attribute: KeyValue) {
        self.attributes.push(attribute);
    }

    /// It has ended, well or not.
    pub(super) fn end(mut self, error: Option<Failed>) {
        self.over(error);
    }

    fn over(&mut self, error: Option<Failed>) {
        self.is_over = true;
        let took = self.elapsed();
        let kind = error.as_ref().map(|error| error.kind);
        let name = match &self.called {
            Called::Model { provider, model } => {
                if let Some(meters) = &self.pipe.exports.meters {
                    meters.model(provider, model, took, kind);
                }
                format!("chat {model}")
            }
            Called::Tool(tool) => {
                if let Some(meters) = &self.pipe.exports.meters {
                    meters.tool(tool, took, kind);
                }
                format!("execute_tool {tool}")
            }
        };
        let is_model = matches!(self.called, Called::Model { .. });
        self.pipe.export(Over {
            place: self.place,
            parent: self.parent,
            kind: if is_model { SpanKind::Client } else { SpanKind::Internal },
            name: name.into(),
            start: self.start,
            took,
            attributes: std::mem::take(&mut self.attributes),
            error,
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            self.over(Some(Failed { kind: "cancelled", words: String::new() }));
        }
    }
}

/// What calls cost, as attributes. What a model does not say is left out.
pub(super) fn usage(usage: &Usage, attributes: &mut Vec<KeyValue>) {
    let count = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
    if usage.total() > 0 {
        attributes.push(KeyValue::new(USAGE_INPUT, count(usage.input)));
        attributes.push(KeyValue::new(USAGE_OUTPUT, count(usage.output)));
    }
    if usage.cached > 0 {
        attributes.push(KeyValue::new(USAGE_CACHED, count(usage.cached)));
    }
    if usage.reasoning > 0 {
        attributes.push(KeyValue::new(USAGE_REASONING, count(usage.reasoning)));
    }
    if usage.cost.nano_usd() > 0 {
        attributes.push(KeyValue::new(COST, usage.cost.usd()));
    }
}
