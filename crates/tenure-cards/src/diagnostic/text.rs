//! Diagnostics for people, in the form of rustc's.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Padding, Renderer, Snippet};

use super::escape::{excerpt, printable};
use super::{Diagnostic, Report, Severity};

/// Whether text carries colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// With ANSI colours.
    Always,
    /// Plain text.
    Never,
}

/// The most characters of a line that are shown before the marked place, of it, and behind it.
const MOST_SHOWN: usize = 50;
/// Wide enough that the renderer never cuts a window itself.
const WIDTH: usize = 400;

impl Report {
    /// Every diagnostic with its excerpt and remedy, a blank line between them, ended by a line
    /// break; an empty report gives empty text. What comes from cards is escaped.
    pub fn render_text(&self, color: Color) -> String {
        self.render_text_within(color, usize::MAX)
    }

    /// The same with messages and remedies broken into lines of at most `columns` columns.
    pub fn render_text_within(&self, color: Color, columns: usize) -> String {
        let mut text = String::new();
        for diagnostic in self {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&diagnostic.rendered(color, columns));
        }
        text
    }
}

impl Diagnostic {
    /// This diagnostic alone, ended by a line break.
    pub fn render_text(&self, color: Color) -> String {
        self.rendered(color, usize::MAX)
    }

    fn rendered(&self, color: Color, columns: usize) -> String {
        let renderer = match color {
            Color::Always => Renderer::styled(),
            Color::Never => Renderer::plain(),
        };
        let renderer = renderer.term_width(WIDTH);
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let head = self.severity.as_str().len() + self.code.as_str().len() + 4;
        let message = broken(&printable(&self.message), columns.saturating_sub(head));
        let title = level.primary_title(message).id(self.code.as_str());
        let path = self.source.path().to_string_lossy();
        let path = printable(&path);
        let place = self.source.line_col(self.span.start as usize);
        // The number of the line and what sets it apart.
        let gutter = place.line.to_string().len() + 3;
        let window = Window::around(self, columns.saturating_sub(gutter));
        let mut group = Group::with_title(title);
        if window.text.is_empty() {
            let origin = Origin::path(path.as_ref()).line(place.line).char_column(place.column);
            group = group.element(origin);
        } else {
            let label = self.label.as_deref().map(printable);
            let annotation = AnnotationKind::Primary.span(window.marked.clone()).label(label);
            let snippet = Snippet::source(window.text.as_str())
                .path(path.as_ref())
                .line_start(place.line)
                .annotation(annotation);
            group = group.element(snippet).element(Padding);
        }
        let room = columns.saturating_sub(gutter + 6);
        let below = |text: &str| broken(&printable(text), room);
        if let Some(entry) = &self.entry {
            group = group.element(Level::NOTE.message(below(&format!("in {entry}"))));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(below(help)));
        }
        let mut text = renderer.render(&[group]);
        text.push('\n');
        // The renderer counts columns in what it is given, which is a piece of a long line.
        let counted = window.text[..window.marked.start].chars().count() + 1;
        if counted != place.column {
            let shown = format!("{path}:{}:{counted}", place.line);
            let right = format!("{path}:{}:{}", place.line, place.column);
            if let Some(at) = text
                .find("-->")
                .and_then(|from| text[from..].find(&shown).map(|found| from + found))
            {
                text.replace_range(at..at + shown.len(), &right);
            }
        }
        text
    }
}

/// Returns a text in lines of at most `most` characters, broken between words.
fn broken(text: &str, most: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        let is_first = lines.is_empty();
        if !is_first && used + 1 + length > most {
            lines.push('\n');
            used = length;
        } else {
            if !is_first {
                lines.push(' ');
            }
            used += usize::from(!is_first) + length;
        }
        lines.push_str(word);
    }
    lines
}

/// The piece of the first line that is shown, and the marked range in it.
struct Window {
    text: String,
    marked: std::ops::Range<usize>,
}

impl Window {
    fn around(diagnostic: &Diagnostic, room: usize) -> Self {
        let source = &diagnostic.source;
        let line = source.line_span(source.line_col(diagnostic.span.start as usize).line).range();
        let line_text = &source.text()[line.clone()];
        let bom = if line.start == 0 { source.bom_len() } else { 0 };
        let place = |offset: u32| {
            let mut at = (offset as usize).clamp(line.start + bom, line.end.max(line.start + bom));
            while !source.text().is_char_boundary(at) {
                at -= 1;
            }
            at - line.start
        };
        let (start, end) = (place(diagnostic.span.start), place(diagnostic.span.end));
        let end = end.max(start);
        // In little room a line that fits is shown whole; of another each of the three parts has its share.
        let is_whole = room < 3 * MOST_SHOWN && line_text.chars().count() <= room;
        let most = match is_whole {
            true => line_text.len(),
            false => MOST_SHOWN.min(room.saturating_sub(2) / 3).max(1),
        };
        let from = back(line_text, start, most).max(bom);
        let to = forth(line_text, end.min(forth(line_text, start, most)), most);
        let end = end.min(to);
        let (head, tail) =
            (if from > bom { "…" } else { "" }, if to < line_text.len() { "…" } else { "" });
        let text = format!("{head}{}{tail}", excerpt(&line_text[from..to]));
        let shift = |at: usize| at - from + head.len();
        Self { marked: shift(start)..shift(end), text }
    }
}

