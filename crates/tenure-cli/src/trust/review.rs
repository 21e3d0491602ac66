//! How trust is put to a person: what would be executed, and what is different.

use super::layout::{Mark, Row, Rows};
use super::store::{Change, Item};
use crate::terminal::text::{exact, plural};
use tenure_cards::trust::ItemKind;

/// The digits of a fingerprint that are shown and compared: 128 bits. With fewer, two projects could be made that have
/// the same.
pub(crate) const FINGERPRINT_DIGITS: usize = 32;

/// The part of a fingerprint that is shown.
pub(crate) fn short_fingerprint(items: &[Item]) -> String {
    fingerprint(items).chars().take(FINGERPRINT_DIGITS).collect()
}

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

/// Everything that would be executed, the most dangerous first.
pub(crate) fn listing(items: &[Item]) -> Rows {
    Rows::new(items.iter().filter(|item| !is_no_guard(item)).map(row).collect())
}

/// Whether it says no more than that there are no guards.
fn is_no_guard(item: &Item) -> bool {
    item.kind == ItemKind::Guard.as_str() && item.used_by.is_empty()
}

/// The differences from what was agreed to: guards that are gone first, then the most dangerous.
pub(crate) fn changes(changes: &[Change]) -> Rows {
    let mut rows = Vec::new();
    let says_more = |change: &&Change| !matches!(change, Change::Added(item) if is_no_guard(item));
    for change in changes.iter().filter(says_more) {
        match change {
            Change::Added(item) => rows.push(Row { mark: Some(Mark::New), ..row(item) }),
            Change::Changed { now, was } if now.kind == ItemKind::Guard.as_str() => {
                rows.extend(guard_changes(now, was));
            }
            Change::Changed { now, was } if now.sha256 != was.sha256 => {
                let hashes = format!("{}, was {}", hash(now), hash(was));
                rows.push(Row { mark: Some(Mark::Changed), hashes, ..row(now) });
            }
            Change::Changed { now, was } => {
                let added: Vec<_> =
                    now.used_by.iter().filter(|it| !was.used_by.contains(it)).cloned().collect();
                rows.push(Row { mark: Some(Mark::NewUse), uses: uses(&added), ..row(now) });
            }
        }
    }
    Rows::new(rows)
}

/// Guards that are gone, guards that came, or their order.
fn guard_changes(now: &Item, was: &Item) -> Vec<Row> {
    let line = |mark, text: &str| Row {
        mark: Some(mark),
        what: format!("{}: {}", exact(&now.what), exact(text)),
        uses: Vec::new(),
        hashes: String::new(),
        ..row(now)
    };
    let missing = was.used_by.iter().filter(|it| !now.used_by.contains(it));
    let gone = missing.map(|it| line(Mark::Gone, it));
    let added = now.used_by.iter().filter(|it| !was.used_by.contains(it));
    let mut rows: Vec<Row> = gone.chain(added.map(|it| line(Mark::New, it))).collect();
    if rows.is_empty() {
        rows.push(line(Mark::Gone, "the same guards in another order, or written otherwise"));
    }
    rows
}

fn row(item: &Item) -> Row {
    let is_guard = item.kind == ItemKind::Guard.as_str();
    let mut kinds = ItemKind::BY_DANGER.iter();
    // What no kind is known of comes first.
    let danger = kinds.position(|kind| kind.as_str() == item.kind).map_or(0, |at| at + 1);
    let lines = item.used_by.iter().map(|line| exact(line));
    Row {
        mark: None,
        danger,
        kind: exact(&item.kind),
        what: exact(&item.what),
        hashes: if is_guard { String::new() } else { hash(item) },
        uses: match (is_guard, item.used_by.is_empty()) {
            (true, true) => vec!["no guards and no limits of its own".to_owned()],
            (true, false) => lines.collect(),
            (false, _) => uses(&item.used_by),
        },
    }
}

/// A number of things of one kind: `2 python files`.
pub(super) fn counted(number: usize, kind: &str) -> String {
    match (kind, number) {
        ("file of a command", 2..) => format!("{number} files of commands"),
        ("address of a hook", 2..) => format!("{number} addresses of hooks"),
        ("hook of the program", 2..) => format!("{number} hooks of the program"),
        ("model address", 2..) => format!("{number} model addresses"),
        ("guards" | "data", _) => format!("{number} × {kind}"),
        _ => plural(number, kind),
    }
}

fn hash(item: &Item) -> String {
    exact(item.sha256.as_deref().unwrap_or("")).chars().take(FINGERPRINT_DIGITS).collect()
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
        insta::assert_snapshot!(plain(&listing(&items).whole(80)));
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
        insta::assert_snapshot!(plain(&changes(&list).whole(80)));
    }
}
