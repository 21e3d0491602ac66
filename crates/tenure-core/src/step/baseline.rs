//! What is on record of some values, so that with each step only what changed is recorded.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What is on record of some values.
#[derive(Default)]
pub(crate) struct Baseline {
    /// The values, and how often they had been written then.
    known: Option<(u64, BTreeMap<String, Value>)>,
    /// The number of the newest change that is known.
    newest: u64,
    /// By which change each value was restored. Steps that ran at the same time are served in
    /// another order than they were recorded in.
    restored: BTreeMap<String, u64>,
}

/// What changed of some values. A later change has a greater number.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Delta {
    at: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) set: BTreeMap<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone: Vec<String>,
}

impl Delta {
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.gone.is_empty()
    }
}

impl Baseline {
    /// From here on there is something to compare with.
    pub(crate) fn begin(&mut self, writes: u64, now: impl FnOnce() -> BTreeMap<String, Value>) {
        if self.known.is_none() {
            self.known = Some((writes, now()));
        }
    }

    /// What has changed since, in this life of the run. It counts as recorded.
    pub(crate) fn differs(
        &mut self,
        life: u32,
        writes: u64,
        now: impl FnOnce() -> BTreeMap<String, Value>,
    ) -> Delta {
        let Some((known, then)) = &self.known else {
            self.begin(writes, now);
            return Delta::default();
        };
        if *known == writes {
            return Delta::default();
        }
        let now = now();
        let is_new = |(key, value): &(&String, &Value)| then.get(*key) != Some(*value);
        let set = now.iter().filter(is_new).map(|(key, value)| (key.clone(), value.clone()));
        let gone = then.keys().filter(|key| !now.contains_key(*key)).cloned().collect();
        let mut delta = Delta { at: 0, set: set.collect(), gone };
        self.known = Some((writes, now));
        if !delta.is_empty() {
            // What a later life changes is newer than everything on record.
            self.newest = (self.newest + 1).max(u64::from(life) << 32);
            delta.at = self.newest;
        }
        delta
    }

    /// What of a recorded change is to be restored: not what a newer one has restored already. Only
    /// that counts as known; what others have written meanwhile is yet to be recorded.
    pub(crate) fn restores(&mut self, mut delta: Delta) -> Delta {
        let at = delta.at;
        self.newest = self.newest.max(at);
        let mut is_newest = |key: &String| {
            let restored = self.restored.entry(key.clone()).or_default();
            let newest = at > *restored;
            *restored = at.max(*restored);
            newest
        };
        delta.set.retain(|key, _| is_newest(key));
        delta.gone.retain(is_newest);
        if let Some((_, known)) = &mut self.known {
            known.retain(|key, _| !delta.gone.contains(key));
            known.extend(delta.set.clone());
        }
        delta
    }
}
