//! What was observed and decided, in order, and the same decided again.

use super::plan::{Decision, Knowledge, Observation};
use super::policy::Policy;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many entries are kept at least, and no more than twice as many. What is older is part of what
/// is known at the start.
const LEAST: usize = 4_096;

/// What was observed and decided since a start, in order: data that can be kept, and
/// [replayed](replay).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    start: Knowledge,
    /// Whether it was frozen at the start.
    frozen: bool,
    entries: VecDeque<Entry>,
}

/// One line of a [`Log`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Entry {
    /// A turn was observed.
    Observed(Arc<Observation>),
    /// Something was decided, by what was observed last.
    Decided(Box<Decision>),
    /// It was frozen, or thawed.
    Frozen(bool),
}

impl Log {
    pub(super) fn new(start: Knowledge) -> Self {
        Self { frozen: start.frozen, start, entries: VecDeque::new() }
    }

    /// Its lines, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// What was decided, oldest first.
    pub fn decisions(&self) -> Vec<Decision> {
        let decided = |entry: &Entry| match entry {
            Entry::Decided(decision) => Some((**decision).clone()),
            _ => None,
        };
        self.entries.iter().filter_map(decided).collect()
    }
}

/// A log as it is written. So that it need not be replayed to lose its beginning, it remembers what
/// was known in the midst of it.
pub(super) struct Book {
    log: Log,
    /// What was known before the entry of this number.
    mark: Option<(usize, Knowledge)>,
}

impl Book {
    pub(super) fn new(start: Knowledge) -> Self {
        Self { log: Log::new(start), mark: None }
    }

    /// The log as it is now.
    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Adds a line that something new begins with: `known` is what was known before it. The oldest
    /// ones become part of the start, if there are too many.
    pub(super) fn begin(&mut self, known: &Knowledge, entry: Entry) {
        let entries = &mut self.log.entries;
        let since = entries.len() - self.mark.as_ref().map_or(0, |(at, _)| *at);
        if since >= LEAST {
            if let Some((at, start)) = self.mark.take() {
                entries.drain(..at);
                self.log.frozen = start.frozen;
                self.log.start = start;
            }
            self.mark = Some((entries.len(), known.clone()));
        }
        entries.push_back(entry);
    }

    /// Adds what was decided by the line before.
    pub(super) fn decided(&mut self, decision: Decision) {
        self.log.entries.push_back(Entry::Decided(Box::new(decision)));
    }
}

fn apply(knowledge: &mut Knowledge, policy: &Policy, entry: &Entry) -> Option<Decision> {
    match entry {
        Entry::Observed(seen) => knowledge.observe(policy, seen.clone()),
        Entry::Frozen(frozen) => {
            knowledge.frozen = *frozen;
            None
        }
        Entry::Decided(_) => None,
    }
}

/// Decides again by what a log says was observed. With the policy that made the log this is what it
/// says was decided; with another, what would have been decided, up to the first change that was not
/// made: turns after it were made with another setting.
///
/// Nothing but the log and the policy goes into it.
pub fn replay(log: &Log, policy: &Policy) -> Vec<Decision> {
    let mut knowledge = log.start.clone().fit(policy);
    knowledge.frozen = log.frozen;
    log.entries.iter().filter_map(|entry| apply(&mut knowledge, policy, entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapt::policy::{Bounds, Goals};
    use std::time::Duration;

    #[test]
    fn a_log_that_has_lost_its_beginning_replays_all_the_same() {
        let mut policy = Policy::new(Goals::new().latency_p95(Duration::from_secs(1)));
        policy.bounds = Bounds::new().models(["best", "fast", "faster"]);
        policy.recover_after = 7;
        let mut knowledge = Knowledge::new(&policy);
        let mut book = Book::new(knowledge.clone());
        let mut most = 0;
        for turn in 0..20_000u64 {
            // Slow for a while, fast for a while, and frozen now and then.
            if turn % 1_000 == 900 || turn % 1_000 == 950 {
                let frozen = !knowledge.frozen;
                book.begin(&knowledge, Entry::Frozen(frozen));
                knowledge.frozen = frozen;
            }
            let call = if turn / 50 % 2 == 0 { 3_000_000 } else { 10_000 };
            let revision = knowledge.setting.revision;
            let calls_us = vec![call];
            let seen = Arc::new(Observation { revision, calls_us, ..Observation::default() });
            book.begin(&knowledge, Entry::Observed(seen.clone()));
            knowledge.observe(&policy, seen).into_iter().for_each(|it| book.decided(it));
            most = most.max(book.log().entries.len());
            assert!(turn < LEAST as u64 || book.log().entries.len() >= LEAST, "turn {turn}");
        }
        assert!(most > LEAST && most <= 2 * LEAST + 2, "{most}");
        let log = book.log();
        assert_ne!(log.start, Knowledge::new(&policy), "its beginning is gone");
        assert!(log.decisions().len() > 20, "{}", log.decisions().len());
        assert_eq!(replay(log, &policy), log.decisions());
    }
}
