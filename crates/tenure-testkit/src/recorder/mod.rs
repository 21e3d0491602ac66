//! Keeping what happened.

mod pairing;
#[cfg(test)]
mod tests;

pub use pairing::assert_paired;

use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::InstanceId;
use tenure_core::event::{Event, EventBus, EventKind, LogStream, Received, Subscriber};

/// Keeps every event of a bus, from the moment it was made. Its queue has no bound, so none is
/// lost.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::event::EventBus;
/// use tenure_models::Passthrough;
/// use tenure_testkit::{Recorder, assert_paired};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let bus = EventBus::new();
/// let recorder = Recorder::new(&bus);
/// let agent = Agent::builder("echo").model(Passthrough::new()).events(&bus).build()?;
/// agent.startup().await?;
/// agent.run("hello").await?;
/// agent.shutdown().await;
/// assert_paired(&recorder);
/// assert_eq!(recorder.count("agent.turn.started"), 1);
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
pub struct Recorder {
    state: Mutex<State>,
}

struct State {
    subscriber: Subscriber,
    events: Vec<Arc<Event>>,
}

impl State {
    fn keep(&mut self, received: Received) {
        match received {
            Received::Event(event) => self.events.push(event),
            Received::Missed(missed) => {
                unreachable!("a queue without a bound lost {missed} events")
            }
        }
    }

    fn drain(&mut self) {
        while let Some(received) = self.subscriber.try_recv() {
            self.keep(received);
        }
    }
}

impl Recorder {
    /// Starts to record what happens on `bus`.
    pub fn new(bus: &EventBus) -> Self {
        Self {
            state: Mutex::new(State { subscriber: bus.subscribe(usize::MAX), events: Vec::new() }),
        }
    }

    /// Creates a bus and a recorder of everything that happens on it.
    pub fn with_bus() -> (EventBus, Self) {
        let bus = EventBus::new();
        let recorder = Self::new(&bus);
        (bus, recorder)
    }

    /// Everything that happened so far, oldest first.
    pub fn events(&self) -> Vec<Arc<Event>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.drain();
        state.events.clone()
    }

    /// The names of everything that happened so far, oldest first.
    pub fn names(&self) -> Vec<&'static str> {
        self.events().iter().map(|event| event.name()).collect()
    }

    /// What happened in one instance, oldest first.
    pub fn of(&self, instance: InstanceId) -> Vec<Arc<Event>> {
        let mut events = self.events();
        events.retain(|event| event.instance == instance);
        events
    }

    /// How many events of this name happened so far.
    pub fn count(&self, name: &str) -> usize {
        self.events().iter().filter(|event| event.name() == name).count()
    }

    /// Returns the data of each event that was announced under this name so far, oldest first.
    pub fn announced(&self, wanted: &str) -> Vec<Value> {
        let data = |event: &Arc<Event>| match &event.kind {
            EventKind::Announced { name, data } if *name == wanted => Some(data.clone()),
            _ => None,
        };
        self.events().iter().filter_map(data).collect()
    }

    /// Returns every line that was logged so far, oldest first: its source, its stream and the line.
    pub fn logged(&self) -> Vec<(String, LogStream, String)> {
        let line = |event: &Arc<Event>| match &event.kind {
            EventKind::Log { source, stream, line } => {
                Some((source.to_string(), *stream, line.clone()))
            }
            _ => None,
        };
        self.events().iter().filter_map(line).collect()
    }

    /// Waits until something happens that `wanted` accepts, or has happened already; for what goes
    /// on in the background. `None` once the bus is gone and it did not.
    pub async fn wait_for(&mut self, wanted: impl Fn(&Event) -> bool) -> Option<Arc<Event>> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut seen = 0;
        loop {
            state.drain();
            if let Some(event) = state.events[seen..].iter().find(|event| wanted(event)) {
                return Some(event.clone());
            }
            seen = state.events.len();
            let received = state.subscriber.recv().await?;
            state.keep(received);
        }
    }

    /// What began and did not end, ended without having begun, or moved where the table does not
    /// allow; one sentence each.
    pub fn faults(&self) -> Vec<String> {
        pairing::faults(&self.events())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
