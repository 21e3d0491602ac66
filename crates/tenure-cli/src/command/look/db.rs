//! `tenure db`.

use super::place::Place;
use super::words::size;
use crate::args::{Backup, Compact, Db, DbAction, RotateKey, Verify};
use crate::exit::Exit;
use crate::terminal::size::columns;
use crate::terminal::style::{BAD, DIM, GOOD, paint};
use crate::terminal::text::{clean_line, count, for_shell, human, plural, wrap};
use crate::terminal::{print_json, print_plain, sink};
use anstyle::Style;
use anyhow::Result;
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tenure_store::{Authenticity, Compaction};

pub(crate) fn run(args: &Db) -> Result<Exit> {
    match &args.action {
        DbAction::Verify(args) => verify(args),
        DbAction::Backup(args) => backup(args),
        DbAction::Compact(args) => compact(args),
        DbAction::RotateKey(args) => rotate_key(args),
    }
}

fn verify(args: &Verify) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let (verified, took) = working("reading", args.json, || place.store.verify());
    let verified = verified?;
    let exit = if verified.is_whole() { Exit::Ok } else { Exit::Failed };
    if args.json {
        let mut report = serde_json::to_value(&verified)?;
        report["whole"] = Value::from(verified.is_whole());
        report["took_ms"] = millis(took);
        print_json(report);
        return Ok(exit);
    }
    let read = format!(
        "{} and {} in {}",
        many(verified.runs, "run"),
        many(verified.events, "record"),
        human(took)
    );
    if verified.is_whole() {
        let how = match verified.authenticated {
            true => "nothing is damaged",
            false => "nothing is damaged; not authenticated, so anybody may have written it",
        };
        say(GOOD, "whole:", &format!("{} · {read}, {how}", place.file()))?;
        return Ok(exit);
    }
    let faults = verified.faults.len();
    for fault in &verified.faults {
        say(BAD, "damaged:", &clean_line(&fault.to_string()))?;
    }
    let faults = plural(faults, "fault");
    let rest = format!(
        "in {}: {read}. What is not listed is as it was written; put a backup in its place, or export \
         the runs that are whole",
        place.file()
    );
    print_plain(&labelled(BAD, &faults, &rest));
    Ok(exit)
}

fn backup(args: &Backup) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let (bytes, took) = working("copying", args.json, || place.store.backup(&args.to));
    let bytes = bytes?;
    if args.json {
        print_json(json!({
            "from": place.store.path(), "to": args.to, "bytes": bytes, "took_ms": millis(took),
            "authenticated": is_authenticated(&place),
        }));
        return Ok(Exit::Ok);
    }
    let to = for_shell(&args.to);
    say(GOOD, "written:", &format!("{to} · {} in {}", size(bytes), human(took)))?;
    Ok(Exit::Ok)
}

fn rotate_key(args: &RotateKey) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let (rotated, took) = working("sealing", args.json, || place.store.rotate_key());
    let verified = rotated?.verify()?;
    if args.json {
        let (file, records) = (place.file(), verified.events);
        print_json(json!({ "file": file, "records": records, "took_ms": millis(took) }));
        return Ok(Exit::Ok);
    }
    let records = many(verified.events, "record");
    let took = human(took);
    let file = place.file();
    say(GOOD, "sealed:", &format!("{file} · {records} with a new key in {took}"))?;
    let note = "backups made before have the old key: they are yours again with --adopt-store";
    print_plain(&paint(DIM, note));
    Ok(Exit::Ok)
}

fn compact(args: &Compact) -> Result<Exit> {
    let place = Place::open_own(&args.of)?;
    let mut what = Compaction::new();
    (what.older_than, what.keep_last) = (args.older_than, args.keep);
    let (compacted, took) = working("compacting", args.json, || place.store.compact(&what));
    let compacted = compacted?;
    if args.json {
        let mut report = serde_json::to_value(&compacted)?;
        report["file"] = Value::from(place.file());
        report["took_ms"] = millis(took);
        print_json(report);
        return Ok(Exit::Ok);
    }
    let (before, after) = (size(compacted.bytes_before), size(compacted.bytes_after));
    let gone = match compacted.runs {
        0 => "no run lost its records".to_owned(),
        runs => format!(
            "{} of {} deleted; what they were asked and what came of them stays",
            many(compacted.events, "record"),
            many(runs, "run")
        ),
    };
    say(GOOD, "compacted:", &format!("{} · {before} → {after} · {gone}", place.file()))?;
    if args.older_than.is_none() && args.keep.is_none() {
        print_plain(&paint(DIM, "say which runs may go with --older-than 30d or --keep 100"));
    }
    Ok(Exit::Ok)
}

/// Prints a text with its label in front.
fn say(style: Style, label: &str, text: &str) -> Result<()> {
    Ok(sink::print_text(&labelled(style, label, text))?)
}

/// A text with its label in front, in as many lines as a terminal takes, and in one elsewhere.
fn labelled(style: Style, label: &str, text: &str) -> String {
    let Some(columns) = columns() else { return format!("{} {text}", paint(style, label)) };
    let lines = wrap(&format!("{label} {text}"), columns.saturating_sub(2)).join("\n  ");
    match lines.strip_prefix(label) {
        Some(rest) => format!("{}{rest}", paint(style, label)),
        None => lines,
    }
}

fn is_authenticated(place: &Place) -> bool {
    place.store.authenticity() == Authenticity::Authenticated
}

fn many(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}s", count(number)),
    }
}

fn millis(took: Duration) -> Value {
    Value::from(took.as_secs_f64() * 1000.0)
}

/// How long something may take before it is said that it goes on.
const SOON: Duration = Duration::from_millis(700);

/// Does something that may take long, and says so meanwhile on a terminal. How long it took.
fn working<T>(what: &str, is_quiet: bool, work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    if is_quiet || !std::io::stderr().is_terminal() {
        return (work(), began.elapsed());
    }
    let (done, wait) = mpsc::channel::<()>();
    let result = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut is_shown = false;
            while let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(SOON) {
                is_shown = true;
                let so_far = crate::terminal::text::running(began.elapsed());
                sink::prompt(&format!("\r{}", paint(DIM, format_args!("{what} … {so_far} "))));
            }
            if is_shown {
                sink::prompt("\r\x1b[K");
            }
        });
        let result = work();
        drop(done);
        result
    });
    (result, began.elapsed())
}
