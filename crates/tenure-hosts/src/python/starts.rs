//! The `on_start` of instances: which of them ran, for a worker that takes another's place.

use super::folding::Folding;
use super::host::Entry;
use super::lock;
use super::seats::Chair;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tenure_core::InstanceId;

/// A function that ran at an instance's `on_start`.
pub(super) struct Start {
    pub(super) entry: Arc<Entry>,
    pub(super) hook: Arc<str>,
    pub(super) chair: Chair,
}

/// The functions that ran at `on_start`, by instance.
#[derive(Default)]
pub(super) struct Starts(Mutex<HashMap<InstanceId, Instance, Folding>>);

#[derive(Default)]
struct Instance {
    ran: Vec<Arc<Start>>,
    /// The functions that were called, and of which none knows that they began.
    unbegun: Vec<u32>,
    /// Whether a start in another worker failed: it is not tried again.
    has_failed: bool,
}

impl Starts {
    /// Notes that an `on_start` is about to be called.
    pub(super) fn attempt(&self, instance: InstanceId, entry: &Entry) {
        let mut all = lock(&self.0);
        let of = all.entry(instance).or_default();
        of.unbegun.push(entry.id);
        of.ran.retain(|start| start.entry.id != entry.id);
    }

    /// Notes that the function of an `on_start` runs.
    pub(super) fn began(&self, instance: InstanceId, entry: &Entry) {
        if let Some(of) = lock(&self.0).get_mut(&instance) {
            of.unbegun.retain(|id| *id != entry.id);
        }
    }

    /// Notes that an `on_start` has ended well.
    pub(super) fn ran(&self, instance: InstanceId, start: Start) {
        let mut all = lock(&self.0);
        let of = all.entry(instance).or_default();
        of.unbegun.retain(|id| *id != start.entry.id);
        of.ran.push(Arc::new(start));
    }

    /// Returns `false` if an `on_start` of the instance was called and its function never began.
    pub(super) fn all_began(&self, instance: InstanceId) -> bool {
        lock(&self.0).get(&instance).is_none_or(|of| of.unbegun.is_empty())
    }

    /// Returns what has to run again in the worker that takes this chair.
    pub(super) fn again(&self, instance: InstanceId, chair: Chair) -> Vec<Arc<Start>> {
        let all = lock(&self.0);
        let Some(of) = all.get(&instance).filter(|of| !of.has_failed) else { return Vec::new() };
        of.ran.iter().filter(|start| start.chair == chair).cloned().collect()
    }

    /// Notes that a start in another worker failed, so that the instance can end.
    pub(super) fn fail(&self, instance: InstanceId) {
        lock(&self.0).entry(instance).or_default().has_failed = true;
    }

    pub(super) fn forget(&self, instance: InstanceId) {
        lock(&self.0).remove(&instance);
    }
}
