//! A memory that all agents of a team share, each under its own name.

use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::BoxError;
use tenure_core::memory::{Found, Kept, Memory, Search, Write};

#[derive(Clone)]
pub(crate) struct SharedMemory(pub(crate) Arc<dyn Memory>);

#[async_trait]
impl Memory for SharedMemory {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        self.0.load(namespace).await
    }

    async fn store(
        &self,
        namespace: &str,
        changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        self.0.store(namespace, changes).await
    }

    async fn recall(&self, namespace: &str) -> Result<BTreeMap<String, Kept>, BoxError> {
        self.0.recall(namespace).await
    }

    async fn commit(
        &self,
        namespace: &str,
        writer: &str,
        changes: BTreeMap<String, Write>,
    ) -> Result<BTreeMap<String, Kept>, BoxError> {
        self.0.commit(namespace, writer, changes).await
    }

    async fn search(
        &self,
        namespace: &str,
        search: &Search,
        limit: usize,
    ) -> Result<Vec<Found>, BoxError> {
        self.0.search(namespace, search, limit).await
    }
}
