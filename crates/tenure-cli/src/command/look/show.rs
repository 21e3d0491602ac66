//! `tenure show`.

use super::entry::Entry;
use super::events::line_of;
use super::item::Look;
use super::place::Place;
use super::timeline::Timeline;
use super::words::{ago, first_line, length, moment, said, standing, took, wanted};
use super::{asks, runs};
use crate::args::Show;
use crate::exit::Exit;
use crate::terminal::sink::{print_document, print_text};
use crate::terminal::size::width;
use crate::terminal::style::{BAD, BOLD, DIM, WARN, paint};
use crate::terminal::text::{clean_block, clean_line, columns_of, count, fit, plural, wrap};
use anyhow::Result;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::{Duration, SystemTime};
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_core::model::Cost;
use tenure_store::{AskInfo, AskQuery};

pub(crate) fn run(args: &Show) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let info = place.run(&args.run)?;
    let entries = place.entries(info.id)?;
    let mut timeline = match args.phases {
        true => Timeline::with_phases(&entries),
        false => Timeline::of(&entries),
    };
    if info.status == RunStatus::Running && !info.driven {
        timeline.cut();
    }
    let open = place.store.asks(&AskQuery::open().run(info.id))?;
    if args.json {
        let mut document = json!({
            "run": runs::to_json(&place, &info),
            "asks": open.iter().map(asks::to_json).collect::<Vec<_>>(),
            "usage": timeline.usage,
            "timeline": timeline.lines().map(super::item::Item::to_json).collect::<Vec<_>>(),
        });
        if args.events {
            document["events"] = entries.iter().map(Entry::to_json).collect();
        }
        print_document(document)?;
        return Ok(Exit::Ok);
    }
    let mut lines = head(&place, &info);
    lines.push(String::new());
    if entries.is_empty() {
        lines.push(paint(DIM, "  its records were deleted by `tenure db compact`"));
    }
    let look = Look {
        since: info.started,
        width: width(),
        agents: timeline.has_several_agents(),
        is_live: false,
    };
    if args.events {
        lines.extend(entries.iter().map(|entry| line_of(entry, "", width())));
    } else {
        lines.extend(timeline.lines().map(|item| item.line(&look)));
    }
    lines.push(String::new());
    lines.extend(ending(&place, &info, &timeline, &entries, &open));
    print_text(&lines.join("\n"))?;
    Ok(Exit::Ok)
}

/// What the run is, in a few lines.
fn head(place: &Place, info: &RunInfo) -> Vec<String> {
    let now = SystemTime::now();
    let (style, status) = standing(info);
    let id = format!("{} · {}", clean_line(&info.kind), info.id);
    let name = fit(&clean_line(&info.name), width().saturating_sub(columns_of(&id) + 2));
    let mut lines = vec![format!("{}  {}", paint(BOLD, name), paint(DIM, id))];
    let room = width().saturating_sub(12);
    let mut row = |name: &str, text: String| {
        lines.push(format!("  {}  {text}", paint(DIM, format_args!("{name:<8}"))));
    };
    let driven = fit(&driver(place, info), room.saturating_sub(columns_of(&status)));
    row("status", format!("{}{driven}", paint(style, status)));
    let lives = match info.lives {
        0 | 1 => String::new(),
        lives => format!(" · {lives} lives"),
    };
    let lasted = length(took(info, now));
    row(
        "started",
        format!("{} · {} · took {lasted}{lives}", moment(info.started), ago(info.started, now)),
    );
    // A conversation is named after the run that it began with.
    if let Some(thread) = info.thread.as_ref().filter(|thread| **thread != info.id.to_string()) {
        row("thread", fit(&clean_line(thread), room));
    }
    if let Some(user) = &info.user {
        row("user", fit(&clean_line(user), room));
    }
    if !info.input.is_null() {
        row("input", fit(&first_line(&info.input), room));
    }
    lines
}

/// Who drives it, where that is of interest.
fn driver(place: &Place, info: &RunInfo) -> String {
    if info.status == RunStatus::Ended {
        return String::new();
    }
    match place.store.driver() {
        Ok(Some(driver)) if info.driven => {
            format!(" · driven by process {} ({})", driver.pid, clean_line(&driver.what))
        }
        _ => {
            let wanted = wanted(&place.wanted(info)).map(|it| format!(" · {it}"));
            format!(" · nobody drives it{}", wanted.unwrap_or_default())
        }
    }
}

