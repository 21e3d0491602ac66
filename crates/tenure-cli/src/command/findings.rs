//! The lines of `tenure doctor`: what was found, and what to do about it.

use crate::terminal::size::columns;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, PLAIN, WARN, paint};
use crate::terminal::text::{clean_line, wrap};
use anstyle::Style;

/// The columns before a text: two, its mark, and one.
const INDENT: usize = 4;

/// The findings, line by line.
#[derive(Default)]
pub(super) struct Findings {
    text: String,
    problems: usize,
    warnings: usize,
}

impl Findings {
    pub(super) fn good(&mut self, what: &str) {
        self.add(&paint(GOOD, "✓"), PLAIN, what);
    }

    pub(super) fn warn(&mut self, what: &str, remedy: &str) {
        self.warnings += 1;
        self.add(&paint(WARN, "!"), PLAIN, what);
        self.note(remedy);
    }

    pub(super) fn bad(&mut self, what: &str, remedy: &str) {
        self.problems += 1;
        self.add(&paint(BAD, "✗"), PLAIN, what);
        self.note(remedy);
    }

    /// Adds what needs no mark; nothing, if there is nothing to say.
    pub(super) fn note(&mut self, what: &str) {
        self.add(" ", DIM, what);
    }

    pub(super) fn head(&mut self, title: &str) {
        self.text.push_str(&format!("{}\n", paint(BOLD, title)));
    }

    fn add(&mut self, mark: &str, style: Style, what: &str) {
        // Into a pipe, where a program reads it, a finding is one line.
        let room = columns().map_or(usize::MAX, |columns| columns - INDENT);
        for (at, line) in wrap(&clean_line(what), room).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            self.text.push_str(&format!("  {mark} {}\n", paint(style, line)));
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn problems(&self) -> usize {
        self.problems
    }

    pub(super) fn warnings(&self) -> usize {
        self.warnings
    }
}
