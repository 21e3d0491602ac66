//! What an agent remembers across runs: the MEMORY owner.
//!
//! Loaded at startup, written only through [`MemoryHandle::update`], flushed at shutdown if it is
//! dirty. Where it is kept is the business of a [`Memory`].

mod in_memory;
mod search;
mod version;

pub use in_memory::InMemory;
pub use search::{Found, Search, text_of};
pub use version::{Conflict, Kept, Read, Write};

use crate::agent::Inner;
use crate::error::{BoxError, Error};
use crate::state::{Slot, StateOwnership, StateViolation, into_json, put};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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

    /// As [`Memory::load`], with the version of each value. This is what an instance reads at
    /// startup.
    async fn recall(&self, namespace: &str) -> Result<BTreeMap<String, Kept>, BoxError> {
        let values = self.load(namespace).await?.into_iter();
        Ok(values.map(|(key, value)| (key, Kept { value, version: 0 })).collect())
    }

    /// As [`Memory::store`], where others may have written the same keys since they were read. This
    /// is what an instance flushes with; `writer` is its id. Says what is kept of these keys now.
    ///
    /// A memory that counts no versions lets the last writer win.
    async fn commit(
        &self,
        namespace: &str,
        writer: &str,
        changes: BTreeMap<String, Write>,
    ) -> Result<BTreeMap<String, Kept>, BoxError> {
        let _ = writer;
        let values = changes.into_iter().map(|(key, write)| (key, write.value));
        let values: BTreeMap<_, _> = values.collect();
        self.store(namespace, values.clone()).await?;
        Ok(values.into_iter().map(|(key, value)| (key, Kept { value, version: 0 })).collect())
    }

    /// Looks for something that is kept under `namespace`: at most `limit` finds, best first.
    ///
    /// A memory that has no index looks through all of it.
    async fn search(
        &self,
        namespace: &str,
        search: &Search,
        limit: usize,
    ) -> Result<Vec<Found>, BoxError> {
        Ok(search.scan(self.load(namespace).await?, limit))
    }
}

/// What is loaded of an agent's memory, and what has changed since.
#[derive(Default)]
pub(crate) struct Loaded {
    values: Mutex<BTreeMap<String, Slot>>,
    dirty: Mutex<BTreeMap<String, Slot>>,
    /// What the memory had of each key when it was last read or written.
    read: Mutex<BTreeMap<String, Read>>,
    /// How often something was written.
    writes: AtomicU64,
}

impl Loaded {
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    pub(crate) fn values(&self) -> BTreeMap<String, Value> {
        let slots = self.values.lock().clone();
        into_json(slots)
    }

    fn slot(&self, key: &str) -> Option<Slot> {
        self.values.lock().get(key).cloned()
    }

    fn write(&self, key: &str, slot: Slot) {
        // What was there is dropped when no lock is held.
        let _known = put(&mut self.values.lock(), key, slot.clone());
        let _dirty = put(&mut self.dirty.lock(), key, slot);
        self.writes.fetch_add(1, Ordering::Release);
    }

    /// Takes what the memory has at startup.
    pub(crate) fn load(&self, kept: BTreeMap<String, Kept>) {
        let values =
            kept.iter().map(|(key, kept)| (key.clone(), kept.value.clone().into())).collect();
        *self.values.lock() = values;
        *self.read.lock() = kept.into_iter().map(|(key, kept)| (key, kept.into())).collect();
    }

    /// Takes what is to be stored. It is dirty again unless [`Taken::stored`] is called.
    pub(crate) fn take(&self) -> Taken<'_> {
        let slots = std::mem::take(&mut *self.dirty.lock());
        let mut taken = Taken { slots, changes: BTreeMap::new(), loaded: self };
        // Making JSON of it is somebody's code, and may panic.
        let values = into_json(taken.slots.clone());
        let read = self.read.lock();
        let write = |(key, value): (String, Value)| {
            let read = read.get(&key).cloned().unwrap_or_default();
            (key, Write { value, read })
        };
        taken.changes = values.into_iter().map(write).collect();
        taken
    }

    /// Which versions of these keys were read.
    pub(crate) fn versions<'k>(
        &self,
        keys: impl Iterator<Item = &'k String>,
    ) -> BTreeMap<String, u64> {
        let read = self.read.lock();
        keys.filter_map(|key| Some((key.clone(), read.get(key)?.version))).collect()
    }

    /// Puts back values that were written in an earlier life of the run, when these versions had
    /// been read. Those that had not been stored by then are stored by this one.
    pub(crate) fn restore(
        &self,
        mut values: BTreeMap<String, Value>,
        versions: &BTreeMap<String, u64>,
    ) {
        let known = self.values();
        {
            let mut read = self.read.lock();
            values.retain(|key, value| known.get(key) != Some(value));
            for key in values.keys() {
                let version = versions.get(key).copied().unwrap_or_default();
                if read.get(key).is_none_or(|read| read.version != version) {
                    read.insert(key.clone(), Read { version, value: None });
                }
            }
        }
        for (key, value) in values {
            self.write(&key, value.into());
        }
    }
}

