//! What all instances together spend in a day.

use super::spent::Spent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tenure_core::InstanceId;
use tenure_core::context::Cx;

/// What all agents spend in a day whose budgets share it. Clones are one; a day is one of UTC.
///
/// It is memory of the process. See [`Budget::remembered`](super::Budget::remembered) for what
/// outlives it.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    day: u64,
    spent: Spent,
    /// What is not yet part of it.
    open: HashMap<InstanceId, Open>,
    /// Which hook charges for an instance while a turn of it lasts. Two that share a ledger see the
    /// same spending.
    charges: HashMap<InstanceId, Box<str>>,
}

/// What is remembered of a day.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Day {
    day: u64,
    spent: Spent,
}

impl From<Day> for Value {
    fn from(day: Day) -> Self {
        json!({ "day": day.day, "spent": day.spent })
    }
}

#[derive(Default)]
struct Open {
    family: Option<InstanceId>,
    /// What a clone has spent. Whoever called it counts that when the clone is over.
    running: Spent,
    /// What the model call is expected to take that is being made.
    expected: Spent,
}

/// Who spends.
#[derive(Clone, Copy)]
pub(super) struct Spender {
    id: InstanceId,
    family: InstanceId,
    /// Whether its spending is part of what somebody else's turn spends.
    is_clone: bool,
}

impl Spender {
    pub(super) fn of(cx: &Cx<'_>) -> Self {
        let (id, family) = (cx.instance_id(), cx.family_id());
        // A clone is named after the tool that it is: `child#1[tool]`.
        let is_clone = id != family && cx.agent_name().ends_with(']');
        Self { id, family, is_clone }
    }
}

fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / 86_400
}

impl Ledger {
    /// Nothing is spent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was spent today, what is under way included.
    pub fn today(&self) -> Spent {
        self.book(today()).total()
    }

    fn book(&self, day: u64) -> MutexGuard<'_, Book> {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if book.day < day {
            (book.day, book.spent) = (day, Spent::default());
        }
        book
    }

    /// The ledger for somebody to write in. Nobody else writes until it is dropped.
    pub(super) fn open(&self, who: Spender) -> Page<'_> {
        Page { book: self.book(today()), who }
    }

    /// What an earlier process has left counts, if it is of this day.
    pub(super) fn recall(&self, known: Day) {
        let mut book = self.book(today());
        if book.day == known.day {
            book.spent.tokens = book.spent.tokens.max(known.spent.tokens);
            book.spent.cost = book.spent.cost.max(known.spent.cost);
            book.spent.unpriced = book.spent.unpriced.max(known.spent.unpriced);
        }
    }
}

impl Book {
    fn total(&self) -> Spent {
        self.open.values().fold(self.spent, |sum, open| sum.plus(open.running))
    }
}

/// The ledger, open for one who spends.
pub(super) struct Page<'a> {
    book: MutexGuard<'a, Book>,
    who: Spender,
}

