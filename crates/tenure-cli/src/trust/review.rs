//! How trust is put to a person: what would be executed, and what is different.

use super::store::{Change, Item};
use crate::terminal::style::{BOLD, DIM, GOOD, PLAIN, WARN, paint};
use crate::terminal::text::{exact, plural};
use std::collections::BTreeMap;
use tenure_cards::trust::ItemKind;

/// How many digits of a hash are shown.
const DIGITS: usize = 12;

/// The hash of everything together, in an order that does not depend on the cards'.
pub(crate) fn fingerprint(items: &[Item]) -> String {
    let mut sorted: Vec<_> = items.iter().collect();
    sorted.sort();
    let mut bytes = Vec::new();
    let mut put = |text: &str| {
        // With its length, so that no two lists can read the same.
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    };
    for item in sorted {
        put(&item.kind);
        put(&item.what);
        put(item.sha256.as_deref().unwrap_or(""));
        put(&item.used_by.len().to_string());
        item.used_by.iter().for_each(|used| put(used));
    }
    tenure_cards::trust::sha256_hex(&bytes)
}

/// No question shows more lines than these; `tenure trust review` shows all.
const MOST_LINES: usize = 30;

/// The first lines of a list, and how many more things there are.
pub(super) fn beginning(list: &str) -> String {
    let lines: Vec<_> = list.lines().collect();
    if lines.len() <= MOST_LINES {
        return list.to_owned();
    }
    let (shown, rest) = lines.split_at(MOST_LINES - 1);
    let more = rest.iter().filter(|line| !line.starts_with(CONTINUED)).count();
    let rest = match more {
        0 => "    … `tenure trust review` lists it all\n".to_owned(),
        more => format!("    … and {more} more; `tenure trust review` lists them all\n"),
    };
    shown.join("\n") + "\n" + &rest
}

/// Everything that would be executed, each with its uses.
pub(crate) fn listing(items: &[Item]) -> String {
    let rows: Vec<_> = items.iter().map(|item| Row::new(item, hash(item), &item.used_by)).collect();
    table(&rows, 4).iter().map(|text| format!("    {text}")).collect()
}

/// What is different from what was agreed to.
pub(crate) fn changes(changes: &[Change]) -> String {
    let mut marks = Vec::new();
    let mut rows = Vec::new();
    for change in changes {
        let (mark, row) = match change {
            Change::Added(item) => {
                (paint(GOOD, "new    "), Row::new(item, hash(item), &item.used_by))
            }
            Change::Changed { now, was } if now.sha256 != was.sha256 => {
                let hashes = format!("{}, was {}", hash(now), hash(was));
                (paint(WARN, "changed"), Row::new(now, hashes, &now.used_by))
            }
            Change::Changed { now, was } => {
                let uses: Vec<_> =
                    now.used_by.iter().filter(|it| !was.used_by.contains(it)).cloned().collect();
                (paint(WARN, "new use"), Row::new(now, hash(now), &uses))
            }
        };
        marks.push(mark);
        rows.push(row);
    }
    let table = table(&rows, 13);
    marks.iter().zip(&table).map(|(mark, text)| format!("    {mark}  {text}")).collect()
}

/// What it all comes to: `2 python files, 1 command`.
pub(crate) fn counts(items: &[Item]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        *kinds.entry(&item.kind).or_default() += 1;
    }
    let part = |(kind, number): (&str, usize)| match (kind, number) {
        ("file of a command", 2..) => format!("{number} files of commands"),
        _ => plural(number, kind),
    };
    kinds.into_iter().map(part).collect::<Vec<_>>().join(", ")
}

fn hash(item: &Item) -> String {
    item.sha256.as_deref().unwrap_or("").chars().take(DIGITS).collect()
}

/// What a line begins with that belongs to the one above it.
const CONTINUED: &str = "     ";

/// One thing of a list.
struct Row {
    kind: String,
    what: String,
    hashes: String,
    /// What it is used for, one line for each agent.
    uses: Vec<String>,
}

impl Row {
    fn new(item: &Item, hashes: String, used_by: &[String]) -> Self {
        let kind = exact(&item.kind);
        Self { kind, what: exact(&item.what), hashes: exact(&hashes), uses: uses(used_by) }
    }
}

