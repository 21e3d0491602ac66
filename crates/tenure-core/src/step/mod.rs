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

/// A hash of what a step depends on, equal in every process and whatever the order of keys.
pub(crate) fn fingerprint<T: Serialize>(input: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(&serde_json::to_value(input).unwrap_or_default(), &mut hasher);
    hasher.finish()
}

/// The keys of an object are sorted here: whether a map keeps them sorted is decided by features of
/// a crate that anybody in the build can turn on.
fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            (b'{', fields.len()).hash(hasher);
            for (key, value) in fields {
                key.hash(hasher);
                hash_value(value, hasher);
            }
        }
        Value::Array(items) => {
            (b'[', items.len()).hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        scalar => scalar.to_string().hash(hasher),
    }
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

#[cfg(test)]
mod tests {
    use super::fingerprint;
    use serde_json::json;

    #[test]
    fn a_fingerprint_ignores_the_order_of_keys_and_nothing_else() {
        let print = |text: &str| {
            fingerprint(&serde_json::from_str::<serde_json::Value>(text).expect("it is JSON"))
        };
        assert_eq!(print(r#"{"a":1,"b":{"c":2,"d":3}}"#), print(r#"{"b":{"d":3,"c":2},"a":1}"#));
        assert_ne!(print(r#"{"a":1,"b":2}"#), print(r#"{"a":2,"b":1}"#));
        assert_ne!(print("[1,2]"), print("[2,1]"));
        assert_ne!(print("[[1],2]"), print("[1,[2]]"));
        assert_ne!(fingerprint(&json!("1")), fingerprint(&json!(1)));
    }
}
