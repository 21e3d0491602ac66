//! The end of a run at a glance: one row for each instance, drawn over time.
//!
//! Fits the width it is given, and stays readable from one instance to hundreds: beyond
//! [`MOST_ROWS`] the instances of one agent share a row, and what is left is summed up.

use super::record::{Activity, Instance, Record, Stretch};
use super::style::{DIM, paint};
use super::text::{fit, human};
use anstyle::{AnsiColor, Style};
use std::collections::BTreeSet;
use std::time::Duration;

/// More rows than these are not read by anybody.
const MOST_ROWS: usize = 24;
/// No name takes more room than this.
const MOST_NAME: usize = 24;
/// The column of the start, with the space behind it.
const START: usize = 10;
const LEAST_BAR: usize = 10;
const MOST_BAR: usize = 72;

/// The characters that bars are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Unicode,
    Ascii,
}

impl Charset {
    /// What the locale says that the terminal can show.
    pub(crate) fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        match locale {
            // No locale at all is a container or CI, and those show what they are sent.
            None => Self::Unicode,
            Some(locale) => {
                let locale = locale.to_ascii_lowercase();
                if locale.contains("utf") || locale == "c" && std::env::var_os("CI").is_some() {
                    Self::Unicode
                } else {
                    Self::Ascii
                }
            }
        }
    }

    fn glyph(self, activity: Option<Activity>) -> char {
        match (self, activity) {
            (_, None) => ' ',
            (Self::Unicode, Some(activity)) => match activity {
                Activity::Life => '·',
                Activity::Turn | Activity::Model => '━',
                Activity::Wrap | Activity::Hook => '◆',
                Activity::Tool => '█',
                Activity::Ask => '?',
            },
            (Self::Ascii, Some(activity)) => match activity {
                Activity::Life => '.',
                Activity::Turn | Activity::Model => '-',
                Activity::Wrap | Activity::Hook => '+',
                Activity::Tool => '#',
                Activity::Ask => '?',
            },
        }
    }
}

fn colour(activity: Option<Activity>) -> Style {
    match activity {
        Some(Activity::Turn | Activity::Model) => AnsiColor::Cyan.on_default(),
        Some(Activity::Wrap | Activity::Hook) => AnsiColor::Magenta.on_default(),
        Some(Activity::Tool) => AnsiColor::Green.on_default(),
        Some(Activity::Ask) => AnsiColor::Yellow.on_default().bold(),
        Some(Activity::Life) => DIM,
        None => Style::new(),
    }
}

/// What one row shows: an instance, or several of them on top of each other.
struct Row<'a> {
    name: String,
    instances: Vec<&'a Instance>,
}

impl Row<'_> {
    fn started(&self) -> Duration {
        self.instances.iter().map(|it| it.started).min().unwrap_or_default()
    }

    fn ended(&self, now: Duration) -> Duration {
        self.instances.iter().map(|it| it.ended.unwrap_or(now)).max().unwrap_or(now)
    }
}

/// The timeline of a run, in at most `width` columns.
pub(crate) fn timeline(record: &Record, width: usize, charset: Charset) -> Vec<String> {
    let rows = rows(record);
    if rows.is_empty() {
        return Vec::new();
    }
    let total = record.last.max(Duration::from_micros(1));
    let longest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let name = longest.clamp("Agent".len(), MOST_NAME);
    // Two before, the name, the start, the bar between its ends, and the duration. Where that is
    // too much, the start is left out, and then the names are cut.
    let start = if 2 + name + 2 + START + LEAST_BAR + 2 + 8 <= width { START } else { 0 };
    let around = 2 + 2 + start + 2 + 8;
    let name = name.min(width.saturating_sub(around + LEAST_BAR)).max("Agent".len());
    let bar = width.saturating_sub(around + name).clamp(LEAST_BAR, MOST_BAR);
    let mut lines = Vec::with_capacity(rows.len() + 2);
    let edge = if charset == Charset::Unicode { '│' } else { '|' };
    let scale = format!("0{:>rest$}", human(total), rest = bar.saturating_sub(1));
    lines.push(paint(
        DIM,
        format_args!("  {:<name$}  {}{scale}  {:>8}", "Agent", head(start, "Start"), "Life"),
    ));
    let mut drawn = BTreeSet::new();
    for row in &rows {
        let cells = cells(&row.instances, total, bar);
        drawn.extend(cells.iter().map(|cell| charset.glyph(*cell)));
        let shown = fit(&row.name, name);
        let from = row.started();
        let life = row.ended(record.last).saturating_sub(from);
        let began = format!("{:.3}s", from.as_secs_f64());
        let began = head(start, &began);
        let began = began.strip_suffix(' ').unwrap_or(&began);
        // The edge takes the place of a space.
        let gap = if start == 0 { " " } else { "  " };
        let edge = paint(DIM, edge);
        lines.push(format!(
            "  {shown:<name$}{gap}{began}{edge}{}{edge} {:>8}",
            draw(&cells, charset),
            human(life)
        ));
    }
    lines.extend(legend(&drawn, charset, width));
    lines
}

