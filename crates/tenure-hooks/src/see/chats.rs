//! The chats that watched agents take part in.

use super::seen::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tenure_core::InstanceId;
use tenure_core::context::Cx;
use tenure_core::event::{Event, EventKind};
use tenure_core::phase::Phase;

/// The chats in which an agent is watched, and the instances that stand for them.
///
/// The instance that stands for a chat has the chat's own hooks, a workflow's lifecycle tools among them,
/// and no watcher: its events count for those who watch another agent of the chat. Agents of a chat are
/// started before it begins and shut down after its end, so its events lie between.
#[derive(Default)]
pub(super) struct Chats(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The chat of each instance that is watched.
    members: HashMap<InstanceId, Arc<str>>,
    /// The chat of each instance that stands for one.
    hosts: HashMap<InstanceId, Arc<str>>,
}

impl Known {
    fn has(&self, chat: &str) -> bool {
        self.members.values().any(|known| **known == *chat)
    }
}

impl Chats {
    /// Takes in an instance whose events are heard, and returns the chat that it starts for.
    pub(super) fn join(&self, cx: &Cx<'_>) -> Option<Arc<str>> {
        let chat = cx.context()?.conversation_id();
        if chat.is_empty() {
            return None;
        }
        let mut known = lock(&self.0);
        let same = known.members.values().find(|of| ***of == *chat).cloned();
        let chat = same.unwrap_or_else(|| chat.into());
        known.members.insert(cx.instance_id(), chat.clone());
        Some(chat)
    }

    /// Returns the chat that an instance stands for.
    pub(super) fn hosted_by(&self, instance: InstanceId) -> Option<Arc<str>> {
        lock(&self.0).hosts.get(&instance).cloned()
    }

    /// Returns `true` for an instance that takes part in a chat or stands for one, until its own events
    /// have said that it is gone.
    pub(super) fn knows(&self, instance: InstanceId) -> bool {
        let known = lock(&self.0);
        known.members.contains_key(&instance) || known.hosts.contains_key(&instance)
    }

    /// Follows the events of a bus, in their order. Returns a chat that the last watched agent has left.
    pub(super) fn follow(&self, event: &Event) -> Option<Arc<str>> {
        match &event.kind {
            EventKind::ChatStarted { chat } => {
                let mut known = lock(&self.0);
                if known.has(chat) {
                    known.hosts.insert(event.instance, chat.clone());
                }
                None
            }
            EventKind::PhaseEntered { to: Phase::ShuttingDown, .. } => {
                let mut known = lock(&self.0);
                known.hosts.remove(&event.instance);
                let left = known.members.remove(&event.instance)?;
                (!known.has(&left)).then_some(left)
            }
            _ => None,
        }
    }

    /// Forgets instances that are not there any more: what would have said so was missed.
    pub(super) fn keep(&self, is_there: impl Fn(InstanceId) -> bool) {
        let mut known = lock(&self.0);
        known.members.retain(|instance, _| is_there(*instance));
        let mut hosts = std::mem::take(&mut known.hosts);
        hosts.retain(|_, chat| known.has(chat));
        known.hosts = hosts;
    }

    /// Returns `true` if a watched agent takes part in the chat.
    pub(super) fn has(&self, chat: &str) -> bool {
        lock(&self.0).has(chat)
    }
}