/// By agent, and for each by point: `editor: on_start start, wrap_tool_call approve guard`.
fn uses(used_by: &[String]) -> Vec<String> {
    let mut agents: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for used in used_by {
        let used = exact(used);
        let (agent, rest) = used.split_once(": ").unwrap_or((&used, ""));
        // A transition has spaces in it; the function is what stands last.
        let (point, function) = match rest.rsplit_once(' ') {
            Some((point, function)) if !point.ends_with("->") => (point, function),
            _ => (rest, ""),
        };
        let place = agents.iter().position(|(name, _)| name == agent).unwrap_or(agents.len());
        if place == agents.len() {
            agents.push((agent.to_owned(), Vec::new()));
        }
        let points = &mut agents[place].1;
        match points.iter_mut().find(|(name, _)| name == point) {
            Some((_, functions)) => functions.push_str(&format!(" {function}")),
            None => points.push((point.to_owned(), function.to_owned())),
        }
    }
    let line = |(agent, points): (String, Vec<(String, String)>)| {
        let points: Vec<_> = points
            .iter()
            .map(|(point, functions)| format!("{point} {functions}").trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect();
        match points.is_empty() {
            true => agent,
            false => format!("{agent}: {}", points.join(", ")),
        }
    };
    agents.into_iter().map(line).collect()
}

/// The rows with their columns in line, each with its line break, to be put behind `indent` columns.
/// A thing that several agents use has several lines.
fn table(rows: &[Row], indent: usize) -> Vec<String> {
    let width = |cell: fn(&Row) -> &str| {
        rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0).min(72)
    };
    let (kind, what) = (width(|row| &row.kind), width(|row| &row.what));
    let hashes = width(|row| &row.hashes);
    let render = |row: &Row| {
        let style = if row.kind == ItemKind::Permission.as_str() { WARN } else { PLAIN };
        let mut text = paint(style, format_args!("{:<kind$}", row.kind));
        let mut uses = row.uses.iter();
        let first = uses.next().map_or("", String::as_str);
        let rest = format!("{:<hashes$}  {first}", row.hashes);
        match rest.trim_end() {
            "" => text.push_str(&format!("  {}\n", paint(BOLD, &row.what))),
            rest => {
                let what = paint(BOLD, format_args!("{:<what$}", row.what));
                text.push_str(&format!("  {what}  {}\n", paint(DIM, rest)));
            }
        }
        // Behind the columns and what stands between them.
        let room = indent + kind + what.max(row.what.chars().count()) + hashes + 6;
        for line in uses {
            text.push_str(&format!("{:room$}{}\n", "", paint(DIM, line)));
        }
        text
    };
    rows.iter().map(render).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: &str, what: &str, sha256: &str) -> Item {
        Item {
            kind: kind.into(),
            what: what.into(),
            sha256: Some(sha256.into()),
            used_by: vec!["greeter: on_start start".into()],
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_fingerprint_depends_on_the_contents_and_not_on_the_order() {
        let (a, b) = (item("python file", "a.py", "1"), item("python file", "b.py", "2"));
        assert_eq!(fingerprint(&[a.clone(), b.clone()]), fingerprint(&[b.clone(), a.clone()]));
        assert_ne!(
            fingerprint(&[a.clone(), b]),
            fingerprint(&[a, item("python file", "b.py", "3")])
        );
    }

    #[test]
    fn what_would_be_executed_is_listed() {
        let sha = "5be1c0d2f3a4b5c6d7e8f9";
        let items =
            [item("python file", "hooks.py", sha), item("command", "./audit.sh\x1b[2J", "")];
        insta::assert_snapshot!(plain(&listing(&items)));
    }

    #[test]
    fn uses_are_told_by_agent_and_by_point() {
        let used = [
            "a: bootstrapping -> idle once",
            "a: on_start start",
            "a: wrap_tool_call approve",
            "a: wrap_tool_call guard",
            "b: before_agent",
            "b: idle -> stopped",
            "c",
        ];
        assert_eq!(
            uses(&used.map(str::to_owned)),
            [
                "a: bootstrapping -> idle once, on_start start, wrap_tool_call approve guard",
                "b: before_agent, idle -> stopped",
                "c",
            ]
        );
    }

    #[test]
    fn a_long_list_is_cut_and_says_so() {
        let items: Vec<_> =
            (0..100).map(|at| item("importable file", &format!("{at}.py"), "aa")).collect();
        let shown = beginning(&listing(&items));
        assert_eq!(shown.lines().count(), MOST_LINES);
        assert!(shown.contains("… and 71 more"), "{shown}");
        assert_eq!(beginning("one\n"), "one\n");
    }

    #[test]
    fn what_changed_is_marked() {
        let (a, b) = ("5be1c0d2f3a4b5c6d7e8f9", "aaaabbbbccccdddd");
        let list = [
            Change::Added(item("python file", "new.py", a)),
            Change::Changed {
                now: item("python file", "b.py", b),
                was: item("python file", "b.py", a),
            },
            Change::Changed {
                now: item("python file", "c.py", b),
                was: Item { used_by: Vec::new(), ..item("python file", "c.py", b) },
            },
        ];
        insta::assert_snapshot!(plain(&changes(&list)));
    }
}
