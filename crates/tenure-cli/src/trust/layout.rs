//! The layout of what a person is asked to trust: the dangerous first, the many grouped, all of it within the screen.

use super::review::counted;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, PLAIN, WARN, paint};
use crate::terminal::text::{fit, wrap};
use anstyle::Style;
use tenure_cards::trust::ItemKind;

/// The lines of a question that are a list. With what stands around them they fit on a screen of 24 lines.
const LINES: usize = 17;
/// The lines of one entry in a question: what is dangerous is shown at length.
const MOST_LINES: usize = 3;
/// The columns before a line.
const INDENT: usize = 4;
/// The columns before what is said of a thing, beneath it.
const HANGING: usize = 2;

/// The way in which something differs from what was agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A guard is gone, or is another one.
    Gone,
    New,
    Changed,
    NewUse,
}

impl Mark {
    fn text(self) -> &'static str {
        match self {
            Self::Gone => "GONE",
            Self::New => "new",
            Self::Changed => "changed",
            Self::NewUse => "new use",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Gone => BAD,
            Self::New => GOOD,
            Self::Changed | Self::NewUse => WARN,
        }
    }
}

/// One thing of a list.
pub(super) struct Row {
    pub(super) mark: Option<Mark>,
    /// Smaller is more dangerous.
    pub(super) danger: usize,
    pub(super) kind: String,
    pub(super) what: String,
    pub(super) hashes: String,
    /// Its uses, one line for each agent.
    pub(super) uses: Vec<String>,
}

impl Row {
    /// The place in the list: a guard that is gone comes before all else, confinement before other guards, and a shell
    /// before other permissions.
    fn rank(&self) -> (bool, usize, bool) {
        let is_gone = self.mark == Some(Mark::Gone);
        let is_shell =
            self.kind == ItemKind::Permission.as_str() && self.what.contains("run any command");
        let is_confinement = is_gone && self.what.contains("sandbox: ");
        (!is_gone, self.danger, !(is_shell || is_confinement))
    }

    /// Whether it lets something act as the user or reach the network, or takes a guard away.
    fn is_dangerous(&self) -> bool {
        let least = ItemKind::BY_DANGER.iter().position(|kind| *kind == ItemKind::Environment);
        self.mark == Some(Mark::Gone) || least.is_none_or(|least| self.danger <= least + 1)
    }
}

/// Things in the order in which a person reads them.
pub(crate) struct Rows(Vec<Row>);

/// The list of a question, and what is not in it.
pub(crate) struct Shown {
    /// Lines with their line breaks.
    pub(crate) text: String,
    /// The number of things that are not in it.
    pub(crate) left_out: usize,
}

impl Rows {
    pub(super) fn new(mut rows: Vec<Row>) -> Self {
        rows.sort_by_key(Row::rank);
        Self(rows)
    }

    /// All of it, at length, in `width` columns.
    pub(crate) fn whole(&self, width: usize) -> String {
        let columns = Columns::of(&self.0, width);
        let mut text = String::new();
        for row in &self.0 {
            let mut lines = wrap(&row.what, columns.room());
            let room = columns.room() - HANGING;
            let below = Some(&row.hashes).filter(|it| !it.is_empty()).into_iter().chain(&row.uses);
            let below = below.flat_map(|line| wrap(line, room));
            lines.extend(below.map(|line| format!("{:HANGING$}{line}", "")));
            columns.print(row, &lines, &mut text);
        }
        text
    }

    /// The most important of it on one screen. Every kind has at least a line, whatever there is of the others, and
    /// what is left out is counted.
    pub(crate) fn on_one_screen(&self, width: usize) -> Shown {
        let columns = Columns::of(&self.0, width);
        let mut groups: Vec<Group<'_>> = Vec::new();
        for row in &self.0 {
            let kind = |row: &Row| (row.mark == Some(Mark::Gone), row.danger);
            let same = |group: &&mut Group<'_>| kind(group.rows[0]) == kind(row);
            match groups.iter_mut().find(same) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { rows: vec![row], lines: 1 }),
            }
        }
        share(&mut groups, &columns);
        let mut shown = Shown { text: String::new(), left_out: 0 };
        for group in &groups {
            group.print(&columns, &mut shown);
        }
        shown
    }
}