/// What came of it, or what it waits for.
fn ending(
    place: &Place,
    info: &RunInfo,
    timeline: &Timeline,
    entries: &[Entry],
    open: &[AskInfo],
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut sums = vec![plural(timeline.steps, "step")];
    if timeline.usage.calls > 0 {
        let calls = usize::try_from(timeline.usage.calls).unwrap_or(usize::MAX);
        sums.push(plural(calls, "model call"));
    }
    if timeline.tools > 0 {
        sums.push(plural(timeline.tools, "tool call"));
    }
    if timeline.usage.total() > 0 {
        sums.push(format!("{} tokens", count(timeline.usage.total())));
    }
    if timeline.usage.cost > Cost::ZERO {
        sums.push(timeline.usage.cost.to_string());
    }
    lines.push(paint(DIM, format_args!("  {}", sums.join(" · "))));
    lines.extend(phases(timeline));
    for ask in open {
        let line = asks::line(ask, width().saturating_sub(9));
        lines.push(format!("  {} {line}", paint(WARN, "waits:")));
    }
    if let Some(output) = &info.output {
        lines.push(format!("  {}", paint(DIM, "output")));
        lines.extend(indented(&said(output)));
    }
    if let Some(error) = info.error.as_ref().filter(|_| info.status != RunStatus::Waiting) {
        let label = if info.status == RunStatus::Parked { "parked" } else { "error" };
        lines.push(format!("  {}", paint(BAD, label)));
        lines.extend(indented(error));
        lines.extend(differing(error, entries));
    }
    lines.extend(hint(place, info, open));
    lines
}

/// So many phases of an agent are told, and so many agents.
const MOST_PHASES: usize = 4;
const MOST_AGENTS: usize = 8;

/// Where each agent's time went, the longest first.
fn phases(timeline: &Timeline) -> Vec<String> {
    let mut agents: BTreeMap<&str, Vec<(&str, Duration)>> = BTreeMap::new();
    for ((agent, phase), spent) in &timeline.phases.spent {
        // Less than that is no time, and nobody asks how long an agent did nothing.
        if spent.as_millis() > 0 && phase != "idle" {
            agents.entry(agent).or_default().push((phase, *spent));
        }
    }
    let name = agents.keys().map(|name| columns_of(name)).max().unwrap_or(0).min(24);
    let mut lines = Vec::new();
    let mut rows: Vec<_> = agents.into_iter().collect();
    rows.sort_by_key(|(_, phases)| {
        Reverse(phases.iter().map(|(_, spent)| *spent).sum::<Duration>())
    });
    let more = rows.len().saturating_sub(MOST_AGENTS);
    for (agent, mut phases) in rows.into_iter().take(MOST_AGENTS) {
        phases.sort_by_key(|(_, spent)| Reverse(*spent));
        let told = phases.iter().take(MOST_PHASES);
        let told: Vec<_> =
            told.map(|(phase, spent)| format!("{phase} {}", length(*spent))).collect();
        let agent = fit(&clean_line(agent), name);
        let line = format!("    {agent:<name$}  {}", told.join(" · "));
        lines.push(paint(DIM, fit(&line, width())));
    }
    if more > 0 {
        lines.push(paint(DIM, format_args!("    and {}", plural(more, "more agent"))));
    }
    lines
}

fn indented(text: &str) -> Vec<String> {
    let text = clean_block(text);
    let text = text.trim_end();
    // What is no terminal has lines as they are.
    let is_terminal = std::io::stdout().is_terminal();
    let room = if is_terminal { width().saturating_sub(4) } else { usize::MAX };
    let lines = text.lines().flat_map(|line| folded(line, room));
    lines.map(|line| format!("    {line}")).collect()
}

/// A line that has room, as it is with its blanks; else broken between words.
fn folded(line: &str, room: usize) -> Vec<String> {
    if columns_of(line) <= room { vec![line.to_owned()] } else { wrap(line, room) }
}

/// What is on record where the run and its record differ: the error names the record.
fn differing(error: &str, entries: &[Entry]) -> Vec<String> {
    let number = error.split("(record ").nth(1).and_then(|rest| rest.split(' ').next());
    let Some(seq) = number.and_then(|number| number.parse::<u64>().ok()) else {
        return Vec::new();
    };
    let Some(entry) = entries.iter().find(|entry| entry.seq == seq) else { return Vec::new() };
    let key = entry.step.as_ref().map_or(String::new(), ToString::to_string);
    let mut lines =
        vec![format!("  {} {}", paint(DIM, format_args!("record {seq}")), clean_line(&key))];
    lines.extend(indented(&whole(&entry.data)));
    lines
}

/// So much of a record is shown.
const MOST_LINES: usize = 24;

fn whole(data: &Value) -> String {
    let text = format!("{data:#}");
    let lines: Vec<&str> = text.lines().collect();
    match lines.len() {
        0..=MOST_LINES => text,
        all => {
            let rest = all - MOST_LINES;
            format!("{}\n… {}", lines[..MOST_LINES].join("\n"), plural(rest, "more line"))
        }
    }
}

/// What can be done now.
fn hint(place: &Place, info: &RunInfo, open: &[AskInfo]) -> Vec<String> {
    let short = place.short(info.id);
    let text = match info.status {
        // Answers come too late for it.
        _ if !place.wanted(info).is_empty() => format!("end it with `tenure run --resume {short}`"),
        RunStatus::Waiting if !open.is_empty() => {
            let ask = &open[0].id;
            let then = match info.driven {
                true => String::new(),
                false => format!(",\n  then `tenure run --resume {short}`"),
            };
            format!("answer with `tenure answer {ask}`{then}")
        }
        RunStatus::Running | RunStatus::Waiting if !info.driven => {
            format!("go on with `tenure run --resume {short}`")
        }
        _ => return Vec::new(),
    };
    vec![paint(DIM, format_args!("  {text}"))]
}
