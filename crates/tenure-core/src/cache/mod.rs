//! Answers that are kept for a while: the trait, and a cache in the process.

mod in_memory;

pub use in_memory::MemoryCache;

use crate::error::Error;
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;

/// Where answers are kept for a while, by a key that says everything they depend on.
///
/// What is in a cache may be gone at any time. A cache that cannot be read or written says so, and
/// whoever asked it goes on as if there were none.
#[async_trait]
pub trait Cache: Send + Sync + 'static {
    /// What is kept under `key`, unless its time is over.
    async fn get(&self, key: &str) -> Result<Option<Value>, Error>;

    /// Keeps `value` under `key`, in place of what is there: for `lifetime`, or for as long as the
    /// cache keeps things.
    async fn put(&self, key: &str, value: Value, lifetime: Option<Duration>) -> Result<(), Error>;

    /// Forgets what is kept under `key`.
    async fn remove(&self, key: &str) -> Result<(), Error>;
}
