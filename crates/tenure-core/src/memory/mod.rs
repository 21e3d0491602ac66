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
use crate::state::{StateOwnership, StateViolation};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
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
    pub(crate) values: Mutex<BTreeMap<String, Value>>,
    pub(crate) dirty: Mutex<BTreeMap<String, Value>>,
    /// What the memory had of each key when it was last read or written.
    read: Mutex<BTreeMap<String, Read>>,
    /// How often something was written.
    writes: AtomicU64,
}

impl Loaded {
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    fn write(&self, changes: BTreeMap<String, Value>) {
        self.values.lock().extend(changes.clone());
        self.dirty.lock().extend(changes);
        self.writes.fetch_add(1, Ordering::Release);
    }

    /// Takes what the memory has at startup.
    pub(crate) fn load(&self, kept: BTreeMap<String, Kept>) {
        let values = kept.iter().map(|(key, kept)| (key.clone(), kept.value.clone())).collect();
        *self.values.lock() = values;
        *self.read.lock() = kept.into_iter().map(|(key, kept)| (key, kept.into())).collect();
    }

    /// Takes what is to be stored. It is not dirty any more; `stored` or `refused` is called next.
    pub(crate) fn take(&self) -> BTreeMap<String, Write> {
        let dirty = std::mem::take(&mut *self.dirty.lock());
        let read = self.read.lock();
        let write = |(key, value): (String, Value)| {
            let read = read.get(&key).cloned().unwrap_or_default();
            (key, Write { value, read })
        };
        dirty.into_iter().map(write).collect()
    }

    /// These were stored, and the memory has this of them now: what others wrote may be in it.
    pub(crate) fn stored(&self, kept: BTreeMap<String, Kept>) {
        let (mut values, dirty) = (self.values.lock(), self.dirty.lock());
        let mut read = self.read.lock();
        for (key, kept) in kept {
            if !dirty.contains_key(&key) {
                values.insert(key.clone(), kept.value.clone());
            }
            read.insert(key, kept.into());
        }
    }

    /// These could not be stored, and stay dirty, unless they were written again since.
    pub(crate) fn refused(&self, changes: BTreeMap<String, Write>) {
        let mut dirty = self.dirty.lock();
        for (key, write) in changes {
            dirty.entry(key).or_insert(write.value);
        }
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
        {
            let (known, mut read) = (self.values.lock(), self.read.lock());
            values.retain(|key, value| known.get(key) != Some(value));
            for key in values.keys() {
                let version = versions.get(key).copied().unwrap_or_default();
                if read.get(key).is_none_or(|read| read.version != version) {
                    read.insert(key.clone(), Read { version, value: None });
                }
            }
        }
        if !values.is_empty() {
            self.write(values);
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
        self.loaded.write(BTreeMap::from([(key, value)]));
        Ok(())
    }

    /// Whether something has changed since it was last stored.
    pub fn is_dirty(&self) -> bool {
        !self.loaded.dirty.lock().is_empty()
    }

    /// Stores what has changed. What others have written of the same keys meanwhile may be part of
    /// what is remembered afterwards: that is the memory's rule.
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
