//! Live progress: a spinner line for each instance that is at work, and above them what stays.

use super::record::{Instance, Record};
use super::style::{BOLD, DIM, on_stderr, paint};
use super::timeline::Charset;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
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
            bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
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
