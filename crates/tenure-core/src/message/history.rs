//! The segmented log of messages.
//!
//! A history is a chain of segments and how many messages of the last one it may see. A snapshot
//! and a fork are one `Arc` clone. Whoever appends to a segment that nobody else holds appends in
//! place; whoever shares it starts a segment of its own behind what it sees.

use super::Message;
use crate::step::{Print, fingerprint};
use crate::sync::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Room for the messages of a short turn.
const ROOM: usize = 8;

/// The messages of a conversation: append-only, cheap to snapshot, cheap to fork.
///
/// Cloning takes constant time and shares every message. Appending to a clone never changes the
/// original.
///
/// ```
/// use tenure_core::message::{History, Message};
///
/// let mut history = History::new();
/// history.push(Message::user("hello"));
/// let snapshot = history.clone();
/// history.push(Message::assistant("hi"));
/// assert_eq!((snapshot.len(), history.len()), (1, 2));
/// ```
#[derive(Clone, Default)]
pub struct History {
    tail: Option<Arc<Segment>>,
    /// How many messages of the tail belong to this history.
    used: usize,
}

struct Segment {
    prev: Option<(Arc<Segment>, usize)>,
    /// How many messages the earlier segments hold.
    base: usize,
    messages: Vec<Message>,
    /// Fingerprints of the conversation up to each message, as far as anybody asked for them.
    prints: Mutex<Vec<u64>>,
}

/// A long chain of segments is freed in a loop: the recursive drop that the compiler would write
/// could exhaust the stack.
impl Drop for Segment {
    fn drop(&mut self) {
        let mut prev = self.prev.take();
        while let Some((segment, _)) = prev {
            match Arc::into_inner(segment) {
                Some(mut last) => prev = last.prev.take(),
                None => break,
            }
        }
    }
}

impl History {
    /// An empty history. It allocates nothing.
    pub const fn new() -> Self {
        Self { tail: None, used: 0 }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.tail.as_ref().map_or(0, |tail| tail.base + self.used)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        if let Some(segment) = self.tail.as_mut().and_then(Arc::get_mut) {
            // Nobody else sees this segment, so what another fork left behind can go.
            if segment.messages.len() > self.used {
                segment.messages.truncate(self.used);
                segment.prints.lock().truncate(self.used);
            }
            segment.messages.push(message);
        } else {
            let base = self.len();
            let prev = self.tail.take().map(|tail| (tail, self.used));
            let mut messages = Vec::with_capacity(ROOM);
            messages.push(message);
            let prints = Mutex::new(Vec::new());
            self.tail = Some(Arc::new(Segment { prev, base, messages, prints }));
            self.used = 0;
        }
        self.used += 1;
    }

    /// The message at `index`, counted from the oldest.
    pub fn get(&self, index: usize) -> Option<&Message> {
        if index >= self.len() {
            return None;
        }
        let mut segment = self.tail.as_deref()?;
        while index < segment.base {
            segment = &segment.prev.as_ref()?.0;
        }
        segment.messages.get(index - segment.base)
    }

    /// The newest message.
    pub fn last(&self) -> Option<&Message> {
        self.tail.as_ref()?.messages.get(self.used.checked_sub(1)?)
    }