/// The start of a row in its column, which may not be there.
fn head(column: usize, text: &str) -> String {
    match column {
        0 => String::new(),
        _ => format!("{text:>8}  "),
    }
}

/// One row for each instance; where those are too many, one for each agent; where those are too
/// many still, the last one stands for the rest.
fn rows(record: &Record) -> Vec<Row<'_>> {
    // Of those that died in another process there is no life to draw.
    let instances: Vec<_> = record.instances().iter().filter(|it| !it.is_buried).collect();
    let single = |it| Row { name: Instance::clone(it).name, instances: vec![it] };
    if instances.len() <= MOST_ROWS {
        return instances.into_iter().map(single).collect();
    }
    let mut rows: Vec<Row<'_>> = Vec::new();
    for it in instances {
        match rows.iter_mut().find(|row| row.instances[0].template() == it.template()) {
            Some(row) => row.instances.push(it),
            None => rows.push(Row { name: it.template().to_owned(), instances: vec![it] }),
        }
    }
    for row in &mut rows {
        if row.instances.len() > 1 {
            // Who is there only to be cloned does not count.
            let others = row.instances.iter().filter(|it| !record.is_spare(it)).count();
            let room = MOST_NAME - 2 - others.to_string().len();
            row.name = format!("{} ×{others}", fit(&row.name, room));
        }
    }
    if rows.len() > MOST_ROWS {
        let rest = rows.split_off(MOST_ROWS - 1);
        let name = format!("+{} more agents", rest.len());
        let instances = rest.into_iter().flat_map(|row| row.instances).collect();
        rows.push(Row { name, instances });
    }
    rows
}

/// What each cell of a bar shows: the most telling activity that touches it.
fn cells(instances: &[&Instance], total: Duration, width: usize) -> Vec<Option<Activity>> {
    let mut cells: Vec<Option<Activity>> = vec![None; width];
    let place = |at: Duration| {
        let share = at.as_secs_f64() / total.as_secs_f64();
        ((share * width as f64) as usize).min(width - 1)
    };
    let mut mark = |stretch: Stretch, end: Duration| {
        let to = stretch.to.unwrap_or(end);
        for cell in &mut cells[place(stretch.from)..=place(to.max(stretch.from))] {
            *cell = (*cell).max(Some(stretch.activity));
        }
    };
    for it in instances {
        let end = it.ended.unwrap_or(total);
        mark(Stretch { activity: Activity::Life, from: it.started, to: Some(end) }, end);
        for stretch in &it.stretches {
            mark(*stretch, end);
        }
    }
    cells
}

/// The bar, with one colour code for each stretch of equal cells.
fn draw(cells: &[Option<Activity>], charset: Charset) -> String {
    let mut bar = String::new();
    for run in cells.chunk_by(|a, b| colour(*a) == colour(*b)) {
        let glyphs: String = run.iter().map(|cell| charset.glyph(*cell)).collect();
        bar.push_str(&if run[0].is_none() { glyphs } else { paint(colour(run[0]), glyphs) });
    }
    bar
}

/// What the characters mean: those that were drawn.
fn legend(drawn: &BTreeSet<char>, charset: Charset, width: usize) -> Vec<String> {
    let kinds = [
        (Activity::Life, "alive"),
        (Activity::Turn, "turn"),
        (Activity::Hook, "hook"),
        (Activity::Tool, "tool"),
        (Activity::Ask, "asking"),
    ];
    let shown = kinds.into_iter().filter(|(kind, _)| drawn.contains(&charset.glyph(Some(*kind))));
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for (kind, name) in shown {
        let glyph = paint(colour(Some(kind)), charset.glyph(Some(kind)));
        let part = format!("{glyph} {}", paint(DIM, name));
        let columns = 3 + 2 + name.len();
        match lines.last_mut().filter(|_| columns <= room) {
            Some(line) => {
                line.push_str(&format!("   {part}"));
                room -= columns;
            }
            None => {
                lines.push(format!("  {part}"));
                room = width.saturating_sub(2 + 2 + name.len());
            }
        }
    }
    lines
}
