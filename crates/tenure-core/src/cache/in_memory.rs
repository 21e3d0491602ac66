//! A cache in the process.

use super::Cache;
use crate::error::Error;
use crate::sync::Mutex;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// As many entries as a cache keeps, unless told otherwise.
const USUAL: usize = 1024;

/// A cache in the process. When it is full, what was not asked for the longest time goes.
///
/// ```
/// use tenure_core::cache::{Cache, MemoryCache};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let cache = MemoryCache::new();
/// cache.put("question", "answer".into(), None).await?;
/// assert_eq!(cache.get("question").await?, Some("answer".into()));
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
pub struct MemoryCache {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<String, Entry>,
    /// The keys by when they were last asked for.
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

struct Entry {
    value: Value,
    until: Option<Instant>,
    used: u64,
}

impl Kept {
    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_use.remove(&entry.used);
        }
    }
}

impl MemoryCache {
    /// A cache of 1,024 entries.
    pub fn new() -> Self {
        Self::holding(USUAL)
    }

    /// A cache of at most so many entries, and of at least one.
    pub fn holding(most: usize) -> Self {
        Self { most: most.max(1), kept: Mutex::default() }
    }

    /// How many entries there are, those included whose time is over.
    pub fn len(&self) -> usize {
        self.kept.lock().entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for MemoryCache {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Cache for MemoryCache {
    async fn get(&self, key: &str) -> Result<Option<Value>, Error> {
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        let Some(entry) = kept.entries.get_mut(key) else { return Ok(None) };
        if entry.until.is_some_and(|until| until <= Instant::now()) {
            kept.remove(key);
            return Ok(None);
        }
        kept.uses += 1;
        kept.by_use.remove(&entry.used);
        kept.by_use.insert(kept.uses, key.to_owned());
        entry.used = kept.uses;
        Ok(Some(entry.value.clone()))
    }

    async fn put(&self, key: &str, value: Value, lifetime: Option<Duration>) -> Result<(), Error> {
        // A lifetime beyond what a clock can tell is no end at all.
        let until = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        let mut kept = self.kept.lock();
        kept.remove(key);
        while kept.entries.len() >= self.most {
            let Some((_, oldest)) = kept.by_use.pop_first() else { break };
            kept.entries.remove(&oldest);
        }
        kept.uses += 1;
        let used = kept.uses;
        kept.by_use.insert(used, key.to_owned());
        kept.entries.insert(key.to_owned(), Entry { value, until, used });
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), Error> {
        self.kept.lock().remove(key);
        Ok(())
    }
}

impl fmt::Debug for MemoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCache").field("most", &self.most).field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_not_asked_for_goes_first_and_what_is_over_is_not_given() {
        let cache = MemoryCache::holding(2);
        cache.put("a", 1.into(), None).await.expect("kept");
        cache.put("b", 2.into(), Some(Duration::from_secs(5))).await.expect("kept");
        assert_eq!(cache.get("a").await.expect("read"), Some(1.into()));
        cache.put("c", 3.into(), None).await.expect("kept");
        assert_eq!(cache.get("b").await.expect("read"), None, "the least used one went");
        assert_eq!(cache.get("a").await.expect("read"), Some(1.into()));
        cache.put("a", 4.into(), Some(Duration::from_secs(5))).await.expect("kept");
        assert_eq!((cache.len(), cache.get("a").await.expect("read")), (2, Some(4.into())));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(cache.get("a").await.expect("read"), None);
        cache.remove("c").await.expect("removed");
        assert!(cache.is_empty());
    }
}
