//! What the list of a question promises.

use super::super::review::{changes, listing};
use super::super::store::{Change, Item};
use super::*;
use crate::terminal::text::columns_of;

const COLUMNS: usize = 80;

fn item(kind: ItemKind, what: &str, used: &[&str]) -> Item {
    Item {
        kind: kind.as_str().into(),
        what: what.into(),
        sha256: None,
        used_by: used.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[track_caller]
fn fits(text: &str) {
    assert!(text.lines().count() <= LINES, "{text}");
    for line in text.lines() {
        assert!(columns_of(line) <= COLUMNS, "{line:?} has {} columns", columns_of(line));
    }
}

#[test]
fn five_hundred_harmless_things_do_not_hide_a_dangerous_one() {
    let mut items: Vec<Item> = (0..500)
        .map(|at| item(ItemKind::Importable, &format!("a{at}.py"), &[]))
        .chain((0..500).map(|at| item(ItemKind::Data, &format!("data/{at}.json"), &["a: reads"])))
        .chain(
            (0..500).map(|at| item(ItemKind::Command, &format!("true {at}"), &["a: before_agent"])),
        )
        .collect();
    items.push(item(ItemKind::Server, "evil: npx -y evil", &["a"]));
    items.push(item(ItemKind::Permission, "subagents: the model may start helpers", &["a"]));
    items.push(item(ItemKind::Permission, "shell: the model may run any command, as you", &["a"]));
    let shown = listing(&items).on_one_screen(COLUMNS);
    let text = plain(&shown.text);
    fits(&text);
    assert!(
        text.starts_with("    permission       shell: the model may run any command"),
        "{text}"
    );
    for part in ["evil: npx -y evil", "true 0", "more: true ", "500 importable files: a0.py"] {
        assert!(text.contains(part), "{part:?} is missing\n{text}");
    }
    let seen = text.lines().filter(|line| line.contains("true ") && !line.contains("more")).count();
    assert!(seen > 1, "{text}");
    assert!(shown.left_out > 1400 && shown.left_out < 1503, "{}", shown.left_out);
}

#[test]
fn something_of_every_kind_fits_on_the_screen() {
    let long = "x ".repeat(3000);
    let all = ItemKind::BY_DANGER.iter();
    let items: Vec<Item> = all
        .flat_map(|kind| (0..9).map(|_| item(*kind, &long, &["a: on_start", "b: on_start"])))
        .collect();
    let text = plain(&listing(&items).on_one_screen(COLUMNS).text);
    fits(&text);
    for kind in ItemKind::BY_DANGER {
        assert!(text.contains(kind.as_str()), "{kind}\n{text}");
    }
}

#[test]
fn a_short_list_is_shown_whole() {
    let items = [
        item(ItemKind::Python, "hooks.py", &["a: on_start start"]),
        item(ItemKind::Command, "sh audit.sh", &["a: before_agent"]),
    ];
    let shown = listing(&items).on_one_screen(COLUMNS);
    assert_eq!(shown.left_out, 0);
    let expected = "    command      sh audit.sh · a: before_agent\n    python file  hooks.py · a: on_start start\n";
    assert_eq!(plain(&shown.text), expected);
}

#[test]
fn a_guard_that_is_gone_comes_before_all_that_is_new() {
    let guard = |used: &[&str], sha: &str| Item {
        sha256: Some(sha.into()),
        ..item(ItemKind::Guard, "a in a.md", used)
    };
    let was = guard(&["hook wrap_tool_call guard.py:check (policy deny)", "request_params x"], "1");
    let now = guard(&["request_params x"], "2");
    let mut list: Vec<Change> = (0..500)
        .map(|at| Change::Added(item(ItemKind::Command, &format!("true {at}"), &[])))
        .collect();
    list.push(Change::Changed { now: now.clone(), was: was.clone() });
    let text = plain(&changes(&list).on_one_screen(COLUMNS).text);
    fits(&text);
    let first = text.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("    GONE  guards   a in a.md: hook wrap_tool_call guard.py:check"),
        "{text}"
    );
    let reordered = Item { sha256: Some("3".into()), ..was.clone() };
    let text =
        plain(&changes(&[Change::Changed { now: reordered, was }]).on_one_screen(COLUMNS).text);
    assert!(text.contains("in another order"), "{text}");
}
