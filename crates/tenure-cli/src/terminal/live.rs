//! Live progress: the lines of those that are at work, drawn over and over, and above them what stays.

use super::board::{Board, Moment, Room};
use super::record::Record;
use super::sink;
use super::size;
use super::stream::{Stream, write};
use super::style::on_stderr;
use super::text::columns_of;
use super::timeline::Charset;
use std::time::{Duration, Instant};

/// How often the lines are drawn at most, and how often while nothing happens.
pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(super) struct Live {
    board: Board,
    /// Lines that stay and are not printed yet.
    waiting: Vec<String>,
    /// Whether nothing may be drawn: somebody else has the screen.
    is_held: bool,
    /// How wide the lines are that stand below the last one that stays.
    drawn: Vec<usize>,
    turn: usize,
    /// When it was drawn last.
    last: Option<Instant>,
}

impl Live {
    pub(super) fn new(most: usize) -> Self {
        Self {
            board: Board::new(most, Charset::of_locale()),
            waiting: Vec::new(),
            is_held: false,
            drawn: Vec::new(),
            turn: 0,
            last: None,
        }
    }

    /// Has a line printed that stays: with the next drawing.
    pub(super) fn print(&mut self, line: &str) {
        self.waiting.push(on_stderr(line));
    }

    /// Draws, unless it was drawn a moment ago.
    pub(super) fn show(&mut self, record: &Record, now: Duration) {
        if self.last.is_none_or(|last| last.elapsed() >= TICK) {
            self.draw(record, now);
        }
    }

    /// Draws at once.
    pub(super) fn draw(&mut self, record: &Record, now: Duration) {
        if self.is_held {
            return;
        }
        if sink::is_edited() {
            // What stays goes above the line that is typed, and nothing is drawn below it.
            std::mem::take(&mut self.waiting).iter().for_each(|line| sink::print_plain(line));
            return;
        }
        self.turn += 1;
        let room = room();
        let frame = self.board.frame(record, Moment { now, turn: self.turn }, room);
        self.last = Some(Instant::now());
        let frame = frame.iter().map(|line| on_stderr(line)).collect();
        self.put(frame, room.columns);
    }

    /// Clears the screen for somebody else, and prints what stays before that.
    pub(super) fn hold(&mut self) {
        self.clear();
        self.is_held = true;
    }

    /// Goes on after that.
    pub(super) fn release(&mut self, record: &Record, now: Duration) {
        self.is_held = false;
        self.draw(record, now);
    }

    /// Takes away every line that does not stay.
    pub(super) fn clear(&mut self) {
        if !self.is_held {
            self.put(Vec::new(), room().columns);
        }
    }

    /// Writes what stays over what was drawn, and the new lines below it: in one go, and without
    /// clearing first, so that nothing flickers.
    fn put(&mut self, frame: Vec<String>, columns: usize) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() && frame.is_empty() && self.drawn.is_empty() {
            return;
        }
        let text = drawing(&self.drawn, &waiting, &frame, columns);
        self.drawn = frame.iter().map(|line| columns_of(line)).collect();
        // A terminal that is gone takes nothing, and the run goes on without it.
        let _ = write(Stream::Err, text.as_bytes());
    }
}

/// What draws `frame` below the lines of `waiting`, in place of lines that were `drawn` this wide.
fn drawing(drawn: &[usize], waiting: &[String], frame: &[String], columns: usize) -> String {
    // A terminal that has become narrower has folded them.
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns).max(1)).sum();
    let mut text = String::from("\r");
    if rows > 0 {
        text.push_str(&format!("\x1b[{rows}A"));
    }
    for line in waiting.iter().flat_map(|line| line.split('\n')).chain(frame.iter().map(|it| &**it))
    {
        text.push_str(line);
        text.push_str("\x1b[K\n");
    }
    text.push_str("\x1b[J");
    text
}

fn room() -> Room {
    let (columns, rows) = size::terminal().unwrap_or((80, 24));
    // A terminal that does not say how high it is, is one of those that scroll.
    Room { columns: columns.max(1), rows: if rows == 0 { 24 } else { rows } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_written_over_what_was_drawn_and_the_rest_below_it() {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let text = drawing(&[10, 10], &lines(&["one\ntwo"]), &lines(&["at work"]), 80);
        assert_eq!(text, "\r\x1b[2Aone\x1b[K\ntwo\x1b[K\nat work\x1b[K\n\x1b[J");
        assert_eq!(drawing(&[], &[], &lines(&["x"]), 80), "\rx\x1b[K\n\x1b[J");
    }

    #[test]
    fn a_terminal_that_became_narrower_has_folded_what_was_drawn() {
        let text = drawing(&[79, 40, 0], &[], &[], 40);
        assert_eq!(text, "\r\x1b[4A\x1b[J");
    }
}
