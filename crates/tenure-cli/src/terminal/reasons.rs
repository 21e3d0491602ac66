//! Why things failed lately, so that it is not told again by whoever passes it on.

use super::text::clean_line;
use std::collections::VecDeque;

/// So many reasons are remembered.
const MOST: usize = 64;

/// Who says why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Teller {
    /// A model call: nobody has said it before.
    Model,
    /// A tool call: it may pass on what became of a clone.
    Tool,
    /// A turn: it may pass on what happened in it.
    Turn,
}

/// The reasons, and the places of those whose they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Reasons(VecDeque<(usize, String)>);

impl Reasons {
    /// The reason, if it has not been told, and remembers it.
    pub(super) fn news(
        &mut self,
        place: usize,
        reason: Option<&str>,
        teller: Teller,
    ) -> Option<String> {
        let why = clean_line(reason?);
        let is_told = self.0.iter().any(|(who, told)| {
            let passes_on = match teller {
                Teller::Model => false,
                Teller::Tool => *who != place,
                Teller::Turn => true,
            };
            passes_on && why.contains(told.as_str())
        });
        if is_told || why.is_empty() {
            return None;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((place, why.clone()));
        Some(why)
    }
}
