//! `tenure asks`.

use super::super::recorded::asker;
use super::place::Place;
use super::words::{ago, length, stamp, wanted};
use crate::args::Asks;
use crate::exit::Exit;
use crate::terminal::question::Allowed;
use crate::terminal::size::width;
use crate::terminal::style::{BOLD, DIM, WARN, paint};
use crate::terminal::text::{clean_block, clean_line, columns_of, exact, fit, wrap};
use crate::terminal::{print_json, print_plain, sink};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::SystemTime;
use tenure_core::ask::Answer;
use tenure_store::{AskInfo, AskQuery, AskStatus};

pub(crate) fn run(args: &Asks) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let query = if args.all { AskQuery::all() } else { AskQuery::open() };
    let asks = place.store.asks(&query)?;
    if args.json {
        asks.iter().for_each(|ask| print_json(to_json(ask)));
        return Ok(Exit::Ok);
    }
    if asks.is_empty() {
        print_plain(if args.all { "nothing was asked yet" } else { "nothing waits for an answer" });
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now();
    let shown: Vec<String> = asks.iter().map(|ask| block(&place, ask, now)).collect();
    sink::print_text(&shown.join("\n\n"))?;
    if asks.iter().any(|ask| ask.status == AskStatus::Open) {
        print_plain(&paint(DIM, "\nanswer with `tenure answer ID`"));
    }
    Ok(Exit::Ok)
}

/// A question in one line of at most `room` columns.
pub(super) fn line(ask: &AskInfo, room: usize) -> String {
    let prompt = clean_line(ask.prompt.lines().next().unwrap_or_default());
    let asked = format!("{} asks: {prompt}", asker(ask));
    let asked = fit(&asked, room.saturating_sub(columns_of(&ask.id) + 2));
    format!("{}  {asked}", paint(BOLD, &ask.id))
}

/// A question for people: who asks what, in which run, and what became of it.
fn block(place: &Place, ask: &AskInfo, now: SystemTime) -> String {
    let width = width();
    let run = format!(
        "{} · {} {}",
        ago(ask.created, now),
        clean_line(&ask.run_name),
        place.short(ask.run)
    );
    let mut lines = vec![format!("{}  {}", paint(BOLD, &ask.id), paint(DIM, run))];
    let who = asker(ask);
    let what = if ask.is_approval() { "asks for approval" } else { "asks" };
    lines.extend(question(&format!("{who} {what}: {}", ask.prompt.trim()), width));
    if let Some(action) = &ask.action {
        let tool = ask.tool.as_deref().map_or(String::new(), |tool| format!("{} ", exact(tool)));
        lines.push(fit(&format!("  {tool}{}", exact(&action.to_string())), width));
    }
    if let Some(form) = &ask.form {
        lines.push(fit(&format!("  form {}", exact(&form.to_string())), width));
    }
    if ask.status == AskStatus::Open && ask.is_approval() {
        lines.push(format!("  decide: {}", Allowed::of(ask.form.as_ref()).names()));
    }
    lines.push(format!("  {}", state(ask, now)));
    if ask.status == AskStatus::Open
        && let Ok(info) = place.info(ask.run)
        && let Some(wanted) = wanted(&place.wanted(&info))
    {
        let how = format!("  its run is {wanted}: `tenure run --resume {}`", place.short(ask.run));
        lines.push(paint(WARN, how));
    }
    lines.join("\n")
}

/// So many lines of a question are shown.
const MOST_LINES: usize = 6;

/// A question as it was put, in lines that are indented.
fn question(text: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(4);
    let mut lines = wrap(&clean_block(text), room);
    lines.retain(|line| !line.is_empty());
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        if let Some(last) = lines.last_mut() {
            *last = format!("{} …", fit(last, room.saturating_sub(2)));
        }
    }
    // The first one is further out, so that one sees where a question begins.
    let indent = |(at, line): (usize, String)| match at {
        0 => format!("  {line}"),
        _ => format!("    {line}"),
    };
    lines.into_iter().enumerate().map(indent).collect()
}

/// What became of a question, or how long it stands.
fn state(ask: &AskInfo, now: SystemTime) -> String {
    match (ask.status, ask.expires) {
        (AskStatus::Open, Some(expires)) => match expires.duration_since(now) {
            Ok(left) => paint(WARN, format_args!("waits; counts as rejected in {}", length(left))),
            Err(_) => paint(WARN, "its time is over: it counts as rejected"),
        },
        (AskStatus::Open, None) => paint(WARN, "waits"),
        _ => paint(DIM, decided(ask, &ask.decided.map_or(String::new(), |at| ago(at, now)))),
    }
}

/// What was decided, by whom, and when that was.
pub(super) fn decided(ask: &AskInfo, when: &str) -> String {
    let when = if when.is_empty() { String::new() } else { format!(", {when}") };
    let by = ask.by.as_deref().map(|by| format!(" by {}", clean_line(by))).unwrap_or_default();
    let what = match (ask.status, &ask.answer) {
        (AskStatus::Expired, _) => return format!("rejected, since nobody answered in time{when}"),
        (AskStatus::Cancelled, _) => return format!("taken back{when}"),
        (_, Some(answer)) => in_words(answer),
        (_, None) => "decided".to_owned(),
    };
    format!("{what}{by}{when}")
}

/// An answer in words.
pub(super) fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Approve => "approved".to_owned(),
        Answer::Edit(value) => format!("edited to {}", clean_line(&value.to_string())),
        Answer::Reject(why) if why.is_empty() => "rejected".to_owned(),
        Answer::Reject(why) => format!("rejected (\"{}\")", clean_line(why)),
        Answer::Respond(text) => format!("answered (\"{}\")", clean_line(text)),
    }
}

/// A question for programs.
pub(super) fn to_json(ask: &AskInfo) -> Value {
    json!({
        "id": ask.id,
        "run": ask.run,
        "run_name": ask.run_name,
        "step": ask.step,
        "agent": ask.agent,
        "hook": ask.hook,
        "tool": ask.tool,
        "call_id": ask.call_id,
        "prompt": ask.prompt,
        "approval": ask.is_approval(),
        "action": ask.action,
        "action_hash": ask.action_hash,
        "schema": ask.schema,
        "form": ask.form,
        "created": stamp(Some(ask.created)),
        "expires": stamp(ask.expires),
        "status": ask.status,
        "answer": ask.answer,
        "by": ask.by,
        "decided": stamp(ask.decided),
    })
}
