//! Where the front matter of a Markdown file begins and ends.

use std::sync::Arc;

use super::faults::Faults;
use super::{Body, Source, Span};
use crate::diagnostic::{Code, Diagnostic, Report};

/// The two parts of a Markdown card.
pub(super) struct Parts {
    pub(super) yaml: Span,
    pub(super) body: Span,
}

/// Finds the front matter, or reports why there is none.
pub(super) fn split(source: &Arc<Source>, report: &mut Report) -> Option<Parts> {
    let mut lines = Lines { text: source.text(), at: source.bom_len() };
    let Some(first) = lines.find(|line| !line.text.is_empty()) else {
        report.push(
            Diagnostic::new(Code::EmptyFile, source, Span::at(0), "the file is empty")
                .help("a card begins with its fields between two lines `---`"),
        );
        return None;
    };
    if first.text.starts_with("+++") {
        report.push(
            Diagnostic::new(
                Code::TomlFrontMatter,
                source,
                first.span,
                "the front matter is TOML; cards use YAML",
            )
            .help("write the fields as `key: value` between two lines `---`"),
        );
        return None;
    }
    if !is_boundary(first.text) {
        report.push(
            Diagnostic::new(
                Code::NoFrontMatter,
                source,
                first.span,
                "a Markdown card begins with front matter, and this file does not",
            )
            .label("expected `---`")
            .help("put the fields between two lines `---` before the text, or remove the file from the cards"),
        );
        return None;
    }
    let start = lines.at;
    match lines.find(|line| is_boundary(line.text)) {
        Some(close) => Some(Parts {
            yaml: Span::new(start, close.span.start as usize),
            body: Span::new(lines.at, source.text().len()),
        }),
        None => {
            report.push(
                Diagnostic::new(
                    Code::UnterminatedFrontMatter,
                    source,
                    first.span,
                    "the front matter that begins here has no closing line",
                )
                .help("put a line `---` behind the fields"),
            );
            None
        }
    }
}

/// The body's text as an agent gets it, if there is any.
pub(super) fn body(source: &Arc<Source>, span: Span, report: &mut Report) -> Option<Body> {
    let mut span = trimmed(source, span);
    let first = source.slice(span).lines().next().unwrap_or_default();
    if first.trim_end() == "---SYSTEM" {
        span = trimmed(source, Span::new(span.start as usize + first.len(), span.end as usize));
    }
    let text = source.slice(span);
    let mut faults = Faults::new(source, report);
    for line in (Lines { text: source.text(), at: span.start as usize }) {
        if line.span.start >= span.end {
            break;
        }
        if is_history_marker(line.text) {
            faults.inline_history(line.text.trim(), line.span);
        }
    }
    faults.finish();
    if text.is_empty() {
        return None;
    }
    Some(Body { span, text: text.replace("\r\n", "\n") })
}

/// Whether a line of a body would begin a message of a conversation.
pub(crate) fn is_history_marker(line: &str) -> bool {
    matches!(line.trim(), "---USER" | "---ASSISTANT" | "---RESOURCE")
}

fn trimmed(source: &Source, span: Span) -> Span {
    let text = source.slice(span);
    let start = span.start as usize + (text.len() - text.trim_start().len());
    Span::new(start, start + text.trim().len())
}

/// Whether a line, without the white space at its end, begins or ends front matter.
pub(crate) fn is_boundary(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// A line without the white space at its end.
struct Line<'a> {
    span: Span,
    text: &'a str,
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let start = self.at;
        let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
        self.at += len;
        let text = rest[..len].trim_end();
        Some(Line { span: Span::new(start, start + text.len()), text })
    }
}
