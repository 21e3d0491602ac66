//! The values of one instance.

use super::{Ownership, Slot, StateViolation, into_json, put};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the agent itself owns, and what it shares. Dropped at shutdown.
#[derive(Default)]
pub(crate) struct StateStore {
    values: Mutex<BTreeMap<String, Slot>>,
    /// One writer at a time; readers are not held up by a reducer, which is somebody's code.
    writing: Mutex<()>,
    /// How often something was written.
    writes: AtomicU64,
}

impl StateStore {
    pub(crate) fn read(&self, key: &str) -> Option<Value> {
        self.slot(key).map(Slot::into_json)
    }

    pub(crate) fn slot(&self, key: &str) -> Option<Slot> {
        self.values.lock().get(key).cloned()
    }

    /// Writes one value, which may be none of JSON yet.
    pub(crate) fn keep(
        &self,
        ownership: &Ownership,
        key: &str,
        slot: Slot,
    ) -> Result<(), StateViolation> {
        if ownership.reducer(key).is_some() {
            return self.write(ownership, vec![(key.to_owned(), slot.into_json())]);
        }
        ownership.check_agent_write(key)?;
        // What was there is dropped last, when no lock is held.
        let _known;
        let _writing = self.writing.lock();
        _known = put(&mut self.values.lock(), key, slot);
        self.writes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Writes the whole patch or nothing.
    pub(crate) fn write(
        &self,
        ownership: &Ownership,
        patch: Vec<(String, Value)>,
    ) -> Result<(), StateViolation> {
        for (key, _) in &patch {
            ownership.check_agent_write(key)?;
        }
        let _writing = self.writing.lock();
        let mut changed = BTreeMap::new();
        for (key, value) in patch {
            let value = match ownership.reducer(&key) {
                Some(reducer) => {
                    let old = changed.remove(&key).or_else(|| self.read(&key));
                    reducer.apply(old, value)
                }
                None => value,
            };
            changed.insert(key, value);
        }
        self.replace(changed);
        self.writes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Puts back values that were written in an earlier life of the run.
    pub(crate) fn restore(&self, values: BTreeMap<String, Value>) {
        self.replace(values);
        self.writes.fetch_add(1, Ordering::Release);
    }

    /// Puts values in the place of those that were there, which are dropped when nobody waits for
    /// them: that may be somebody's code.
    fn replace(&self, values: BTreeMap<String, Value>) {
        let mut slots = self.values.lock();
        let gone: Vec<_> = values
            .into_iter()
            .filter_map(|(key, value)| slots.insert(key, value.into()))
            .filter(|gone| matches!(gone, Slot::Typed(_)))
            .collect();
        drop(slots);
        drop(gone);
    }

    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        let slots = self.values.lock().clone();
        into_json(slots)
    }

    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.values.lock());
        drop(gone);
    }
}
