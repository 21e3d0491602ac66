//! The clones of an agent, counted: many of them are one line.
//!
//! Counts are kept as things happen, so that showing them takes no longer the more there are.

use super::record::Standing;
use std::collections::HashMap;
use std::time::Duration;
use tenure_core::model::Usage;

/// More clones of an agent than these have no lines of their own in what stays on the screen.
pub(crate) const CROWD: usize = 20;
/// Of a crowd, this many may fail before only their number is said.
pub(crate) const MOST_FAILURES: usize = 10;
/// Clones that begin this long after the last one ended are another group.
const GAP: Duration = Duration::from_secs(1);
/// How long is waited for another clone before a group is said to be over.
const SETTLED: Duration = Duration::from_millis(300);

/// Who of a group waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    /// For a person.
    pub(crate) waiting: usize,
    /// For a place: these are calls without a clone so far.
    pub(crate) to_start: usize,
}

/// The clones of one agent that are, or were, at work together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The agent that they are clones of.
    pub(crate) name: String,
    pub(crate) total: usize,
    pub(crate) done: usize,
    /// The places of those that failed, in that order.
    pub(crate) failed: Vec<usize>,
    pub(crate) cancelled: usize,
    pub(crate) usage: Usage,
    pub(crate) since: Duration,
    /// When the last one ended.
    pub(crate) ended: Duration,
    /// Whether its end has been told.
    is_told: bool,
}

impl Group {
    fn new(name: &str, at: Duration) -> Self {
        Self {
            name: name.to_owned(),
            total: 0,
            done: 0,
            failed: Vec::new(),
            cancelled: 0,
            usage: Usage::default(),
            since: at,
            ended: at,
            is_told: false,
        }
    }

    /// How many have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.total - self.done - self.failed.len() - self.cancelled
    }

    /// Whether they are too many for lines of their own.
    pub(crate) fn is_crowd(&self) -> bool {
        self.total > CROWD
    }

    /// The counts in words: `150 · 12 running · 130 done · 3 failed · 5 waiting`.
    pub(crate) fn counts(&self, queue: Queue) -> String {
        let words = ["running", "done", "failed", "cancelled", "waiting", "waiting to start"];
        (self.total + queue.to_start).to_string() + &self.parts(queue, words, " · ")
    }

    /// The same where there is hardly any room: `150: 12 run 130 ok 3 bad 5 ask`.
    pub(crate) fn short_counts(&self, queue: Queue) -> String {
        let words = ["run", "ok", "bad", "cut", "ask", "due"];
        format!("{}:{}", self.total + queue.to_start, self.parts(queue, words, " "))
    }

    fn parts(&self, queue: Queue, words: [&str; 6], before: &str) -> String {
        let Queue { waiting, to_start } = queue;
        let running = self.alive().saturating_sub(waiting);
        let numbers = [running, self.done, self.failed.len(), self.cancelled, waiting, to_start];
        let parts = numbers.into_iter().zip(words).filter(|(number, _)| *number > 0);
        parts.map(|(number, word)| format!("{before}{number} {word}")).collect()
    }
}

/// All groups of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    all: Vec<Group>,
    /// The group of this name that is at work, or was last.
    latest: HashMap<String, usize>,
    /// Which group an instance is in, by the place of the instance.
    member: HashMap<usize, usize>,
}

impl Groups {
    /// The group that an instance is in.
    pub(crate) fn of(&self, place: usize) -> Option<&Group> {
        self.member.get(&place).map(|at| &self.all[*at])
    }

    /// Whether there are clones of this agent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.latest.contains_key(name)
    }

    /// The groups of which somebody is at work, in the order in which they began.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = &Group> {
        let mut latest: Vec<usize> = self.latest.values().copied().collect();
        latest.sort_unstable();
        latest.into_iter().map(|at| &self.all[at]).filter(|group| group.alive() > 0)
    }

    /// The crowds that are over, each once: those that nobody has joined for a while, or all of
    /// them if `all` is over.
    pub(crate) fn over(&mut self, now: Duration, all: bool) -> Vec<Group> {
        let is_over = |group: &Group| {
            let settled = all || now.saturating_sub(group.ended) >= SETTLED;
            group.is_crowd() && group.alive() == 0 && !group.is_told && settled
        };
        let latest = self.latest.values().copied();
        let mut over: Vec<usize> = latest.filter(|at| is_over(&self.all[*at])).collect();
        over.sort_unstable();
        over.into_iter()
            .map(|at| {
                self.all[at].is_told = true;
                self.all[at].clone()
            })
            .collect()
    }

    pub(super) fn joined(&mut self, name: &str, place: usize, at: Duration) {
        let latest = self.latest.get(name).copied().filter(|latest| {
            let group = &self.all[*latest];
            group.alive() > 0 || at.saturating_sub(group.ended) < GAP && !group.is_told
        });
        let group = latest.unwrap_or_else(|| {
            self.all.push(Group::new(name, at));
            self.latest.insert(name.to_owned(), self.all.len() - 1);
            self.all.len() - 1
        });
        self.all[group].total += 1;
        self.member.insert(place, group);
    }

    pub(super) fn ended(&mut self, place: usize, how: Standing, at: Duration) {
        let Some(group) = self.member.get(&place).map(|at| &mut self.all[*at]) else { return };
        match how {
            Standing::Failed => group.failed.push(place),
            Standing::Cancelled => group.cancelled += 1,
            _ => group.done += 1,
        }
        group.ended = at;
    }

    pub(super) fn used(&mut self, place: usize, usage: Usage) {
        if let Some(at) = self.member.get(&place) {
            self.all[*at].usage += usage;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn clones_one_after_the_other_are_one_group_and_those_of_a_later_turn_another() {
        let mut groups = Groups::default();
        for at in 0..30 {
            groups.joined("child", at, ms(10 * at as u64));
            groups.ended(at, Standing::Done, ms(10 * at as u64 + 5));
        }
        let group = groups.of(29).expect("a group");
        assert_eq!((group.total, group.done, group.alive()), (30, 30, 0));
        assert!(groups.over(ms(400), false).is_empty(), "somebody may still come");
        assert_eq!(groups.over(ms(700), false).len(), 1);
        assert!(groups.over(ms(9000), true).is_empty(), "it is told once");
        groups.joined("child", 30, ms(9000));
        assert_eq!(groups.of(30).expect("a group").total, 1);
    }

    #[test]
    fn the_counts_say_only_what_there_is() {
        let mut group = Group::new("child", ms(0));
        group.total = 150;
        group.done = 130;
        group.failed = vec![1, 2, 3];
        let asks = Queue { waiting: 5, to_start: 0 };
        assert_eq!(group.counts(asks), "150 · 12 running · 130 done · 3 failed · 5 waiting");
        assert_eq!(group.short_counts(asks), "150: 12 run 130 ok 3 bad 5 ask");
        let queue = Queue { waiting: 0, to_start: 10 };
        group.cancelled = 17;
        let counts = "160 · 130 done · 3 failed · 17 cancelled · 10 waiting to start";
        assert_eq!(group.counts(queue), counts);
        assert_eq!(group.short_counts(queue), "160: 130 ok 3 bad 17 cut 10 due");
        group.cancelled = 0;
        group.failed.clear();
        group.done = 150;
        assert_eq!(group.counts(Queue::default()), "150 · 150 done");
    }
}
