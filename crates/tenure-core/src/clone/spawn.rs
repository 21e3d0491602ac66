//! Spawning an instance beside a living one.

use crate::agent::{Agent, Blueprint, Inner, Label};
use crate::error::Error;
use crate::event::EventKind;
use crate::message::History;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Inner {
    /// The number of the next clone or fork; never used again in this process.
    pub(crate) fn next_number(&self) -> u64 {
        self.blueprint.spawned.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An instance of `blueprint`, started, whose costs are charged to this one too.
    pub(crate) async fn spawn(
        self: &Arc<Self>,
        blueprint: &Blueprint,
        label: Label,
        history: Option<History>,
    ) -> Result<Agent, Error> {
        let clone = self.offspring(blueprint, label, history);
        // A startup that fails, or is dropped, rolls itself back.
        clone.startup().await?;
        Ok(clone)
    }

    /// The same, not yet started.
    pub(crate) fn offspring(
        self: &Arc<Self>,
        blueprint: &Blueprint,
        label: Label,
        history: Option<History>,
    ) -> Agent {
        let bus = blueprint.0.bus.clone().or_else(|| self.bus.clone());
        let inner = Inner::new(blueprint.0.clone(), label, bus, Some(self.clone()));
        if let Some(history) = history {
            *inner.history.lock() = history;
        }
        if let Some(context) = self.if_extra().and_then(|extra| extra.context.get()) {
            // The clone is new, so nobody has given it another.
            let _ = inner.extra().context.set(context.clone());
        }
        if let Some(bus) = self.listening() {
            bus.emit(self, None, EventKind::Spawned { child: inner.name().into() });
        }
        Agent::of(inner)
    }
}
