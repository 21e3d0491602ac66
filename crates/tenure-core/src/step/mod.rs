//! The seam for durability: run this named step, or return its recorded result.
//!
//! The drive loop is written against [`StepLog`]; without one it costs nothing. Steps are leaves:
//! a begin's or `after_model`'s decision (a failure is one too), each model call, each tool call
//! with what it wrote, each ask, each `cx.step`, and the delivery of a turn's ends. Wraps run again
//! at a replay, with `next` and `ask` answered from the record.

mod key;
mod memory_log;

pub use key::StepKey;
pub use memory_log::MemoryStepLog;

use crate::BoxFuture;
use crate::context::{Batch, Cx};
use crate::error::{Error, ErrorKind};
use crate::id::RunId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Where steps are recorded.
pub trait StepLog: Send + Sync + 'static {
    /// Runs `effect` and records its result before returning it; or, if `key` is recorded, returns
    /// the record and drops `effect` without polling it.
    ///
    /// A record whose input differs from the key's is an error of kind
    /// [`ErrorKind::Replay`] that names the step; the log never guesses.
    /// An `Err` of the effect is not recorded.
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
}

/// The log of one run, and where in it a scope writes.
#[derive(Clone)]
pub(crate) struct Steps {
    pub(crate) log: Arc<dyn StepLog>,
    pub(crate) path: Arc<str>,
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|error| {
        Error::new(ErrorKind::Replay, format!("a step's result cannot be recorded: {error}"))
    })
}

pub(crate) fn decode<T: DeserializeOwned>(record: Value) -> Result<T, Error> {
    serde_json::from_value(record).map_err(|error| {
        Error::new(ErrorKind::Replay, format!("a step's record cannot be read: {error}"))
    })
}

/// A hash of what a step depends on, equal in every process.
pub(crate) fn fingerprint<T: Serialize>(input: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(input).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

/// The name of something that a hook or a tool does on its way: its own, so that it is the same
/// whether or not others run again beside it.
pub(crate) fn own_name(cx: Cx<'_>, batch: Option<Batch<'_>>, name: &str) -> String {
    let entries = &cx.site.inner.blueprint.chain.entries;
    let who = entries.get(cx.place()).map_or("tool", |entry| &entry.name);
    let (point, step) = (cx.point, cx.site.turn.map_or(0, |turn| turn.steps_made()));
    match batch {
        Some(batch) => {
            let call = &batch.calls[batch.index].id;
            format!("{point}@{step}[{call}]/{who}/{name}")
        }
        None => format!("{point}@{step}/{who}/{name}"),
    }
}

pub(crate) async fn step<T, F>(
    cx: Cx<'_>,
    batch: Option<Batch<'_>>,
    name: &str,
    effect: F,
) -> Result<T, Error>
where
    T: Serialize + DeserializeOwned + Send,
    F: Future<Output = Result<T, Error>> + Send,
{
    let (Some(log), Some(turn)) = (cx.site.steps(), cx.site.turn) else {
        return effect.await;
    };
    let key = turn.step_key("step", &own_name(cx, batch, name), 0);
    let mut fresh = None;
    let effect = async {
        let value = effect.await?;
        let record = encode(&value)?;
        fresh = Some(value);
        Ok(record)
    };
    let record = log.step(key, Box::pin(effect)).await?;
    match fresh {
        Some(value) => Ok(value),
        None => decode(record),
    }
}
