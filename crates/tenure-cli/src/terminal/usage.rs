//! What a run cost, agent by agent, and its last line.

use super::record::{Instance, Record, Standing};
use super::style::{BOLD, DIM, paint};
use super::text::{count, fit, human, plural};
use std::time::Duration;
use tenure_core::model::{Cost, Usage};

/// More rows than these are not read by anybody.
const MOST_ROWS: usize = 24;

#[derive(Default)]
struct Row {
    name: String,
    /// How many are in it.
    instances: usize,
    /// How many of them are clones, and how many are there only to be cloned.
    clones: usize,
    spare: usize,
    usage: Usage,
    failed_calls: u64,
    cancelled_calls: u64,
    tools: usize,
    hooks: usize,
    from: Duration,
    to: Duration,
}

impl Row {
    fn add(&mut self, it: &Instance, record: &Record) {
        self.hooks += it.hook_calls;
        // It lived in another process; here only its end is told.
        if it.is_buried {
            return;
        }
        if self.instances == 0 {
            self.from = it.started;
        }
        self.instances += 1;
        self.clones += usize::from(it.is_clone());
        self.spare += usize::from(record.is_spare(it));
        self.usage += it.usage;
        self.failed_calls += it.failed_calls;
        self.cancelled_calls += it.cancelled_calls;
        self.tools += it.tool_calls;
        self.from = self.from.min(it.started);
        self.to = self.to.max(it.ended.unwrap_or(record.last));
    }

    fn merge(&mut self, other: &Row) {
        if self.instances == 0 {
            self.from = other.from;
        }
        self.instances += other.instances;
        self.usage += other.usage;
        self.failed_calls += other.failed_calls;
        self.cancelled_calls += other.cancelled_calls;
        self.tools += other.tools;
        self.hooks += other.hooks;
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
    }

    /// The model calls, those that came to nothing among them.
    fn calls(&self) -> String {
        let all = count(self.usage.calls + self.failed_calls + self.cancelled_calls);
        match (self.failed_calls, self.cancelled_calls) {
            (0, 0) => all,
            (failed, 0) => format!("{all} ({failed} failed)"),
            (0, cancelled) => format!("{all} ({cancelled} cancelled)"),
            (failed, cancelled) => format!("{all} ({failed} failed, {cancelled} cancelled)"),
        }
    }

    fn columns(&self) -> [String; COLUMNS] {
        let own = self.instances.saturating_sub(self.clones + self.spare);
        let name = match (own, self.clones) {
            (0 | 1, 0) => fit(&self.name, 28),
            (many, 0) => format!("{} ×{many}", fit(&self.name, 22)),
            (0, clones) => format!("{}, {}", fit(&self.name, 22), plural(clones, "clone")),
            (_, clones) => format!("{} + {}", fit(&self.name, 22), plural(clones, "clone")),
        };
        [
            name,
            count(self.usage.input),
            count(self.usage.output),
            self.calls(),
            count(self.tools as u64),
            count(self.hooks as u64),
            cost(self.usage),
            human(self.to.saturating_sub(self.from)),
        ]
    }
}

/// What calls cost, as far as that is known: a plus is for calls without a price.
fn cost(usage: Usage) -> String {
    match (usage.cost > Cost::ZERO, usage.unpriced) {
        (_, 0) => usage.cost.to_string(),
        (true, _) => format!("{}+", usage.cost),
        (false, _) => "?".to_owned(),
    }
}

/// How many calls have no price, if any.
fn unpriced(usage: Usage) -> Option<String> {
    let calls = plural(usize::try_from(usage.unpriced).unwrap_or(usize::MAX), "call");
    (usage.unpriced > 0).then(|| format!("+ {calls} without a price"))
}

const COLUMNS: usize = 8;
/// The column of what it cost, which is there only if something is known to cost something.
const COST: usize = 6;
/// The columns that are left out first where there is no room: hooks, tool calls, model calls.
const DISPENSABLE: [usize; 3] = [5, 4, 3];
/// No name is cut to less than this while columns can be left out.
const LEAST_NAME: usize = 12;

