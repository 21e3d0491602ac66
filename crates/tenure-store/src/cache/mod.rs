//! Answers that are kept for a while, in the file of a [`Store`].

mod table;

#[cfg(test)]
pub(crate) use table::find;
pub(crate) use table::forget_over;

use crate::error::{StoreError, StoreErrorKind};
use crate::journal::millis;
use crate::store::Store;
use async_trait::async_trait;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use table::CacheRow;
use tenure_core::Error;
use tenure_core::cache::Cache;

/// As many answers as are kept, unless told otherwise.
const ENTRIES: u64 = 10_000;
/// As many bytes.
const BYTES: u64 = 64 << 20;

/// How much a cache may keep.
#[derive(Clone, Copy, Debug)]
struct Room {
    entries: u64,
    bytes: u64,
}

/// Answers that outlive the process, in the file of a [`Store`].
///
/// Any process may read and write them; of two that write the same key, the later counts. It keeps
/// 10,000 answers and 64 MiB unless told otherwise: then the oldest goes first. A value with a secret
/// in it is not kept at all: without the secret it would be another one.
///
/// ```
/// use serde_json::json;
/// use std::time::Duration;
/// use tenure_core::cache::Cache;
/// use tenure_store::{Store, StoreKeys};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("tenure.db");
/// # let keys = StoreKeys::folder(folder.path().join("keys"));
/// let cache = Store::open_with(&path, &keys)?.cache().entries(500);
/// cache.put("question", json!("answer"), Some(Duration::from_secs(60))).await?;
/// assert_eq!(cache.get("question").await?, Some(json!("answer")));
/// # Ok::<_, tenure_core::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct StoreCache {
    store: Store,
    room: Room,
}

impl Store {
    /// Answers that are kept for a while.
    pub fn cache(&self) -> StoreCache {
        StoreCache { store: self.clone(), room: Room { entries: ENTRIES, bytes: BYTES } }
    }
}

impl StoreCache {
    /// Keeps at most so many answers, and at least one.
    #[must_use]
    pub fn entries(mut self, most: u64) -> Self {
        self.room.entries = most.max(1);
        self
    }

    /// Keeps at most so many bytes of answers. One that is bigger by itself is not kept.
    #[must_use]
    pub fn bytes(mut self, most: u64) -> Self {
        self.room.bytes = most;
        self
    }

    /// How many answers there are, and how many bytes: those included that are over.
    pub fn used(&self) -> Result<(u64, u64), StoreError> {
        self.store.read(|conn| table::used(conn, self.store.file()))
    }
}

#[async_trait]
impl Cache for StoreCache {
    async fn get(&self, key: &str) -> Result<Option<Value>, Error> {
        let (store, key) = (self.store.clone(), key.to_owned());
        // Not on this thread: whoever asks a cache does not wait for a disk that hangs.
        let read = tokio::task::spawn_blocking(move || {
            let now = millis(SystemTime::now());
            store.read(|conn| table::find(conn, store.file(), &key, now))
        });
        let read = read.await.unwrap_or_else(|error| {
            let message = format!("{}: cannot read: {error}", self.store.file().display());
            Err(StoreError::new(StoreErrorKind::Io, message))
        });
        Ok(read?)
    }

    async fn put(
        &self,
        key: &str,
        mut value: Value,
        lifetime: Option<Duration>,
    ) -> Result<(), Error> {
        let had_secret = self.store.redact(&mut value);
        let now = SystemTime::now();
        // A lifetime beyond what a clock can tell is no end at all.
        let expires = lifetime.and_then(|lifetime| now.checked_add(lifetime)).map(millis);
        let (key, text) = (key.to_owned(), value.to_string());
        let row = CacheRow { key, text, written: millis(now), expires };
        let room = self.room;
        let fits = !had_secret && row.size() <= room.bytes;
        let write = self.store.write_with_async(move |tx| match fits {
            true => table::put(tx, &row, room),
            // What is there is not the newest any more.
            false => table::forget(tx, &row.key),
        });
        Ok(write.await?)
    }

    async fn remove(&self, key: &str) -> Result<(), Error> {
        let key = key.to_owned();
        Ok(self.store.write_with_async(move |tx| table::forget(tx, &key)).await?)
    }
}

#[cfg(test)]
mod tests;
