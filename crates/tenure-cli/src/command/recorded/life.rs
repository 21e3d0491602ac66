//! One life of a run: what this process needs to drive it, and what it leaves.

use super::super::asked::Asked;
use super::input::Head;
use super::{Kept, Recorded};
use anyhow::{Result, bail};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use tenure_cards::team::Recording;
use tenure_cards::trust::sha256_hex;
use tenure_core::cache::{Cache, MemoryCache};
use tenure_core::memory::Memory;
use tenure_core::message::{History, Message};
use tenure_core::step::{StepLog as _, Steps, WhenWaiting};
use tenure_core::{BoxError, CancelToken, Error, RunId};
use tenure_store::{AskQuery, Resume, RunLog, Store, StoreMemory};

/// One life of a run.
pub(crate) struct Life {
    log: RunLog,
    store: Store,
    /// What to add to a command so that it means the file.
    option: String,
    recorded: Recorded,
    when: WhenWaiting,
}

impl Life {
    pub(crate) fn new(
        log: RunLog,
        store: Store,
        option: String,
        recorded: Recorded,
        when: WhenWaiting,
    ) -> Self {
        Self { log, store, option, recorded, when }
    }

    pub(crate) fn run(&self) -> RunId {
        self.log.id()
    }

    /// Where its steps are recorded.
    pub(crate) fn steps(&self) -> Steps {
        Steps::new(Arc::new(self.log.clone()))
    }

    /// Whether this process does not stay while the run waits for a person.
    pub(crate) fn when_waiting(&self) -> WhenWaiting {
        self.when
    }

    pub(crate) fn recording(&self) -> Recording {
        Recording::new(self.steps()).when_waiting(self.when)
    }

    /// What was asked, as it is on record.
    pub(crate) fn asked(&self) -> &Asked {
        &self.recorded.asked
    }

    /// When the run began, in whichever life.
    pub(crate) fn date(&self) -> SystemTime {
        self.recorded.date
    }

    /// What agents know across runs, with the user if one is named.
    pub(crate) fn memory(&self) -> Arc<dyn Memory> {
        let memory = self.store.memory();
        let memory = match &self.recorded.asked.of_workflow.user {
            Some(user) => memory.for_user(&**user),
            None => memory,
        };
        match self.log.mode() {
            Resume::Replay => Arc::new(ReadOnly(memory)),
            _ => Arc::new(memory),
        }
    }

    /// Where answers are kept across runs.
    pub(crate) fn cache(&self) -> Arc<dyn Cache> {
        match self.log.mode() {
            // A replay writes nothing.
            Resume::Replay => Arc::new(MemoryCache::new()),
            _ => Arc::new(self.store.cache()),
        }
    }

    /// Somebody wants it cancelled.
    pub(crate) fn cancel(&self) -> CancelToken {
        self.log.cancel()
    }

    /// Waits until somebody wants it stopped at once.
    pub(crate) async fn killed(&self) {
        self.log.killed().cancelled().await;
    }

    /// What the agent had before it of the conversation when the run began.
    pub(crate) fn history(&self, agent: &str) -> Result<Option<History>> {
        let (Some(head), Some(thread)) = (&self.recorded.history, &self.log.info().thread) else {
            return Ok(None);
        };
        let found = self.store.threads().load(thread, agent)?.unwrap_or_default();
        // The run itself may have saved what came of it, just before it could say that it was over.
        for history in [found.clone(), found.iter().take(head.messages).cloned().collect()] {
            if head_of(&history) == *head {
                return Ok(Some(history));
            }
        }
        bail!(
            "the conversation {thread} is not what it was when run {} began; give the run up with \
             `tenure run --abandon {0}{}`",
            self.run(),
            self.option
        )
    }

    /// Keeps what the agent has of the conversation now.
    pub(crate) async fn save(&self, agent: &str, history: &History) -> Result<(), Error> {
        let Some(thread) = &self.log.info().thread else { return Ok(()) };
        // A replay leaves everything as it is.
        if self.log.mode() == Resume::Replay {
            return Ok(());
        }
        let threads = self.store.threads().in_run(self.run());
        Ok(threads.save(thread, agent, history).await?)
    }

    /// Why nothing can be recorded any more.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.log.trouble()
    }

    /// Says what came of the run, and gives back what is known of it then.
    pub(crate) async fn finish(&self, result: Result<Value, Error>) -> Kept {
        let said = result.as_ref().err().map(ToString::to_string);
        let (info, trouble) = match self.log.finish(result).await {
            Ok(info) => (info, None),
            Err(error) => (self.log.info().clone(), Some(error.to_string())),
        };
        let asks = self.store.asks(&AskQuery::open().run(self.run())).unwrap_or_default();
        Kept { info, asks, said, trouble, option: self.option.clone() }
    }
}

/// What agents know, for a replay: it is read, and stays as it is.
struct ReadOnly(StoreMemory);

#[async_trait]
impl Memory for ReadOnly {
    async fn load(&self, namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        self.0.load(namespace).await
    }

    async fn store(
        &self,
        _namespace: &str,
        _changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        Ok(())
    }
}

/// What `history` is, without the history.
pub(super) fn head_of(history: &History) -> Head {
    let messages: Vec<&Message> = history.iter().collect();
    let text = serde_json::to_string(&messages).unwrap_or_default();
    Head { messages: messages.len(), sha256: sha256_hex(text.as_bytes()) }
}
