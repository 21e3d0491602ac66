//! Live progress: a spinner line for each instance that is at work, and above them what stays.

use super::record::{Instance, Record};
use super::size;
use super::stream::{Stream, write};
use super::style::{BOLD, DIM, on_stderr, paint};
use super::timeline::Charset;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::collections::BTreeMap;
use std::io::Result;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often the spinners turn.
pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(super) struct Live {
    bars: MultiProgress,
    /// By the place of the instance in the record.
    rows: BTreeMap<usize, ProgressBar>,
    more: Option<ProgressBar>,
    most: usize,
    /// Lines that wait for the end of a question.
    held: Option<Vec<String>>,
}

impl Live {
    pub(super) fn new(most: usize) -> Self {
        Self {
            bars: MultiProgress::with_draw_target(draw_target()),
            rows: BTreeMap::new(),
            more: None,
            most: most.max(1),
            held: None,
        }
    }

    /// Prints a line that stays.
    pub(super) fn print(&mut self, line: &str) {
        let line = on_stderr(line);
        match &mut self.held {
            Some(held) => held.push(line),
            // A terminal that is gone takes nothing, and the run goes on without it.
            None => drop(self.bars.println(line)),
        }
    }

    /// Brings the spinner lines in step with the record.
    pub(super) fn show(&mut self, record: &Record, now: Duration) {
        if self.held.is_some() {
            return;
        }
        let instances = record.instances();
        let ended: Vec<usize> =
            self.rows.keys().copied().filter(|place| !instances[*place].is_at_work()).collect();
        for place in ended {
            self.drop_row(place);
        }
        let live = || instances.iter().enumerate().filter(|(_, it)| it.is_at_work());
        for (place, _) in live() {
            if self.rows.len() >= self.most {
                break;
            }
            if !self.rows.contains_key(&place) {
                let below = self.more.as_ref();
                let bar = ProgressBar::new_spinner().with_style(style());
                let bar = match below {
                    Some(more) => self.bars.insert_before(more, bar),
                    None => self.bars.add(bar),
                };
                self.rows.insert(place, bar);
            }
        }
        for (place, bar) in &self.rows {
            bar.set_message(on_stderr(&message(&instances[*place], now)));
        }
        let rest = live().count().saturating_sub(self.rows.len());
        match (rest, &self.more) {
            (0, Some(_)) => {
                if let Some(more) = self.more.take() {
                    self.bars.remove(&more);
                }
            }
            (0, None) => {}
            (rest, more) => {
                let text = on_stderr(&paint(DIM, format_args!("+{rest} more")));
                match more {
                    Some(more) => more.set_message(text),
                    None => {
                        let bar = self.bars.add(ProgressBar::new_spinner().with_style(style()));
                        bar.set_message(text);
                        self.more = Some(bar);
                    }
                }
            }
        }
    }

    /// Turns the spinners.
    pub(super) fn tick(&mut self, record: &Record, now: Duration) {
        self.show(record, now);
        self.rows.values().chain(&self.more).for_each(ProgressBar::tick);
    }

    /// Clears the screen for a question.
    pub(super) fn hold(&mut self) {
        self.clear();
        self.held.get_or_insert_default();
    }

    /// Goes on after a question.
    pub(super) fn release(&mut self, record: &Record, now: Duration) {
        for line in self.held.take().unwrap_or_default() {
            self.print(&line);
        }
        self.show(record, now);
    }

    /// Takes every spinner line away.
    pub(super) fn clear(&mut self) {
        let places: Vec<usize> = self.rows.keys().copied().collect();
        places.into_iter().for_each(|place| self.drop_row(place));
        if let Some(more) = self.more.take() {
            more.finish_and_clear();
            self.bars.remove(&more);
        }
        drop(self.bars.clear());
    }

    fn drop_row(&mut self, place: usize) {
        if let Some(bar) = self.rows.remove(&place) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }
}

/// What the line of an instance says beside its spinner.
fn message(it: &Instance, now: Duration) -> String {
    format!("[{:>7.3}s] {}  {}", now.as_secs_f64(), paint(BOLD, &it.name), it.doing)
}

fn style() -> ProgressStyle {
    let turns = match Charset::of_locale() {
        Charset::Unicode => "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ",
        Charset::Ascii => "-\\|/ ",
    };
    ProgressStyle::with_template("{spinner:>11} {wide_msg}")
        .expect("the template is a constant, and tests draw it")
        .tick_chars(turns)
}

/// How often the lines are drawn at most, in a second.
const REFRESH: u8 = 20;

fn draw_target() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Canvas::default()), REFRESH)
}

/// The terminal behind standard error, drawn to in one go.
#[derive(Debug, Default)]
struct Canvas(Mutex<String>);

impl Canvas {
    fn drawn(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, cells: usize, way: char) -> Result<()> {
        if cells > 0 {
            self.drawn().push_str(&format!("\x1b[{cells}{way}"));
        }
        Ok(())
    }
}

impl TermLike for Canvas {
    fn width(&self) -> u16 {
        size::terminal().map_or(80, |(columns, _)| columns.try_into().unwrap_or(u16::MAX))
    }

    fn height(&self) -> u16 {
        size::terminal().map_or(24, |(_, rows)| rows.try_into().unwrap_or(u16::MAX))
    }

    fn move_cursor_up(&self, n: usize) -> Result<()> {
        self.step(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> Result<()> {
        self.step(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> Result<()> {
        self.step(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> Result<()> {
        self.step(n, 'D')
    }

    fn write_line(&self, s: &str) -> Result<()> {
        let mut drawn = self.drawn();
        drawn.push_str(s);
        drawn.push('\n');
        Ok(())
    }

    fn write_str(&self, s: &str) -> Result<()> {
        self.drawn().push_str(s);
        Ok(())
    }

    fn clear_line(&self) -> Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> Result<()> {
        let drawn = std::mem::take(&mut *self.drawn());
        write(Stream::Err, drawn.as_bytes())
    }
}
