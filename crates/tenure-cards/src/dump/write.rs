//! From pieces to text.

use std::ops::Range;
use std::sync::Arc;

use super::instruction::{body_of_field, field_of_body, survives};
use super::order::rank;
use super::pieces::{Piece, Pieces, movable, trim_end, whole};
use super::scalar::{entry, flow, inline, quoted};
use crate::diagnostic::Report;
use crate::source::{Document, Node, Root, Source, Span, Value, is_boundary, parse};

/// The form of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Front matter and a body.
    Markdown,
    /// YAML alone, the body as the field `instruction`.
    Yaml,
}

/// The document as a card in the given form. `name` is written if the document has no `name` of its
/// own, because a dump has no file name.
///
/// Every field keeps its value and its spelling; comments stay with what they stand above. A body
/// becomes the field `instruction` in YAML and the other way round in Markdown, unless the text
/// would not be read back as it is. The result ends in a line break.
pub fn dump_document(document: &Document, name: &str, format: Format) -> String {
    let sorted = (!document.layout.linked).then(|| cut(document, name, format, Order::Canonical));
    let kept = || cut(document, name, format, Order::Source);
    let mut candidates = sorted.into_iter().chain(std::iter::once_with(kept)).flatten();
    candidates
        .find(|text| reads_alike(document, text, format))
        .or_else(|| {
            Some(uncut(document, name, format)).filter(|text| reads_alike(document, text, format))
        })
        .unwrap_or_else(|| remade(document, name, format))
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Canonical,
    Source,
}

/// Where the instruction goes, and its text there.
struct Placed {
    body: Option<String>,
    field: Option<String>,
}

impl Placed {
    /// Places the body of a document, or else its movable field.
    fn of(body: Option<&str>, field: Option<String>, format: Format) -> Self {
        match (body, field, format) {
            (Some(body), field, Format::Markdown) if survives(body) => {
                Self { body: Some(body.to_owned()), field }
            }
            (Some(body), _, _) => Self { body: None, field: Some(field_of_body(body)) },
            (None, Some(field), Format::Markdown) => match body_of_field(&field) {
                Some(body) => Self { body: Some(body), field: None },
                None => Self { body: None, field: Some(field) },
            },
            (None, field, _) => Self { body: None, field },
        }
    }
}

/// The document cut into entries, if it can be.
fn cut(document: &Document, name: &str, format: Format, order: Order) -> Option<String> {
    let mut pieces = Pieces::of(document)?;
    let mut entries = std::mem::take(&mut pieces.entries);
    if document.tree.field("name").is_none() {
        let line = format!("{}name: {}", pieces.indent, inline(name));
        entries.insert(0, Piece { key: "name".into(), lines: vec![line] });
    }
    if order == Order::Canonical {
        entries.sort_by_key(|piece| rank(&piece.key));
    }
    if let Some(last) = entries.last_mut() {
        trim_end(&mut last.lines);
    }
    let body = document.body.as_ref().map(|body| body.text.as_str());
    let placed = Placed::of(body, pieces.instruction.take(), format);
    let lines = pieces.head.into_iter();
    let lines = lines.chain(entries.into_iter().flat_map(|piece| piece.lines)).chain(pieces.tail);
    let mut yaml = joined(lines);
    if let Some(field) = &placed.field {
        yaml.push_str(&entry("instruction", field, &pieces.indent));
    }
    Some(framed(yaml, placed.body, format))
}

/// The document as it is, with what is missing put in and the instruction moved if it can be.
fn uncut(document: &Document, name: &str, format: Format) -> String {
    let text = document.source.text();
    let region = document.layout.region.range();
    let is_flow = document.layout.root == Root::Flow;
    let taken = if is_flow { taken_in_braces(document) } else { taken_at_the_end(document) };
    let (field, hole) = taken.unzip();
    let body = document.body.as_ref().map(|body| body.text.as_str());
    let placed = Placed::of(body, field, format);
    let name = document.tree.field("name").is_none().then(|| inline(name));
    let start = document.tree.span.start as usize;
    let edited = if is_flow {
        let mut added = String::new();
        if let Some(field) = &placed.field {
            added.push_str(&format!("instruction: {}, ", quoted(field)));
        }
        if let Some(name) = name {
            added.push_str(&format!("name: {name}, "));
        }
        let brace = start + 1;
        let hole = hole.unwrap_or(brace..brace);
        let (before, between) = (&text[region.start..brace], &text[brace..hole.start]);
        format!("{before}{added}{between}{}", &text[hole.end..region.end])
    } else {
        let end = document.layout.closing.map_or(region.end, |closing| closing.start as usize);
        let hole = hole.unwrap_or(end..end);
        let mut edited = text[region.start..hole.start].to_owned();
        if !edited.ends_with('\n') {
            edited.push('\n');
        }
        let indent = " ".repeat(document.source.line_col(start).column - 1);
        if let Some(name) = name {
            edited.push_str(&format!("{indent}name: {name}\n"));
        }
        if let Some(field) = &placed.field {
            edited.push_str(&entry("instruction", field, &indent));
        }
        edited.push_str(&text[hole.end..region.end]);
        edited
    };
    // It is read once more, so that markers and line breaks are treated as in any other document.
    let again = Arc::new(Source::new("dump.yaml", edited));
    let Some(again) = parse(&again, &mut Report::new()) else { return String::new() };
    framed(joined(whole(&again)), placed.body, format)
}

