//! What was observed and decided, in order, and the same decided again.

use super::plan::{Decision, Knowledge, Observation};
use super::policy::Policy;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many entries are kept. What is older is part of what is known at the start.
const MOST: usize = 4_096;

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
    Observed(Observation),
    /// Something was decided, by what was observed last.
    Decided(Decision),
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
            Entry::Decided(decision) => Some(decision.clone()),
            _ => None,
        };
        self.entries.iter().filter_map(decided).collect()
    }

    /// Adds a line. The oldest one becomes part of the start, if there are too many.
    pub(super) fn push(&mut self, policy: &Policy, entry: Entry) {
        self.entries.push_back(entry);
        if self.entries.len() > MOST
            && let Some(oldest) = self.entries.pop_front()
        {
            self.start.frozen = self.frozen;
            apply(&mut self.start, policy, &oldest);
            self.frozen = self.start.frozen;
            // What it decided is of the past too.
            if let Some(Entry::Decided(_)) = self.entries.front() {
                self.entries.pop_front();
            }
        }
    }
}

fn apply(knowledge: &mut Knowledge, policy: &Policy, entry: &Entry) -> Option<Decision> {
    match entry {
        Entry::Observed(seen) => knowledge.observe(policy, seen),
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
        let mut log = Log::new(knowledge.clone());
        for turn in 0..6_000u64 {
            // Slow for a while, fast for a while.
            let call = if turn / 50 % 2 == 0 { 3_000_000 } else { 10_000 };
            let revision = knowledge.setting.revision;
            let seen = Observation { revision, calls_us: vec![call], ..Observation::default() };
            let decision = knowledge.observe(&policy, &seen);
            log.push(&policy, Entry::Observed(seen));
            decision.into_iter().for_each(|it| log.push(&policy, Entry::Decided(it)));
        }
        assert!(log.entries.len() <= MOST);
        assert!(log.decisions().len() > 20, "{}", log.decisions().len());
        assert_eq!(replay(&log, &policy), log.decisions());
    }
}
