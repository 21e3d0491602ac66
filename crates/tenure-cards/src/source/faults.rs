//! What can be wrong many times in one file, in words; of each kind only the first few are named.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::ErrorKind;

use super::loader::Stopped;
use super::syntax::{explain, is_tab};
use super::{Source, Span};
use crate::diagnostic::{Code, Diagnostic, Report};

/// At most this many faults of one kind are named one by one.
const NAMED: usize = 20;

/// The faults of one document.
pub(super) struct Faults<'a> {
    source: &'a Arc<Source>,
    report: &'a mut Report,
    /// How many there are of each kind, and where the first is that was not named.
    counts: HashMap<Code, (usize, Option<Span>)>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(source: &'a Arc<Source>, report: &'a mut Report) -> Self {
        Self { source, report, counts: HashMap::new() }
    }

    fn push(&mut self, found: Diagnostic) {
        let (count, unnamed) = self.counts.entry(found.code).or_default();
        *count += 1;
        if *count <= NAMED {
            self.report.push(found);
        } else {
            unnamed.get_or_insert(found.span);
        }
    }

    /// Says how many faults were not named.
    pub(super) fn finish(self) {
        for (code, (count, unnamed)) in self.counts {
            let Some(span) = unnamed else { continue };
            let message = format!("{} more faults of this kind, here and below", count - NAMED);
            let found = Diagnostic::new(code, self.source, span, message);
            self.report.push(found.help("put the first ones right, then check again"));
        }
    }

    /// The document cannot be read beyond this.
    pub(super) fn stop(&mut self, code: Code, span: Span, message: &str, help: &str) -> Stopped {
        self.report.push(Diagnostic::new(code, self.source, span, message).help(help));
        Stopped
    }

    /// The reader gave up at this byte, with this bracket still open.
    pub(super) fn finish_with(self, at: usize, kind: &ErrorKind, bracket: Option<usize>) {
        let text = self.source.text();
        let unclosed = bracket.and_then(|from| Some((from, unclosed(text, from, at)?)));
        let (at, kind) = match unclosed {
            Some((from, open)) => (from, &ErrorKind::UnclosedFlowCollection { open }),
            None if is_tab(kind) => (tab(text, at), kind),
            None => (at, kind),
        };
        let (code, message, help) = explain(kind);
        let next = self.source.text()[at..].chars().next();
        let width = next.filter(|next| *next != '\n' && *next != '\r').map_or(0, char::len_utf8);
        let mut found = Diagnostic::new(code, self.source, Span::new(at, at + width), message);
        found.help = help.map(str::to_owned);
        self.report.push(found);
        self.finish();
    }

    pub(super) fn several(&mut self, span: Span) {
        let message = "a second YAML document begins here; a file holds one card";
        let found = Diagnostic::new(Code::SeveralDocuments, self.source, span, message);
        self.push(found.help("put it in a file of its own"));
    }

    pub(super) fn key_not_text(&mut self, span: Span) {
        let found = Diagnostic::new(Code::KeyNotText, self.source, span, "this key is not text");
        self.push(
            found.help(
                "use a word as the key; put quotes around a value that starts with `{` or `[`",
            ),
        );
    }

    pub(super) fn duplicate(&mut self, text: &str, span: Span, first: Span) {
        let place = self.source.line_col(first.start as usize);
        let message = format!(
            "`{}` is given twice, first on line {}, column {}",
            shortened(text),
            place.line,
            place.column
        );
        let found = Diagnostic::new(Code::DuplicateKey, self.source, span, message);
        self.push(found.label("given again here").help("keep one of the two"));
    }

    pub(super) fn unknown_tag(&mut self, written: &str, span: Span) {
        let message = format!("unknown tag `{}`", shortened(written));
        let found = Diagnostic::new(Code::UnknownTag, self.source, span, message);
        self.push(found.help("remove it, or put quotes around text that starts with `!`"));
    }

    pub(super) fn bad_merge(&mut self, kind: &str, span: Span) {
        let message = format!("`<<` merges mappings, and this is {kind}");
        let found = Diagnostic::new(Code::BadMerge, self.source, span, message);
        self.push(found.help("name an anchored mapping: `<<: *defaults`"));
    }

    pub(super) fn inline_history(&mut self, marker: &str, span: Span) {
        let message =
            format!("`{marker}` begins a conversation, and a card's body cannot hold one");
        let found = Diagnostic::new(Code::InlineHistory, self.source, span, message);
        self.push(
            found.help("put the conversation into a file of its own and name it in `messages`"),
        );
    }

    pub(super) fn mismatch(&mut self, tag: &str, span: Span) {
        let message = format!("the value does not fit its tag `!!{tag}`");
        let found = Diagnostic::new(Code::TagMismatch, self.source, span, message);
        self.push(found.help("remove the tag or change the value"));
    }
}

/// The bracket at `from`, if the reader went on over the end of its line to `at`, and nothing behind
/// that closes it: then it is the bracket that is wrong, and not what was read as its contents.
fn unclosed(text: &str, from: usize, at: usize) -> Option<char> {
    let (open, close) = match text[from..].chars().next()? {
        '[' => ('[', ']'),
        '{' => ('{', '}'),
        _ => return None,
    };
    if at <= from || !text[from..at].contains('\n') {
        return None;
    }
    let mut depth = 0usize;
    for found in text[at..].chars() {
        if found == open {
            depth += 1;
        } else if found == close {
            depth = depth.checked_sub(1)?;
        }
    }
    Some(open)
}

/// The tab that the reader means when it complains about one at `at`: the one before, or the next.
fn tab(text: &str, at: usize) -> usize {
    if text[..at].ends_with('\t') {
        return at - 1;
    }
    text[at..].find('\t').map_or(at, |next| at + next)
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(60).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
