//! What was counted, and what may still be called.

use super::Most;
use crate::guard::glob::Glob;
use crate::words::own_key;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::Cx;

/// Where it is kept.
const KEY: &str = "_call_limit";

/// The same for this one of several in an agent.
fn key(cx: &Cx<'_>) -> Cow<'static, str> {
    own_key(cx, "call_limit", KEY)
}

/// Calls by the name of the tool. There are few, and they are counted at every call: a list is copied
/// sooner than a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally(Vec<(Arc<str>, u64)>);

impl Tally {
    fn add(&mut self, tool: &Arc<str>, calls: u64) {
        match self.0.iter_mut().find(|(name, _)| name == tool) {
            Some((_, known)) => *known += calls,
            None => self.0.push((tool.clone(), calls)),
        }
    }

    /// The calls of the tools that a pattern is about.
    fn of(&self, glob: &Glob) -> u64 {
        self.0.iter().filter(|(name, _)| glob.matches(name)).map(|(_, calls)| calls).sum()
    }
}

impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, calls)| (name, calls)))
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let calls = BTreeMap::<Arc<str>, u64>::deserialize(deserializer)?;
        Ok(Self(calls.into_iter().collect()))
    }
}

/// What was counted in a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Counts {
    /// The chat that the thread belongs to.
    chat: Option<String>,
    /// In the runs before this one.
    earlier_models: u64,
    earlier_tools: Tally,
    /// In this run.
    pub(super) models: u64,
    /// Which model call of the run was the last.
    pub(super) step: u64,
    /// What each of them asked for and got. The calls of one step all write the same here, so that
    /// it does not matter which of them come first, or again.
    #[serde(with = "by_number")]
    by_step: Vec<(u64, Tally)>,
    /// Why the run is to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<String>,
}

impl Counts {
    /// What is counted so far. What cannot be read is a failure, and no fresh start.
    pub(super) fn read(cx: &Cx<'_>) -> Result<Self, Error> {
        let counts = cx.state_as::<Self>(&key(cx))?;
        Ok(counts.map(Arc::unwrap_or_clone).unwrap_or_default())
    }

    /// At once, also in a batch: what was asked for counts however the turn ends.
    pub(super) fn write(self, cx: &Cx<'_>) -> Result<(), Error> {
        cx.keep_state(&key(cx), self)
    }

    /// A run begins: what the one before it did is part of the thread.
    pub(super) fn begin_run(&mut self, chat: Option<&str>) {
        let mut earlier = std::mem::take(self);
        if earlier.chat.as_deref() != chat {
            self.chat = chat.map(str::to_owned);
            return;
        }
        for (tool, calls) in earlier.by_step.iter().flat_map(|(_, tally)| &tally.0) {
            earlier.earlier_tools.add(tool, *calls);
        }
        self.chat = earlier.chat;
        self.earlier_models = earlier.earlier_models + earlier.models;
        self.earlier_tools = earlier.earlier_tools;
    }

    /// Why the model may not be asked once more.
    pub(super) fn model_denial(&self, most: Most) -> Option<String> {
        let said = |calls: u64, most: u64, scope: &str| {
            format!("the limit of {most} model calls in a {scope} is reached ({calls} were made)")
        };
        let (run, thread) = (self.models, self.earlier_models + self.models);
        let beyond = |most: Option<u64>, calls: u64| most.filter(|most| calls >= *most);
        let in_run = beyond(most.run, run).map(|most| said(run, most, "run"));
        in_run.or_else(|| beyond(most.thread, thread).map(|most| said(thread, most, "thread")))
    }

