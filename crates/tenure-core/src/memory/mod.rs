//! What an agent remembers across runs: the MEMORY owner.
//!
//! Loaded at startup, written only through [`MemoryHandle::update`], flushed at shutdown if it is
//! dirty. Where it is kept is the business of a [`Memory`].

mod in_memory;

pub use in_memory::InMemory;

use crate::agent::Inner;
use crate::error::{BoxError, Error};
use crate::state::{StateOwnership, StateViolation};
use crate::sync::Mutex;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// A place that keeps what agents know across runs.
#[async_trait]
pub trait Memory: Send + Sync + 'static {
    /// Everything known under `namespace`.
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError>;

    /// Keeps these values under `namespace`, beside those it has.
    async fn store(
        &self,
        namespace: &str,
        changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError>;
}

/// What is loaded of an agent's memory, and what has changed since.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) values: Mutex<BTreeMap<String, Value>>,
    pub(crate) dirty: Mutex<BTreeMap<String, Value>>,
}

/// An agent's memory, as its hooks and tools see it.
#[derive(Clone, Copy)]
pub struct MemoryHandle<'a> {
    inner: &'a Inner,
    loaded: &'a Loaded,
}

impl<'a> MemoryHandle<'a> {
    pub(crate) fn new(inner: &'a Inner, loaded: &'a Loaded) -> Self {
        Self { inner, loaded }
    }

    /// What is remembered under `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.loaded.values.lock().get(key).cloned()
    }

    /// Remembers `value` under `key`. It is stored at the next flush, at shutdown at the latest.
    ///
    /// A key that somebody else owns is a [`StateViolation`].
    pub fn update(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        let (key, value) = (key.into(), value.into());
        let owner = self.inner.blueprint.ownership.owner(&key);
        if owner != StateOwnership::Memory && owner != StateOwnership::Shared {
            return Err(StateViolation { key, owner, actor: StateOwnership::Memory }.into());
        }
        self.loaded.values.lock().insert(key.clone(), value.clone());
        self.loaded.dirty.lock().insert(key, value);
        Ok(())
    }

    /// Whether something has changed since it was last stored.
    pub fn is_dirty(&self) -> bool {
        !self.loaded.dirty.lock().is_empty()
    }

    /// Stores what has changed.
    pub async fn flush(&self) -> Result<(), Error> {
        self.inner.flush_memory().await
    }
}

impl fmt::Debug for MemoryHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHandle").field("dirty", &self.is_dirty()).finish()
    }
}