/// What was taken to be stored. If that does not happen, because the memory refuses, panics or is cut
/// off, all of it is dirty again, but for what was written since.
pub(crate) struct Taken<'a> {
    slots: BTreeMap<String, Slot>,
    pub(crate) changes: BTreeMap<String, Write>,
    loaded: &'a Loaded,
}

impl Taken<'_> {
    /// These were stored, and the memory has this of them now: what others wrote may be in it.
    pub(crate) fn stored(mut self, kept: BTreeMap<String, Kept>) {
        // What was there is dropped last, when no lock is held.
        let mut gone = Vec::new();
        let _slots = std::mem::take(&mut self.slots);
        let (mut values, dirty) = (self.loaded.values.lock(), self.loaded.dirty.lock());
        let mut read = self.loaded.read.lock();
        for (key, kept) in kept {
            if !dirty.contains_key(&key) {
                gone.extend(values.insert(key.clone(), kept.value.clone().into()));
            }
            read.insert(key, kept.into());
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            let mut dirty = self.loaded.dirty.lock();
            for (key, slot) in std::mem::take(&mut self.slots) {
                dirty.entry(key).or_insert(slot);
            }
        }
    }
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
        self.loaded.slot(key).map(Slot::into_json)
    }

    /// The same as a `T`: as [`MemoryHandle::keep`] has left it, or read from its JSON. It is an
    /// error if that is no `T`, and none if there is nothing, or `null`.
    pub fn get_as<T: DeserializeOwned + Any + Send + Sync>(
        &self,
        key: &str,
    ) -> Result<Option<Arc<T>>, Error> {
        let read = self.loaded.slot(key).map_or(Ok(None), Slot::read);
        read.map_err(|error| {
            Error::invalid(format!("what is remembered as `{key}` cannot be read: {error}"))
        })
    }

    /// Remembers `value` under `key`. It is stored at the next flush, at shutdown at the latest.
    ///
    /// A key that somebody else owns is a [`StateViolation`].
    pub fn update(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), Error> {
        self.write(&key.into(), Slot::Json(value.into()))
    }

    /// Remembers a value as [`MemoryHandle::update`] does, which becomes JSON only when it is stored,
    /// goes on record, or somebody reads it so: quick enough for what changes at every turn.
    pub fn keep<T: Clone + Into<Value> + Any + Send + Sync>(
        &self,
        key: &str,
        value: T,
    ) -> Result<(), Error> {
        self.write(key, Slot::typed(value))
    }

    fn write(&self, key: &str, slot: Slot) -> Result<(), Error> {
        let owner = self.inner.blueprint.ownership.owner(key);
        if owner != StateOwnership::Memory && owner != StateOwnership::Shared {
            let (key, actor) = (key.to_owned(), StateOwnership::Memory);
            return Err(StateViolation { key, owner, actor }.into());
        }
        self.loaded.write(key, slot);
        Ok(())
    }

    /// Whether something has changed since it was last stored.
    #[doc(alias = "_memory_dirty")]
    pub fn is_dirty(&self) -> bool {
        !self.loaded.dirty.lock().is_empty()
    }

    /// Stores what has changed. What others have written of the same keys meanwhile may be part of
    /// what is remembered afterwards: that is the memory's rule.
    #[doc(alias = "persist")]
    pub async fn flush(&self) -> Result<(), Error> {
        self.inner.flush_memory().await
    }

    /// Looks for something that is remembered: at most `limit` finds, best first. What has changed is
    /// stored first, so that it is found.
    pub async fn search(&self, search: &Search, limit: usize) -> Result<Vec<Found>, Error> {
        self.flush().await?;
        self.inner.search_memory(search, limit).await
    }
}

impl fmt::Debug for MemoryHandle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryHandle").field("dirty", &self.is_dirty()).finish()
    }
}
