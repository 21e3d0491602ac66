//! What was counted, and what may still be called.

use super::Most;
use crate::guard::glob::Glob;
use crate::words::own_key;
use serde::{Deserialize, Serialize};
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
        let before = || self.by_step.range(..self.step).flat_map(|(_, tools)| tools);
        let mut now = ByTool::new();
        let mut denials = Vec::with_capacity(batch.len());
        for tool in batch {
            let denial = limits.iter().find_map(|(glob, most)| {
                if !glob.matches(tool) {
                    return None;
                }
                let is_of = |name: &String| glob.matches(name);
                let in_run = sum(before(), is_of) + sum(&now, is_of);
                let in_thread = || in_run + sum(&self.earlier_tools, is_of);
                let run = most.run.filter(|most| in_run >= *most).map(|most| (most, "run"));
                let (most, scope) = run.or_else(|| {
                    let most = most.thread.filter(|most| in_thread() >= *most);
                    most.map(|most| (most, "thread"))
                })?;
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

fn sum<'a>(
    calls: impl IntoIterator<Item = (&'a String, &'a u64)>,
    is_of: impl Fn(&String) -> bool,
) -> u64 {
    calls.into_iter().filter(|(name, _)| is_of(name)).map(|(_, calls)| calls).sum()
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