    /// Why each call of this step's batch may not be made, if so. Those that may are counted.
    pub(super) fn judge<'a>(
        &mut self,
        batch: impl IntoIterator<Item = &'a Arc<str>>,
        limits: &[(Glob, Most)],
    ) -> Vec<Option<String>> {
        self.by_step.retain(|(step, _)| *step < self.step);
        let mut now = Tally::default();
        let judge = |tool: &Arc<str>| {
            let denial = limits.iter().find_map(|(glob, most)| {
                if !glob.matches(tool) {
                    return None;
                }
                let before = self.by_step.iter().map(|(_, tally)| tally.of(glob));
                let in_run = before.sum::<u64>() + now.of(glob);
                let in_thread = || in_run + self.earlier_tools.of(glob);
                let run = most.run.filter(|most| in_run >= *most).map(|most| (most, "run"));
                let (most, scope) = run.or_else(|| {
                    let most = most.thread.filter(|most| in_thread() >= *most);
                    most.map(|most| (most, "thread"))
                })?;
                let of = if glob.text() == "*" { "tools" } else { glob.text() };
                Some(format!("the limit of {most} calls of {of} in a {scope} is reached"))
            });
            if denial.is_none() {
                now.add(tool, 1);
            }
            denial
        };
        let denials = batch.into_iter().map(judge).collect();
        self.by_step.push((self.step, now));
        denials
    }
}

/// Steps by their number, as an object.
mod by_number {
    use super::{BTreeMap, Deserialize, Deserializer, Serializer, Tally};

    pub(super) fn serialize<S: Serializer>(
        steps: &[(u64, Tally)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(steps.iter().map(|(step, tally)| (step, tally)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(u64, Tally)>, D::Error> {
        Ok(BTreeMap::deserialize(deserializer)?.into_iter().collect())
    }
}

impl From<Counts> for Value {
    fn from(counts: Counts) -> Self {
        serde_json::to_value(counts).expect("numbers and texts become JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(tool: &str, run: Option<u64>, thread: Option<u64>) -> Vec<(Glob, Most)> {
        vec![(Glob::of_names(tool).unwrap(), Most { run, thread })]
    }

    fn names<const N: usize>(tools: [&str; N]) -> [Arc<str>; N] {
        tools.map(Arc::from)
    }

    #[test]
    fn what_was_counted_is_the_same_as_json() {
        let mut counts = Counts { step: 1, models: 1, ..Counts::default() };
        counts.judge(&names(["b", "a", "b"]), &[]);
        counts.begin_run(None);
        counts.judge(&names(["c"]), &[]);
        let value = Value::from(counts.clone());
        // Runs that were recorded with it go on.
        let recorded = serde_json::json!({
            "chat": null,
            "earlier_models": 1,
            "earlier_tools": { "b": 2, "a": 1 },
            "models": 0,
            "step": 0,
            "by_step": { "0": { "c": 1 } },
        });
        assert_eq!(value, recorded);
        let mut read: Counts = serde_json::from_value(value).unwrap();
        read.earlier_tools.0.sort();
        counts.earlier_tools.0.sort();
        assert_eq!(read, counts);
    }

    #[test]
    fn judging_a_batch_again_counts_nothing_twice() {
        let limits = limits("search", Some(3), None);
        let mut counts = Counts { step: 1, ..Counts::default() };
        let batch = names(["search", "other", "search"]);
        let first = counts.judge(&batch, &limits);
        assert_eq!(counts.judge(&batch, &limits), first);
        counts.step = 2;
        let second = counts.judge(&batch, &limits);
        assert_eq!(second.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn a_denied_call_takes_nothing_from_the_thread() {
        let limits = limits("*", Some(2), Some(3));
        let mut counts = Counts { step: 1, ..Counts::default() };
        let denied = |denials: Vec<Option<String>>| denials.iter().flatten().count();
        assert_eq!(denied(counts.judge(&names(["a", "b", "c", "d"]), &limits)), 2);
        counts.begin_run(None);
        counts.step = 1;
        let denials = counts.judge(&names(["a", "b"]), &limits);
        assert!(denials[0].is_none());
        let why = denials[1].as_deref();
        assert_eq!(why, Some("the limit of 3 calls of tools in a thread is reached"));
    }

    #[test]
    fn another_chat_is_another_thread() {
        let mut counts = Counts { models: 4, ..Counts::default() };
        counts.begin_run(None);
        assert_eq!(counts.earlier_models, 4);
        counts.begin_run(Some("c1"));
        assert_eq!(counts.earlier_models, 0);
    }
}