/// Shares the lines of the screen: one for each group, then one after the other for those that are dangerous; of the
/// others, those that fit are shown whole.
fn share(groups: &mut [Group<'_>], columns: &Columns) {
    let mut left = LINES.saturating_sub(groups.len());
    let (mut open, others): (Vec<_>, Vec<_>) =
        groups.iter_mut().partition(|group| group.rows[0].is_dangerous());
    while left > 0 && !open.is_empty() {
        open.retain(|group| group.lines < group.wanted(columns));
        for group in open.iter_mut().take(left) {
            group.lines += 1;
        }
        left = left.saturating_sub(open.len());
    }
    for group in others {
        let more = group.wanted(columns).saturating_sub(1);
        if more <= left {
            group.lines += more;
            left -= more;
        }
    }
}

/// Things of one kind.
struct Group<'a> {
    rows: Vec<&'a Row>,
    /// The lines that it may take.
    lines: usize,
}

impl Group<'_> {
    fn wanted(&self, columns: &Columns) -> usize {
        self.rows.iter().map(|row| columns.entry(row).len()).sum()
    }

    fn print(&self, columns: &Columns, shown: &mut Shown) {
        let mut left = self.lines;
        for (at, row) in self.rows.iter().enumerate() {
            let others = self.rows.len() - at - 1;
            let entry = columns.entry(row);
            // One line is kept for how many there are.
            let room = if others > 0 { left.saturating_sub(1) } else { left };
            let rest: usize = self.rows[at..].iter().map(|row| columns.entry(row).len()).sum();
            if entry.len() <= room || rest <= left {
                left -= entry.len();
                columns.print(row, &entry, &mut shown.text);
                continue;
            }
            if others == 0 && left > 0 {
                let mut cut: Vec<String> = entry.into_iter().take(left).collect();
                if let Some(last) = cut.last_mut() {
                    *last = fit(&format!("{last} …"), columns.room());
                }
                columns.print(row, &cut, &mut shown.text);
                return;
            }
            let names: Vec<&str> = self.rows[at..].iter().map(|row| &*row.what).take(8).collect();
            let count = match at {
                0 => counted(self.rows.len(), &row.kind),
                _ => format!("and {} more", others + 1),
            };
            let line = fit(&format!("{count}: {}", names.join(", ")), columns.room());
            columns.print(row, &[line], &mut shown.text);
            shown.left_out += others + 1;
            return;
        }
    }
}

/// The columns of a list.
struct Columns {
    mark: usize,
    kind: usize,
    width: usize,
}

impl Columns {
    fn of(rows: &[Row], width: usize) -> Self {
        let widest = |cell: fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or(0);
        let mark = widest(|row| row.mark.map_or(0, |mark| mark.text().len() + 2));
        Self { mark, kind: widest(|row| row.kind.chars().count()), width }
    }

    /// The columns for what a thing is.
    fn room(&self) -> usize {
        self.width.saturating_sub(INDENT + self.mark + self.kind + 2).max(20)
    }

    /// The lines of a thing in a question.
    fn entry(&self, row: &Row) -> Vec<String> {
        let text = match row.uses.is_empty() {
            true => row.what.clone(),
            false => format!("{} · {}", row.what, row.uses.join("; ")),
        };
        let most = if row.is_dangerous() { MOST_LINES } else { 1 };
        let mut lines = wrap(&text, self.room());
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = fit(&format!("{last} …"), self.room());
            }
        }
        lines
    }

    fn print(&self, row: &Row, lines: &[String], text: &mut String) {
        let style = if row.is_dangerous() { WARN } else { PLAIN };
        for (at, line) in lines.iter().enumerate() {
            let (mark, kind) = match at {
                0 => (row.mark.map_or("", Mark::text), &*row.kind),
                _ => ("", ""),
            };
            let mark_style = row.mark.map_or(PLAIN, Mark::style);
            let (marks, kinds) = (self.mark, self.kind);
            let mark = paint(mark_style, format_args!("{mark:<marks$}"));
            let kind = paint(style, format_args!("{kind:<kinds$}"));
            let line = if at == 0 { paint(BOLD, line) } else { paint(DIM, line) };
            text.push_str(&format!("{:INDENT$}{mark}{kind}  {line}\n", ""));
        }
    }
}

#[cfg(test)]
mod tests;
