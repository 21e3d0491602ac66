//! A run as a document to read: what was said, called, asked and decided.

use super::asks;
use super::entry::Entry;
use super::item::{Ended, Item, What};
use super::spoken::{self, response};
use super::timeline::Timeline;
use super::words::{length, moment, said, standing, took};
use crate::terminal::text::{clean_block, clean_line, count, plural};
use serde_json::Value;
use std::collections::HashMap;
use std::time::SystemTime;
use tenure_core::engine::RunInfo;
use tenure_store::AskInfo;

/// The document.
pub(super) fn of(info: &RunInfo, entries: &[Entry], questions: &[AskInfo]) -> String {
    let timeline = Timeline::of(entries);
    let mut text = head(info, &timeline);
    if !info.input.is_null() {
        text.push_str("\n## What was asked\n\n");
        text.push_str(&quoted(&said(&info.input)));
    }
    text.push_str("\n## What happened\n");
    let by_seq: HashMap<u64, &Entry> = entries.iter().map(|entry| (entry.seq, entry)).collect();
    let asks: HashMap<&str, &AskInfo> = questions.iter().map(|ask| (&*ask.id, ask)).collect();
    let is_told = |item: &&Item| item.ended != Ended::Other("set aside".to_owned());
    for item in timeline.lines().filter(is_told) {
        let step = item.step.and_then(|seq| by_seq.get(&seq)).copied();
        if let Some(part) = part(item, step, &timeline, &asks) {
            text.push('\n');
            text.push_str(&part);
        }
    }
    if let Some(output) = &info.output {
        text.push_str("\n## What came of it\n\n");
        text.push_str(&quoted(&said(output)));
    }
    if let Some(error) = &info.error {
        text.push_str("\n## Why it did not end well\n\n");
        text.push_str(&quoted(error));
    }
    text
}

fn head(info: &RunInfo, timeline: &Timeline) -> String {
    let mut text = format!("# {} · run {}\n\n", inline(&info.name), info.id);
    let mut rows = vec![
        ("kind", clean_line(&info.kind)),
        ("status", standing(info).1),
        ("started", moment(info.started)),
        ("took", length(took(info, SystemTime::now()))),
        ("lives", info.lives.to_string()),
        ("steps", timeline.steps.to_string()),
    ];
    let usage = timeline.usage;
    if usage.calls > 0 {
        let calls = plural(usize::try_from(usage.calls).unwrap_or(usize::MAX), "model call");
        rows.push((
            "usage",
            format!("{calls}, {} tokens in, {} out", count(usage.input), count(usage.output)),
        ));
    }
    for (name, value) in [("thread", &info.thread), ("user", &info.user)] {
        if let Some(value) = value {
            rows.push((name, clean_line(value)));
        }
    }
    text.push_str("| | |\n|---|---|\n");
    for (name, value) in rows {
        text.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|")));
    }
    text
}

/// What a line of the timeline is in the document; nothing for what only shows how it works.
fn part(
    item: &Item,
    step: Option<&Entry>,
    timeline: &Timeline,
    asks: &HashMap<&str, &AskInfo>,
) -> Option<String> {
    let ended = match &item.ended {
        Ended::Other(word) => match &item.reason {
            Some(reason) => format!(" **{word}**: {}", inline(reason)),
            None => format!(" **{word}**"),
        },
        _ => String::new(),
    };
    Some(match item.what {
        What::Life => format!("*Life {}: {}.*\n", item.title, inline(&item.detail)),
        What::Run => {
            let title =
                if item.title.is_empty() { String::new() } else { format!(" {}", item.title) };
            format!("*The run{title}{ended}*\n", ended = ended.replace("**", ""))
        }
        What::Turn => format!("### {}{ended}\n", inline(&item.title)),
        What::Model => {
            let said = step.and_then(|entry| response(&entry.data));
            let mut text = format!("**{}** says{ended}:\n\n", inline(&item.agent));
            match said {
                Some(said) if !said.content.text().is_empty() => {
                    text.push_str(&quoted(said.content.text()))
                }
                Some(said) if said.calls.is_empty() => text.push_str("> (nothing)\n"),
                _ => text = format!("**{}** calls{ended}:\n", inline(&item.agent)),
            }
            text
        }
        What::Tool => tool(item, step, timeline, &ended),
        What::Hook if is_of_interest(item) => {
            let detail = match item.detail.is_empty() {
                true => String::new(),
                false => format!(": {}", inline(&item.detail)),
            };
            format!("- hook `{}`{detail}{ended}\n", inline(&item.title))
        }
        What::Ask => {
            let ask = item.ask.as_deref().and_then(|id| asks.get(id));
            let decided = ask.map_or(inline(&item.detail), |ask| match ask.answer {
                Some(_) => inline(&asks::decided(ask, &ask.decided.map_or(String::new(), moment))),
                None => "waits for an answer".to_owned(),
            });
            let prompt = ask.map_or(item.title.clone(), |ask| ask.prompt.clone());
            format!("**Asked**:\n\n{}\n**{decided}**\n", quoted(&prompt))
        }
        What::Step => format!("- step `{}` {}\n", inline(&item.title), inline(&item.detail)),
        What::Chat | What::Agent | What::Hook | What::Phase | What::Log | What::Event => {
            return None;
        }
    })
}

/// Most hooks have nothing to say.
fn is_of_interest(item: &Item) -> bool {
    !item.detail.is_empty() || matches!(item.ended, Ended::Other(_))
}

fn tool(item: &Item, step: Option<&Entry>, timeline: &Timeline, ended: &str) -> String {
    let mut text = format!("- tool `{}`{ended}\n", inline(&item.title));
    let key = step.and_then(|entry| entry.step.as_ref());
    let arguments = key.map_or("", |key| {
        let (_, call) = spoken::tool_and_call(&key.name);
        timeline.arguments.of(&key.path, call)
    });
    if !arguments.is_empty() {
        text.push_str(&fenced("json", arguments));
    }
    let came = step.and_then(|entry| entry.data.pointer("/value/content"));
    if let Some(came) = came {
        let came = match came {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.push_str(&fenced("text", &came));
    }
    text
}

/// A block that its own text cannot end.
fn fenced(label: &str, text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    let lines = clean_block(text.trim_end());
    let lines: Vec<String> = lines.lines().map(|line| format!("  {line}")).collect();
    format!("\n  {fence}{label}\n{}\n  {fence}\n", lines.join("\n"))
}

fn quoted(text: &str) -> String {
    let text = clean_block(text.trim_end());
    let lines: Vec<String> =
        text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

fn inline(text: &str) -> String {
    clean_line(text).replace('|', "\\|")
}
