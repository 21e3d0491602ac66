//! The values of one instance.

use super::{Ownership, StateViolation};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the agent itself owns, and what it shares. Dropped at shutdown.
#[derive(Default)]
pub(crate) struct StateStore {
    values: Mutex<BTreeMap<String, Value>>,
    /// One writer at a time; readers are not held up by a reducer, which is somebody's code.
    writing: Mutex<()>,
    /// How often something was written.
    writes: AtomicU64,
}

impl StateStore {
    pub(crate) fn read(&self, key: &str) -> Option<Value> {
        self.values.lock().get(key).cloned()
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
        self.values.lock().extend(changed);
        self.writes.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Puts back values that were written in an earlier life of the run.
    pub(crate) fn restore(&self, values: BTreeMap<String, Value>) {
        self.values.lock().extend(values);
        self.writes.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        self.values.lock().clone()
    }

    pub(crate) fn clear(&self) {
        self.values.lock().clear();
    }
}
