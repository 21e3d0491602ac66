//! The log as core's drive loop sees it.

use super::activity::Frame;
use super::difference::{Change, Difference, Now};
use super::table::Found;
use super::{Inner, Resume, RunLog, rows};
use crate::fail;
use serde_json::Value;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::{Event, EventKind};
use tenure_core::step::{ScopeEnd, ScopeKind, ScopeRecord, StepKey, StepLog};
use tenure_core::{BoxFuture, Error, RunId};

impl StepLog for RunLog {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        Box::pin(self.0.step(key, effect))
    }

    fn run_id(&self) -> RunId {
        self.id()
    }

    fn is_resumed(&self) -> bool {
        let log = &self.0;
        log.shared.life() > 1 || log.table().loaded > 0
    }

    fn life(&self) -> u32 {
        self.0.shared.life()
    }

    fn trouble(&self) -> Option<Error> {
        self.0.shared.trouble()
    }

    fn records_ends(&self) -> bool {
        self.0.records_ends()
    }

    fn ask<'a>(
        &'a self,
        key: StepKey,
        question: &'a PendingAsk,
        here: BoxFuture<'a, Result<Answer, Error>>,
    ) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(self.0.ask(key, question, here))
    }

    fn keeps_asks(&self) -> bool {
        true
    }

    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        let log = &*self.0;
        if let Err(error) = log.check() {
            return Box::pin(ready(Err(error)));
        }
        if log.drive.is_none() || !log.table().begin(&scope) {
            return Box::pin(ready(Ok(())));
        }
        let (run, row) = (log.shared.name(), rows::began(&scope));
        let append = move |tx: &mut crate::journal::Tx<'_>| tx.append(&run, row);
        if scope.kind == ScopeKind::Instance && scope.entered > 0 {
            Box::pin(async move {
                log.commit(append).await?;
                fail::point(fail::SCOPE_BEGAN);
                Ok(())
            })
        } else {
            log.send(move |tx| append(tx).map(drop));
            Box::pin(ready(Ok(())))
        }
    }

    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.0.end(scope, end))
    }

    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        self.0.table().unended(path, self.0.shared.life())
    }

    fn event(&self, event: Event) {
        let log = &*self.0;
        // The log says itself what was asked and answered, by ids that hold in every life.
        let is_ours = matches!(
            event.kind,
            EventKind::Asked { .. } | EventKind::Answered { .. } | EventKind::AskEnded { .. }
        );
        if log.drive.is_none() || is_ours || log.shared.is_over() {
            return;
        }
        // What is served from the record has been told in an earlier life.
        let is_caught_up = log.is_new || log.beyond.load(Ordering::Relaxed);
        if event.run.is_some() && !is_caught_up {
            return;
        }
        log.append_event(&event, None);
    }

    fn announce(&self, place: &str, event: Event) -> bool {
        let log = &*self.0;
        let is_news = log.table().announce(place, event.name());
        if is_news && log.drive.is_some() && !log.shared.is_over() {
            log.append_event(&event, Some(place));
        }
        is_news
    }

    fn takes_events(&self) -> bool {
        self.0.drive.is_some()
    }

    fn redact(&self, value: &mut Value) -> bool {
        self.0.store.redact(value)
    }
}

/// What to do with a step.
pub(super) enum Todo {
    /// It is on record.
    Serve(Value),
    /// It is not, and is to be done.
    Do,
}

impl Inner {
    /// Sends an event on its way to the file, with its place if it is announced once.
    fn append_event(&self, event: &Event, place: Option<&str>) {
        let row = rows::event(event, place, |data| {
            self.store.redact(data);
        });
        let run = self.shared.name();
        self.send(move |tx| tx.append(&run, row).map(drop));
    }

    async fn step(
        &self,
        key: StepKey,
        effect: BoxFuture<'_, Result<Value, Error>>,
    ) -> Result<Value, Error> {
        let within = Frame::current();
        if let Todo::Serve(value) = self.look_up(&key, within.as_ref())? {
            return Ok(value);
        }
        let mut running = Running { log: self, key: Some(key) };
        self.room().await?;
        let key = running.key();
        let (before, after) = match &*key.kind {
            "intent" => (fail::BEFORE_INTENT, fail::AFTER_INTENT),
            _ => (fail::BEFORE_EFFECT, fail::AFTER_COMMIT),
        };
        fail::point(before);
        let value = self.activity.within(key, within.clone(), effect).await?;
        fail::point(fail::AFTER_EFFECT);
        let seq = self.record(key, &value, within.as_deref()).await?;
        running.recorded(seq);
        fail::point(after);
        Ok(value)
    }

    /// Puts a step's result on record, and returns once it is on the disk.
    async fn record(
        &self,
        key: &StepKey,
        value: &Value,
        within: Option<&Frame>,
    ) -> Result<u64, Error> {
        let (run, row) = (self.shared.name(), rows::step(self.run(), key, value, within));
        self.commit(move |tx| {
            let seq = tx.append(&run, row)?;
            fail::point(fail::BEFORE_COMMIT);
            Ok(seq)
        })
        .await
    }

