//! Runs, times and values in words.

use crate::terminal::style::{BAD, CALM, DIM, GOOD, WARN};
use crate::terminal::text::{clean_line, human, plural};
use crate::time::rfc3339;
use anstyle::Style;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use tenure_core::Outcome;
use tenure_core::engine::{RunInfo, RunStatus};
use tenure_store::Wish;

/// How long ago something was: `12s ago`, `3m ago`, `2h ago`, `5d ago`.
pub(super) fn ago(time: SystemTime, now: SystemTime) -> String {
    let Ok(since) = now.duration_since(time) else { return "just now".to_owned() };
    match since.as_secs() {
        0 => "just now".to_owned(),
        seconds @ 1..60 => format!("{seconds}s ago"),
        seconds @ 60..3600 => format!("{}m ago", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h ago", seconds / 3600),
        seconds => format!("{}d ago", seconds / 86_400),
    }
}

/// A moment for people: `2026-11-16 09:00:40 UTC`.
pub(super) fn moment(time: SystemTime) -> String {
    let text = rfc3339(time);
    let (day, rest) = text.split_at(10);
    format!("{day} {} UTC", &rest[1..9])
}

/// A time of any length: as short ones are told everywhere, and hours and days too.
pub(super) fn length(time: Duration) -> String {
    match time.as_secs() {
        0..3600 => human(time),
        seconds @ 3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// How long a run took, or has taken so far.
pub(super) fn took(info: &RunInfo, now: SystemTime) -> Duration {
    let until = match (info.ended, info.driven) {
        (Some(ended), _) => ended,
        (None, true) => now,
        // Nothing happens to it while nobody drives it.
        (None, false) => info.updated,
    };
    until.duration_since(info.started).unwrap_or_default()
}

/// Where a run stands, in a word or two.
pub(super) fn standing(info: &RunInfo) -> (Style, String) {
    match (info.status, info.outcome) {
        (RunStatus::Ended, Some(outcome)) => (style_of(outcome), outcome.to_string()),
        (RunStatus::Ended, None) => (DIM, "ended".to_owned()),
        // Its answer is there, and no process has gone on with it yet.
        (RunStatus::Waiting, _) if info.asks == 0 => (WARN, "answered".to_owned()),
        (RunStatus::Waiting, _) => (WARN, format!("waits: {}", plural(info.asks, "ask"))),
        (RunStatus::Parked, _) => (BAD, "parked".to_owned()),
        (RunStatus::Running, _) if info.driven => (CALM, "running".to_owned()),
        (RunStatus::Running, _) => (WARN, "interrupted".to_owned()),
        (other, _) => (DIM, other.to_string()),
    }
}

/// What becomes of a run when it is taken up again, if somebody wants its end.
pub(super) fn wanted(wishes: &[Wish]) -> Option<&'static str> {
    match wishes {
        [] => None,
        wishes if wishes.contains(&Wish::Kill) => Some("to be killed"),
        _ => Some("to be cancelled"),
    }
}

pub(super) fn style_of(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Ok => GOOD,
        Outcome::Denied | Outcome::Cancelled | Outcome::MaxSteps | Outcome::MaxTurns => WARN,
        _ => BAD,
    }
}

/// What a value says to a person: a text as it is, what an object has as its message or its output,
/// and JSON of everything else.
pub(super) fn said(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            // Of a workflow that begins by itself there is only where it is.
            let names = ["message", "output", "text", "path"];
            let spoken = names.iter().find_map(|name| fields.get(*name));
            match spoken {
                Some(Value::String(text)) => text.clone(),
                _ => value.to_string(),
            }
        }
        other => other.to_string(),
    }
}

/// The first line of what a value says that has anything in it, safe to print.
pub(super) fn first_line(value: &Value) -> String {
    let text = said(value);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    clean_line(line)
}

/// A size for people: `812 B`, `3.4 KiB`, `1.2 MiB`.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A time as JSON has it.
pub(super) fn stamp(time: Option<SystemTime>) -> Value {
    time.map_or(Value::Null, |time| Value::String(rfc3339(time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::UNIX_EPOCH;

    #[test]
    fn times_are_told_as_people_do() {
        let now = UNIX_EPOCH + Duration::from_secs(10 * 86_400);
        let before = |seconds| ago(now - Duration::from_secs(seconds), now);
        assert_eq!(before(0), "just now");
        assert_eq!(before(59), "59s ago");
        assert_eq!(before(3599), "59m ago");
        assert_eq!(before(7200), "2h ago");
        assert_eq!(before(9 * 86_400), "9d ago");
        assert_eq!(ago(now + Duration::from_secs(5), now), "just now", "clocks differ");
        assert_eq!(moment(UNIX_EPOCH), "1970-01-01 00:00:00 UTC");
        assert_eq!(length(Duration::from_secs(3 * 3600 + 240)), "3h 04m");
        assert_eq!(length(Duration::from_millis(58)), "58ms");
    }

    #[test]
    fn a_value_is_what_it_says() {
        assert_eq!(first_line(&json!("\n  hello\nworld")), "hello");
        assert_eq!(first_line(&json!({ "message": "buy milk", "n": 1 })), "buy milk");
        assert_eq!(first_line(&json!({ "n": 1 })), "{\"n\":1}");
        assert_eq!(first_line(&Value::Null), "");
        assert_eq!(first_line(&json!("a\u{1b}[2Jb")), "ab");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(812), "812 B");
        assert_eq!(size(3500), "3.4 KiB");
        assert_eq!(size(5 * 1024 * 1024), "5.0 MiB");
    }
}
