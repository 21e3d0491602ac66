//! The seam for durability: run this named step, or return its recorded result.
//!
//! The drive loop is written against [`StepLog`]; without one it costs nothing. Steps are leaves:
//! a begin's or `after_model`'s decision (a failure is one too), each model call, each tool call
//! with what it wrote, each ask, each `cx.step`, and the delivery of ends. With a step is recorded
//! what changed meanwhile in the agent's state, its memory and the chat's variables. Wraps run again
//! at a replay, with `next` and `ask` answered from the record.

mod baseline;
mod journal;
mod key;
mod memory_log;
mod print;
mod scope;
mod waiting;

pub(crate) use baseline::{Baseline, Delta};
pub(crate) use journal::{Step, absorb, own_name, recorded, step};
pub use key::StepKey;
pub use memory_log::MemoryStepLog;
pub(crate) use print::{Print, fingerprint, fingerprint_texts};
pub(crate) use scope::StepScope;
pub use scope::{ScopeEnd, ScopeKind, ScopeRecord, Steps};
pub use waiting::WhenWaiting;

use crate::BoxFuture;
use crate::ask::{Answer, PendingAsk};
use crate::content::Content;
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::id::RunId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::ready;

/// Where the steps of one run are recorded.
///
/// A run may have several lives: a process drives it, dies, and another one goes on with the record.
pub trait StepLog: Send + Sync + 'static {
    /// Runs `effect` and records its result before returning it; or, if `key` is recorded, returns
    /// the record and drops `effect` without polling it.
    ///
    /// A record whose input differs from the key's is an error that [parks](Error::parks) the run
    /// and names the step; the log never guesses, and from then on every step is that error. So it
    /// is if a record cannot be written. An `Err` of the effect is not recorded.
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>>;

    /// The id of the run that is recorded here: the same in every attempt at it.
    fn run_id(&self) -> RunId;

    /// Whether the run goes on where an earlier process stopped.
    fn is_resumed(&self) -> bool {
        false
    }

    /// Which life of the run this is, counted from one.
    fn life(&self) -> u32 {
        1
    }

    /// Why nothing can be recorded any more: the run is parked. Hooks may have swallowed the error
    /// of a step; nothing goes on all the same.
    fn trouble(&self) -> Option<Error> {
        None
    }

    /// Whether the end of an instance of this life can be recorded: also if the run is parked, as
    /// long as something can be written. Where it cannot, the hooks are called all the same.
    fn records_ends(&self) -> bool {
        self.trouble().is_none()
    }

    /// Puts a question on record and waits for its answer, or returns the recorded one. `here` is
    /// the answer of whoever is asked in this process; the log may have it from elsewhere first, and
    /// the first answer counts.
    fn ask<'a>(
        &'a self,
        key: StepKey,
        question: &'a PendingAsk,
        here: BoxFuture<'a, Result<Answer, Error>>,
    ) -> BoxFuture<'a, Result<Answer, Error>> {
        let _ = question;
        Box::pin(async move {
            let effect = async { encode(&here.await?) };
            decode(self.step(key, Box::pin(effect)).await?)
        })
    }

    /// Whether a question stands also when nobody is in this process to answer it.
    fn keeps_asks(&self) -> bool {
        false
    }

    /// A scope began, or has passed more entries since. Returns once that is on record, if hooks are
    /// about to be called that a later life has to end.
    fn begin<'a>(&'a self, scope: ScopeRecord) -> BoxFuture<'a, Result<(), Error>> {
        let _ = scope;
        Box::pin(ready(Ok(())))
    }

    /// A scope ended. The first end of a scope counts; another one changes nothing.
    fn end<'a>(
        &'a self,
        scope: &'a ScopeRecord,
        end: ScopeEnd,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let _ = (scope, end);
        Box::pin(ready(Ok(())))
    }

    /// The instances at this place that earlier lives of the run have left without an end.
    fn unended(&self, path: &str) -> Vec<ScopeRecord> {
        let _ = path;
        Vec::new()
    }

    /// Takes an event of an instance that is part of the run. Never waits.
    ///
    /// The transitions of an instance come one at a time, in the order in which they happened, and
    /// under no lock of the instance: the log may look at its agent, and move it.
    fn event(&self, event: Event) {
        let _ = event;
    }

    /// Takes an event that the run announces once over all of its lives, and returns `true` if it is
    /// not on record yet. Never waits. An announcement is known by its `place` and its name.
    ///
    /// To announce and to record is one thing: a caller that gets `true` hands the event to its
    /// listeners, and one that gets `false` does not. The record is in order, so an announcement that comes before
    /// a step is on record when the step is. If the process dies before, a later life announces it
    /// again: the record has it once, and what the dead process had shown is shown twice. What it had
    /// recorded and not shown is not shown; it is to be had from the record.
    fn announce(&self, place: &str, event: Event) -> bool {
        let _ = place;
        self.event(event);
        true
    }

    /// Whether it takes events. They are not built for one that does not.
    fn takes_events(&self) -> bool {
        false
    }

    /// Takes out what must not be written. Whether there was anything: then what is used is what
    /// is recorded, so that a replay sees the same.
    fn redact(&self, value: &mut Value) -> bool {
        let _ = value;
        false
    }
}

/// Refuses content with bytes in it. A record has the hash of media, and no log keeps the bytes, so
/// that a later life could not go on.
pub(crate) fn recordable(content: &Content) -> Result<(), Error> {
    match content.media().find(|media| media.bytes().is_some()) {
        None => Ok(()),
        Some(media) => Err(Error::new(
            ErrorKind::Invalid,
            format!("a recorded run takes media by its address only, and this has bytes: {media}"),
        )),
    }
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value)
        .map_err(|error| Error::replay(format!("a step's result cannot be recorded: {error}")))
}

pub(crate) fn decode<T: DeserializeOwned>(record: Value) -> Result<T, Error> {
    serde_json::from_value(record)
        .map_err(|error| Error::replay(format!("a step's record cannot be read: {error}")))
}
