//! Spans that are over, and what they say.

use super::export::Exports;
use super::ids::Place;
use super::names::{
    COST, ERROR_TYPE, OUTCOME, USAGE_CACHED, USAGE_INPUT, USAGE_OUTPUT, USAGE_REASONING,
};
use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks, SpanProcessor};
use std::borrow::Cow;
use std::time::{Duration, SystemTime};
use tenure_core::model::Usage;

/// A span that is over.
pub(super) struct Over {
    pub(super) place: Place,
    pub(super) parent: Option<Place>,
    pub(super) kind: SpanKind,
    pub(super) name: Cow<'static, str>,
    pub(super) start: SystemTime,
    pub(super) took: Duration,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) error: Option<Failed>,
}

/// Why a span did not end well.
pub(super) struct Failed {
    pub(super) kind: &'static str,
    /// In words, if those may be told.
    pub(super) words: String,
}

impl Exports {
    pub(super) fn export(&self, over: Over) {
        self.export_with(over, SpanEvents::default());
    }

    /// Exports a span, and what happened in it.
    pub(super) fn export_with(&self, over: Over, events: SpanEvents) {
        let Over { place, parent, kind, name, start, took, mut attributes, error } = over;
        if !place.sampled {
            return;
        }
        let status = match error {
            None => Status::Unset,
            Some(Failed { kind, words }) => {
                attributes.push(KeyValue::new(ERROR_TYPE, kind));
                Status::error(words)
            }
        };
        self.losses.given();
        self.spans.on_end(SpanData {
            span_context: SpanContext::new(
                place.trace.id(),
                place.span,
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: parent.map_or(SpanId::INVALID, |parent| parent.span),
            parent_span_is_remote: parent.is_some_and(|parent| parent.remote),
            span_kind: kind,
            name,
            start_time: start,
            end_time: start + took,
            attributes,
            dropped_attributes_count: 0,
            events,
            links: SpanLinks::default(),
            status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

/// How something ended, as an attribute.
pub(super) fn outcome(outcome: tenure_core::Outcome) -> KeyValue {
    KeyValue::new(OUTCOME, outcome.as_str())
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