/// The offset up to `count` characters before `at`.
fn back(text: &str, at: usize, count: usize) -> usize {
    text[..at].char_indices().rev().take(count).last().map_or(at, |(index, _)| index)
}

/// The offset up to `count` characters behind `at`.
fn forth(text: &str, at: usize, count: usize) -> usize {
    text[at..].char_indices().nth(count).map_or(text.len(), |(index, _)| at + index)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diagnostic::Code;
    use crate::source::{Source, Span};

    fn diagnostic(text: &str, span: Span) -> Diagnostic {
        let source = Arc::new(Source::new("cards/a.md", text));
        Diagnostic::new(Code::DuplicateKey, &source, span, "`name` is given twice")
    }

    #[test]
    fn a_diagnostic_shows_code_place_excerpt_label_and_help() {
        let found = diagnostic("---\nname: a\nname: b\n---\n", Span::new(12, 16))
            .label("the second")
            .help("remove one of them");
        let expected = "\
error[T0114]: `name` is given twice
 --> cards/a.md:3:1
  |
3 | name: b
  | ^^^^ the second
  |
  = help: remove one of them
";
        assert_eq!(found.render_text(Color::Never), expected);
    }

    #[test]
    fn long_messages_and_remedies_are_broken_into_lines() {
        let source = Arc::new(Source::new("cards/a.md", "name: a\n"));
        let found = Diagnostic::new(
            Code::DuplicateKey,
            &source,
            Span::new(0, 4),
            "a message that is longer than the terminal",
        );
        let mut report = Report::new();
        report.push(found.help("a remedy that is longer than that, too"));
        let text = report.render_text_within(Color::Never, 36);
        assert!(text.lines().all(|line| line.chars().count() <= 36), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("a message that is longer than the terminal"), "{text}");
        assert!(words.contains("help: a remedy that is longer than that, too"), "{text}");
    }

    #[test]
    fn colours_are_there_only_when_wanted() {
        let found = diagnostic("name: a\n", Span::new(0, 4));
        assert!(found.render_text(Color::Always).contains('\u{1b}'));
        assert!(!found.render_text(Color::Never).contains('\u{1b}'));
    }

    #[test]
    fn a_card_cannot_drive_the_terminal() {
        let source = Arc::new(Source::new("a\u{1b}[2J.md", "k\u{1b}]0;x\u{7}: \u{9b}31m\n"));
        let found = Diagnostic::new(Code::YamlSyntax, &source, Span::new(0, 1), "bad \u{1b}[1m")
            .label("here \u{1b}[1m")
            .help("do \u{1b}[1m\nerror: forged");
        let text = found.render_text(Color::Never);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{text:?}");
        assert!(!text.contains("\nerror: forged"), "{text}");
    }

    #[test]
    fn a_long_line_is_shown_around_the_place() {
        let text = format!("{}HERE{}", "ä".repeat(500_000), "b".repeat(500_000));
        let found = diagnostic(&text, Span::new(1_000_000, 1_000_004));
        let text = found.render_text(Color::Never);
        assert!(text.len() < 1200, "{}", text.len());
        assert!(text.contains("cards/a.md:1:500001") && text.contains("…ä") && text.contains("b…"));
        let lines: Vec<&str> = text.lines().collect();
        let column = |line: &str, what: char| line.chars().position(|found| found == what);
        assert_eq!(column(lines[3], 'H'), column(lines[4], '^'), "{text}");
    }

    #[test]
    fn a_span_over_several_lines_marks_its_first_line() {
        let found = diagnostic("a:\n  b: 1\n  c: 2\n", Span::new(0, 16));
        let text = found.render_text(Color::Never);
        assert!(text.contains("1 | a:") && !text.contains("c: 2"), "{text}");
    }

    #[test]
    fn every_span_renders_however_odd() {
        for text in ["", "\n", "é\r\n", "\u{feff}---\n", "a\tb\0c\n"] {
            for start in 0..8 {
                for end in 0..8 {
                    let found = diagnostic(text, Span { start, end });
                    assert!(found.render_text(Color::Never).starts_with("error[T0114]"));
                }
            }
        }
    }
}
