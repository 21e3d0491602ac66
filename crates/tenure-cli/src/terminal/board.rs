//! The lines of those that are at work, as many as there is room for.
//!
//! One line for each agent or clone, and one that counts the clones of an agent. A line stays where
//! it is for as long as what it shows is at work, so that nothing jumps; who waits for a person or
//! has failed is shown before anybody else. Drawing takes as long as what is shown, however many
//! there are.

use super::group::{Group, Queue};
use super::record::{Instance, Record, Standing};
use super::style::{BAD, BOLD, CALM, DIM, WARN, paint};
use super::text::{columns_of, count, fit, running};
use super::timeline::Charset;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tenure_core::model::{Cost, Usage};

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Room {
    /// How many lines may be drawn over and over: the rest shows what has been.
    fn lines(self) -> usize {
        self.rows.saturating_sub((self.rows / 4).max(4)).max(1)
    }
}

/// No name takes more room than this.
const MOST_NAME: usize = 24;
/// Agents whose clones are counted, at most.
const MOST_GROUPS: usize = 3;

/// What is shown, and where.
#[derive(Debug)]
pub(super) struct Board {
    /// The places of the instances in the record, line by line.
    slots: Vec<usize>,
    most: usize,
    charset: Charset,
}

/// One moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Duration,
    /// How often it was drawn: spinners turn by it.
    pub(super) turn: usize,
}

impl Board {
    /// A board for so many instances at once.
    pub(super) fn new(most: usize, charset: Charset) -> Self {
        Self { slots: Vec::new(), most: most.max(1), charset }
    }

    /// The lines to draw.
    pub(super) fn frame(&mut self, record: &Record, moment: Moment, room: Room) -> Vec<String> {
        let mut waiting: HashMap<&str, usize> = HashMap::new();
        for (_, it) in record.alive().filter(|(_, it)| it.is_clone() && it.is_waiting()) {
            *waiting.entry(it.template()).or_default() += 1;
        }
        let lines = room.lines();
        let groups: Vec<&Group> = record.groups.at_work().filter(|group| group.total > 1).collect();
        let counted = groups.len().min(MOST_GROUPS).min(lines / 3);
        let at_work: Vec<usize> =
            record.alive().filter(|(_, it)| is_shown(it)).map(|(place, _)| place).collect();
        let mut most = self.most.min(lines - counted);
        if at_work.len() > most && most > 1 && most == lines - counted {
            // The line that says how many more there are.
            most -= 1;
        }
        self.choose(record, &at_work, &groups, most);
        let mut frame = Vec::with_capacity(lines);
        for group in &groups[..counted] {
            let waiting = waiting.get(group.name.as_str()).copied().unwrap_or(0);
            let queue = Queue { waiting, to_start: record.to_start(group) };
            frame.push(summary(group, queue, moment.now, room.columns));
        }
        let shown = || self.slots.iter().map(|place| &record.instances()[*place]);
        let form = Form::of(shown(), room.columns);
        frame.extend(shown().map(|it| self.row(it, moment, form)));
        let shown: HashSet<usize> = self.slots.iter().copied().collect();
        let rest = at_work.iter().filter(|place| !shown.contains(place)).count();
        if rest > 0 && frame.len() < lines {
            frame.push(paint(DIM, format_args!("    +{rest} more")));
        }
        frame
    }

    /// Decides who has a line, and leaves everybody who keeps theirs where they are.
    fn choose(&mut self, record: &Record, at_work: &[usize], groups: &[&Group], most: usize) {
        let it = |place: &usize| &record.instances()[*place];
        let shown: HashSet<usize> = self.slots.iter().copied().collect();
        let waits = |place: &&usize| it(place).is_waiting();
        let mut order: Vec<usize> = at_work.iter().filter(waits).copied().collect();
        // The latest of those that failed, and never so many that nobody else is seen.
        let failed = groups.iter().flat_map(|group| group.failed.iter().rev().take(most / 2));
        let mut failed: Vec<usize> = failed.copied().collect();
        failed.sort_unstable_by_key(|place| std::cmp::Reverse(it(place).ended));
        failed.truncate(most / 2);
        order.extend(failed);
        order.extend(at_work.iter().filter(|place| !it(place).is_clone()));
        order.extend(at_work.iter().filter(|place| shown.contains(place)));
        let mut others: Vec<usize> =
            at_work.iter().filter(|place| !shown.contains(place)).copied().collect();
        others.sort_by_key(|place| std::cmp::Reverse(it(place).heard));
        order.extend(others);
        let mut chosen = HashSet::new();
        let mut new = Vec::new();
        for place in order {
            if chosen.len() == most {
                break;
            }
            if chosen.insert(place) && !shown.contains(&place) {
                new.push(place);
            }
        }
        new.sort_unstable();
        let mut new = new.into_iter();
        let slots = std::mem::take(&mut self.slots);
        for place in slots {
            let place = if chosen.contains(&place) { Some(place) } else { new.next() };
            self.slots.extend(place);
        }
        self.slots.extend(new);
    }