    /// The messages from the oldest to the newest.
    pub fn iter(&self) -> HistoryIter<'_> {
        let mut runs = Vec::new();
        let mut at = self.tail.as_deref().map(|tail| (tail, self.used));
        while let Some((segment, used)) = at {
            runs.push(&segment.messages[..used]);
            at = segment.prev.as_ref().map(|(prev, used)| (&**prev, *used));
        }
        HistoryIter { runs, current: [].iter() }
    }

    /// A fingerprint of the conversation. What was counted before is not counted again, so the next
    /// one takes only what was said since.
    pub(crate) fn print(&self) -> u64 {
        let mut at = self.tail.as_deref().map(|tail| (tail, self.used));
        let mut behind = Vec::new();
        let mut print = 0;
        while let Some((segment, used)) = at {
            let prints = segment.prints.lock();
            if prints.len() >= used && used > 0 {
                print = prints[used - 1];
                break;
            }
            drop(prints);
            behind.push((segment, used));
            at = segment.prev.as_ref().map(|(prev, used)| (&**prev, *used));
        }
        for (segment, used) in behind.into_iter().rev() {
            let mut prints = segment.prints.lock();
            if let Some(last) = prints.last() {
                print = *last;
            }
            for message in &segment.messages[prints.len().min(used)..used] {
                let mut next = Print::after(print);
                next.number(fingerprint(message));
                print = next.finish();
                prints.push(print);
            }
        }
        print
    }

    /// The first `len` messages as a history of their own; shares them.
    pub fn truncated(&self, len: usize) -> History {
        if len >= self.len() {
            return self.clone();
        }
        let mut tail = self.tail.clone();
        while let Some(segment) = tail {
            if len > segment.base {
                return History { used: len - segment.base, tail: Some(segment) };
            }
            tail = segment.prev.as_ref().map(|(prev, _)| prev.clone());
        }
        History::new()
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut history = History::new();
        history.extend(messages);
        history
    }
}

impl Extend<Message> for History {
    fn extend<I: IntoIterator<Item = Message>>(&mut self, messages: I) {
        for message in messages {
            self.push(message);
        }
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Message;
    type IntoIter = HistoryIter<'a>;

    fn into_iter(self) -> HistoryIter<'a> {
        self.iter()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Message>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The messages of a [`History`], oldest first.
#[derive(Debug)]
pub struct HistoryIter<'a> {
    /// Runs of messages, newest first.
    runs: Vec<&'a [Message]>,
    current: std::slice::Iter<'a, Message>,
}

impl<'a> Iterator for HistoryIter<'a> {
    type Item = &'a Message;

    fn next(&mut self) -> Option<&'a Message> {
        loop {
            if let Some(message) = self.current.next() {
                return Some(message);
            }
            self.current = self.runs.pop()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(history: &History) -> Vec<String> {
        history.iter().map(|message| message.text().to_owned()).collect()
    }

    fn numbered(count: usize) -> History {
        (0..count).map(|n| Message::user(n.to_string())).collect()
    }

    #[test]
    fn keeps_order_over_many_segments() {
        let history = numbered(1_000);
        assert_eq!(history.len(), 1_000);
        assert_eq!(texts(&history), (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>());
        for index in [0, 7, 8, 23, 24, 999] {
            assert_eq!(history.get(index).map(Message::text), Some(&*index.to_string()));
        }
        assert_eq!(history.get(1_000), None);
        assert_eq!(history.last().map(Message::text), Some("999"));
    }

    #[test]
    fn forks_go_separate_ways_and_leave_the_original_alone() {
        for at in [0, 1, 7, 8, 9, 100] {
            let original = numbered(at);
            let (mut left, mut right) = (original.clone(), original.clone());
            left.push(Message::user("left"));
            right.push(Message::user("right"));
            left.push(Message::user("left again"));
            assert_eq!(original.len(), at);
            assert_eq!(texts(&left)[at..], ["left", "left again"]);
            assert_eq!(texts(&right)[at..], ["right"]);
        }
    }

    #[test]
    fn truncation_shares_a_prefix() {
        let history = numbered(50);
        for len in [0, 1, 8, 9, 24, 25, 49, 50, 60] {
            let mut short = history.truncated(len);
            assert_eq!(texts(&short), texts(&numbered(len.min(50))));
            short.push(Message::user("new"));
            assert_eq!(history.len(), 50);
            assert_eq!(history.last().map(Message::text), Some("49"));
        }
    }

    #[test]
    fn a_very_long_history_is_freed_without_recursion() {
        drop(numbered(500_000));
    }
}
