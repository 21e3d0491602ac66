//! The span of a workflow's chat.
//!
//! The agents of a chat begin it and end it between the workflow's own hooks. If their events are heard,
//! the span reaches from the chat's first event to its last, so that the workflow's hooks lie within it.

use super::super::seen::lock;
use super::ids::Place;
use super::pipe::Pipe;
use super::span::{Failed, Over};
use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use tenure_core::context::Cx;

/// A chat that watched agents take part in.
pub(super) struct ChatSpan {
    place: Place,
    parent: Option<Place>,
    /// Its agents' events are heard, and end it.
    is_heard: bool,
    /// The time of its first event.
    started: Option<SystemTime>,
    begun: Option<Begun>,
    over: Option<ChatOver>,
}

/// A chat that an agent has begun.
struct Begun {
    name: Arc<str>,
    start: SystemTime,
    began: Instant,
    /// The number of agents that have begun it, and not ended it.
    agents: usize,
}

/// A chat that every agent has ended.
struct ChatOver {
    name: Arc<str>,
    start: SystemTime,
    end: SystemTime,
    attributes: Vec<KeyValue>,
    error: Option<Failed>,
}

impl ChatSpan {
    fn new(pipe: &Pipe, cx: &Cx<'_>, is_heard: bool) -> Self {
        let parent = pipe.parent(cx);
        let place = pipe.place(cx, None, parent);
        Self { place, parent, is_heard, started: None, begun: None, over: None }
    }
}

impl Pipe {
    /// Returns the place of a chat's span.
    pub(super) fn chat_place(&self, chat: &str) -> Option<Place> {
        lock(&self.chat_spans).get(chat).map(|chat| chat.place)
    }

    /// An instance starts whose events are heard, and is to take part in a chat.
    pub(super) fn expect_chat(&self, cx: &Cx<'_>, chat: Arc<str>) {
        let made = ChatSpan::new(self, cx, true);
        lock(&self.chat_spans).entry(chat).or_insert(made);
    }

    /// An agent begins a chat. The first one's begin is the chat's.
    pub(super) fn begin_chat(&self, cx: &Cx<'_>, chat: &str, name: &str) {
        let made = (self.chat_place(chat).is_none()).then(|| ChatSpan::new(self, cx, false));
        let mut chats = lock(&self.chat_spans);
        if let Some(made) = made {
            chats.entry(chat.into()).or_insert(made);
        }
        let Some(span) = chats.get_mut(chat) else { return };
        let begun = span.begun.get_or_insert_with(|| Begun {
            name: name.into(),
            start: SystemTime::now(),
            began: Instant::now(),
            agents: 0,
        });
        begun.agents += 1;
    }

    /// An agent ends a chat. The last one's end is the chat's, unless its events say more.
    pub(super) fn end_chat(&self, chat: &str, attributes: Vec<KeyValue>, error: Option<Failed>) {
        let mut chats = lock(&self.chat_spans);
        let Some(span) = chats.get_mut(chat) else { return };
        let Some(begun) = &mut span.begun else { return };
        begun.agents = begun.agents.saturating_sub(1);
        if begun.agents > 0 {
            return;
        }
        let Some(Begun { name, start, began, .. }) = span.begun.take() else { return };
        let end = start + began.elapsed();
        span.over = Some(ChatOver { name, start, end, attributes, error });
        if !span.is_heard {
            let span = chats.remove(chat);
            drop(chats);
            if let Some(mut span) = span {
                self.export_chat(&mut span, None);
            }
        }
    }

    /// The first event of a chat.
    pub(super) fn chat_started(&self, chat: &str, at: SystemTime) {
        if let Some(span) = lock(&self.chat_spans).get_mut(chat) {
            span.started = Some(at);
        }
    }

    /// The last event of a chat.
    pub(super) fn chat_ended(&self, chat: &str, at: SystemTime) {
        if let Some(span) = lock(&self.chat_spans).get_mut(chat) {
            self.export_chat(span, Some(at));
        }
    }

    /// The last watched agent has left a chat.
    pub(super) fn chat_left(&self, chat: &str) {
        let left = lock(&self.chat_spans).remove(chat);
        if let Some(mut span) = left {
            self.export_chat(&mut span, None);
        }
    }

    /// No event comes any more of chats that are over.
    pub(super) fn settle_chats(&self) {
        self.chats.keep(|instance| self.being(instance).is_some());
        lock(&self.chat_spans).retain(|chat, span| {
            self.export_chat(span, None);
            span.begun.is_some() || self.chats.has(chat)
        });
    }

    /// Exports a chat if it is over. What has its id after that is another one.
    fn export_chat(&self, span: &mut ChatSpan, ended: Option<SystemTime>) {
        let Some(ChatOver { name, start, end, attributes, error }) = span.over.take() else {
            return;
        };
        let start = span.started.take().map_or(start, |started| started.min(start));
        let end = ended.map_or(end, |ended| ended.max(end));
        let took = end.duration_since(start).unwrap_or_default();
        if let Some(meters) = &self.exports.meters {
            meters.workflow(&name, took, error.as_ref().map(|error| error.kind));
        }
        let place = span.place;
        let parent = span.parent;
        let kind = SpanKind::Internal;
        span.place = place.child();
        let name = format!("invoke_workflow {name}").into();
        self.export(Over { place, parent, kind, name, start, took, attributes, error });
    }
}
