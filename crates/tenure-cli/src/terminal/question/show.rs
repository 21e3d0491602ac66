//! A question as it is put: who asks, in whose words, and the exact action.
//!
//! Whatever comes from a model, a hook or a tool is marked as theirs and cannot be taken for words of
//! the program: it stands behind a name and a colon, or behind a bar. What it would do to a terminal
//! is written out.

use super::super::style::{BOLD, DIM, WARN, paint};
use super::super::text::{clean_line, columns_of, exact, fit, human, plural};
use serde_json::Value;
use std::time::Duration;
use tenure_core::ask::PendingAsk;

/// How much of a value is shown before somebody wants to see all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// What fits a screen.
    Brief,
    /// All of it.
    Whole,
}

/// The most lines of one value, and of the whole action.
const MOST_OF_VALUE: usize = 12;
const MOST_OF_ACTION: usize = 40;
/// Where there is no terminal to measure.
pub(super) const USUAL: usize = 80;

/// Lines for people, and whether something was left out of them.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) lines: Vec<String>,
    pub(super) is_cut: bool,
}

/// The question in the form that fits a screen, for a display that cannot be talked to.
pub(crate) fn question(ask: &PendingAsk) -> String {
    put(ask, (1, 1), ask.ask.expires_after, Words::Unseen, USUAL).lines.join("\n")
}

/// Whether the person has the words of a question before them already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// They were the last thing that was shown.
    Seen,
    /// They are to be shown.
    Unseen,
}

/// The hook that asks a person for what they say in their own turn.
const ASKS_PERSON: &str = "ask_person";

/// Whether it is the person's own turn in a chat, and not a question of somebody.
pub(super) fn is_turn(ask: &PendingAsk) -> bool {
    ask.hook.as_deref() == Some(ASKS_PERSON) && ask.ask.schema.is_none()
}

/// The question, the so-and-so-manieth of those that wait, with the time that is left for it.
pub(super) fn put(
    ask: &PendingAsk,
    (place, waiting): (usize, usize),
    left: Option<Duration>,
    words: Words,
    columns: usize,
) -> Shown {
    let what = if ask.ask.is_approval() { "asks for approval" } else { "asks you" };
    let agent = fit(&clean_line(&ask.agent), columns.saturating_sub(what.len() + 3));
    let head = match is_turn(ask) {
        true => format!("{} {}", paint(WARN, "?"), paint(BOLD, "it is your turn")),
        false => format!("{} {} {what}", paint(WARN, "?"), paint(BOLD, agent)),
    };
    let mut shown = Shown { lines: vec![String::new(), head], is_cut: false };
    if waiting > 1 {
        let note = paint(DIM, format_args!("  ({place} of {waiting} waiting)"));
        let head = &mut shown.lines[1];
        if columns_of(head) + columns_of(&note) <= columns {
            head.push_str(&note);
        } else {
            shown.lines.push(note);
        }
    }
    if words == Words::Unseen {
        shown.words(ask, columns);
    }
    if let Some(arguments) = ask.ask.form.as_ref().and_then(|form| form.get("arguments")) {
        shown.lines.push("  it shows:".to_owned());
        let arguments = fields(arguments, Extent::Brief, columns.saturating_sub(4));
        shown.is_cut |= arguments.is_cut;
        shown.lines.extend(arguments.lines.into_iter().map(|line| format!("    {line}")));
    }
    if let Some(action) = &ask.ask.action {
        shown.lines.push(match &ask.tool {
            Some(tool) => format!("  the call of {}:", paint(BOLD, exact(tool))),
            None => "  the action:".to_owned(),
        });
        let action = fields(action, Extent::Brief, columns.saturating_sub(4));
        shown.is_cut |= action.is_cut;
        shown.lines.extend(action.lines.into_iter().map(|line| format!("    {line}")));
    }
    if let Some(left) = left {
        let note = format!("  denied if nobody answers in {}", whole_seconds(left));
        shown.lines.push(paint(DIM, note));
    }
    shown
}

/// A time that is left, to the second.
pub(super) fn whole_seconds(left: Duration) -> String {
    let seconds = left.as_secs_f64().round() as u64;
    if seconds < 60 { format!("{seconds}s") } else { human(Duration::from_secs(seconds)) }
}

