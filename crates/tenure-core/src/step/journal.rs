//! One step of a scope: run and recorded, or served from the record; with what changed meanwhile.

use super::baseline::Delta;
use super::{StepKey, StepScope, decode, encode};
use crate::context::{Batch, Cx};
use crate::error::Error;
use crate::kernel::Site;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a step's result comes from.
pub(crate) enum Step<T> {
    /// It was done now.
    Fresh(T),
    /// It was done before; this is its record.
    Recorded(Value),
}

/// A step's record, and what had changed since the one before it.
#[derive(Serialize, Deserialize)]
struct Record {
    value: Value,
    #[serde(flatten)]
    changes: Changes,
}

/// What changed of an instance and its chat.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Changes {
    #[serde(skip_serializing_if = "Delta::is_empty")]
    variables: Delta,
    #[serde(skip_serializing_if = "Delta::is_empty")]
    state: Delta,
    #[serde(skip_serializing_if = "Delta::is_empty")]
    memory: Delta,
    /// Which versions of these memories had been read: whether somebody else wrote them meanwhile
    /// is decided when they are stored, perhaps by a later life.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    read: BTreeMap<String, u64>,
}

/// Runs `effect` as the step `key`. It gives what to record, or why there is nothing to record, and
/// the value itself.
///
/// An `Err` is the log's: the run is parked.
pub(crate) async fn recorded<T: Send>(
    site: &Site<'_>,
    scope: &StepScope,
    key: StepKey,
    effect: impl Future<Output = (Result<Value, Error>, T)> + Send,
) -> Result<Step<T>, Error> {
    let log = scope.log();
    compare_from_here(site);
    let (mut fresh, mut unrecorded) = (None, false);
    let effect = async {
        let (record, value) = effect.await;
        let record = match record {
            Ok(value) => value,
            Err(error) => {
                (fresh, unrecorded) = (Some(value), true);
                return Err(error);
            }
        };
        let mut record = encode(&Record { value: record, changes: changes(site, log.life()) })?;
        if !log.redact(&mut record) {
            fresh = Some(value);
        }
        Ok(record)
    };
    match log.step(key, Box::pin(effect)).await {
        Ok(record) => match fresh {
            Some(value) => Ok(Step::Fresh(value)),
            None => {
                let Record { value, changes } = decode(record)?;
                apply(site, changes);
                Ok(Step::Recorded(value))
            }
        },
        Err(error) => match fresh {
            Some(value) if unrecorded && log.trouble().is_none() => Ok(Step::Fresh(value)),
            _ => Err(error),
        },
    }
}

/// What was there before the first step comes with whoever made it.
fn compare_from_here(site: &Site<'_>) {
    if let Some(chat) = site.chat {
        chat.compare_from_here();
    }
    let extra = site.inner.extra();
    let mut recorded = extra.recorded.lock();
    recorded.0.begin(extra.state.writes(), || extra.state.all());
    recorded.1.begin(extra.memory.writes(), || extra.memory.values());
}

/// What has changed since the last record.
fn changes(site: &Site<'_>, life: u32) -> Changes {
    let mut changes = Changes::default();
    if let Some(chat) = site.chat {
        changes.variables = chat.changes(life);
    }
    if let Some(extra) = site.inner.if_extra() {
        let mut recorded = extra.recorded.lock();
        changes.state = recorded.0.differs(life, extra.state.writes(), || extra.state.all());
        let memory = &extra.memory;
        changes.memory = recorded.1.differs(life, memory.writes(), || memory.values());
        changes.read = memory.versions(changes.memory.set.keys());
    }
    changes
}

/// Takes what was written outside of steps for known: it is written again in the next life.
pub(crate) fn absorb(site: &Site<'_>) {
    drop(changes(site, 0));
}

fn apply(site: &Site<'_>, changes: Changes) {
    let Changes { variables, state, memory, read } = changes;
    if let Some(chat) = site.chat {
        chat.restore(variables);
    }
    let extra = site.inner.extra();
    let mut recorded = extra.recorded.lock();
    let state = recorded.0.restores(state).set;
    if !state.is_empty() {
        extra.state.restore(state);
    }
    let memory = recorded.1.restores(memory).set;
    if !memory.is_empty() {
        extra.memory.restore(memory, &read);
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
        None if cx.site.turn.is_none() => {
            // Every agent of a chat writes in the chat's own place.
            format!("{point}@{}/{who}/{name}", cx.site.inner.name())
        }
        None => format!("{point}@{step}/{who}/{name}"),
    }
}

/// A step that a hook or a tool takes by name.
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
    let Some(scope) = cx.site.steps() else {
        return effect.await;
    };
    let key = scope.key("step", &own_name(cx, batch, name), 0);
    let effect = async {
        match effect.await {
            Ok(value) => (encode(&value), Ok(value)),
            Err(error) => (Err(error.clone()), Err(error)),
        }
    };
    match recorded(cx.site, scope, key, effect).await? {
        Step::Fresh(result) => result,
        Step::Recorded(record) => decode(record),
    }
}
