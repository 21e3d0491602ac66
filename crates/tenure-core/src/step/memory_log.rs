//! A log that lasts as long as the process. For tests, and to show the shape.

use super::{ScopeEnd, ScopeKind, ScopeRecord, StepKey, StepLog};
use crate::BoxFuture;
use crate::error::Error;
use crate::event::Event;
use crate::id::RunId;
use crate::sync::Mutex;
use serde_json::Value;
use std::future::ready;
use std::sync::Arc;

/// Records steps in memory. Clones are one log.
///
/// Run once with it, run again with [`MemoryStepLog::resumed`], and nothing that was completed runs
/// twice.
#[derive(Clone, Debug)]
pub struct MemoryStepLog {
    run: RunId,
    records: Arc<Mutex<Records>>,
    life: u32,
    trouble: Arc<Mutex<Option<Error>>>,
}

#[derive(Clone, Debug, Default)]
struct Records {
    steps: Vec<(StepKey, Value)>,
    scopes: Vec<(ScopeRecord, Option<ScopeEnd>)>,
    announced: Vec<Announcement>,
}

#[derive(Clone, Debug)]
struct Announcement {
    place: Box<str>,
    name: &'static str,
    /// How many steps were on record before it.
    after: usize,
}

impl MemoryStepLog {
    /// An empty log, for a new run.
    pub fn new() -> Self {
        Self { run: RunId::unique(), records: Arc::default(), life: 1, trouble: Arc::default() }
    }

    /// The same records, for a run that goes on with them.
    #[must_use]
    pub fn resumed(&self) -> Self {
        let records = self.records.clone();
        Self { run: self.run, records, life: self.life + 1, trouble: Arc::default() }
    }

    /// A log of the first `count` records, as a process leaves it that died then. What had begun by
    /// now has begun, and has not ended.
    #[must_use]
    pub fn cut_after(&self, count: usize) -> Self {
        let mut records = self.records.lock().clone();
        records.steps.truncate(count);
        records.announced.retain(|announcement| announcement.after < count);
        records.scopes.iter_mut().for_each(|(_, end)| *end = None);
        let records = Arc::new(Mutex::new(records));
        Self { run: self.run, records, life: self.life + 1, trouble: Arc::default() }
    }

    /// The steps recorded so far, in order.
    pub fn keys(&self) -> Vec<StepKey> {
        self.records.lock().steps.iter().map(|(key, _)| key.clone()).collect()
    }

    /// What began so far, in order, and how it ended if it did.
    pub fn scopes(&self) -> Vec<(ScopeRecord, Option<ScopeEnd>)> {
        self.records.lock().scopes.clone()
    }

    fn find(&self, key: &StepKey) -> Result<Option<Value>, Error> {
        if let Some(trouble) = self.trouble().filter(|_| !key.ends_instance()) {
            return Err(trouble);
        }
        let records = self.records.lock();
        let Some((recorded, value)) = records.steps.iter().find(|(it, _)| it.is_same_step(key))
        else {
            return Ok(None);
        };
        if recorded.input != key.input {
            let error = Error::replay(format!(
                "step {key} was recorded with another input; the code or its input has changed \
                 since, so the run is parked"
            ));
            *self.trouble.lock() = Some(error.clone());
            return Err(error);
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
            self.records.lock().steps.push((key, value.clone()));
            Ok(value)
        })
    }

    fn is_resumed(&self) -> bool {
        self.life > 1
    }

    fn life(&self) -> u32 {
        self.life
    }

    fn trouble(&self) -> Option<Error> {
        self.trouble.lock().clone()
    }

    fn records_ends(&self) -> bool {
        true
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        let scopes = &mut self.records.lock().scopes;
        match scopes.iter_mut().find(|(known, _)| known.id == scope.id) {
            Some((known, _)) => known.entered = known.entered.max(scope.entered),
            None => scopes.push((scope, None)),
        }
        Box::pin(ready(Ok(())))
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        // An instance of this life is over, whatever became of its run.
        let parks = |_: &Error| scope.kind != ScopeKind::Instance;
        if let Some(trouble) = self.trouble().filter(parks) {
            return Box::pin(ready(Err(trouble)));
        }
        let scopes = &mut self.records.lock().scopes;
        if let Some((_, ended)) = scopes.iter_mut().find(|(known, _)| known.id == scope.id) {
            ended.get_or_insert(end);
        }
        Box::pin(ready(Ok(())))
    }

    fn announce(&self, place: &str, event: Event) -> bool {
        let mut records = self.records.lock();
        let (name, after) = (event.name(), records.steps.len());
        let is_known = records.announced.iter().any(|it| *it.place == *place && it.name == name);
        if !is_known {
            records.announced.push(Announcement { place: place.into(), name, after });
        }
        !is_known
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        let records = self.records.lock();
        let left = records.scopes.iter().filter(|(scope, end)| {
            let is_here = scope.kind == ScopeKind::Instance && &*scope.path == path;
            is_here && scope.life < self.life && end.is_none()
        });
        left.map(|(scope, _)| scope.clone()).collect()
    }
}
