//! What is known of the agents that are watched, and the spans that become of it.

use super::super::chats::Chats;
use super::super::gather::{Gather, Taken};
use super::super::pump::Pumps;
use super::super::seen::lock;
use super::Config;
use super::chat::ChatSpan;
use super::events::HookCall;
use super::export::Exports;
use super::ids::{Place, Trace, WITHIN};
use super::names::{AGENT_DESCRIPTION, AGENT_ID, AGENT_NAME, OPERATION};
use super::records::{Record, Records, Told, TurnSaid, TurnTold};
use super::span::{Failed, Over};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, SpanKind};
use opentelemetry_sdk::trace::{SpanEvents, SpanProcessor};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tenure_core::context::Cx;
use tenure_core::phase::AgentState;
use tenure_core::{Error, InstanceId, RunId};

/// The most events that a span keeps.
const MOST_EVENTS: usize = 128;

/// How many records may wait to become spans and numbers.
const QUEUE: usize = 8192;
/// How long they are gathered.
const PAUSE: Duration = Duration::from_millis(20);

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
    pub(super) began: Instant,
    pub(super) being: Arc<Being>,
    pub(super) instance: InstanceId,
    pub(super) tools: u64,
    events: SpanEvents,
    over: Option<Box<TurnTold>>,
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
    pub(super) exports: Arc<Exports>,
    records: Gather<Records>,
    pub(super) pumps: Pumps,
    beings: Mutex<HashMap<InstanceId, Arc<Being>>>,
    turns: Mutex<HashMap<RunId, Turn>>,
    /// The chats of those who are heard.
    pub(super) chats: Chats,
    pub(super) chat_spans: Mutex<HashMap<Arc<str>, ChatSpan>>,
    /// Hooks that were called before the turn was known that they are part of.
    pub(super) early: Mutex<HashMap<RunId, Vec<HookCall>>>,
    pub(super) questions: Mutex<HashMap<Arc<str>, Question>>,
}

impl Pipe {
    pub(super) fn open(config: Arc<Config>) -> Result<Self, Error> {
        let exports = Arc::new(Exports::open(&config)?);
        let works = exports.clone();
        let work = move |records: &mut Records, _: &Taken<'_>| works.work(records, true);
        let records = Gather::start("tenure-telemetry", (QUEUE, PAUSE), work)
            .map_err(|error| Error::invalid(format!("telemetry cannot be exported: {error}")))?;
        Ok(Self {
            exports,
            records,
            config,
            pumps: Pumps::default(),
            beings: Mutex::default(),
            turns: Mutex::default(),
            chats: Chats::default(),
            chat_spans: Mutex::default(),
            early: Mutex::default(),
            questions: Mutex::default(),
        })
    }

    /// What something that happens here is part of: the tool call that runs it, else its chat, else
    /// what the request came from.
    pub(super) fn parent(&self, cx: &Cx<'_>) -> Option<Place> {
        let chat = cx.chat_id();
        let within = WITHIN.try_with(Clone::clone).ok();
        let of_chat = || chat.and_then(|chat| self.chat_place(chat));
        match within {
            // A chat that a tool runs is part of the call, and its turns are part of the chat.
            Some(within) if within.chat.as_deref() == chat => Some(within.place),
            Some(within) => of_chat().or(Some(within.place)),
            None => of_chat().or_else(|| cx.context().and_then(Place::incoming)),
        }
    }

    /// A span that begins here.
    pub(super) fn place(&self, cx: &Cx<'_>, run: Option<RunId>, parent: Option<Place>) -> Place {
        match parent {
            Some(parent) => parent.child(),
            None => Place::root(Trace::of(cx, run), self.config.sample),
        }
    }

