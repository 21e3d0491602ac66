//! A memory that lasts as long as the process.

use super::Memory;
use crate::error::BoxError;
use crate::sync::Mutex;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keeps what agents know for as long as the process lives. Clones are one memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    namespaces: Arc<Mutex<BTreeMap<String, BTreeMap<String, Value>>>>,
}

impl InMemory {
    /// A memory that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything known under `namespace`.
    pub fn snapshot(&self, namespace: &str) -> BTreeMap<String, Value> {
        self.namespaces.lock().get(namespace).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl Memory for InMemory {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        Ok(self.snapshot(namespace))
    }

    async fn store(
        &self,
        namespace: &str,
        changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        self.namespaces.lock().entry(namespace.to_owned()).or_default().extend(changes);
        Ok(())
    }
}
