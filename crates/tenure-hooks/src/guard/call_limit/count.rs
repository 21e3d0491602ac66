//! What was counted, and what may still be called.

use super::Most;
use crate::guard::glob::Glob;
use crate::words::own_key;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tenure_core::Error;
use tenure_core::context::Cx;

/// Where it is kept.
const KEY: &str = "_call_limit";

/// The same for this one of several in an agent.
pub(super) fn key(cx: &Cx<'_>) -> Cow<'static, str> {
    own_key(cx, "call_limit", KEY)
}

/// Calls by the name of the tool.
type ByTool = BTreeMap<String, u64>;

/// What was counted in a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Counts {
    /// The chat that the thread belongs to.
    chat: Option<String>,
    /// In the runs before this one.
    earlier_models: u64,
    earlier_tools: ByTool,
    /// In this run.
    pub(super) models: u64,
    /// Which model call of the run was the last.
    pub(super) step: u64,
    /// What each of them asked for and got. The calls of one step all write the same here, so that
    /// it does not matter which of them come first, or again.
    by_step: BTreeMap<u64, ByTool>,
    /// Why the run is to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<String>,
}

impl Counts {
    /// What is counted so far. What cannot be read is a failure, and no fresh start.
    pub(super) fn read(cx: &Cx<'_>) -> Result<Self, Error> {
        let key = key(cx);
        match cx.state(&key) {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(value) => serde_json::from_value(value)
                .map_err(|error| Error::invalid(format!("the state `{key}` is broken: {error}"))),
        }
    }

    pub(super) fn to_value(&self) -> Result<Value, Error> {
        serde_json::to_value(self)
            .map_err(|error| Error::invalid(format!("the counts cannot be kept: {error}")))
    }

    /// A run begins: what the one before it did is part of the thread.
    pub(super) fn begin_run(&mut self, chat: Option<&str>) {
        let mut earlier = std::mem::take(self);
        if earlier.chat.as_deref() != chat {
            self.chat = chat.map(str::to_owned);
            return;
        }
        for (tool, calls) in earlier.by_step.into_values().flatten() {
            *earlier.earlier_tools.entry(tool).or_default() += calls;
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
    pub(super) fn judge(&mut self, batch: &[&str], limits: &[(Glob, Most)]) -> Vec<Option<String>> {
        let mut run = ByTool::new();
        for (tool, calls) in self.by_step.range(..self.step).flat_map(|(_, tools)| tools) {
            *run.entry(tool.clone()).or_default() += calls;
        }
        let mut now = ByTool::new();
        let mut denials = Vec::with_capacity(batch.len());
        for tool in batch {
            let denial = limits.iter().find_map(|(glob, most)| {
                let of = |calls: &ByTool| {
                    calls.iter().filter(|(name, _)| glob.matches(name)).map(|(_, n)| n).sum::<u64>()
                };
                let in_run = of(&run) + of(&now);
                let in_thread = in_run + of(&self.earlier_tools);
                let scope = if most.run.is_some_and(|most| in_run >= most) {
                    most.run.map(|most| (most, "run"))
                } else {
                    most.thread.filter(|most| in_thread >= *most).map(|most| (most, "thread"))
                };
                let (most, scope) = scope.filter(|_| glob.matches(tool))?;
                let of = if glob.text() == "*" { "tools" } else { glob.text() };
                Some(format!("the limit of {most} calls of {of} in a {scope} is reached"))
            });
            if denial.is_none() {
                *now.entry((*tool).to_owned()).or_default() += 1;
            }
            denials.push(denial);
        }
        self.by_step.insert(self.step, now);
        denials
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(tool: &str, run: Option<u64>, thread: Option<u64>) -> Vec<(Glob, Most)> {
        vec![(Glob::of_names(tool).unwrap(), Most { run, thread })]
    }

    #[test]
    fn judging_a_batch_again_counts_nothing_twice() {
        let limits = limits("search", Some(3), None);
        let mut counts = Counts { step: 1, ..Counts::default() };
        let batch = ["search", "other", "search"];
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
        assert_eq!(denied(counts.judge(&["a", "b", "c", "d"], &limits)), 2);
        counts.begin_run(None);
        counts.step = 1;
        let denials = counts.judge(&["a", "b"], &limits);
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
