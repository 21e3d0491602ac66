//! The numbers kept of a life.

use crate::sync::atomic::{AtomicU64, Ordering};
use serde::Serialize;
use std::time::Duration;

/// The numbers of an agent's life, as the contract names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LifecycleMetrics {
    /// How long the successful startup took, retries and the hooks of its transitions included.
    pub startup_time_ms: f64,
    /// How long the shutdown took, or the roll-back of a startup that failed.
    pub shutdown_time_ms: f64,
    /// How long the agent was busy, over all requests.
    pub active_time_ms: f64,
    /// How many requests it took on, those under way included.
    pub total_requests: u64,
    /// How many of them did not end well.
    pub failed_requests: u64,
    /// How often it moved from one phase to another.
    pub state_transitions: u64,
}

#[derive(Default)]
pub(crate) struct Metrics {
    startup: AtomicU64,
    shutdown: AtomicU64,
    active: AtomicU64,
    total: AtomicU64,
    failed: AtomicU64,
    turn_transitions: AtomicU64,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(nanos: &AtomicU64) -> f64 {
    nanos.load(Ordering::Relaxed) as f64 / 1e6
}

/// For a cell with one writer at a time: whoever holds the turn.
#[inline]
fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Metrics {
    pub(crate) fn started(&self, took: Duration) {
        // A startup that took less than the clock can tell still took place.
        self.startup.store(nanos(took).max(1), Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self, took: Duration) {
        self.shutdown.store(nanos(took).max(1), Ordering::Relaxed);
    }

    /// A request was taken on. Called by the holder of the turn.
    #[inline]
    pub(crate) fn took_on(&self) {
        add(&self.total, 1);
    }

    /// A request ended. Called by the holder of the turn.
    #[inline]
    pub(crate) fn request(&self, took: Duration, ok: bool, transitions: u64) {
        add(&self.active, nanos(took));
        if !ok {
            add(&self.failed, 1);
        }
        add(&self.turn_transitions, transitions);
    }

    /// The numbers so far, of a life that has moved so often beside its turns.
    pub(crate) fn read(&self, life_moves: u64) -> LifecycleMetrics {
        LifecycleMetrics {
            startup_time_ms: millis(&self.startup),
            shutdown_time_ms: millis(&self.shutdown),
            active_time_ms: millis(&self.active),
            total_requests: self.total.load(Ordering::Relaxed),
            failed_requests: self.failed.load(Ordering::Relaxed),
            state_transitions: life_moves + self.turn_transitions.load(Ordering::Relaxed),
        }
    }
}
