//! The seats of workers: which instances and functions share a process.

use super::folding::Folding;
use super::worker::Worker;
use crate::Role;
use std::collections::HashMap;
use std::sync::Arc;
use tenure_core::InstanceId;
use tokio::sync::Mutex as AsyncMutex;

/// The seat of a worker: whose functions it runs, and which of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) of: Sharing,
    pub(super) chair: Chair,
}

/// The instances that share workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sharing {
    Family(InstanceId),
    Group(Arc<str>),
}

/// One of the workers of a family or group.
///
/// Guards have workers to themselves, so that no other function can reach what they decide with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Chair {
    pub(super) role: Role,
    pub(super) environment: EnvironmentId,
}

/// The number of an environment that functions run in. 0 is that of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EnvironmentId(pub(super) usize);

/// The instances of each group.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) of: HashMap<InstanceId, Arc<str>, Folding>,
    pub(super) members: HashMap<Arc<str>, Vec<InstanceId>, Folding>,
}

impl Groups {
    pub(super) fn join(&mut self, instance: InstanceId, group: Arc<str>) {
        if let Some(before) = self.of.insert(instance, group.clone())
            && let Some(members) = self.members.get_mut(&before)
        {
            members.retain(|member| *member != instance);
        }
        self.members.entry(group).or_default().push(instance);
    }

    pub(super) fn forget(&mut self, group: &str) {
        for instance in self.members.remove(group).unwrap_or_default() {
            self.of.remove(&instance);
        }
    }
}

/// The place of a worker, which another one takes when it crashes.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) worker: Option<Arc<Worker>>,
    /// Held by the call that starts a worker for it.
    pub(super) filling: Arc<AsyncMutex<()>>,
}

impl Seat {
    pub(super) fn sitting(&self) -> Option<&Arc<Worker>> {
        self.worker.as_ref().filter(|worker| worker.is_fit())
    }
}
