//! A log that lasts as long as the process. For tests, and to show the shape.

use super::{StepKey, StepLog};
use crate::BoxFuture;
use crate::error::{Error, ErrorKind};
use crate::id::RunId;
use crate::sync::Mutex;
use serde_json::Value;
use std::sync::Arc;

/// Records steps in memory. Clones are one log.
///
/// Run once with it, run again with [`MemoryStepLog::resumed`], and nothing that was completed runs
/// twice.
#[derive(Clone, Debug)]
pub struct MemoryStepLog {
    run: RunId,
    records: Arc<Mutex<Vec<(StepKey, Value)>>>,
    resumed: bool,
}

impl MemoryStepLog {
    /// An empty log, for a new run.
    pub fn new() -> Self {
        Self { run: RunId::unique(), records: Arc::default(), resumed: false }
    }

    /// The same records, for a run that goes on with them.
    #[must_use]
    pub fn resumed(&self) -> Self {
        Self { run: self.run, records: self.records.clone(), resumed: true }
    }

    /// A log of the first `count` records, as a process leaves it that died then.
    #[must_use]
    pub fn cut_after(&self, count: usize) -> Self {
        let records = self.records.lock().iter().take(count).cloned().collect();
        Self { run: self.run, records: Arc::new(Mutex::new(records)), resumed: true }
    }

    /// The steps recorded so far, in order.
    pub fn keys(&self) -> Vec<StepKey> {
        self.records.lock().iter().map(|(key, _)| key.clone()).collect()
    }

    fn find(&self, key: &StepKey) -> Result<Option<Value>, Error> {
        let records = self.records.lock();
        let Some((recorded, value)) = records.iter().find(|(known, _)| known.is_same_step(key))
        else {
            return Ok(None);
        };
        if recorded.input != key.input {
            return Err(Error::new(
                ErrorKind::Replay,
                format!(
                    "step {key} was recorded with another input; the code or its input has \
                     changed since, so the run is parked"
                ),
            ));
        }
        Ok(Some(value.clone()))
    }
}

impl Default for MemoryStepLog {
    fn default() -> Self {
        Self::new()
    }
}

impl StepLog for MemoryStepLog {
    fn run_id(&self) -> RunId {
        self.run
    }

    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        Box::pin(async move {
            if let Some(value) = self.find(&key)? {
                return Ok(value);
            }
            let value = effect.await?;
            self.records.lock().push((key, value.clone()));
            Ok(value)
        })
    }

    fn is_resumed(&self) -> bool {
        self.resumed
    }
}
