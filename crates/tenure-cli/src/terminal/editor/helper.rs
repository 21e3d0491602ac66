//! What helps while a line is typed: completion, several lines, keys.

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Event, EventContext, EventHandler, KeyCode, KeyEvent,
    Modifiers, RepeatCount, Result,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What can be completed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// The commands with their slash, and what may follow each.
    pub(crate) commands: Vec<(String, Vec<String>)>,
    /// The names of the agents.
    pub(crate) agents: Vec<String>,
}

impl Words {
    /// Where the word at the end of `line` begins, and what it could become.
    fn complete(&self, line: &str) -> (usize, Vec<String>) {
        if let Some(name) = line.strip_prefix('@') {
            let found = starting(self.agents.iter(), name);
            return (1, found.map(|name| format!("{name} ")).collect());
        }
        if !line.starts_with('/') {
            return (0, Vec::new());
        }
        match line.split_once(' ') {
            None => {
                let named = self.commands.iter().filter(|(name, _)| name.starts_with(line));
                let behind = |words: &[String]| if words.is_empty() { "" } else { " " };
                (0, named.map(|(name, words)| format!("{name}{}", behind(words))).collect())
            }
            Some((command, rest)) if !rest.contains(' ') => {
                let words = self.commands.iter().find(|(name, _)| name == command);
                let words = words.into_iter().flat_map(|(_, words)| words);
                (line.len() - rest.len(), starting(words, rest).cloned().collect())
            }
            Some(_) => (line.len(), Vec::new()),
        }
    }
}

fn starting<'a>(
    words: impl Iterator<Item = &'a String>,
    with: &str,
) -> impl Iterator<Item = &'a String> {
    words.filter(move |word| word.starts_with(with))
}

/// Whether a fence of code has been opened and not closed.
fn is_open(text: &str) -> bool {
    text.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
}

pub(super) struct Helper {
    words: Arc<Mutex<Words>>,
}

impl Helper {
    pub(super) fn new(words: Arc<Mutex<Words>>) -> Self {
        Self { words }
    }
}

impl rustyline::Helper for Helper {}
impl Highlighter for Helper {}

impl Hinter for Helper {
    type Hint = String;
}

impl Completer for Helper {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, found) = words.complete(line.get(..pos).unwrap_or(line));
        let pair = |word: String| Pair { display: word.trim_end().to_owned(), replacement: word };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Validator for Helper {
    fn validate(&self, cx: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        Ok(match is_open(cx.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

/// Alt-Enter and Ctrl-J break the line; Enter does behind a backslash, which goes. `empty` tells
/// whether there was anything on the line when Ctrl-C was pressed.
pub(super) fn bind_keys(
    editor: &mut rustyline::Editor<Helper, rustyline::history::FileHistory>,
    empty: &Arc<AtomicBool>,
) {
    for key in [
        KeyEvent(KeyCode::Enter, Modifiers::ALT),
        KeyEvent(KeyCode::Char('m'), Modifiers::CTRL_ALT),
        KeyEvent(KeyCode::Char('j'), Modifiers::CTRL),
    ] {
        editor.bind_sequence(key, EventHandler::Simple(Cmd::Newline));
    }
    editor.bind_sequence(
        KeyEvent(KeyCode::Enter, Modifiers::NONE),
        EventHandler::Conditional(Box::new(BreakBehindBackslash)),
    );
    editor.bind_sequence(
        KeyEvent(KeyCode::Char('c'), Modifiers::CTRL),
        EventHandler::Conditional(Box::new(Interrupt(empty.clone()))),
    );
}

/// A line break behind a backslash, with a mark that nobody sees: one that was pasted has none, and
/// its backslash is part of the message.
const BROKEN: &str = "\u{2060}\n";

/// The message, without the backslashes that broke its lines.
pub(super) fn unbroken(line: &str) -> String {
    line.replace(&format!("\\{BROKEN}"), "\n").replace(BROKEN, "\n")
}

struct BreakBehindBackslash;

impl ConditionalEventHandler for BreakBehindBackslash {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext<'_>) -> Option<Cmd> {
        let is_behind = cx.line().ends_with('\\') && cx.pos() == cx.line().len();
        is_behind.then(|| Cmd::Insert(1, BROKEN.to_owned()))
    }
}

struct Interrupt(Arc<AtomicBool>);

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(cx.line().is_empty(), Ordering::Release);
        Some(Cmd::Interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Words {
            commands: vec![
                ("/agent".to_owned(), owned(&["clerk", "cook"])),
                ("/agents".to_owned(), Vec::new()),
                ("/exit".to_owned(), Vec::new()),
            ],
            agents: owned(&["clerk", "cook"]),
        }
    }

    #[test]
    fn commands_their_words_and_agents_are_completed() {
        for (line, start, expected) in [
            ("/ag", 0, &["/agent ", "/agents"][..]),
            ("/x", 0, &[]),
            ("/agent c", 7, &["clerk", "cook"]),
            ("/agent cl", 7, &["clerk"]),
            ("/agent clerk x", 14, &[]),
            ("@co", 1, &["cook "]),
            ("a word", 0, &[]),
            ("", 0, &[]),
        ] {
            let (from, found) = words().complete(line);
            assert_eq!(
                (from, found),
                (start, expected.iter().map(|it| (*it).to_owned()).collect()),
                "{line}"
            );
        }
    }

    #[test]
    fn a_backslash_that_broke_a_line_goes_and_one_that_was_pasted_stays() {
        assert_eq!(unbroken("one\\\u{2060}\ntwo"), "one\ntwo");
        assert_eq!(unbroken("run \\\n  this"), "run \\\n  this");
    }

    #[test]
    fn a_fence_is_open_until_it_is_closed() {
        for (text, expected) in [
            ("", false),
            ("look:\n```rust\nfn x() {}", true),
            ("look:\n```rust\nfn x() {}\n```", false),
            ("in `one` line ``` of text", false),
            ("  ```", true),
        ] {
            assert_eq!(is_open(text), expected, "{text:?}");
        }
    }
}