/// The usage table: a row for each agent, its clones counted in, and the total; in at most `width`
/// columns.
pub(crate) fn table(record: &Record, width: usize) -> Vec<String> {
    let mut rows: Vec<Row> = Vec::new();
    let mut total = Row { name: "TOTAL".to_owned(), ..Row::default() };
    for it in record.instances() {
        total.add(it, record);
        match rows.iter_mut().find(|row| row.name == it.template()) {
            Some(row) => row.add(it, record),
            None => {
                let mut row = Row { name: it.template().to_owned(), ..Row::default() };
                row.add(it, record);
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    if rows.len() > MOST_ROWS {
        let rest = rows.split_off(MOST_ROWS - 1);
        let mut row = Row { name: format!("+{} more agents", rest.len()), ..Row::default() };
        rest.iter().for_each(|other| row.merge(other));
        (row.instances, row.clones, row.spare) = (1, 0, 0);
        rows.push(row);
    }
    (total.instances, total.clones, total.spare) = (1, 0, 0);
    (total.from, total.to) = (Duration::ZERO, record.last);
    let head = ["Agent", "In", "Out", "Model calls", "Tool calls", "Hooks", "Cost", "Time"];
    let body: Vec<_> = rows.iter().chain([&total]).map(Row::columns).collect();
    let widest = |column: usize| {
        let cells = body.iter().map(|row| row[column].chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let mut widths: [usize; COLUMNS] = std::array::from_fn(widest);
    if total.usage.cost == Cost::ZERO {
        widths[COST] = 0;
    }
    // A column that is left out has no width.
    let needed = |widths: &[usize; COLUMNS]| -> usize {
        widths.iter().filter(|width| **width > 0).map(|width| 2 + width).sum()
    };
    for column in DISPENSABLE {
        let name = widths[0].min(LEAST_NAME);
        if needed(&widths) - widths[0] + name > width {
            widths[column] = 0;
        }
    }
    let over = needed(&widths).saturating_sub(width);
    widths[0] = widths[0].saturating_sub(over).max("Agent".len());
    let render = |cells: [&str; COLUMNS]| {
        let mut line = format!("  {:<width$}", fit(cells[0], widths[0]), width = widths[0]);
        for (cell, width) in cells.iter().zip(widths).skip(1).filter(|(_, width)| *width > 0) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        line
    };
    let mut lines = vec![paint(DIM, render(head))];
    for (at, row) in body.iter().enumerate() {
        let line = render(std::array::from_fn(|column| row[column].as_str()));
        lines.push(if at + 1 == body.len() { paint(BOLD, line) } else { line });
    }
    if let Some(note) = unpriced(total.usage) {
        lines.push(paint(DIM, format_args!("  {note}")));
    }
    lines
}

/// The last line of a run; more than one if there is no room for it.
pub(crate) fn summary(record: &Record, width: usize) -> String {
    let instances = record.instances();
    let all = |sum: fn(&Instance) -> usize| instances.iter().map(sum).sum::<usize>();
    let ended = |how| instances.iter().filter(|it| it.came_to() == Some(how)).count();
    let mut parts = vec![format!("{} completed", ended(Standing::Done))];
    for (how, name) in [(Standing::Failed, "failed"), (Standing::Cancelled, "cancelled")] {
        let number = ended(how);
        if number > 0 {
            parts.push(format!("{number} {name}"));
        }
    }
    let mut part = |number: usize, noun: &str, bad: usize, how: &str| {
        if number > 0 {
            let bad = if bad > 0 { format!(" ({bad} {how})") } else { String::new() };
            parts.push(format!("{}{bad}", plural(number, noun)));
        }
    };
    part(all(|it| it.hook_calls), "hook call", all(|it| it.failed_hooks), "failed");
    part(all(|it| it.tool_calls), "tool call", all(|it| it.denied), "denied");
    part(all(|it| it.asks), "question", 0, "");
    let mut used = Usage::default();
    instances.iter().for_each(|it| used += it.usage);
    parts.push(format!("{} tokens", count(used.total())));
    if used.cost > Cost::ZERO {
        parts.push(used.cost.to_string());
    }
    parts.extend(unpriced(used));
    // Those that are there only to be cloned or told that they are over have nothing to complete.
    let spare = instances.iter().filter(|it| it.is_buried || record.is_spare(it)).count();
    let agents = plural(instances.len() - spare, "instance");
    let time = record.last.as_secs_f64();
    if record.missed > 0 {
        parts.push(format!("{} events came too fast to be shown", count(record.missed)));
    }
    let mut line = format!("    {} [{time:>7.3}s] {agents}:", paint(BOLD, "Summary"));
    let mut column = format!("    Summary [{time:>7.3}s] {agents}:").chars().count();
    for (at, part) in parts.iter().enumerate() {
        let part = if at == 0 { part.clone() } else { format!("· {part}") };
        let columns = part.chars().count();
        if column + 1 + columns > width {
            line.push_str("\n     ");
            column = 5;
        }
        line.push_str(&format!(" {part}"));
        column += 1 + columns;
    }
    line
}
