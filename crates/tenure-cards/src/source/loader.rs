//! From the reader's events to an arena.

use std::collections::HashMap;
use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle, Span as Marks, StructureStyle, Tag};

use super::arena::{Arena, Id, RawKind};
use super::document::{Layout, Root};
use super::faults::Faults;
use super::scalar::resolve;
use super::{Key, MAX_DEPTH, MAX_NODES, Source, Span, Value};
use crate::diagnostic::{Code, Report};

/// What was read of the one document, as far as it could be.
pub(super) struct Loaded {
    pub(super) arena: Arena,
    pub(super) root: Option<Id>,
    pub(super) layout: Layout,
}

/// Marks a document that cannot be read further; the report says why.
pub(super) struct Stopped;

/// Reads the YAML at `span` of the source.
pub(super) fn load(
    source: &Arc<Source>,
    span: Span,
    report: &mut Report,
) -> Result<Loaded, Stopped> {
    let text = &source.text()[span.range()];
    let options = granit_parser::options! { emit_comments: false, disallow_directives: true };
    let mut loader = Loader {
        source,
        faults: Faults::new(source, report),
        base: span.start as usize,
        len: text.len(),
        arena: Arena::default(),
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        documents: 0,
        layout: Layout::new(span),
    };
    for next in Parser::new_from_str_with_options(text, options) {
        match next {
            Ok((event, marks)) => {
                if loader.event(event, marks)? == Progress::Done {
                    break;
                }
            }
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
                let at = loader.base + at;
                let bracket = loader.bracket();
                loader.faults.finish_with(at, error.kind(), bracket);
                return Err(Stopped);
            }
        }
    }
    loader.faults.finish();
    Ok(Loaded { arena: loader.arena, root: loader.root, layout: loader.layout })
}

#[derive(PartialEq)]
enum Progress {
    More,
    Done,
}

struct Open {
    id: Id,
    style: StructureStyle,
    shape: Shape,
    children: Vec<Id>,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    List,
    Map,
}

struct Loader<'a> {
    source: &'a Arc<Source>,
    faults: Faults<'a>,
    base: usize,
    len: usize,
    arena: Arena,
    open: Vec<Open>,
    anchors: HashMap<usize, Id>,
    root: Option<Id>,
    documents: usize,
    layout: Layout,
}

