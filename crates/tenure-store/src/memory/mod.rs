//! What agents know across runs: the MEMORY owner, in the file of a [`Store`].

mod rule;
mod table;

pub use rule::Rule;
pub(crate) use table::index_anew;

use crate::error::StoreError;
use crate::journal::{Tx, time};
use crate::store::Store;
use async_trait::async_trait;
use rule::Rules;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_core::BoxError;
use tenure_core::memory::{Conflict, Found, Kept, Memory, Search, Write};

/// What agents know across runs, in the file of a [`Store`]. Given to an agent by its builder's
/// `memory`.
///
/// Each agent has a namespace of its own, or one for each user. Clones share that of their template:
/// if two of them write the same key, its [`Rule`] says what is kept. A commit is on disk when it
/// returns.
///
/// ```
/// use serde_json::json;
/// use tenure_core::memory::{Memory, Search};
/// use tenure_store::{Rule, Store, StoreKeys};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("tenure.db");
/// # let keys = StoreKeys::folder(folder.path().join("keys"));
/// let store = Store::open_with(&path, &keys)?;
/// let memory = store.memory().for_user("ada").rule("facts", Rule::Merge);
/// let facts = json!({ "coffee": "black", "city": "Bern" });
/// memory.store("clerk", [("facts".to_owned(), facts)].into()).await?;
///
/// let found = memory.search("clerk", &Search::text("coffee"), 5).await?;
/// assert_eq!(found[0].key, "facts");
/// # Ok::<_, tenure_core::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct StoreMemory {
    store: Store,
    user: Option<Arc<str>>,
    rules: Arc<Rules>,
}

impl Store {
    /// What agents know across runs.
    pub fn memory(&self) -> StoreMemory {
        StoreMemory { store: self.clone(), user: None, rules: Arc::default() }
    }
}

/// Something that an agent knows, and since when.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Memo {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// How often it was written.
    pub version: u64,
    /// When it was written last.
    pub updated: SystemTime,
    /// The instance that wrote it last; empty if nobody knows.
    pub writer: String,
}

impl StoreMemory {
    /// What agents know with this user, apart from everybody else's.
    #[must_use]
    pub fn for_user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// What is kept of `key` if somebody else has written it since it was read. A `*` at the end
    /// means every key that begins so; the longest one that fits counts. Without a rule it is
    /// [`Rule::LastWriter`].
    #[must_use]
    pub fn rule(mut self, key: impl Into<String>, rule: Rule) -> Self {
        Arc::make_mut(&mut self.rules).declare(key.into(), rule);
        self
    }

    /// Under which name the file has what `agent` knows: `agent`, or `agent/user`. A `/` in either
    /// is written as `%2F`, so that no two are taken for one another.
    pub fn namespace(&self, agent: &str) -> String {
        let plain = |part: &str| part.replace('%', "%25").replace('/', "%2F");
        match &self.user {
            Some(user) => format!("{}/{}", plain(agent), plain(user)),
            None => plain(agent),
        }
    }

    /// The names under which the file has anything, of every agent and user.
    pub fn namespaces(&self) -> Result<Vec<String>, StoreError> {
        self.store.read(|conn| table::namespaces(conn, self.store.file()))
    }

    /// Everything that `agent` knows, by key.
    pub fn memos(&self, agent: &str) -> Result<Vec<Memo>, StoreError> {
        let path = self.store.file();
        let rows = self.store.read(|conn| table::all(conn, path, &self.namespace(agent)))?;
        let memo = |row: table::MemoryRow| {
            let Kept { value, version } = row.kept(path)?;
            let updated = time(row.updated);
            Ok(Memo { key: row.key, value, version, updated, writer: row.writer })
        };
        rows.into_iter().map(memo).collect()
    }

    /// Forgets what `agent` knows under `key`. Whether there was anything.
    pub async fn forget(&self, agent: &str, key: &str) -> Result<bool, StoreError> {
        let (namespace, key) = (self.namespace(agent), key.to_owned());
        self.store.write_with_async(move |tx| table::forget(tx, &namespace, &key)).await
    }

    async fn write(
        &self,
        agent: &str,
        writer: &str,
        mut changes: BTreeMap<String, Write>,
    ) -> Result<BTreeMap<String, Kept>, BoxError> {
        for write in changes.values_mut() {
            self.store.redact(&mut write.value);
        }
        let (namespace, writer, rules) =
            (self.namespace(agent), writer.to_owned(), self.rules.clone());
        let commit = move |tx: &mut Tx<'_>| table::commit(tx, &namespace, &writer, changes, &rules);
        let table::Committed { kept, mut conflicts } = self.store.write_with_async(commit).await?;
        match conflicts.len() {
            0 => Ok(kept),
            1 => Err(conflicts.remove(0).into()),
            _ => Err(Conflicts(conflicts).into()),
        }
    }
}

#[async_trait]
impl Memory for StoreMemory {
    async fn load(&self, agent: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        let kept = self.recall(agent).await?.into_iter();
        Ok(kept.map(|(key, kept)| (key, kept.value)).collect())
    }

    async fn store(&self, agent: &str, changes: BTreeMap<String, Value>) -> Result<(), BoxError> {
        let changes = changes.into_iter().map(|(key, value)| (key, Write::new(value))).collect();
        self.write(agent, "", changes).await.map(drop)
    }

    async fn recall(&self, agent: &str) -> Result<BTreeMap<String, Kept>, BoxError> {
        let path = self.store.file();
        let rows = self.store.read(|conn| table::all(conn, path, &self.namespace(agent)))?;
        let kept = rows.into_iter().map(|row| Ok((row.key.clone(), row.kept(path)?)));
        Ok(kept.collect::<Result<_, StoreError>>()?)
    }

    /// Keys that are refused are named by a [`Conflict`]; the others are written all the same.
    async fn commit(
        &self,
        agent: &str,
        writer: &str,
        changes: BTreeMap<String, Write>,
    ) -> Result<BTreeMap<String, Kept>, BoxError> {
        self.write(agent, writer, changes).await
    }

    async fn search(
        &self,
        agent: &str,
        search: &Search,
        limit: usize,
    ) -> Result<Vec<Found>, BoxError> {
        let (path, namespace) = (self.store.file(), self.namespace(agent));
        Ok(self.store.read(|conn| table::search(conn, path, &namespace, search, limit))?)
    }
}

/// Several keys were refused.
#[derive(Debug)]
struct Conflicts(Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, conflict) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{conflict}")?;
        }
        Ok(())
    }
}

impl StdError for Conflicts {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.first().map(|first| first as _)
    }
}

#[cfg(test)]
mod tests;
