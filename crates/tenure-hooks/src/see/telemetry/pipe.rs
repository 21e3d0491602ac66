//! What is known of the agents that are watched, and the spans that become of it.

use super::super::pump::Pumps;
use super::super::seen::lock;
use super::Config;
use super::export::Exports;
use super::ids::{Place, WITHIN, trace_id};
use super::names::{AGENT_DESCRIPTION, AGENT_ID, AGENT_NAME, ERROR_TYPE, OPERATION, OUTCOME};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks, SpanProcessor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tenure_core::context::Cx;
use tenure_core::phase::AgentState;
use tenure_core::{Error, InstanceId, RunId};

/// The most events that a span keeps.
const MOST_EVENTS: usize = 128;

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

/// An instance.
pub(super) struct Being {
    pub(super) name: Arc<str>,
    id: Arc<str>,
    description: String,
    /// The span of its creation.
    pub(super) place: Place,
    parent: Option<Place>,
    start: SystemTime,
    began: Instant,
    /// Whether its events are heard, and end its spans.
    pub(super) is_heard: bool,
    life: Mutex<Life>,
}

struct Life {
    is_created: bool,
    state: Option<AgentState>,
}

/// A turn that is under way, or over and not yet exported.
pub(super) struct Turn {
    pub(super) place: Place,
    pub(super) parent: Option<Place>,
    pub(super) start: SystemTime,
    pub(super) began: Instant,
    pub(super) being: Arc<Being>,
    pub(super) instance: InstanceId,
    pub(super) tools: u64,
    events: SpanEvents,
    over: Option<Over>,
}

/// A workflow's chat.
pub(super) struct Chat {
    pub(super) place: Place,
    pub(super) parent: Option<Place>,
    pub(super) name: String,
    pub(super) start: SystemTime,
    pub(super) began: Instant,
    /// How many agents have begun it, and not ended it.
    pub(super) agents: usize,
}

/// A question that is open.
pub(super) struct Question {
    pub(super) run: Option<RunId>,
    pub(super) parent: Option<Place>,
    pub(super) start: SystemTime,
    pub(super) attributes: Vec<KeyValue>,
}

/// Everything between the agents and the exporters.
pub(super) struct Pipe {
    pub(super) config: Arc<Config>,
    pub(super) exports: Exports,
    pub(super) pumps: Pumps,
    beings: Mutex<HashMap<InstanceId, Arc<Being>>>,
    turns: Mutex<HashMap<RunId, Turn>>,
    pub(super) chats: Mutex<HashMap<Arc<str>, Chat>>,
    pub(super) questions: Mutex<HashMap<Arc<str>, Question>>,
}

impl Pipe {
    pub(super) fn open(config: Arc<Config>) -> Result<Self, Error> {
        Ok(Self {
            exports: Exports::open(&config)?,
            config,
            pumps: Pumps::default(),
            beings: Mutex::default(),
            turns: Mutex::default(),
            chats: Mutex::default(),
            questions: Mutex::default(),
        })
    }

    /// What something that happens here is part of: the tool call that runs it, else its chat, else
    /// what the request came from.
    pub(super) fn parent(&self, cx: &Cx<'_>) -> Option<Place> {
        let chat = cx.chat_id();
        let within = WITHIN.try_with(Clone::clone).ok();
        let of_chat = || chat.and_then(|chat| lock(&self.chats).get(chat).map(|chat| chat.place));
        match within {
            // A chat that a tool runs is part of the call, and its turns are part of the chat.
            Some(within) if within.chat.as_deref() == chat => Some(within.place),
            Some(within) => of_chat().or(Some(within.place)),
            None => of_chat().or_else(|| cx.context().and_then(Place::incoming)),
        }
    }

    /// A span that begins here.
    pub(super) fn place(&self, cx: &Cx<'_>, parent: Option<Place>) -> Place {
        match parent {
            Some(parent) => parent.child(),
            None => Place::root(trace_id(&cx.trace_id()), self.config.sample),
        }
    }

    /// An instance starts.
    pub(super) fn born(&self, cx: &Cx<'_>, is_heard: bool) -> Arc<Being> {
        let config = cx.config();
        let state = is_heard.then(|| cx.agent().phase().state());
        let parent = self.parent(cx);
        let being = Arc::new(Being {
            name: config.name.clone(),
            id: cx.instance_id().to_string().into(),
            description: config.description.clone(),
            place: self.place(cx, parent),
            parent,
            start: SystemTime::now(),
            began: Instant::now(),
            is_heard,
            life: Mutex::new(Life { is_created: false, state }),
        });
        lock(&self.beings).insert(cx.instance_id(), being.clone());
        if let Some(meters) = &self.exports.meters {
            meters.state(None, state);
        }
        being
    }

    /// An instance has started, or never will.
    pub(super) fn created(&self, being: &Being, at: SystemTime, ok: bool) {
        if std::mem::replace(&mut lock(&being.life).is_created, true) {
            return;
        }
        let took = at.duration_since(being.start).unwrap_or_else(|_| being.began.elapsed());
        let mut attributes = vec![KeyValue::new(OPERATION, "create_agent")];
        attributes.extend(being.attributes());
        let failed = || Failed { kind: "startup_failed", words: String::new() };
        self.export(Over {
            place: being.place,
            parent: being.parent,
            kind: SpanKind::Client,
            name: format!("create_agent {}", being.name).into(),
            start: being.start,
            took,
            attributes,
            error: (!ok).then(failed),
        });
    }

    pub(super) fn being(&self, instance: InstanceId) -> Option<Arc<Being>> {
        lock(&self.beings).get(&instance).cloned()
    }

