//! What was changed, line by line.

use super::super::style::{BAD, DIM, GOOD, paint};
use super::show::{Extent, fields};
use serde_json::Value;

/// Beyond this a difference is shown as all of the old and all of the new.
const MOST_CELLS: usize = 1 << 20;
/// How many lines stay around a change.
const AROUND: usize = 2;

/// The lines of `new` that differ from `old`, with those that they replace.
pub(super) fn diff(old: &Value, new: &Value, columns: usize) -> Vec<String> {
    let columns = columns.saturating_sub(6);
    let old = fields(old, Extent::Whole, columns).lines;
    let new = fields(new, Extent::Whole, columns).lines;
    let steps = steps(&old, &new);
    let is_near = |at: usize| {
        let from = at.saturating_sub(AROUND);
        let to = (at + AROUND + 1).min(steps.len());
        steps[from..to].iter().any(|step| !matches!(step, Step::Same(_)))
    };
    let mut lines = Vec::new();
    let mut is_gap = false;
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Old(line) => lines.push(paint(BAD, format_args!("    - {}", plain(line)))),
            Step::New(line) => lines.push(paint(GOOD, format_args!("    + {}", plain(line)))),
            Step::Same(line) if is_near(at) => {
                lines.push(paint(DIM, format_args!("      {}", plain(line))));
            }
            Step::Same(_) if is_gap => continue,
            Step::Same(_) => lines.push(paint(DIM, "      …")),
        }
        is_gap = matches!(step, Step::Same(_)) && !is_near(at);
    }
    lines
}

/// One colour a line: its own are taken out.
fn plain(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

enum Step<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The shortest way from one to the other, by their longest common subsequence.
fn steps<'a>(old: &'a [String], new: &'a [String]) -> Vec<Step<'a>> {
    if old.len().saturating_mul(new.len()) > MOST_CELLS {
        let old = old.iter().map(|line| Step::Old(line));
        return old.chain(new.iter().map(|line| Step::New(line))).collect();
    }
    let wide = new.len() + 1;
    // How many lines the rests have in common.
    let mut common = vec![0_usize; (old.len() + 1) * wide];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            common[at * wide + to] = if old[at] == new[to] {
                common[(at + 1) * wide + to + 1] + 1
            } else {
                common[(at + 1) * wide + to].max(common[at * wide + to + 1])
            };
        }
    }
    let (mut at, mut to, mut steps) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            steps.push(Step::Same(&old[at]));
            (at, to) = (at + 1, to + 1);
        } else if to == new.len()
            || at < old.len() && common[(at + 1) * wide + to] >= common[at * wide + to + 1]
        {
            steps.push(Step::Old(&old[at]));
            at += 1;
        } else {
            steps.push(Step::New(&new[to]));
            to += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(old: &Value, new: &Value) -> String {
        plain(&diff(old, new, 80).join("\n"))
    }

    #[test]
    fn only_what_changed_and_what_is_near_is_shown() {
        let script: Vec<String> = (1..=20).map(|at| format!("line {at}")).collect();
        let old = json!({ "path": "a.txt", "script": script.join("\n"), "mode": 1 });
        let new = script.join("\n").replace("line 10\n", "line ten\nand more\n");
        let new = json!({ "path": "a.txt", "script": new, "mode": 2 });
        insta::assert_snapshot!(shown(&old, &new));
    }

    #[test]
    fn a_field_that_came_and_one_that_went_are_seen() {
        let said = shown(&json!({ "a": 1, "b": 2 }), &json!({ "b": 2, "c": 3 }));
        assert_eq!(said, "    - a: 1\n      b: 2\n    + c: 3");
    }

    #[test]
    fn what_is_equal_has_no_difference() {
        let value = json!({ "a": 1 });
        assert!(!shown(&value, &value).contains(['+', '-']));
    }
}