    /// Hands on what somebody did, who then goes on: another thread makes something of it.
    pub(super) fn give(&self, add: impl FnOnce(&mut Records)) {
        if let Err(add) = self.records.put(false, add) {
            // Its span is lost. What is counted is always complete.
            let mut alone = Records::default();
            add(&mut alone);
            self.exports.work(&mut alone, false);
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
            place: self.place(cx, None, parent),
            parent,
            start: SystemTime::now(),
            began: Instant::now(),
            is_heard,
            life: Mutex::new(Life { is_created: false, state }),
        });
        lock(&self.beings).insert(cx.instance_id(), being.clone());
        if is_heard && let Some(chat) = self.chats.join(cx) {
            self.expect_chat(cx, chat);
        }
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
        self.settle_early(Some(instance));
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
        for (turn, events) in over {
            self.over(*turn, events);
        }
    }

    pub(super) fn began(&self, run: RunId, turn: Turn) {
        lock(&self.turns).insert(run, turn);
    }

    /// Looks at a turn, or changes it.
    pub(super) fn turn<T>(&self, run: RunId, look: impl FnOnce(&mut Turn) -> T) -> Option<T> {
        lock(&self.turns).get_mut(&run).map(look)
    }

    /// Returns the span that something in a run is part of: its turn, else the chat that its instance
    /// stands for, else the creation of its instance.
    pub(super) fn place_of(&self, run: Option<RunId>, instance: InstanceId) -> Option<Place> {
        let of_turn = run.and_then(|run| self.turn(run, |turn| turn.place));
        let of_chat = || self.chats.hosted_by(instance).and_then(|chat| self.chat_place(&chat));
        of_turn.or_else(of_chat).or_else(|| self.being(instance).map(|being| being.place))
    }

    /// A turn is over. If its events are heard it is exported once they have said so: some of them
    /// are part of it.
    pub(super) fn ended(&self, run: RunId, models: u64, error: Option<Failed>, end: TurnSaid) {
        let mut turns = lock(&self.turns);
        let Some(turn) = turns.get_mut(&run) else { return };
        let (place, parent, began) = (turn.place, turn.parent, turn.began);
        let (took, being, calls) = (began.elapsed(), turn.being.clone(), (models, turn.tools));
        let kind = error.as_ref().map(|error| error.kind);
        let told = Told { place, parent, began, took, error };
        if being.is_heard && place.sampled {
            turn.over = Some(Box::new(TurnTold { told, being: being.clone(), end }));
            drop(turns);
            let counts = Record::TurnCounts { being, took, error: kind, calls };
            self.give(|records| records.list.push(counts));
        } else {
            turns.remove(&run);
            drop(turns);
            let turn = TurnTold { told, being, end };
            let record = Record::Turn(turn, SpanEvents::default(), Some(calls));
            self.give(|records| records.list.push(record));
        }
    }

    /// A turn that was counted is exported.
    fn over(&self, turn: TurnTold, events: SpanEvents) {
        self.give(|records| records.list.push(Record::Turn(turn, events, None)));
    }

    /// Nothing more comes of this turn.
    pub(super) fn settled(&self, run: RunId) {
        let Some(turn) = lock(&self.turns).remove(&run) else { return };
        if let Some(over) = turn.over {
            self.over(*over, turn.events);
        }
    }

    /// Nothing more comes of anything that is over: what would have said so was missed.
    pub(super) fn settle_all(&self) {
        self.settle_early(None);
        self.settle_chats();
        let mut turns = lock(&self.turns);
        let over: Vec<RunId> =
            turns.iter().filter(|(_, turn)| turn.over.is_some()).map(|(run, _)| *run).collect();
        let over: Vec<Turn> = over.iter().filter_map(|run| turns.remove(run)).collect();
        drop(turns);
        for turn in over {
            if let Some(over) = turn.over {
                self.over(*over, turn.events);
            }
        }
    }

    pub(super) fn export(&self, over: Over) {
        self.exports.export(over);
    }

    /// Exports what is left, and stops, within so much time. Says what was lost, if anything was.
    pub(super) async fn close(self: Arc<Self>) -> Option<String> {
        let within = self.config.flush;
        let until = Instant::now() + within;
        self.exports.losses.ends();
        self.pumps.close(within).await;
        self.settle_all();
        let (done, wait) = tokio::sync::oneshot::channel();
        let spans = self.clone();
        // Threads of their own: they block, and a receiver that hangs is not waited for.
        let closing =
            std::thread::Builder::new().name("tenure-telemetry".to_owned()).spawn(move || {
                spans.records.close();
                if spans.records.lost() > 0 {
                    tracing::debug!("{} spans found no room, and are lost", spans.records.lost());
                }
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
        let left = until.saturating_duration_since(Instant::now());
        let in_time = closing.is_ok() && tokio::time::timeout(left, wait).await.is_ok();
        self.exports.losses.sum((!in_time).then_some(within))
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