impl Loader<'_> {
    fn event(&mut self, event: Event<'_>, marks: Marks) -> Result<Progress, Stopped> {
        let span = self.span(marks);
        match event {
            Event::DocumentStart(explicit, _) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.faults.several(span);
                    return Ok(Progress::Done);
                }
                if explicit {
                    self.layout.opening = Some(span);
                }
            }
            Event::DocumentEnd if self.source.slice(span).starts_with("...") => {
                self.layout.closing = Some(span);
            }
            Event::Scalar(text, style, anchor, tag) => {
                let span = self.scalar_span(span, style);
                // The reader writes `~` where nothing was written.
                let implied = style == ScalarStyle::Plain && span.start == span.end;
                let text = if implied { "".into() } else { text };
                let (value, raw) = self.scalar(&text, style, tag.as_deref(), span, marks);
                let id = self.arena.add(span, RawKind::Scalar { value, raw });
                self.anchor(anchor, id);
                self.node(id, style == ScalarStyle::Plain && text == "<<")?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.begin(Shape::List, style, span, anchor, tag.as_deref(), marks)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.begin(Shape::Map, style, span, anchor, tag.as_deref(), marks)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
            Event::Alias(anchor) => {
                self.layout.linked = true;
                let Some(target) = self.anchors.get(&anchor).copied() else {
                    return Err(self.faults.stop(
                        Code::UnknownAnchor,
                        span,
                        "this alias names an anchor that is not defined before it",
                        "define it above with `&name`",
                    ));
                };
                if matches!(self.arena.target(target).kind, RawKind::Open) {
                    return Err(self.faults.stop(
                        Code::RecursiveAlias,
                        span,
                        "this alias is inside the value that it stands for",
                        "a value cannot contain itself; write it out",
                    ));
                }
                let id = self.arena.add(span, RawKind::Alias(target));
                self.node(id, false)?;
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn begin(
        &mut self,
        shape: Shape,
        style: StructureStyle,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        marks: Marks,
    ) -> Result<(), Stopped> {
        if let Some(tag) = tag {
            let expected = if shape == Shape::List { "seq" } else { "map" };
            match tag.core_suffix() {
                Some(found) if found == expected => {}
                Some(found) => self.faults.mismatch(found, span),
                None => self.unknown_tag(tag, marks, span),
            }
        }
        let id = self.arena.add(span, RawKind::Open);
        if self.open.is_empty() {
            self.layout.root = match (shape, style) {
                (Shape::Map, _) if anchor != 0 || tag.is_some() => Root::Other,
                (Shape::Map, StructureStyle::Block) => Root::Block,
                (Shape::Map, StructureStyle::Flow) => Root::Flow,
                (Shape::List, _) => Root::Other,
            };
        }
        self.anchor(anchor, id);
        self.node(id, false)?;
        self.open.push(Open { id, style, shape, children: Vec::new() });
        if self.open.len() > MAX_DEPTH {
            let message = format!("lists and mappings are nested more than {MAX_DEPTH} deep");
            return Err(self.faults.stop(Code::TooDeep, span, &message, "flatten it"));
        }
        Ok(())
    }

    /// Where the bracket is that was opened last and not closed.
    fn bracket(&self) -> Option<usize> {
        let open = self.open.last().filter(|open| open.style == StructureStyle::Flow)?;
        Some(self.arena.nodes[open.id].span.start as usize)
    }

    /// Puts a new node into the collection that is open, or makes it the root.
    fn node(&mut self, id: Id, merge: bool) -> Result<(), Stopped> {
        if self.arena.nodes.len() > MAX_NODES {
            let span = self.arena.nodes[id].span;
            let message = format!("the file holds more than {MAX_NODES} values");
            return Err(self.faults.stop(
                Code::TooManyNodes,
                span,
                &message,
                "split it into several files",
            ));
        }
        match self.open.last_mut() {
            Some(open) => {
                let is_key = open.shape == Shape::Map && open.children.len().is_multiple_of(2);
                self.layout.linked |= merge && is_key;
                open.children.push(id);
            }
            None => self.root = Some(id),
        }
        Ok(())
    }

    fn end(&mut self, span: Span) {
        let Some(open) = self.open.pop() else { return };
        let start = self.arena.nodes[open.id].span.start;
        let end = match open.style {
            StructureStyle::Flow => span.end,
            StructureStyle::Block => {
                open.children.last().map_or(start, |last| self.arena.nodes[*last].span.end)
            }
        };
        self.arena.nodes[open.id].span = Span { start, end: end.max(start) };
        if self.open.is_empty() && open.shape == Shape::Map {
            let span = |id: Id| self.arena.nodes[id].span;
            let pairs = open.children.chunks_exact(2);
            self.layout.entries = pairs.map(|pair| (span(pair[0]), span(pair[1]))).collect();
        }
        self.arena.nodes[open.id].kind = match open.shape {
            Shape::List => RawKind::List(open.children),
            Shape::Map => self.map(&open.children),
        };
    }

    fn map(&mut self, children: &[Id]) -> RawKind {
        let mut entries: Vec<(Key, Id)> = Vec::with_capacity(children.len() / 2);
        let mut seen: HashMap<String, Span> = HashMap::with_capacity(children.len() / 2);
        let mut merge = None;
        for pair in children.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            let span = self.arena.nodes[key].span;
            let text = match &self.arena.target(key).kind {
                RawKind::Scalar { value: Value::Text(text), .. } => Some(text.clone()),
                RawKind::Scalar { raw, .. } if !raw.is_empty() => Some(raw.to_string()),
                _ => None,
            };
            let Some(text) = text else {
                self.faults.key_not_text(span);
                continue;
            };
            if let Some(first) = seen.get(&text).copied() {
                self.faults.duplicate(&text, span, first);
                continue;
            }
            seen.insert(text.clone(), span);
            if text == "<<" && self.source.slice(span) == "<<" {
                merge = Some(value);
            } else {
                entries.push((Key { span, text }, value));
            }
        }
        RawKind::Map { entries, merge }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
        marks: Marks,
    ) -> (Value, Box<str>) {
        let plain = style == ScalarStyle::Plain;
        let value = match tag {
            None if plain => resolve(text),
            None => Value::Text(text.to_owned()),
            Some(tag) => match tag.core_suffix() {
                Some("str") => Value::Text(text.to_owned()),
                Some(name) => match (name, resolve(text)) {
                    ("int", value @ Value::Int(_))
                    | ("float", value @ Value::Float(_))
                    | ("bool", value @ Value::Bool(_))
                    | ("null", value @ Value::Null) => value,
                    // The tag promises a float, so the nearest one is what is asked for.
                    ("float", Value::Int(number)) => Value::Float(number as f64),
                    _ => {
                        self.faults.mismatch(name, span);
                        Value::Text(text.to_owned())
                    }
                },
                None if tag.handle().is_empty() && tag.suffix() == "!" => {
                    Value::Text(text.to_owned())
                }
                None => {
                    self.unknown_tag(tag, marks, span);
                    Value::Text(text.to_owned())
                }
            },
        };
        let raw = if matches!(value, Value::Text(_)) { Box::default() } else { text.into() };
        (value, raw)
    }

    fn anchor(&mut self, anchor: usize, id: Id) {
        if anchor != 0 {
            self.layout.linked = true;
            self.anchors.insert(anchor, id);
        }
    }

    fn span(&self, marks: Marks) -> Span {
        let range = marks.byte_range().unwrap_or(0..0);
        let (start, end) = (range.start.min(self.len), range.end.min(self.len));
        Span::new(self.base + start, self.base + end)
    }

    /// The span of a block of text: from its `|` or `>`, which the reader leaves out, and without
    /// the blank lines behind it.
    fn scalar_span(&self, span: Span, style: ScalarStyle) -> Span {
        let indicator = match style {
            ScalarStyle::Literal => '|',
            ScalarStyle::Folded => '>',
            _ => return span,
        };
        let start = span.start as usize;
        let before = &self.source.text()[self.base..start];
        let header = before.trim_end().rfind('\n').map_or(0, |at| at + 1);
        let opens = |at: usize| {
            let tail = before[header + at + 1..].trim_start_matches(['+', '-']);
            let tail = tail.trim_start_matches(|found: char| found.is_ascii_digit());
            let tail = tail.trim_start_matches(['+', '-']);
            let alone = before[header..header + at].ends_with([' ', '\t']) || at == 0;
            alone && (tail.is_empty() || tail.starts_with([' ', '\t', '\r', '\n']))
        };
        let found =
            before[header..].match_indices(indicator).map(|(at, _)| at).find(|at| opens(*at));
        let start = found.map_or(start, |at| self.base + header + at);
        let kept = self.source.slice(Span::new(start, span.end as usize)).trim_end().len();
        Span::new(start, start + kept)
    }

    fn unknown_tag(&mut self, tag: &Tag, marks: Marks, span: Span) {
        let at = marks.tag_span().map_or(span, |marks| self.span(marks));
        match self.source.slice(at) {
            written if written.starts_with('!') => self.faults.unknown_tag(written, at),
            _ => self.faults.unknown_tag(&format!("{}{}", tag.handle(), tag.suffix()), at),
        }
    }
}