/// The text and the place of an instruction within braces, with the comma behind it.
fn taken_in_braces(document: &Document) -> Option<(String, Range<usize>)> {
    let source = &document.source;
    document.layout.entries.windows(2).find_map(|pair| {
        let ((key, value), (next, _)) = (pair[0], pair[1]);
        let comma = source.slice(Span { start: value.end, end: next.start });
        let between = source.slice(Span { start: key.end, end: value.start });
        let plain = source.slice(key) == "instruction"
            && between.trim() == ":"
            && comma.trim() == ","
            && !source.slice(value).starts_with('*');
        let text = document.tree.field("instruction")?.text()?;
        let plain = plain && body_of_field(text).is_some();
        plain.then(|| (text.to_owned(), key.start as usize..next.start as usize))
    })
}

/// The text and the lines of an instruction that is the last entry, with nothing behind it.
fn taken_at_the_end(document: &Document) -> Option<(String, Range<usize>)> {
    let source = &document.source;
    let (key, value) = *document.layout.entries.last()?;
    let region = document.layout.region;
    let end = document.layout.closing.map_or(region.end, |closing| closing.start);
    let line = source.line_span(source.line_col(key.start as usize).line);
    let alone = source.slice(key) == "instruction"
        && source.slice(Span { start: line.start, end: key.start }).trim().is_empty()
        && source.slice(Span { start: value.end, end }).trim().is_empty();
    let text = movable(document, key, value).filter(|_| alone)??;
    Some((text, line.start.max(region.start) as usize..end as usize))
}

/// The values written anew, without the source's layout.
fn remade(document: &Document, name: &str, format: Format) -> String {
    let mut entries: Vec<(String, String)> = Vec::new();
    let mut field = None;
    if document.tree.field("name").is_none() {
        entries.push(("name".into(), format!("name: {}\n", inline(name))));
    }
    for (key, node) in document.tree.map().into_iter().flatten() {
        match (&*key.text, &node.value) {
            ("instruction", Value::Text(text)) => field = Some(text.clone()),
            ("instruction", Value::Null) => {}
            _ => {
                entries.push((key.text.clone(), format!("{}: {}\n", inline(&key.text), flow(node))))
            }
        }
    }
    entries.sort_by_key(|(key, _)| rank(key));
    let body = document.body.as_ref().map(|body| body.text.as_str());
    let placed = Placed::of(body, field, format);
    let mut yaml: String = entries.into_iter().map(|(_, line)| line).collect();
    if let Some(field) = &placed.field {
        yaml.push_str(&entry("instruction", field, ""));
    }
    framed(yaml, placed.body, format)
}

fn joined(lines: impl IntoIterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        // Within braces a line of dashes is text, and as front matter it would be the end.
        if is_boundary(line.trim_end()) {
            text.push(' ');
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn framed(yaml: String, body: Option<String>, format: Format) -> String {
    match (format, body) {
        (Format::Yaml, _) => yaml,
        (Format::Markdown, None) => format!("---\n{yaml}---\n"),
        (Format::Markdown, Some(body)) => format!("---\n{yaml}---\n\n{body}\n"),
    }
}

/// Whether a dump is read without a fault as the document it was made of.
fn reads_alike(document: &Document, text: &str, format: Format) -> bool {
    let path = match format {
        Format::Markdown => "dump.md",
        Format::Yaml => "dump.yaml",
    };
    let mut report = Report::new();
    let Some(again) = parse(&Arc::new(Source::new(path, text)), &mut report) else { return false };
    report.is_empty() && alike(document, &again) && again.tree.field("name").is_some()
}

/// Whether two documents have the same fields, a `name` that only the second has aside, and the
/// same instruction.
pub(super) fn alike(one: &Document, other: &Document) -> bool {
    let fields = |document: &Document| {
        let mut fields: Vec<(String, Node)> = document
            .tree
            .map()
            .into_iter()
            .flatten()
            .filter(|(key, node)| {
                let added = key.text == "name" && one.tree.field("name").is_none();
                let said = matches!(node.value, Value::Text(_) | Value::Null);
                let instruction = key.text == "instruction" && said;
                !(added || instruction)
            })
            .map(|(key, node)| (key.text.clone(), node.clone()))
            .collect();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        fields
    };
    let (ones, others) = (fields(one), fields(other));
    let pairs = ones.iter().zip(&others);
    ones.len() == others.len()
        && pairs.into_iter().all(|(one, other)| one.0 == other.0 && same(&one.1, &other.1))
        && instruction(one) == instruction(other)
}

/// The instruction as a field would hold it; of a card with both, both.
fn instruction(document: &Document) -> (Option<String>, Option<String>) {
    let field = document.tree.field("instruction").and_then(Node::text).map(str::to_owned);
    let body = document.body.as_ref().map(|body| field_of_body(&body.text));
    match (field, body) {
        (None, body) => (body, None),
        both => both,
    }
}

/// Whether two values are the same, wherever they stand.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| one.0.text == other.0.text && same(&one.1, &other.1))
        }
        (Value::Text(one), Value::Text(other)) => one == other,
        // What is no text is known by its spelling, and so "not a number" is itself.
        (Value::Null, Value::Null) => true,
        _ => {
            std::mem::discriminant(&one.value) == std::mem::discriminant(&other.value)
                && one.raw == other.raw
        }
    }
}