    /// The state that an instance is in now.
    pub(super) fn entered(&self, being: &Being, state: AgentState) {
        let before = lock(&being.life).state.replace(state);
        if before != Some(state)
            && let Some(meters) = &self.exports.meters
        {
            meters.state(before, Some(state));
        }
    }

    /// An instance is over.
    pub(super) fn gone(&self, instance: InstanceId) {
        let Some(being) = lock(&self.beings).remove(&instance) else { return };
        self.created(&being, SystemTime::now(), false);
        if let Some(meters) = &self.exports.meters {
            meters.state(lock(&being.life).state.take(), None);
        }
        let mut over = Vec::new();
        lock(&self.turns).retain(|_, turn| {
            let is_its = turn.instance == instance;
            if is_its {
                over.extend(turn.over.take().map(|over| (over, std::mem::take(&mut turn.events))));
            }
            !is_its
        });
        for (span, events) in over {
            self.export_with(span, events);
        }
    }

    pub(super) fn began(&self, run: RunId, turn: Turn) {
        lock(&self.turns).insert(run, turn);
    }

    /// Looks at a turn, or changes it.
    pub(super) fn turn<T>(&self, run: RunId, look: impl FnOnce(&mut Turn) -> T) -> Option<T> {
        lock(&self.turns).get_mut(&run).map(look)
    }

    /// What something in a run is part of: its turn, else the creation of its instance.
    pub(super) fn place_of(&self, run: Option<RunId>, instance: InstanceId) -> Option<Place> {
        let of_turn = run.and_then(|run| self.turn(run, |turn| turn.place));
        of_turn.or_else(|| self.being(instance).map(|being| being.place))
    }

    /// A turn is over. If its events are heard it is exported once they have said so: some of them
    /// are part of it.
    pub(super) fn ended(&self, run: RunId, over: Over) {
        let mut turns = lock(&self.turns);
        match turns.get_mut(&run) {
            Some(turn) if turn.being.is_heard => turn.over = Some(over),
            _ => {
                turns.remove(&run);
                drop(turns);
                self.export(over);
            }
        }
    }

    /// Nothing more comes of this turn.
    pub(super) fn settled(&self, run: RunId) {
        let Some(turn) = lock(&self.turns).remove(&run) else { return };
        if let Some(over) = turn.over {
            self.export_with(over, turn.events);
        }
    }

    /// Nothing more comes of any turn that is over: what would have said so was missed.
    pub(super) fn settle_all(&self) {
        let mut turns = lock(&self.turns);
        let over: Vec<RunId> =
            turns.iter().filter(|(_, turn)| turn.over.is_some()).map(|(run, _)| *run).collect();
        let over: Vec<Turn> = over.iter().filter_map(|run| turns.remove(run)).collect();
        drop(turns);
        for turn in over {
            if let Some(span) = turn.over {
                self.export_with(span, turn.events);
            }
        }
    }

    pub(super) fn export(&self, over: Over) {
        self.export_with(over, SpanEvents::default());
    }

    fn export_with(&self, over: Over, events: SpanEvents) {
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
        self.exports.spans.on_end(SpanData {
            span_context: SpanContext::new(
                place.trace,
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
            instrumentation_scope: self.exports.scope.clone(),
        });
    }

    /// Exports what is left, and stops, within so much time.
    pub(super) async fn close(self: Arc<Self>) {
        let within = self.config.flush;
        let until = Instant::now() + within;
        self.pumps.close(within).await;
        self.settle_all();
        let (done, wait) = tokio::sync::oneshot::channel();
        let spans = self.clone();
        // Threads of their own: they block, and a receiver that hangs is not waited for.
        let closing =
            std::thread::Builder::new().name("tenure-telemetry".to_owned()).spawn(move || {
                let metrics = spans.clone();
                let metrics =
                    std::thread::Builder::new().name("tenure-telemetry".to_owned()).spawn(
                        move || metrics.exports.meters.as_ref().map(super::meters::Meters::close),
                    );
                let _ = spans.exports.spans.shutdown_with_timeout(within);
                if let Ok(metrics) = metrics {
                    let _ = metrics.join();
                }
                let _ = done.send(());
            });
        if closing.is_ok() {
            let left = until.saturating_duration_since(Instant::now());
            if tokio::time::timeout(left, wait).await.is_err() {
                tracing::debug!("telemetry was not taken within {within:?}; some of it is lost");
            }
        }
    }
}

impl Being {
    /// What every span says of the agent that it is of.
    pub(super) fn attributes(&self) -> impl Iterator<Item = KeyValue> + '_ {
        let described = !self.description.is_empty();
        let description = || KeyValue::new(AGENT_DESCRIPTION, self.description.clone());
        [KeyValue::new(AGENT_NAME, self.name.clone()), KeyValue::new(AGENT_ID, self.id.clone())]
            .into_iter()
            .chain(described.then(description))
    }
}

impl Turn {
    pub(super) fn new(
        place: Place,
        parent: Option<Place>,
        being: Arc<Being>,
        instance: InstanceId,
    ) -> Self {
        Self {
            place,
            parent,
            start: SystemTime::now(),
            began: Instant::now(),
            being,
            instance,
            tools: 0,
            events: SpanEvents::default(),
            over: None,
        }
    }

    /// Something happened to the turn.
    pub(super) fn event(&mut self, name: &'static str, at: SystemTime, attributes: Vec<KeyValue>) {
        if self.events.events.len() < MOST_EVENTS {
            self.events.events.push(Event::new(name, at, attributes, 0));
        } else {
            self.events.dropped_count += 1;
        }
    }
}

/// How something ended, as an attribute.
pub(super) fn outcome(outcome: tenure_core::Outcome) -> KeyValue {
    KeyValue::new(OUTCOME, outcome.as_str())
}