impl Shown {
    /// What is asked, marked as the words of whoever asks.
    fn words(&mut self, ask: &PendingAsk, columns: usize) {
        let who = match (&ask.hook, &ask.tool) {
            (Some(hook), _) => format!("the hook {}", exact(hook)),
            (None, Some(tool)) => format!("the tool {}", exact(tool)),
            (None, None) => "it".to_owned(),
        };
        let prompt = ask.ask.prompt.trim_end();
        let says = match is_turn(ask) {
            true => "the last one said".to_owned(),
            false => format!("{who} says"),
        };
        let line = format!("{says}: {}", exact(prompt));
        if !prompt.contains('\n') && line.chars().count() + 2 <= columns {
            self.lines.push(format!("  {line}"));
            return;
        }
        self.lines.push(format!("  {says}:"));
        let block = block(prompt, Extent::Brief, columns.saturating_sub(4));
        self.is_cut |= block.is_cut;
        self.lines.extend(block.lines.into_iter().map(|line| format!("    {line}")));
    }
}

/// All that was left out of a question: its words and its action, whole.
pub(super) fn whole(ask: &PendingAsk, columns: usize) -> Vec<String> {
    let mut lines =
        block(ask.ask.prompt.trim_end(), Extent::Whole, columns.saturating_sub(4)).lines;
    let shown = ask.ask.form.as_ref().and_then(|form| form.get("arguments"));
    for action in [shown, ask.ask.action.as_ref()].into_iter().flatten() {
        lines.extend(fields(action, Extent::Whole, columns.saturating_sub(4)).lines);
    }
    lines.into_iter().map(|line| format!("    {line}")).collect()
}

/// An action, a line for each of its arguments; more for those that need more.
pub(super) fn fields(action: &Value, extent: Extent, columns: usize) -> Shown {
    let mut shown = Shown::default();
    match action {
        Value::Object(fields) if fields.is_empty() => shown.lines.push("(no arguments)".to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                shown.field(&name_of(name), value, extent, columns, 0);
            }
        }
        other => shown.value("", other, extent, columns, 0),
    }
    if extent == Extent::Brief && shown.lines.len() > MOST_OF_ACTION {
        let rest = shown.lines.len() - (MOST_OF_ACTION - 1);
        shown.lines.truncate(MOST_OF_ACTION - 1);
        shown.lines.push(left_out(&plural(rest, "more line")));
        shown.is_cut = true;
    }
    shown
}

/// A name as it is shown: quoted where it could be taken for something else.
fn name_of(name: &str) -> String {
    let is_plain =
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    if is_plain { name.to_owned() } else { exact(&Value::from(name).to_string()) }
}

/// No action is shown as a tree that is deeper; what is below it is shown as JSON.
const DEEPEST: usize = 3;

impl Shown {
    fn field(&mut self, name: &str, value: &Value, extent: Extent, columns: usize, depth: usize) {
        let indent = "  ".repeat(depth);
        match value {
            Value::Object(fields) if !fields.is_empty() && depth < DEEPEST => {
                self.lines.push(format!("{indent}{}:", paint(BOLD, name)));
                for (name, value) in fields {
                    self.field(&name_of(name), value, extent, columns, depth + 1);
                }
            }
            value => self.value(name, value, extent, columns, depth),
        }
    }

    fn value(&mut self, name: &str, value: &Value, extent: Extent, columns: usize, depth: usize) {
        let indent = "  ".repeat(depth);
        let head = if name.is_empty() { String::new() } else { format!("{}: ", paint(BOLD, name)) };
        let head_width = if name.is_empty() { 0 } else { name.chars().count() + 2 };
        let room = columns.saturating_sub(indent.len() + head_width).max(1);
        let text = match value {
            Value::String(text) if is_verbatim(text) => text.clone(),
            Value::Object(_) | Value::Array(_) => {
                let line = value.to_string();
                let is_short = line.chars().count() <= room;
                if is_short { line } else { format!("{value:#}") }
            }
            other => other.to_string(),
        };
        let line = exact(&text);
        if !text.contains('\n') && line.chars().count() <= room {
            self.lines.push(format!("{indent}{head}{line}"));
            return;
        }
        let size = match value {
            Value::String(text) => {
                let characters = plural(text.chars().count(), "character");
                format!("({}, {characters})", plural(text.lines().count(), "line"))
            }
            _ => String::new(),
        };
        if !name.is_empty() || !size.is_empty() {
            self.lines.push(format!("{indent}{head}{}", paint(DIM, size)).trim_end().to_owned());
        }
        let block = block(&text, extent, columns.saturating_sub(indent.len() + 2));
        self.is_cut |= block.is_cut;
        self.lines.extend(block.lines.into_iter().map(|line| format!("{indent}  {line}")));
    }
}

/// Whether a text is shown as it is, with nothing around it. What could be taken for something else,
/// such as a number, or what has an end that nobody sees, is shown as JSON.
fn is_verbatim(text: &str) -> bool {
    !text.is_empty()
        && (text.contains('\n') || text.trim() == text)
        && serde_json::from_str::<Value>(text).is_err()
}

