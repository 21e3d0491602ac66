//! A document's YAML cut into its top-level entries, line by line, nothing dropped.

use super::instruction::body_of_field;
use crate::source::{Document, Layout, Root, Source, Span, Value};

/// An entry with the comment lines directly above it, at its own indentation, and everything up to
/// the next entry's.
pub(super) struct Piece {
    /// The key; empty for one that is not text.
    pub(super) key: String,
    /// The lines, without their breaks.
    pub(super) lines: Vec<String>,
}

/// The whole YAML of a document.
pub(super) struct Pieces {
    /// Comments and blank lines above the first entry that do not belong to it.
    pub(super) head: Vec<String>,
    /// The entries in source order.
    pub(super) entries: Vec<Piece>,
    /// Comments behind the end of the document.
    pub(super) tail: Vec<String>,
    /// The indentation of the entries.
    pub(super) indent: String,
    /// The text of the field `instruction`, taken out of the entries, if it can stand elsewhere.
    pub(super) instruction: Option<String>,
}

impl Pieces {
    /// Cuts the document, or `None` if its root is not a plain block mapping with each key at the
    /// beginning of a line.
    pub(super) fn of(document: &Document) -> Option<Self> {
        let layout = &document.layout;
        let lines = Lines::of(document);
        if !matches!(layout.root, Root::Empty | Root::Block) {
            return None;
        }
        let mut starts = Vec::new();
        let mut free = 0;
        let mut indent = String::new();
        for (key, value) in &layout.entries {
            let first = lines.index(key.start);
            let before = lines.before(first, key.start);
            let behind = &document.source.text()[key.end as usize..];
            let simple = behind.trim_start_matches([' ', '\t']).starts_with(':');
            if !before.bytes().all(|byte| byte == b' ') || first < free || !simple {
                return None;
            }
            indent = before.to_owned();
            let lead = (free..first).rev().take_while(|at| lines.is_comment(*at, before)).last();
            starts.push((lead.unwrap_or(first), first));
            free = lines.index(end_of(*key, *value)) + 1;
        }
        let end = layout.closing.map_or(lines.len(), |closing| lines.index(closing.start));
        let mut pieces = Self {
            head: lines.take(0..starts.first().map_or(end, |(lead, _)| *lead)),
            entries: Vec::new(),
            tail: comments(lines.take(end..lines.len()), &indent),
            indent,
            instruction: None,
        };
        trim_blank(&mut pieces.head);
        for (at, (lead, first)) in starts.iter().enumerate() {
            let until = starts.get(at + 1).map_or(end, |(lead, _)| *lead);
            let (key, value) = layout.entries[at];
            let found = document.tree.map().into_iter().flatten();
            let found = found.map(|(found, _)| found).find(|found| found.span == key);
            let name = found.map_or_else(String::new, |found| found.text.clone());
            let above = lines.take(*lead..*first);
            let last = lines.index(end_of(key, value));
            if name == "instruction"
                && pieces.instruction.is_none()
                && let Some(text) = movable(document, key, value)
            {
                // An instruction that is null is none, and would be in the way of the body.
                let beside = match text {
                    Some(_) => None,
                    None => lines.text(last).split_once('#').map(|(_, rest)| format!("#{rest}")),
                };
                pieces.instruction = text;
                let behind = beside.into_iter().chain(lines.take(last + 1..until));
                let behind = comments(behind.collect(), &pieces.indent);
                let rest = above.into_iter().chain(behind);
                match pieces.entries.last_mut() {
                    Some(previous) => previous.lines.extend(rest),
                    None => pieces.head.extend(rest),
                }
                continue;
            }
            let mut all = above;
            all.extend(lines.take(*first..until));
            if until == end {
                trim_end(&mut all);
            }
            pieces.entries.push(Piece { key: name, lines: all });
        }
        Some(pieces)
    }
}

/// The text, or nothing, of an instruction that can be written as a body: one that a body would not
/// change, without tag, anchor, alias and comment.
pub(super) fn movable(document: &Document, key: Span, value: Span) -> Option<Option<String>> {
    let source = &document.source;
    let (_, node) = document.tree.map()?.iter().find(|(found, _)| found.span == key)?;
    let text = match &node.value {
        Value::Text(text) if body_of_field(text).is_some() => Some(text.clone()),
        Value::Null => None,
        _ => return None,
    };
    let between = source.slice(Span { start: key.end, end: value.start });
    let written = source.slice(value);
    let behind = &source.text()[value.end as usize..];
    let behind = behind.split(['\r', '\n']).next().unwrap_or_default();
    let header = written.split(['\r', '\n']).next().unwrap_or_default();
    let block = written.starts_with(['|', '>']);
    let bare = match text {
        Some(_) => between.trim() == ":" && behind.trim().is_empty(),
        // Of a value that is not written, the place may be before the colon.
        None => {
            let line = format!("{between}{}", behind.split('#').next().unwrap_or_default());
            line.trim() == ":"
        }
    };
    (bare && !written.starts_with('*') && !(block && header.contains('#'))).then_some(text)
}