impl Page<'_> {
    /// What was spent since is part of the day; once, however many hooks of the instance say so.
    pub(super) fn charge(&mut self, hook: &str, more: Spent) {
        let who = self.who;
        if **self.book.charges.entry(who.id).or_insert_with(|| hook.into()) != *hook {
            return;
        }
        if who.is_clone {
            let open = self.book.open.entry(who.id).or_default();
            open.family = Some(who.family);
            open.running.add(more);
        } else {
            self.book.spent.add(more);
        }
    }

    /// The turn is over. Hooks end in the other order than they began in, so whoever charges is last.
    pub(super) fn leave(&mut self, hook: &str) {
        if self.book.charges.get(&self.who.id).is_some_and(|charges| **charges == *hook) {
            self.book.charges.remove(&self.who.id);
        }
    }

    /// The calls of a batch are over, and what its clones spent is part of the turn.
    pub(super) fn settle(&mut self) {
        let who = self.who;
        if !who.is_clone {
            self.book.open.retain(|_, open| open.family != Some(who.id));
        }
    }

    /// Asks for a call of this size: says what is spent without it, and holds the room for it if the
    /// judge has no objection. Both at once, so that of two calls that would fit alone one waits.
    pub(super) fn ask(
        &mut self,
        expected: Spent,
        judge: impl FnOnce(Spent) -> Option<String>,
    ) -> Option<String> {
        let who = self.who;
        let others = self.book.open.iter().fold(self.book.spent, |sum, (id, open)| {
            let expected = if *id == who.id { Spent::default() } else { open.expected };
            sum.plus(open.running).plus(expected)
        });
        let denial = judge(others);
        if denial.is_none() && expected != Spent::default() {
            let open = self.book.open.entry(who.id).or_default();
            open.expected = expected;
            open.family = who.is_clone.then_some(who.family);
        }
        denial
    }

    /// The call is over.
    pub(super) fn answered(&mut self) {
        if let Some(open) = self.book.open.get_mut(&self.who.id) {
            open.expected = Spent::default();
            if open.running == Spent::default() {
                self.book.open.remove(&self.who.id);
            }
        }
    }

    /// What was spent today.
    pub(super) fn today(&self) -> Spent {
        self.book.total()
    }

    /// What is remembered of the day.
    pub(super) fn day(&self) -> Day {
        Day { day: self.book.day, spent: self.book.spent }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("today", &self.today()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: u64) -> Spent {
        Spent { tokens, ..Spent::default() }
    }

    fn somebody() -> Spender {
        let id = InstanceId::unique();
        Spender { id, family: id, is_clone: false }
    }

    #[test]
    fn a_day_begins_with_nothing() {
        let ledger = Ledger::new();
        ledger.book(7).spent = tokens(5);
        assert_eq!(ledger.book(7).spent, tokens(5));
        assert_eq!(ledger.book(8).spent, tokens(0));
        assert_eq!(ledger.book(7).day, 8, "a clock that goes back begins no new day");
    }

    #[test]
    fn room_is_held_for_calls_that_are_under_way() {
        let ledger = Ledger::new();
        let (first, second) = (somebody(), somebody());
        let most = |spent: Spent| (spent.tokens + 60 > 100).then(|| "too much".to_owned());
        assert_eq!(ledger.open(first).ask(tokens(60), most), None);
        assert!(ledger.open(second).ask(tokens(60), most).is_some());
        ledger.open(first).charge("budget", tokens(20));
        ledger.open(first).answered();
        assert_eq!(ledger.open(second).ask(tokens(60), most), None);
    }

    #[test]
    fn two_hooks_of_an_instance_charge_once() {
        let ledger = Ledger::new();
        let who = somebody();
        for hook in ["budget", "second"] {
            ledger.open(who).charge(hook, tokens(10));
        }
        for hook in ["second", "budget"] {
            ledger.open(who).charge(hook, tokens(5));
            ledger.open(who).leave(hook);
        }
        assert_eq!(ledger.today(), tokens(15));
        assert!(ledger.book(today()).charges.is_empty());
    }

    #[test]
    fn what_a_clone_spends_counts_at_once_and_only_once() {
        let ledger = Ledger::new();
        let parent = somebody();
        let clone = Spender { id: InstanceId::unique(), family: parent.id, is_clone: true };
        ledger.open(clone).charge("budget", tokens(30));
        assert_eq!(ledger.today(), tokens(30));
        ledger.open(parent).settle();
        ledger.open(parent).charge("budget", tokens(40));
        assert_eq!(ledger.today(), tokens(40));
    }

    #[test]
    fn what_is_remembered_of_this_day_counts_and_of_another_does_not() {
        let ledger = Ledger::new();
        ledger.open(somebody()).charge("budget", tokens(9));
        let kept = ledger.open(somebody()).day();
        let next = Ledger::new();
        next.recall(kept);
        next.recall(kept);
        assert_eq!(next.today(), tokens(9));
        let other = Ledger::new();
        other.recall(Day { day: 1, ..kept });
        assert_eq!(other.today(), tokens(0));
        assert!(serde_json::from_value::<Day>(kept.into()).is_ok());
        assert!(serde_json::from_value::<Day>(json!("what")).is_err());
    }
}
