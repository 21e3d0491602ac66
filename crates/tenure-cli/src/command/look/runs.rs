//! `tenure runs`.

use super::place::Place;
use super::words::{ago, first_line, length, stamp, standing, took, wanted};
use crate::args::{Runs, StatusName};
use crate::exit::Exit;
use crate::terminal::size::width;
use crate::terminal::style::{DIM, paint};
use crate::terminal::text::{clean_line, columns_of, fit};
use crate::terminal::{print_json, print_plain, sink};
use anstyle::Style;
use anyhow::Result;
use serde_json::{Value, json};
use std::time::SystemTime;
use tenure_core::engine::{RunInfo, RunQuery, RunStatus};
use tenure_store::Wish;

pub(crate) fn run(args: &Runs) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let mut query = RunQuery::default();
    query.status = match args.status {
        Some(StatusName::Running) => Some(RunStatus::Running),
        Some(StatusName::Waiting) => Some(RunStatus::Waiting),
        Some(StatusName::Parked) => Some(RunStatus::Parked),
        Some(StatusName::Ended) => Some(RunStatus::Ended),
        Some(StatusName::Unfinished) | None => None,
    };
    query.unfinished = args.status == Some(StatusName::Unfinished);
    (query.name, query.thread) = (args.name.clone(), args.thread.clone());
    // One more than is shown says whether there are more.
    query.limit = (!args.all).then_some(args.count.saturating_add(1));
    let mut runs = place.store.runs(&query)?;
    let more = !args.all && runs.len() > args.count;
    if more {
        runs.truncate(args.count);
    }
    if args.json {
        runs.iter().for_each(|info| print_json(to_json(&place, info)));
        return Ok(Exit::Ok);
    }
    if runs.is_empty() {
        let any = args.status.is_some() || args.name.is_some() || args.thread.is_some();
        print_plain(if any { "no run fits" } else { "no runs yet" });
        return Ok(Exit::Ok);
    }
    sink::print_text(&table(&place, &runs, SystemTime::now(), width()).join("\n"))?;
    if more {
        print_plain(&paint(DIM, "there are more; see all of them with --all"));
    }
    Ok(Exit::Ok)
}

/// What is known of a run, for programs.
pub(super) fn to_json(place: &Place, info: &RunInfo) -> Value {
    let wanted: Vec<_> = place.wanted(info).into_iter().map(Wish::as_str).collect();
    json!({
        "id": info.id,
        "kind": info.kind,
        "name": info.name,
        "status": info.status,
        "driven": info.driven,
        "wanted": wanted,
        "outcome": info.outcome,
        "error": info.error,
        "input": info.input,
        "output": info.output,
        "thread": info.thread,
        "user": info.user,
        "lives": info.lives,
        "asks": info.asks,
        "started": stamp(Some(info.started)),
        "updated": stamp(Some(info.updated)),
        "ended": stamp(info.ended),
    })
}

const HEAD: [&str; 5] = ["Run", "What", "Status", "Started", "Took"];
/// No name pushes the rest further than this.
const MOST_NAME: usize = 24;

fn table(place: &Place, runs: &[RunInfo], now: SystemTime, width: usize) -> Vec<String> {
    let rows: Vec<([String; 5], Style, String)> = runs
        .iter()
        .map(|info| {
            let (style, mut status) = standing(info);
            if let Some(wanted) = wanted(&place.wanted(info)) {
                status = format!("{status}, {wanted}");
            }
            let cells = [
                place.short(info.id),
                fit(&what(info), MOST_NAME),
                status,
                ago(info.started, now),
                length(took(info, now)),
            ];
            (cells, style, gist(info))
        })
        .collect();
    let widest = |column: usize| {
        let cells = rows.iter().map(|(cells, ..)| columns_of(&cells[column]));
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(widest);
    let before: usize = widths.iter().map(|width| width + 2).sum();
    let room = width.saturating_sub(before);
    let padded = |text: &str, column: usize| {
        let pad = " ".repeat(widths[column].saturating_sub(columns_of(text)));
        // Times are read from the right.
        if column >= 3 { format!("{pad}{text}  ") } else { format!("{text}{pad}  ") }
    };
    let head: String = HEAD.iter().enumerate().map(|(at, text)| padded(text, at)).collect();
    let mut lines = vec![paint(DIM, head.trim_end())];
    for (cells, style, gist) in rows {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let cell = padded(cell, at);
            match at {
                2 => line.push_str(&paint(style, cell)),
                3 | 4 => line.push_str(&paint(DIM, cell)),
                _ => line.push_str(&cell),
            }
        }
        // A few letters say nothing.
        if room >= 10 {
            line.push_str(&fit(&gist, room));
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// What it is: an agent by its name, everything else with its kind.
pub(super) fn what(info: &RunInfo) -> String {
    let name = clean_line(&info.name);
    match &*info.kind {
        "card" | "agent" => name,
        kind if kind == info.name => name,
        kind => format!("{} {name}", clean_line(kind)),
    }
}

/// What it was asked, and what came of it.
fn gist(info: &RunInfo) -> String {
    let asked = first_line(&info.input);
    let came = match (&info.output, &info.error) {
        (Some(output), _) => first_line(output),
        // That it waits is said already.
        (None, Some(_)) if info.status == RunStatus::Waiting => String::new(),
        (None, Some(error)) => clean_line(error.lines().next().unwrap_or_default()),
        (None, None) => String::new(),
    };
    match (asked.is_empty(), came.is_empty()) {
        (_, true) => asked,
        (true, false) => format!("→ {came}"),
        // What was said back is the same as what was said, for a model that repeats.
        (false, false) => format!("{} → {came}", fit(&asked, 40)),
    }
}
