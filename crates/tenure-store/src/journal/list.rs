//! Lists of messages as what they take over from an earlier list.
//!
//! A hook that edits the conversation at every step leaves a list at every step, nearly like the one
//! before. Stored whole, the file would grow with the square of the conversation; stored as the
//! difference it grows with the conversation, wherever in the list the edit is.

use super::sum::{Hash, hex, unhex};
use serde_json::Value;
use std::collections::HashMap;

/// One part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// So many messages of the parent, from there on.
    Kept(usize, usize),
    /// Another message.
    New(Hash),
}

/// A list whose parent the next one can have.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    pub(super) hash: Hash,
    pub(super) depth: usize,
    pub(super) items: Vec<Hash>,
}

/// Says a list by an earlier one.
pub(super) fn difference(base: &[Hash], items: &[Hash]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut places: Option<HashMap<Hash, usize>> = None;
    let mut next = 0;
    for item in items {
        let found = if base.get(next) == Some(item) {
            Some(next)
        } else {
            let places = places.get_or_insert_with(|| {
                base.iter().enumerate().map(|(place, item)| (*item, place)).collect()
            });
            places.get(item).copied()
        };
        match (found, parts.last_mut()) {
            (Some(place), Some(Part::Kept(from, count))) if *from + *count == place => *count += 1,
            (Some(place), _) => parts.push(Part::Kept(place, 1)),
            (None, _) => parts.push(Part::New(*item)),
        }
        // After an edited message the rest goes on behind the one it replaces.
        next = found.unwrap_or(next) + 1;
    }
    parts
}

/// Whether a list with these parts had better stand alone: it shares little, or it has so many
/// parents that reading it costs more than its length.
pub(super) fn stands_alone(parts: &[Part], depth: usize, length: usize) -> bool {
    2 * parts.len() > length || depth > length.max(32)
}

/// The most messages of a list. A few bytes of a file could ask for any number of them.
const MOST: usize = 200_000;

/// The list, given its parent's.
pub(super) fn apply(base: &[Hash], parts: &[Part]) -> Option<Vec<Hash>> {
    let mut items = Vec::new();
    for part in parts {
        match part {
            Part::Kept(from, count) => {
                items.extend_from_slice(base.get(*from..from.checked_add(*count)?)?);
            }
            Part::New(hash) => items.push(*hash),
        }
        if items.len() > MOST {
            return None;
        }
    }
    Some(items)
}

/// Parts as the file has them.
pub(super) fn write(parts: &[Part]) -> String {
    let mut text = String::from("[");
    for part in parts {
        if text.len() > 1 {
            text.push(',');
        }
        match part {
            Part::Kept(from, count) => text.push_str(&format!("[{from},{count}]")),
            Part::New(hash) => text.push_str(&format!("\"{}\"", hex(hash))),
        }
    }
    text.push(']');
    text
}

/// Parts, read back.
pub(super) fn read(text: &str) -> Option<Vec<Part>> {
    let parts: Vec<Value> = serde_json::from_str(text).ok()?;
    let parts = parts.iter().map(|part| match part {
        Value::String(hash) => unhex(hash).map(Part::New),
        Value::Array(range) => {
            let number = |at: usize| usize::try_from(range.get(at)?.as_u64()?).ok();
            Some(Part::Kept(number(0)?, number(1)?))
        }
        _ => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::{Part, apply, difference, read, write};
    use proptest::prelude::*;

    fn hashes(numbers: &[u8]) -> Vec<[u8; 16]> {
        numbers.iter().map(|number| [*number; 16]).collect()
    }

    #[test]
    fn an_edit_in_front_and_a_message_behind_cost_two_messages_and_no_more() {
        let (base, items) = (hashes(&[1, 2, 3, 4, 5]), hashes(&[9, 2, 3, 4, 5, 6]));
        let parts = difference(&base, &items);
        let expected = [Part::New([9; 16]), Part::Kept(1, 4), Part::New([6; 16])];
        assert_eq!(parts, expected);
    }

    proptest! {
        #[test]
        fn a_list_said_by_another_one_is_itself_again(base: Vec<u8>, items: Vec<u8>) {
            let (base, items) = (hashes(&base), hashes(&items));
            let parts = difference(&base, &items);
            prop_assert_eq!(apply(&base, &parts), Some(items));
            prop_assert_eq!(read(&write(&parts)), Some(parts));
        }
    }
}
