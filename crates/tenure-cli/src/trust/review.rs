//! How trust is put to a person: what would be executed, and what is different.

use super::store::{Change, Item};
use crate::terminal::style::{BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, plural};
use std::collections::BTreeMap;

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

/// The first lines of a list, and how many more there are.
pub(super) fn beginning(list: &str) -> String {
    let lines: Vec<_> = list.lines().collect();
    if lines.len() <= MOST_LINES {
        return list.to_owned();
    }
    let more = lines.len() - MOST_LINES + 1;
    let rest = format!("    … and {more} more; `tenure trust review` lists them all\n");
    lines[..MOST_LINES - 1].join("\n") + "\n" + &rest
}

/// Everything that would be executed, one line each.
pub(crate) fn listing(items: &[Item]) -> String {
    table(&items.iter().map(|item| row(item, hash(item), &item.used_by)).collect::<Vec<_>>())
}

/// What is different from what was agreed to, one line each.
pub(crate) fn changes(changes: &[Change]) -> String {
    let mut rows = Vec::new();
    for change in changes {
        rows.push(match change {
            Change::Added(item) => (paint(GOOD, "new    "), row(item, hash(item), &item.used_by)),
            Change::Changed { now, was } if now.sha256 != was.sha256 => {
                let hashes = format!("{}, was {}", hash(now), hash(was));
                (paint(WARN, "changed"), row(now, hashes, &now.used_by))
            }
            Change::Changed { now, was } => {
                let uses: Vec<_> =
                    now.used_by.iter().filter(|it| !was.used_by.contains(it)).cloned().collect();
                (paint(WARN, "new use"), row(now, hash(now), &uses))
            }
        });
    }
    let table = table(&rows.iter().map(|(_, row)| row.clone()).collect::<Vec<_>>());
    let marks = rows.iter().map(|(mark, _)| mark);
    marks.zip(table.lines()).map(|(mark, line)| format!("    {mark}{}\n", &line[2..])).collect()
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

fn row(item: &Item, hashes: String, uses: &[String]) -> [String; 4] {
    let used = if uses.is_empty() { String::new() } else { format!("for {}", uses.join(", ")) };
    [clean_line(&item.kind), clean_line(&item.what), clean_line(&hashes), clean_line(&used)]
}

fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(60)
    };
    let (kind, what, hash) = (width(0), width(1), width(2));
    rows.iter()
        .map(|[a, b, c, d]| {
            let rest = format!("{c:<hash$}  {d}");
            match rest.trim_end() {
                "" => format!("    {a:<kind$}  {}\n", paint(BOLD, b)),
                rest => {
                    let b = paint(BOLD, format_args!("{b:<what$}"));
                    format!("    {a:<kind$}  {b}  {}\n", paint(DIM, rest))
                }
            }
        })
        .collect()
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