/// Foreign text with a bar before each of its lines, folded to fit.
pub(super) fn block(text: &str, extent: Extent, columns: usize) -> Shown {
    let bar = paint(DIM, "│");
    let room = columns.saturating_sub(2).max(8);
    let mut shown = Shown::default();
    let mut rest = 0;
    let text = text.strip_suffix('\n').unwrap_or(text);
    for line in text.split('\n') {
        // What goes on in the next line of the screen is marked, so that nobody takes it for a line
        // of the text.
        let line = line.split('\t').map(exact).collect::<Vec<_>>().join("    ");
        let line: Vec<char> = line.chars().collect();
        let mut pieces: Vec<String> =
            line.chunks(room).map(|piece| piece.iter().collect()).collect();
        if pieces.is_empty() {
            pieces.push(String::new());
        }
        for (at, piece) in pieces.into_iter().enumerate() {
            if extent == Extent::Brief && shown.lines.len() >= MOST_OF_VALUE {
                rest += 1;
                continue;
            }
            let bar = if at == 0 { bar.clone() } else { paint(DIM, "┊") };
            shown.lines.push(format!("{bar} {piece}").trim_end().to_owned());
        }
    }
    if rest > 0 {
        shown.is_cut = true;
        shown.lines.push(left_out(&plural(rest, "more line")));
    }
    shown
}

fn left_out(what: &str) -> String {
    paint(WARN, format_args!("… {what}; v shows all of it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tenure_core::ask::Ask;

    fn plain(lines: &[String]) -> String {
        anstream::adapter::strip_str(&lines.join("\n")).to_string()
    }

    fn approval(action: Value) -> PendingAsk {
        let ask = Ask::approval("May I?", action);
        let mut pending = PendingAsk::new("clerk", ask);
        pending.hook = Some("hooks.py:approve".into());
        pending.tool = Some("shell".into());
        pending
    }

    fn shown(ask: &PendingAsk, columns: usize) -> String {
        plain(&put(ask, (1, 3), ask.ask.expires_after, Words::Unseen, columns).lines)
    }

    #[test]
    fn every_argument_has_its_line_and_commands_are_verbatim() {
        let action = json!({
            "command": "grep -c \"x y\" 'a.txt' | tee \\tmp",
            "script": "#!/bin/sh\nset -e\n\trm -rf build\n",
            "count": 3,
            "text": "3",
            "empty": "",
            "trailing": "x ",
            "dry run": false,
            "env": { "A": "1", "B": { "C": { "D": { "E": [] } } } },
            "paths": ["a", "b"],
        });
        let mut ask = approval(action);
        ask.ask.expires_after = Some(Duration::from_secs(90));
        insta::assert_snapshot!(shown(&ask, 80));
    }

    #[test]
    fn what_is_hidden_is_written_out_and_cannot_pass_for_the_program() {
        let action = json!({
            "command": "true #\u{1b}[2K\u{202e}rm -rf /",
            "file": "fine\n[a]pprove: yes\nthe call of ls:\n",
            "a\n? clerk asks for approval": 1,
        });
        let mut ask = approval(action);
        ask.ask.prompt = "Nothing to see\n  the call of ls:\n    path: /tmp\u{1b}[8m".into();
        insta::assert_snapshot!(shown(&ask, 80));
    }

    #[test]
    fn what_is_long_is_cut_and_says_so_and_can_be_seen_whole() {
        let script = (1..=30).map(|at| format!("line {at}\n")).collect::<String>();
        let ask = approval(json!({ "script": script, "word": "x".repeat(200) }));
        let brief = put(&ask, (1, 1), None, Words::Unseen, 60);
        assert!(brief.is_cut);
        insta::assert_snapshot!(plain(&brief.lines));
        let all = plain(&whole(&ask, 60));
        assert!(all.contains("line 30") && !all.contains('…'), "{all}");
        assert!(all.lines().all(|line| line.chars().count() <= 60), "{all}");
        let many: serde_json::Map<_, _> =
            (0..100).map(|at| (format!("f{at}"), Value::from(at))).collect();
        let brief = put(&approval(many.into()), (1, 1), None, Words::Unseen, 60);
        assert!(brief.is_cut && brief.lines.len() < 50, "{}", plain(&brief.lines));
    }

    #[test]
    fn a_question_fits_a_narrow_terminal() {
        let mut ask = approval(json!({ "command": "a very long command ".repeat(9).trim() }));
        ask.ask.prompt = "May I do this now?".to_owned();
        let text = shown(&ask, 40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.contains("hooks.py:approve says:\n"), "{text}");
    }

    #[test]
    fn a_question_without_a_tool_says_who_asks() {
        let ask = PendingAsk::new("lead", Ask::input("Which city?"));
        insta::assert_snapshot!(shown(&ask, 80));
    }
}
