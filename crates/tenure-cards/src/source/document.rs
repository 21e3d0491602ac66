//! A whole file: its fields as a tree, and its body.

use std::path::Path;
use std::sync::Arc;

use super::{Node, Source, Span, Value, front_matter, yaml};
use crate::diagnostic::{Code, Diagnostic, Report};

/// The two forms in which a card is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// `.md`, `.markdown`: YAML front matter and a body.
    Markdown,
    /// `.yaml`, `.yml`: YAML alone.
    Yaml,
}

impl FileKind {
    /// The form that a path's suffix says, in any case; `None` if it is not one of a card.
    pub fn of(path: &Path) -> Option<Self> {
        let suffix = path.extension()?.to_str()?;
        let is = |known: &str| suffix.eq_ignore_ascii_case(known);
        if is("md") || is("markdown") {
            Some(FileKind::Markdown)
        } else if is("yaml") || is("yml") {
            Some(FileKind::Yaml)
        } else {
            None
        }
    }
}

/// The text behind the front matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Where it stands, without the white space around it.
    pub span: Span,
    /// The text with line breaks as `\n`, without the white space around it and without a first
    /// line `---SYSTEM`. Never empty; `${...}` is left as it is.
    pub text: String,
}

/// A file read as a card: a mapping of fields and perhaps a body.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub source: Arc<Source>,
    /// Which form it has.
    pub kind: FileKind,
    /// The fields; always a [`Value::Map`].
    pub tree: Node,
    /// The body of a Markdown card, if it has text.
    pub body: Option<Body>,
    pub(crate) layout: Layout,
}

/// How the YAML of a document is laid out, for writing it again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// All of the YAML, its markers included.
    pub(crate) region: Span,
    /// The `---` that opens the document, if there is one.
    pub(crate) opening: Option<Span>,
    /// The `...` that ends the document, if there is one.
    pub(crate) closing: Option<Span>,
    /// How the root is written.
    pub(crate) root: Root,
    /// Whether there are anchors, aliases or merge keys.
    pub(crate) linked: bool,
    /// The entries of the root as written: key and value.
    pub(crate) entries: Vec<(Span, Span)>,
}

/// How the root of a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// There is none.
    Empty,
    /// A mapping by indentation.
    Block,
    /// A mapping in braces.
    Flow,
    /// Something else, or with a tag or anchor of its own.
    Other,
}

impl Layout {
    pub(crate) fn new(region: Span) -> Self {
        Self {
            region,
            opening: None,
            closing: None,
            root: Root::Empty,
            linked: false,
            entries: Vec::new(),
        }
    }
}

/// Reads a source as a card, by the suffix of its path. Every problem goes to the report; the
/// document is there whenever its fields could be read, also if some of them are wrong.
pub fn parse(source: &Arc<Source>, report: &mut Report) -> Option<Document> {
    let path = source.path();
    if path.file_name().is_some_and(|name| name.eq_ignore_ascii_case("SKILL.md")) {
        report.push(
            Diagnostic::new(
                Code::SkillManifest,
                source,
                Span::at(0),
                "SKILL.md describes a skill, not an agent",
            )
            .help("name its folder in a card's `skills`, or rename the file if it is a card"),
        );
        return None;
    }
    match FileKind::of(path) {
        Some(FileKind::Markdown) => markdown(source, report),
        Some(FileKind::Yaml) => plain(source, report),
        None => {
            report.push(
                Diagnostic::new(
                    Code::UnknownSuffix,
                    source,
                    Span::at(0),
                    "a card's file name ends in .md, .markdown, .yaml or .yml",
                )
                .help("rename the file, or name another"),
            );
            None
        }
    }
}

fn markdown(source: &Arc<Source>, report: &mut Report) -> Option<Document> {
    let parts = front_matter::split(source, report)?;
    let body = front_matter::body(source, parts.body, report);
    let (mut tree, layout) = yaml::tree(source, parts.yaml, report)?;
    if tree.value == Value::Null && tree.raw.is_empty() {
        // Front matter without fields is a card with every default.
        tree.value = Value::Map(Vec::new());
    }
    mapping(&tree, source, report)?;
    Some(Document { source: Arc::clone(source), kind: FileKind::Markdown, tree, body, layout })
}

fn plain(source: &Arc<Source>, report: &mut Report) -> Option<Document> {
    let span = Span::new(source.bom_len(), source.text().len());
    let empty = |report: &mut Report| {
        report.push(
            Diagnostic::new(Code::EmptyFile, source, Span::at(0), "the file holds no fields")
                .help("a card has at least `name` or `instruction`"),
        );
    };
    if source.slice(span).trim().is_empty() {
        empty(report);
        return None;
    }
    let (tree, layout) = yaml::tree(source, span, report)?;
    if tree.value == Value::Null && tree.raw.is_empty() {
        empty(report);
        return None;
    }
    mapping(&tree, source, report)?;
    Some(Document { source: Arc::clone(source), kind: FileKind::Yaml, tree, body: None, layout })
}

fn mapping(tree: &Node, source: &Arc<Source>, report: &mut Report) -> Option<()> {
    if matches!(tree.value, Value::Map(_)) {
        return Some(());
    }
    report.push(
        Diagnostic::new(
            Code::NotAMapping,
            source,
            tree.span,
            format!("a card's fields are a mapping, and this is {}", tree.value.kind()),
        )
        .help("write the fields as `key: value`, one a line"),
    );
    None
}
