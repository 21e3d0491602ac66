//! Handing events to subscribers.

use super::{Event, EventKind};
use crate::agent::Inner;
use crate::drive::Turn;
use crate::id::{InstanceId, RunId};
use crate::phase::Phase;
use crate::step::{StepLog, Steps};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::SystemTime;
use tokio::sync::Notify;

/// Where an event comes from.
pub(crate) struct Origin<'a> {
    pub(crate) agent: &'a str,
    pub(crate) instance: InstanceId,
    pub(crate) run: Option<RunId>,
    pub(crate) trace: Option<Arc<str>>,
}

impl Origin<'_> {
    fn event(&self, kind: EventKind) -> Event {
        Event {
            id: 0,
            time: SystemTime::now(),
            agent: self.agent.into(),
            instance: self.instance,
            run: self.run,
            trace: self.trace.clone(),
            kind,
        }
    }
}

/// What a phase means for startup and shutdown.
fn meaning(kind: &EventKind) -> Option<EventKind> {
    let EventKind::PhaseEntered { from, to, reason } = *kind else { return None };
    match (from, to) {
        (_, Phase::Bootstrapping) | (Phase::Bootstrapping, Phase::Idle) => {
            Some(EventKind::Startup { state: to.state() })
        }
        (_, Phase::ShuttingDown | Phase::Terminated) => {
            Some(EventKind::Shutdown { state: to.state(), reason })
        }
        _ => None,
    }
}

/// Whoever gets to know what an instance does: those who listen to its bus, and the log of the run
/// that it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Listening<'a> {
    pub(crate) bus: Option<&'a EventBus>,
    pub(crate) log: Option<&'a dyn StepLog>,
}

impl Listening<'_> {
    pub(crate) fn emit(self, inner: &Inner, turn: Option<&Turn>, kind: EventKind) {
        let (run, trace) = inner.origin_of(turn);
        self.emit_of(inner, run, trace, kind);
    }

    /// The same for a turn that may be gone.
    pub(crate) fn emit_of(
        self,
        inner: &Inner,
        run: Option<RunId>,
        trace: Option<Arc<str>>,
        mut kind: EventKind,
    ) {
        kind.redact(&inner.blueprint.config.redactor);
        let origin = Origin { agent: inner.name(), instance: inner.id, run, trace };
        if let Some(log) = self.log {
            let also = meaning(&kind);
            log.event(origin.event(kind.clone()));
            if let Some(also) = also {
                log.event(origin.event(also));
            }
        }
        if let Some(bus) = self.bus {
            bus.announce(&origin, kind);
        }
    }
}

/// Announces an event at a place of a recorded run, unless it is on record there. The log is told
/// first, also without a listener: what it has is what a later life does not announce.
pub(crate) fn emit_once(place: &Steps, inner: &Inner, turn: Option<&Turn>, mut kind: EventKind) {
    kind.redact(&inner.blueprint.config.redactor);
    let (run, trace) = inner.origin_of(turn);
    let origin = Origin { agent: inner.name(), instance: inner.id, run, trace };
    let is_news = place.log().announce(place.path(), origin.event(kind.clone()));
    let bus = inner.bus.as_ref().filter(|bus| is_news && bus.is_listening());
    if let Some(bus) = bus {
        bus.announce(&origin, kind);
    }
}

/// Where events go. Clones are one bus; agents that share a bus share its order of events.
///
/// ```
/// use tenure_core::event::EventBus;
///
/// let bus = EventBus::new();
/// assert!(!bus.is_listening());
/// let subscriber = bus.subscribe(64);
/// assert!(bus.is_listening());
/// drop(subscriber);
/// assert!(!bus.is_listening());
/// ```
#[derive(Clone, Default)]
pub struct EventBus(Arc<Bus>);

#[derive(Default)]
struct Bus {
    listening: AtomicBool,
    /// Whether one of those who listen may answer a question.
    answers: AtomicBool,
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
struct Subscribers {
    last_id: u64,
    queues: Vec<Arc<Queue>>,
}

impl EventBus {
    /// A bus that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts listening. At most `capacity` events wait to be received; what does not fit is
    /// counted, and the subscriber is told.
    pub fn subscribe(&self, capacity: usize) -> Subscriber {
        self.add(capacity, true)
    }

