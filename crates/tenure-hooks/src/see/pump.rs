//! Events of agents, handed to whoever turns them into something else.

use super::seen::lock;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;
use tenure_core::event::{Event, EventBus, Received, Subscriber};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many events may wait.
const QUEUE: usize = 8192;

/// What a pump brings.
pub(super) enum Brought<'a> {
    /// An event.
    Event(&'a Event),
    /// Some did not fit.
    Missed,
}

/// Tasks that read the events of buses, one for each.
#[derive(Default)]
pub(super) struct Pumps {
    buses: Mutex<Vec<EventBus>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Pumps {
    /// Reads the events of this bus too. `handle` says whether it wants more of them.
    ///
    /// It only looks on: nobody waits for an answer of its.
    pub(super) fn attach(
        &self,
        bus: &EventBus,
        handle: impl FnMut(Brought<'_>) -> bool + Send + 'static,
    ) {
        let mut buses = lock(&self.buses);
        if self.stop.is_cancelled() || buses.iter().any(|known| known.is(bus)) {
            return;
        }
        buses.push(bus.clone());
        self.tasks.spawn(run(bus.watch(QUEUE), self.stop.clone(), handle));
    }

    /// Stops, once everything is handed on that is there.
    pub(super) async fn close(&self, within: Duration) {
        self.stop.cancel();
        self.tasks.close();
        // What is not handed on by then is given up.
        let _ = tokio::time::timeout(within, self.tasks.wait()).await;
        lock(&self.buses).clear();
    }
}

async fn run(
    mut events: Subscriber,
    stop: CancellationToken,
    mut handle: impl FnMut(Brought<'_>) -> bool,
) {
    while let Either::Left((received, _)) =
        select(pin!(events.recv()), pin!(stop.cancelled())).await
    {
        let Some(received) = received else { return };
        if !give(received, &mut handle) {
            return;
        }
    }
    while let Some(received) = events.try_recv() {
        if !give(received, &mut handle) {
            return;
        }
    }
}

fn give(received: Received, handle: &mut impl FnMut(Brought<'_>) -> bool) -> bool {
    match received {
        Received::Event(event) => handle(Brought::Event(&event)),
        Received::Missed(_) => handle(Brought::Missed),
    }
}