    /// Whether a step is on record, and if not whether it is to be done: from then on it runs.
    pub(super) fn look_up(
        &self,
        key: &StepKey,
        within: Option<&Arc<Frame>>,
    ) -> Result<Todo, Error> {
        if !(key.ends_instance() && self.records_ends()) {
            self.check()?;
        }
        let found = self.table().find(key);
        match found {
            Found::New => match self.stops_at(key, within) {
                Some(error) => {
                    self.table().give_up(key);
                    Err(error)
                }
                None => Ok(Todo::Do),
            },
            Found::Running => Err(Error::invalid(format!(
                "step {key} of run {} is taken twice at the same time; give each its own name",
                self.run()
            ))),
            Found::Recorded { seq, input, value, .. } if input == key.input => {
                Ok(Todo::Serve(self.value(seq, value)?))
            }
            Found::Recorded { seq, input, detail, value } => {
                let value = self.value(seq, value)?;
                match self.way() {
                    // It was delivered; with what does not matter any more.
                    Resume::Abandon | Resume::Cancel if key.is_end() => Ok(Todo::Serve(value)),
                    Resume::Abandon | Resume::Cancel => Err(self.stop(key)),
                    Resume::GoOn | Resume::Replay => {
                        let mut step = key.clone();
                        (step.input, step.detail) = (input, detail);
                        let now = Now::OtherInput { input: key.input };
                        let (run, changed) =
                            (self.run(), Change::between(&step.detail, &key.detail));
                        let recorded = value;
                        Err(self.differs(Difference { run, step, seq, recorded, now, changed }))
                    }
                }
            }
        }
    }

    /// A step's result; from the file if it was served before.
    pub(super) fn value(&self, seq: u64, value: Option<Box<str>>) -> Result<Value, Error> {
        let value = match value {
            Some(value) => self.store.expand_text(&value),
            None => self
                .store
                .records(self.run(), seq.saturating_sub(1), 1)
                .map(|mut records| records.pop().map(|record| record.data).unwrap_or_default()),
        };
        value.map_err(|error| self.shared.park(error.into()))
    }

    /// Why a step that is not on record is not done.
    fn stops_at(&self, key: &StepKey, within: Option<&Arc<Frame>>) -> Option<Error> {
        let is_end = || key.is_end() || within.is_some_and(|frame| frame.is_in_end());
        match self.way() {
            Resume::GoOn => {
                let is_first = !self.beyond.swap(true, Ordering::SeqCst);
                // It may have been wanted meanwhile, by somebody who did not see this.
                let cancelled = is_first && self.cancel_later.load(Ordering::SeqCst);
                (cancelled && !self.is_new).then(|| {
                    self.beyond.store(false, Ordering::SeqCst);
                    self.stop(key)
                })
            }
            Resume::Abandon | Resume::Cancel if is_end() => None,
            Resume::Abandon | Resume::Cancel | Resume::Replay => Some(self.stop(key)),
        }
    }

    /// The run does not go beyond its record.
    pub(super) fn stop(&self, key: &StepKey) -> Error {
        self.stopped.store(true, Ordering::Relaxed);
        match self.way() {
            Resume::Replay => {
                let _ = self.end_of_record.set(key.clone());
                self.shared.park(Error::replay(format!(
                    "the record of run {} ends here: step {key} is not on it. A replay does nothing \
                     that is not on record",
                    self.run()
                )))
            }
            // Nobody is interrupted by it: whoever else began in an earlier life comes to the end of
            // its own record first, and gets its ends there.
            Resume::Cancel => {
                fail::point(fail::RECOVERY_HALF);
                Error::cancelled()
            }
            Resume::Abandon | Resume::GoOn => {
                fail::point(fail::RECOVERY_HALF);
                Error::abandoned()
            }
        }
    }

    async fn end(&self, scope: &ScopeRecord, end: ScopeEnd) -> Result<(), Error> {
        if !(scope.kind == ScopeKind::Instance && self.records_ends()) {
            self.check()?;
        }
        if self.drive.is_none() || !self.table().end(scope) {
            return Ok(());
        }
        fail::point(fail::BEFORE_SCOPE_END);
        let (run, row) = (self.shared.name(), rows::ended(scope, end));
        if let Err(error) = self.commit(move |tx| tx.append(&run, row)).await {
            self.table().unend(&scope.id);
            return Err(error);
        }
        fail::point(fail::AFTER_SCOPE_END);
        Ok(())
    }
}

/// A step whose effect runs. If it comes to nothing, it may be taken again.
pub(super) struct Running<'a> {
    pub(super) log: &'a Inner,
    pub(super) key: Option<StepKey>,
}

impl Running<'_> {
    pub(super) fn key(&self) -> &StepKey {
        self.key.as_ref().expect("it is there until the step is recorded")
    }

    pub(super) fn recorded(&mut self, seq: u64) {
        if let Some(key) = self.key.take() {
            self.log.table().record(key, seq);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.log.table().give_up(key);
        }
    }
}