/// The lines of a document that is written as it is, for roots that cannot be cut.
pub(super) fn whole(document: &Document) -> Vec<String> {
    let lines = Lines::of(document);
    let closing = document.layout.closing;
    let end = closing.map_or(lines.len(), |closing| lines.index(closing.start));
    let mut all = lines.take(0..end);
    trim_blank(&mut all);
    trim_end(&mut all);
    all.extend(comments(lines.take(end..lines.len()), ""));
    all
}

/// Where an entry's last line is; a value that is not written counts as its key.
fn end_of(key: Span, value: Span) -> u32 {
    // The end is exclusive, so the last byte is the one before it.
    key.end.max(if value.start == value.end { 0 } else { value.end }).saturating_sub(1)
}

/// Comment lines that lose what they stood behind, put at this indentation, so that no text above
/// can swallow them; blank lines between them stay.
fn comments(lines: Vec<String>, indent: &str) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for line in lines {
        let bare = line.trim();
        if bare.is_empty() {
            if !kept.is_empty() {
                kept.push(String::new());
            }
        } else {
            kept.push(format!("{indent}{bare}"));
        }
    }
    while kept.last().is_some_and(String::is_empty) {
        kept.pop();
    }
    kept
}

fn trim_blank(lines: &mut Vec<String>) {
    let blank = lines.iter().take_while(|line| line.trim().is_empty()).count();
    lines.drain(..blank);
}

/// Drops blank lines at the end unless they could be part of a text.
pub(super) fn trim_end(lines: &mut Vec<String>) {
    if lines.iter().any(|line| line.contains('+') && line.contains(['|', '>'])) {
        return;
    }
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
}

/// The lines of the YAML, its document markers blanked out.
struct Lines<'a> {
    source: &'a Source,
    layout: &'a Layout,
    /// The span of each line without its break.
    spans: Vec<Span>,
}

impl<'a> Lines<'a> {
    fn of(document: &'a Document) -> Self {
        let (source, layout) = (&*document.source, &document.layout);
        let region = layout.region;
        let mut spans = Vec::new();
        let mut start = region.start as usize;
        // YAML knows three line breaks, and they all mean the same.
        let mut rest = source.slice(region);
        while !rest.is_empty() {
            let len = rest.find(['\r', '\n']).unwrap_or(rest.len());
            let width = if rest[len..].starts_with("\r\n") { 2 } else { 1 };
            spans.push(Span::new(start, start + len));
            let next = (len + width).min(rest.len());
            start += next;
            rest = &rest[next..];
        }
        Self { source, layout, spans }
    }

    fn len(&self) -> usize {
        self.spans.len()
    }

    /// The line that holds the byte.
    fn index(&self, offset: u32) -> usize {
        self.spans.partition_point(|span| span.start <= offset).saturating_sub(1)
    }

    /// What stands before a byte in its line.
    fn before(&self, line: usize, offset: u32) -> &'a str {
        self.source.slice(Span { start: self.spans[line].start, end: offset })
    }

    fn text(&self, line: usize) -> String {
        let span = self.spans[line];
        let text = self.source.slice(span);
        for marker in [self.layout.opening, self.layout.closing].into_iter().flatten() {
            if marker.start == span.start {
                let width = (marker.end - marker.start) as usize;
                let rest = &text[width.min(text.len())..];
                let is_comment = rest.trim_start().starts_with('#');
                let blank = if is_comment { String::new() } else { " ".repeat(width) };
                return blank + if is_comment { rest.trim_start() } else { rest };
            }
        }
        text.to_owned()
    }

    /// Whether the line is a comment at exactly this indentation; one further in belongs to what
    /// stands above it.
    fn is_comment(&self, line: usize, indent: &str) -> bool {
        self.text(line).strip_prefix(indent).is_some_and(|text| text.starts_with('#'))
    }

    fn take(&self, range: std::ops::Range<usize>) -> Vec<String> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        let is_marker = |at: usize| {
            let start = self.spans[at].start;
            let markers = [self.layout.opening, self.layout.closing];
            markers.into_iter().flatten().any(|marker| marker.start == start)
        };
        range
            .map(|at| (at, self.text(at)))
            .filter(|(at, text)| !(is_marker(*at) && text.trim().is_empty()))
            .map(|(_, text)| text)
            .collect()
    }
}