    fn row(&self, it: &Instance, moment: Moment, form: Form) -> String {
        let standing = it.standing();
        let (glyph, style) = match standing {
            Standing::Waiting => ('?', WARN),
            Standing::Failed => (if self.charset == Charset::Unicode { '✗' } else { 'x' }, BAD),
            _ => (spinner(self.charset, moment.turn), CALM),
        };
        let until = it.ended.unwrap_or(moment.now);
        let numbers = form.numbers(until.saturating_sub(it.since), it.usage);
        let name = fit(form.name_of(it), form.name);
        let gap = form.name.saturating_sub(columns_of(&name));
        // Two before, the glyph and the space behind it, the name, and two spaces twice.
        let room = form.columns.saturating_sub(4 + form.name + 2 + 2 + columns_of(&numbers) + 1);
        let doing = match standing {
            Standing::Failed => it.outcome.map_or("failed", |outcome| outcome.as_str()),
            Standing::Waiting if room < "waiting for you".len() => "waiting",
            Standing::Waiting => "waiting for you",
            _ => &it.doing,
        };
        let doing = match standing {
            Standing::Failed => fit(&doing.replace('_', " "), room),
            _ => fit(doing, room),
        };
        let rest = room.saturating_sub(columns_of(&doing));
        format!(
            "  {} {}{:gap$}  {}{:rest$}  {}",
            paint(style, glyph),
            paint(BOLD, name),
            "",
            if standing == Standing::Running { doing } else { paint(style, doing) },
            "",
            paint(DIM, numbers)
        )
    }
}

/// How the lines of a frame are laid out.
#[derive(Clone, Copy, Debug)]
struct Form {
    columns: usize,
    /// How wide the names are.
    name: usize,
    /// Whether what it cost is known of anybody.
    has_cost: bool,
}

/// Columns from which on times are shown, tokens, and money.
const FOR_TIME: usize = 32;
const FOR_TOKENS: usize = 60;
const FOR_COST: usize = 72;

impl Form {
    fn of<'a>(shown: impl Iterator<Item = &'a Instance>, columns: usize) -> Self {
        let mut form = Self { columns, name: 0, has_cost: false };
        for it in shown {
            form.name = form.name.max(columns_of(form.name_of(it)));
            form.has_cost |= it.usage.cost > Cost::ZERO;
        }
        form.name = form.name.min(MOST_NAME).min(columns / 3);
        form
    }

    /// The name; where there is no room, without what every clone has at its end.
    fn name_of(self, it: &Instance) -> &str {
        let end = it.name.find('[').filter(|at| *at > 0 && self.columns < FOR_TOKENS);
        &it.name[..end.unwrap_or(it.name.len())]
    }

    /// What stands at the right: the time, what was used, and what that cost.
    fn numbers(self, time: Duration, usage: Usage) -> String {
        if self.columns < FOR_TIME {
            return String::new();
        }
        let mut text = format!("{:>7}", running(time));
        if self.columns >= FOR_TOKENS {
            let tokens = match usage.total() {
                0 => String::new(),
                total => format!("{} tok", count(total)),
            };
            text.push_str(&format!("{tokens:>13}"));
        }
        if self.columns >= FOR_COST && self.has_cost {
            let cost = match usage.cost {
                Cost::ZERO => String::new(),
                cost => cost.to_string(),
            };
            text.push_str(&format!("{cost:>10}"));
        }
        text
    }
}

/// Whether an instance has something to show.
fn is_shown(it: &Instance) -> bool {
    it.is_at_work() || it.is_waiting()
}

fn spinner(charset: Charset, turn: usize) -> char {
    const FINE: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    const PLAIN: [char; 4] = ['-', '\\', '|', '/'];
    match charset {
        Charset::Unicode => FINE[turn % FINE.len()],
        Charset::Ascii => PLAIN[turn % PLAIN.len()],
    }
}

/// The line that counts the clones of an agent.
fn summary(group: &Group, queue: Queue, now: Duration, columns: usize) -> String {
    let name = fit(&group.name, MOST_NAME.min(columns / 3));
    let mut plain = format!("{name}: {}", group.counts(queue));
    if 2 + columns_of(&plain) >= columns {
        plain = format!("{name} {}", group.short_counts(queue));
    }
    let mut parts = vec![running(now.saturating_sub(group.since))];
    if group.usage.total() > 0 {
        parts.push(format!("{} tokens", count(group.usage.total())));
    }
    if group.usage.cost > Cost::ZERO {
        parts.push(group.usage.cost.to_string());
    }
    for part in parts {
        if 2 + columns_of(&plain) + 3 + columns_of(&part) < columns {
            plain.push_str(&format!(" · {part}"));
        }
    }
    format!("  {}", paint(BOLD, fit(&plain, columns.saturating_sub(3))))
}

#[cfg(test)]
mod tests;
