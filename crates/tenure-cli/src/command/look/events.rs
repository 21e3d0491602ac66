//! `tenure events`.

use super::entry::Entry;
use super::place::Place;
use super::spoken::short;
use crate::args::Events;
use crate::exit::Exit;
use crate::terminal::size::width;
use crate::terminal::style::{CALM, DIM, PLAIN, paint};
use crate::terminal::text::{clean_line, columns_of, fit};
use crate::terminal::{print_plain, sink};
use crate::time::rfc3339;
use anyhow::Result;
use serde_json::Value;
use tenure_core::engine::RunQuery;

pub(crate) fn run(args: &Events) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let infos = match &args.run {
        Some(run) => vec![place.run(run)?],
        None => {
            let mut all = place.store.runs(&RunQuery::default())?;
            all.reverse();
            all
        }
    };
    let several = infos.len() > 1;
    let mut any = false;
    let width = width();
    for info in infos {
        place.each(info.id, args.after, |entry| {
            if !fits(&args.types, &entry.of) {
                return Ok(());
            }
            any = true;
            if args.json {
                sink::print_json_line(entry.to_json())?;
            } else {
                let before = if several { format!("{} ", info.id) } else { String::new() };
                sink::print_text(&line_of(&entry, &before, width))?;
            }
            Ok(())
        })?;
    }
    if !any {
        print_plain("no event fits");
    }
    Ok(Exit::Ok)
}

/// Whether a type is one of those that are wanted.
fn fits(globs: &[String], of: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| matches(glob.as_bytes(), of.as_bytes()))
}

/// `*` is anything, `?` one character.
fn matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') => (at, from) = (at + 1, from + 1),
            Some(it) if *it == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((back, taken)) => {
                    star = Some((back, taken + 1));
                    (at, from) = (back + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|it| *it == b'*')
}

/// One record in one line, behind what is to stand before it.
pub(super) fn line_of(entry: &Entry, before: &str, width: usize) -> String {
    let time = rfc3339(entry.time);
    let clock = time.get(11..23).unwrap_or(&time);
    let head = format!("{before}{:>5} {clock}", entry.seq);
    let what = match (&entry.step, &entry.scope) {
        (Some(key), _) => key.to_string(),
        (None, Some(scope)) => scope.clone(),
        (None, None) => entry.agent.clone().unwrap_or_default(),
    };
    let mut line = format!("{}  {}  ", paint(DIM, head), paint(CALM, format!("{:<14}", entry.of)));
    if !what.is_empty() {
        let room = width.saturating_sub(columns_of(&line));
        line.push_str(&paint(PLAIN, fit(&clean_line(&what), room)));
        line.push_str("  ");
    }
    let data = match &entry.data {
        Value::Null => String::new(),
        other => short(other),
    };
    let room = width.saturating_sub(columns_of(&line));
    if room >= 8 {
        line.push_str(&paint(DIM, fit(&data, room)));
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_chosen_by_patterns() {
        let wanted = |glob: &str, of: &str| fits(&[glob.to_owned()], of);
        assert!(wanted("tool.*", "tool.ended"));
        assert!(!wanted("tool.*", "model.ended"));
        assert!(wanted("*.ended", "agent.turn.ended"));
        assert!(wanted("hook.?tarted", "hook.started"));
        assert!(wanted("*", "anything") && wanted("**", "a"));
        assert!(!wanted("tool", "tool.ended"));
        assert!(wanted("a*b*c", "a-b-b-c") && !wanted("a*b*c", "a-c-b"));
        assert!(fits(&[], "anything"), "nothing is left out where nothing is said");
    }
}
