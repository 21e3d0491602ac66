//! What the speakers of a workflow say, on standard output as it comes.

use super::sink::{print_answer, print_text};
use super::style::{BOLD, paint};
use super::text::{clean_block, clean_line};
use serde_json::Value;
use std::io::IsTerminal as _;
use tenure_core::InstanceId;
use tenure_core::event::{Event, EventKind};

/// The event of something that was said.
pub(super) const MESSAGE: &str = "chat.message";

/// What one speaker said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// Who, if that is worth a line.
    speaker: Option<String>,
    text: String,
}

/// What is said in the chat that was asked for. What is said in those that it begins itself is
/// progress, and not told here.
#[derive(Default)]
pub(super) struct Speech {
    /// Who announces what is said.
    host: Option<InstanceId>,
    /// What was said while the screen had to be quiet.
    held: Vec<Said>,
    /// What was said last.
    last: Option<Said>,
    has_begun: bool,
}

impl Speech {
    /// What the event says, if people are to see it here. What the person said is not repeated.
    pub(super) fn take(&mut self, event: &Event) -> Option<Said> {
        let EventKind::Announced { name: MESSAGE, data } = &event.kind else { return None };
        if *self.host.get_or_insert(event.instance) != event.instance {
            return None;
        }
        let said = said(data)?;
        self.last = Some(said.clone());
        Some(said)
    }

    /// Keeps it until the screen need not be quiet any more.
    pub(super) fn hold(&mut self, said: Said) {
        self.held.push(said);
    }

    /// What was kept.
    pub(super) fn release(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.held)
    }

    /// Whether the person has these words before them, with or without who said them.
    pub(super) fn was_last(&self, text: &str) -> bool {
        self.last.as_ref().is_some_and(|last| {
            let words = match &last.speaker {
                Some(speaker) => text.strip_prefix(&format!("{speaker}: ")).unwrap_or(text),
                None => text,
            };
            [text, words].iter().any(|text| text.trim() == last.text.trim())
        })
    }

    /// Prints it: as it is into files and pipes, and without what could steer it on a terminal.
    pub(super) fn print(&mut self, said: &Said) {
        let is_seen = std::io::stdout().is_terminal();
        let text = if is_seen { clean_block(&said.text) } else { said.text.clone() };
        let gap = if self.has_begun || is_seen { "\n" } else { "" };
        self.has_begun = true;
        let head = match &said.speaker {
            Some(speaker) => format!("{gap}{}\n", paint(BOLD, format_args!("{speaker}:"))),
            None => gap.to_owned(),
        };
        // A reader that went away does not stop a run.
        if !head.is_empty() {
            drop(print_text(&head));
        }
        drop(print_answer(&text));
    }
}

/// What a message says, unless it is hidden, empty or the person's own.
fn said(data: &Value) -> Option<Said> {
    let text = data["text"].as_str().filter(|text| !text.trim().is_empty())?;
    if data["hidden"].as_bool() == Some(true) {
        return None;
    }
    let speaker = match data["speaker"].as_str()? {
        "user" => return None,
        "system" => None,
        agent => Some(clean_line(agent)),
    };
    Some(Said { speaker, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_said_last_is_known_with_and_without_its_speaker() {
        let said = Said { speaker: Some("writer".to_owned()), text: "a draft\n".to_owned() };
        let speech = Speech { last: Some(said), ..Speech::default() };
        assert!(speech.was_last("a draft") && speech.was_last("writer: a draft"));
        assert!(!speech.was_last("editor: a draft") && !speech.was_last("writer: another"));
        assert!(!Speech::default().was_last(""));
    }

    #[test]
    fn only_what_people_may_see_and_have_not_said_themselves_is_told() {
        let message = |speaker: &str, text: &str, hidden: bool| {
            said(&json!({ "speaker": speaker, "text": text, "turn": 1, "hidden": hidden }))
        };
        let told = |speaker: Option<&str>, text: &str| {
            Some(Said { speaker: speaker.map(str::to_owned), text: text.to_owned() })
        };
        assert_eq!(message("writer", "a draft", false), told(Some("writer"), "a draft"));
        assert_eq!(message("system", "welcome", false), told(None, "welcome"));
        assert_eq!(message("writer", "a secret", true), None);
        assert_eq!(message("user", "hello", false), None);
        assert_eq!(message("writer", " \n", false), None);
        assert_eq!(
            message("wri\x1b[2Jter", "x", false),
            told(Some(&clean_line("wri\x1b[2Jter")), "x")
        );
    }
}
