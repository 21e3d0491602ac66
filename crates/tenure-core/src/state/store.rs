//! The values of one instance.

use super::{Ownership, StateViolation};
use crate::sync::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the agent itself owns, and what it shares. Dropped at shutdown.
#[derive(Default)]
pub(crate) struct StateStore {
    values: Mutex<BTreeMap<String, Value>>,
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
        let mut values = self.values.lock();
        for (key, value) in patch {
            let value = match ownership.reducer(&key) {
                Some(reducer) => {
                    let old = values.remove(&key);
                    reducer.apply(old, value)
                }
                None => value,
            };
            values.insert(key, value);
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        self.values.lock().clone()
    }

    pub(crate) fn clear(&self) {
        self.values.lock().clear();
    }
}
