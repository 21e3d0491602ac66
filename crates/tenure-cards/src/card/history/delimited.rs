//! Text with lines `---USER` and `---ASSISTANT` before each message.

use super::{Parsed, Problem};
use crate::source::{Source, Span};
use tenure_core::message::Message;

enum Speaker {
    User,
    Assistant,
}

pub(super) fn parse(source: &Source) -> Parsed {
    let text = source.text();
    let mut messages = Vec::new();
    let mut said = String::new();
    let mut speaker = Speaker::User;
    let mut flush = |speaker: &Speaker, said: &mut String| {
        let text = std::mem::take(said);
        let text = text.trim();
        if !text.is_empty() {
            messages.push(match speaker {
                Speaker::User => Message::user(text),
                Speaker::Assistant => Message::assistant(text),
            });
        }
    };
    let mut at = 0;
    for full in text.split_inclusive('\n') {
        let line = full.trim_end().trim_start_matches('\u{feff}');
        match line {
            "---USER" | "---ASSISTANT" => {
                flush(&speaker, &mut said);
                speaker = if line == "---USER" { Speaker::User } else { Speaker::Assistant };
            }
            "---RESOURCE" => {
                return Err(Problem::new(
                    Span::new(at, at + full.trim_end().len()),
                    "`---RESOURCE` cannot be taken into a conversation",
                    "put the text of the resource under `---USER`",
                ));
            }
            _ => {
                said.push_str(line);
                said.push('\n');
            }
        }
        at += full.len();
    }
    flush(&speaker, &mut said);
    if messages.is_empty() {
        let help = "write `---USER` and below it what was said";
        return Err(Problem::new(Span::at(0), "the history is empty", help));
    }
    Ok(messages)
}
