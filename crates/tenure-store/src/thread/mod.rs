//! Conversations: the history that an agent has before it when the next message comes.
//!
//! A conversation is a list of messages that are kept by their hashes, so what was saved before is
//! neither written nor read again when more is said.

mod heads;
mod table;

pub(crate) use heads::ThreadHeads;

use crate::error::StoreError;
use crate::journal::{Tx, pack_list};
use crate::store::Store;
use heads::Saved;
use serde::Serialize;
use serde_json::Value;
use std::time::SystemTime;
use table::Change;
use tenure_core::RunId;
use tenure_core::message::{History, Message};

/// The conversations in a file: one history for each agent that takes part.
///
/// ```
/// use tenure_core::message::{History, Message};
/// use tenure_store::{Store, StoreKeys};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("tenure.db");
/// # let keys = StoreKeys::folder(folder.path().join("keys"));
/// let threads = Store::open_with(&path, &keys)?.threads();
/// let mut history = History::new();
/// history.push(Message::user("My name is Ada."));
/// threads.save("morning", "clerk", &history).await?;
///
/// // Another day, another process.
/// let threads = Store::open_with(&path, &keys)?.threads();
/// let latest = threads.latest(Some("clerk"))?.expect("there is one");
/// assert_eq!(threads.load(&latest.thread, "clerk")?, Some(history));
/// # Ok::<_, tenure_core::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Threads {
    store: Store,
    run: Option<RunId>,
    user: Option<String>,
}

impl Store {
    /// The conversations in the file.
    pub fn threads(&self) -> Threads {
        Threads { store: self.clone(), run: None, user: None }
    }
}

/// What is known of a conversation, as one agent has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// The conversation.
    pub thread: String,
    /// The agent.
    pub agent: String,
    /// How many messages the agent has of it.
    pub length: usize,
    /// The run that was last part of it.
    pub run: Option<RunId>,
    /// Whose it is.
    pub user: Option<String>,
    /// When something was last said.
    pub updated: SystemTime,
}

impl Threads {
    /// What is saved from here on is said in this run.
    #[must_use]
    pub fn in_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// What is saved from here on is this user's.
    #[must_use]
    pub fn for_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Keeps `history` as what `agent` has of a conversation, in place of what it had. It is on disk
    /// when this returns.
    ///
    /// What the history has in common with what was saved or loaded last is neither written nor read
    /// again. Of two who save at once, the last one's history is kept.
    pub async fn save(
        &self,
        thread: &str,
        agent: &str,
        history: &History,
    ) -> Result<(), StoreError> {
        let known = self.store.thread_heads().get(thread, agent);
        let shared = known.as_ref().map_or(0, |known| known.shared_with(history));
        let change = Change {
            thread: thread.to_owned(),
            agent: agent.to_owned(),
            length: history.len(),
            run: self.run.map(|run| run.to_string()),
            user: self.user.clone(),
        };
        let items = match known {
            Some(known) if shared > 0 => {
                let items = known.items[..shared].to_vec();
                let (packed, items) = pack_list(items, self.bodies(history, shared)?);
                let expected = known.head.clone();
                let saved = self
                    .store
                    .write_with_async({
                        let change = change.clone();
                        move |tx| table::save(tx, &change, &packed, Some(&expected))
                    })
                    .await?;
                saved.then_some(items)
            }
            _ => None,
        };
        // Nothing was saved here before, or somebody else saved meanwhile: then what was known to be
        // in the file may be gone from it.
        let items = match items {
            Some(items) => items,
            None => {
                let (packed, items) = pack_list(Vec::new(), self.bodies(history, 0)?);
                let save = move |tx: &mut Tx<'_>| table::save(tx, &change, &packed, None);
                self.store.write_with_async(save).await?;
                items
            }
        };
        let saved = Saved { head: table::head(&items), items, history: history.clone() };
        self.store.thread_heads().put(thread, agent, saved);
        Ok(())
    }

    /// What `agent` has of a conversation.
    pub fn load(&self, thread: &str, agent: &str) -> Result<Option<History>, StoreError> {
        let path = self.store.file();
        let loaded = self.store.read(|conn| {
            let Some(row) = table::find(conn, path, thread, agent)? else { return Ok(None) };
            let mut shelf = self.store.shelf();
            let items = table::items(&mut shelf, conn, path, &row)?;
            let value = shelf.expand(conn, path, &row.head)?;
            Ok(Some((row, items, value)))
        })?;
        let Some((row, items, mut value)) = loaded else { return Ok(None) };
        let damaged = |found: String| {
            let of = format!("conversation `{thread}` of {agent}: {found}");
            StoreError::damaged(path, of)
        };
        let messages: Vec<Message> = serde_json::from_value(value["messages"].take())
            .map_err(|error| damaged(format!("a message cannot be read ({error})")))?;
        if messages.len() != row.info.length {
            return Err(damaged(format!(
                "it has {} messages, and should have {}",
                messages.len(),
                row.info.length
            )));
        }
        let history: History = messages.into_iter().collect();
        let saved = Saved { head: row.head, items, history: history.clone() };
        self.store.thread_heads().put(thread, agent, saved);
        Ok(Some(history))
    }

    /// The conversations, newest first, at most `limit`; each agent's is one.
    pub fn list(&self, limit: usize) -> Result<Vec<ThreadInfo>, StoreError> {
        self.store.read(|conn| table::list(conn, self.store.file(), None, limit))
    }

    /// What there is of one conversation, newest first: one for each agent that took part.
    pub fn of(&self, thread: &str) -> Result<Vec<ThreadInfo>, StoreError> {
        self.store.read(|conn| table::of(conn, self.store.file(), thread))
    }

    /// The conversation in which something was said last: with this agent, or with any.
    pub fn latest(&self, agent: Option<&str>) -> Result<Option<ThreadInfo>, StoreError> {
        let found = self.store.read(|conn| table::list(conn, self.store.file(), agent, 1))?;
        Ok(found.into_iter().next())
    }

    /// Forgets a conversation. How many agents had one. What was said stays in the journal of its
    /// runs.
    pub async fn forget(&self, thread: &str) -> Result<usize, StoreError> {
        let name = thread.to_owned();
        self.store.write_with_async(move |tx| table::forget(tx, &name)).await
    }

    /// The messages from `from` on as the file keeps them.
    fn bodies(&self, history: &History, from: usize) -> Result<Vec<String>, StoreError> {
        let body = |message: &Message| {
            let mut value: Value = serde_json::to_value(message).map_err(table::unwritable)?;
            self.store.redact(&mut value);
            Ok(value.to_string())
        };
        history.iter().skip(from).map(body).collect()
    }
}

#[cfg(test)]
mod tests;
