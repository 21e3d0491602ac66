//! An answer on the screen while it is made.

use crate::terminal::sink::{print_answer, print_piece, withheld};
use crate::terminal::text::clean_block;
use crate::terminal::{Held, Screen};
use std::io::{IsTerminal as _, Result};
use tenure_core::InstanceId;
use tenure_core::drive::Piece;
use tenure_core::event::{Event, EventKind};

/// Prints an answer. On a terminal it is shown as it comes, and the progress makes room for it; into
/// a file or a pipe it goes as a whole, byte for byte.
pub(super) struct Answer<'a> {
    screen: &'a Screen,
    /// Whose answer it is.
    instance: Option<InstanceId>,
    is_seen: bool,
    /// While text is being shown.
    held: Option<Held<'a>>,
    /// What is kept back until it is known that nothing in it has to be hidden.
    pending: String,
    /// The response that was shown last.
    response: usize,
    /// How many model calls have ended.
    calls: usize,
    is_line_open: bool,
    result: Result<()>,
}

/// An escape sequence that is longer than this is none.
const LONGEST_ESCAPE: usize = 64;

impl<'a> Answer<'a> {
    pub(super) fn new(screen: &'a Screen, instance: Option<InstanceId>) -> Self {
        Self {
            screen,
            instance,
            is_seen: std::io::stdout().is_terminal(),
            held: None,
            pending: String::new(),
            response: 0,
            calls: 0,
            is_line_open: false,
            result: Ok(()),
        }
    }

    /// Shows a piece of it.
    pub(super) fn piece(&mut self, piece: &Piece) {
        if !self.is_seen {
            return;
        }
        if piece.response != self.response {
            self.pause();
            self.response = piece.response;
        }
        if self.held.is_none() {
            self.held = Some(self.screen.hold());
        }
        self.pending.push_str(&piece.text);
        let sure = self.pending.len() - withheld(&self.pending).max(open_escape(&self.pending));
        let rest = self.pending.split_off(sure);
        let text = std::mem::replace(&mut self.pending, rest);
        self.show(&text);
    }

    /// A tool of this agent begins its work: what has been said is complete, and progress may be
    /// shown again.
    pub(super) fn event(&mut self, event: &Event) {
        if Some(event.instance) != self.instance {
            return;
        }
        match event.kind {
            EventKind::ModelEnded { step, .. } => self.calls = step,
            // What is shown may be further on than the events.
            EventKind::ToolStarted { .. } if self.response <= self.calls => self.pause(),
            _ => {}
        }
    }

    /// Ends the text that is being shown, if there is one.
    pub(super) fn pause(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        self.show(&rest);
        if self.is_line_open {
            self.put("\n");
        }
        self.held = None;
    }

    /// Ends the answer. `output` is all of it, if there is one.
    pub(super) fn end(mut self, output: Option<&str>) -> Result<()> {
        self.pause();
        if let Some(output) = output.filter(|output| self.response == 0 && !output.is_empty()) {
            let _quiet = self.screen.hold();
            let shown = if self.is_seen { clean_block(output) } else { output.to_owned() };
            print_answer(&shown)?;
        }
        self.result
    }

    fn show(&mut self, text: &str) {
        let text = clean_block(text);
        if !text.is_empty() {
            self.put(&text);
        }
    }

    fn put(&mut self, text: &str) {
        self.is_line_open = !text.ends_with('\n');
        let put = print_piece(text);
        if self.result.is_ok() {
            self.result = put;
        }
    }
}

/// How much at the end may be an escape sequence that has not come to its end.
fn open_escape(text: &str) -> usize {
    let Some(at) = text.rfind('\x1b') else { return 0 };
    let behind = &text[at + 1..];
    let is_open = behind.len() < LONGEST_ESCAPE
        && !behind.chars().skip(1).any(|c| matches!(c, '\x40'..='\x7e'))
        && (behind.is_empty() || behind.starts_with(['[', ']']));
    if is_open { text.len() - at } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_kept_back_until_it_is_whole() {
        for (text, expected) in [
            ("plain", 0),
            ("red \x1b", 1),
            ("red \x1b[", 2),
            ("red \x1b[3", 3),
            ("red \x1b[31m", 0),
            ("red \x1b[31m now", 0),
            ("\x1bc", 0),
        ] {
            assert_eq!(open_escape(text), expected, "{text:?}");
        }
        let endless = format!("\x1b[{}", "1".repeat(100));
        assert_eq!(open_escape(&endless), 0);
    }
}