    /// Like [`EventBus::subscribe`], for somebody who only looks on: nobody waits for an answer of
    /// theirs. A question that nobody else could answer is denied as if they were not there.
    pub fn watch(&self, capacity: usize) -> Subscriber {
        self.add(capacity, false)
    }

    fn add(&self, capacity: usize, answers: bool) -> Subscriber {
        let queue = Arc::new(Queue {
            capacity: capacity.max(1),
            answers,
            state: Mutex::default(),
            arrived: Notify::new(),
        });
        let mut subscribers = self.0.subscribers.lock();
        subscribers.queues.push(queue.clone());
        self.0.tell(&subscribers);
        Subscriber { queue, bus: Arc::downgrade(&self.0) }
    }

    /// Whether both are one bus.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether anybody listens who may answer a question.
    #[inline]
    pub(crate) fn may_answer(&self) -> bool {
        self.0.answers.load(Ordering::Relaxed)
    }

    /// Whether anybody listens.
    #[inline]
    pub fn is_listening(&self) -> bool {
        self.0.listening.load(Ordering::Relaxed)
    }

    /// Sends an event, and with it what a phase means for startup and shutdown.
    pub(crate) fn announce(&self, origin: &Origin<'_>, kind: EventKind) {
        let also = meaning(&kind);
        self.send(origin.event(kind));
        if let Some(also) = also {
            self.send(origin.event(also));
        }
    }

    fn send(&self, mut event: Event) {
        let mut subscribers = self.0.subscribers.lock();
        subscribers.last_id += 1;
        event.id = subscribers.last_id;
        let event = Arc::new(event);
        for queue in &subscribers.queues {
            queue.push(event.clone());
        }
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").field("listening", &self.is_listening()).finish()
    }
}

struct Queue {
    capacity: usize,
    answers: bool,
    state: Mutex<QueueState>,
    arrived: Notify,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    missed: u64,
}

impl Queue {
    fn push(&self, event: Arc<Event>) {
        let mut state = self.state.lock();
        if state.events.len() < self.capacity && state.missed == 0 {
            state.events.push_back(event);
        } else {
            state.missed += 1;
        }
        drop(state);
        self.arrived.notify_one();
    }

    fn pop(&self) -> Option<Received> {
        let mut state = self.state.lock();
        match state.events.pop_front() {
            Some(event) => Some(Received::Event(event)),
            None if state.missed > 0 => Some(Received::Missed(std::mem::take(&mut state.missed))),
            None => None,
        }
    }
}

/// What a subscriber receives.
#[derive(Clone, Debug)]
pub enum Received {
    /// An event.
    Event(Arc<Event>),
    /// So many events did not fit into the queue after the last one received.
    Missed(u64),
}

/// Receives the events of a bus. Dropping it ends the subscription.
pub struct Subscriber {
    queue: Arc<Queue>,
    bus: Weak<Bus>,
}

impl Subscriber {
    /// The next event, or how many were missed. `None` once the bus is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Received> {
        loop {
            let arrived = self.queue.arrived.notified();
            if let Some(received) = self.queue.pop() {
                return Some(received);
            }
            if self.bus.strong_count() == 0 {
                return None;
            }
            arrived.await;
        }
    }

    /// What is there now, without waiting.
    pub fn try_recv(&mut self) -> Option<Received> {
        self.queue.pop()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        if let Some(bus) = self.bus.upgrade() {
            let mut subscribers = bus.subscribers.lock();
            subscribers.queues.retain(|queue| !Arc::ptr_eq(queue, &self.queue));
            bus.tell(&subscribers);
        }
    }
}

impl Bus {
    /// Says who listens now.
    fn tell(&self, subscribers: &Subscribers) {
        let answers = subscribers.queues.iter().any(|queue| queue.answers);
        self.answers.store(answers, Ordering::Release);
        self.listening.store(!subscribers.queues.is_empty(), Ordering::Release);
    }
}

/// Wakes whoever waits for a bus that is gone.
impl Drop for Bus {
    fn drop(&mut self) {
        for queue in &self.subscribers.lock().queues {
            queue.arrived.notify_one();
        }
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("capacity", &self.queue.capacity).finish()
    }
}
