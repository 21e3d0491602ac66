//! From a tree to a typed card, in one pass that finds every problem.

mod agent;
mod mcp;
mod model;
mod tools;
mod workflow;

use super::expand::Environ;
use super::field::{FIELDS, find};
use super::{Card, CardKind, CardType, Reader, history, instruction, list_words, present};
use crate::diagnostic::{Code, Report};
use crate::hook::{SpecScope, read_hooks};
use crate::nearest::nearest;
use crate::project::Project;
use crate::python::{Origin, PythonFiles};
use crate::source::{Document, Node, Span, Value};
use std::path::Path;
use std::sync::Arc;

/// What reading a card needs from around it.
pub(crate) struct CardContext<'a> {
    pub(crate) project: &'a Project,
    pub(crate) environ: &'a Environ,
    pub(crate) python: &'a mut PythonFiles,
    pub(crate) registered: Option<&'a [String]>,
    /// The card's folder, resolved.
    pub(crate) dir: &'a Path,
    /// Names in instructions that somebody else puts values for.
    pub(crate) filled: &'a [String],
}

/// What could be read.
pub(crate) struct ParsedCard {
    /// The name, also of a card that cannot be used.
    pub(crate) name: Arc<str>,
    pub(crate) card: Option<Card>,
}

/// Reads a document as a card. Every problem goes to `report`.
pub(crate) fn parse_card(
    document: Document,
    context: CardContext<'_>,
    report: &mut Report,
) -> ParsedCard {
    let source = Arc::clone(&document.source);
    let CardContext { project, environ, python, registered, dir, filled } = context;
    let shown = source.path().parent().unwrap_or(Path::new("")).to_owned();
    let mut reader = Reader::new(&source, report, environ);
    let tree = &document.tree;
    let (name, name_span) = name(tree, &mut reader);
    let Some((card_type, smart)) = card_type(tree, &mut reader) else {
        return ParsedCard { name, card: None };
    };
    fields(tree, card_type, &mut reader);
    schema_version(tree, &mut reader);
    reader.kept = filled;
    let instruction = read_instruction(&document, &mut reader, project, filled);
    reader.kept = &[];
    let description = reader.words(tree, "description").map(|text| text.trim().to_owned());
    let default = reader.truth(tree, "default").unwrap_or(false);
    let tool_only = reader.truth(tree, "tool_only").unwrap_or(false);
    if default && tool_only {
        let span = tree.entry("tool_only").map_or(tree.span, |(key, _)| key.span);
        reader.problem_help(
            Code::Contradiction,
            span,
            "`tool_only` hides this agent from people, and `default` makes it the one they talk to",
            "keep one of the two",
        );
    }
    let origin = || Origin { project, dir, shown: &shown };
    let messages = match has(card_type, "messages") {
        true => history::read(tree, &mut reader, &origin()),
        false => Vec::new(),
    };
    let mut scope = SpecScope { reader: &mut reader, origin: origin(), python, registered };
    let hooks = match has(card_type, "hooks") {
        true => read_hooks(&hookable(tree, card_type), &mut scope),
        false => Default::default(),
    };
    let kind = match card_type {
        CardType::Agent => {
            Some(CardKind::Agent(Box::new(agent::read(tree, &mut scope, smart, tool_only))))
        }
        other => workflow::read(tree, &mut reader, other),
    };
    let expansions = std::mem::take(&mut reader.expansions);
    let card = kind.map(|kind| Card {
        name: Arc::clone(&name),
        name_span,
        kind,
        instruction,
        description,
        default,
        tool_only,
        hooks,
        messages,
        expansions,
        source: Arc::clone(&source),
        dir: dir.to_owned(),
        document,
    });
    ParsedCard { name, card }
}

/// The tree without `tool_hooks` where they do not belong: that is reported as such.
fn hookable(tree: &Node, card_type: CardType) -> Node {
    if has(card_type, "tool_hooks") {
        return tree.clone();
    }
    let kept = tree.map().unwrap_or_default().iter();
    let kept = kept.filter(|(key, _)| key.text != "tool_hooks").cloned().collect();
    Node::new(tree.span, Value::Map(kept))
}

fn has(card_type: CardType, field: &str) -> bool {
    find(field).is_some_and(|field| field.types.contains(&card_type))
}

fn name(tree: &Node, reader: &mut Reader<'_>) -> (Arc<str>, Span) {
    let tidy = |name: &str| Arc::<str>::from(name.trim().replace(' ', "_"));
    let stem = reader.source.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let stem = (tidy(&stem.unwrap_or_default()), Span::at(tree.span.start as usize));
    let Some(node) = tree.field("name") else { return stem };
    match &node.value {
        Value::Text(text) => {
            let text = reader.expanded(text, node.span);
            if !text.trim().is_empty() {
                return (tidy(&text), node.span);
            }
            reader.problem_help(
                Code::EmptyText,
                node.span,
                "`name` is empty",
                "write a name, or leave `name` out to take the file's",
            );
        }
        _ => reader.wrong_kind("name", "text", node),
    }
    stem
}

/// The type, and whether it is the older spelling `smart`.
fn card_type(tree: &Node, reader: &mut Reader<'_>) -> Option<(CardType, bool)> {
    let Some(node) = present(tree, "type") else { return Some((CardType::Agent, false)) };
    let text = reader.text_of("type", node)?;
    let wanted = text.trim();
    if wanted.is_empty() {
        return Some((CardType::Agent, false));
    }
    if wanted.eq_ignore_ascii_case("smart") {
        let refused = tree.field("harness_tools").is_some_and(|it| it.value == Value::Bool(false));
        let message = if refused {
            "`type: smart` is an older spelling"
        } else {
            "`type: smart` is an older spelling, and the harness tools that it implies are not in \
             this release: the agent runs without them"
        };
        let help = "write `type: agent` with `subagents: true`";
        reader.problem_help(Code::SmartType, node.span, message, help);
        return Some((CardType::Agent, true));
    }
    let known = CardType::ALL.into_iter().find(|it| it.as_str().eq_ignore_ascii_case(wanted));
    if known.is_none() {
        let names = CardType::ALL.map(CardType::as_str);
        let folded = wanted.to_lowercase().replace('-', "_");
        let help = match nearest(&folded, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the types are {}", list_words(&names, "and")),
        };
        let message = format!("there is no type of card `{wanted}`");
        reader.problem_help(Code::UnknownType, node.span, message, help);
    }
    known.map(|known| (known, false))
}

/// Reports fields that are unknown, that belong to other types, and that are missing.
fn fields(tree: &Node, card_type: CardType, reader: &mut Reader<'_>) {
    for (key, _) in tree.map().unwrap_or_default() {
        let name = key.text.as_str();
        match find(name) {
            Some(field) if field.types.contains(&card_type) => {}
            Some(field) => {
                let types: Vec<&str> = field.types.iter().map(|it| it.as_str()).collect();
                let help = match name {
                    "tool_hooks" => {
                        "write them under `hooks`, as in `- { on: wrap_tool_call, run: \
                                     file.py:function }`"
                            .to_owned()
                    }
                    _ => format!("it is a field of {}", list_words(&types, "and")),
                };
                let message = format!("`{name}` is not a field of type {card_type}");
                reader.problem_help(Code::FieldOfOtherType, key.span, message, help);
            }
            None if reader.report.is_full(reader.source, Code::UnknownField) => {}
            None => {
                let possible = FIELDS.iter().filter(|field| field.types.contains(&card_type));
                let own: Vec<&str> = possible.map(|field| field.name).collect();
                let help = match nearest(name, own.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => match nearest(name, FIELDS.iter().map(|field| field.name)) {
                        Some(near) => format!("`{near}` is a field of other types"),
                        None => format!(
                            "remove it; `tenure schema` lists the fields of type {card_type}"
                        ),
                    },
                };
                let message = format!("`{name}` is not a field of a card");
                reader.problem_help(Code::UnknownField, key.span, message, help);
            }
        }
    }
    for field in FIELDS.iter().filter(|field| field.required.contains(&card_type)) {
        if present(tree, field.name).is_none() {
            let place =
                tree.entry(field.name).or_else(|| tree.entry("type")).map(|(key, _)| key.span);
            let span = place.unwrap_or(Span::at(tree.span.start as usize));
            reader.problem_help(
                Code::MissingField,
                span,
                format!("a card of type {card_type} needs `{}`", field.name),
                format!("add `{}`", example(field.name)),
            );
        }
    }
}

fn example(field: &str) -> &str {
    match field {
        "agents" => "agents: [first, second]",
        "sequence" => "sequence: [first, second]",
        "fan_out" => "fan_out: [first, second]",
        "generator" => "generator: writer",
        "evaluator" => "evaluator: critic",
        "worker" => "worker: solver",
        "url" => "url: https://example.org",
        other => other,
    }
}

fn schema_version(tree: &Node, reader: &mut Reader<'_>) {
    let Some(node) = present(tree, "schema_version") else { return };
    match node.value {
        Value::Int(1) => {}
        Value::Int(version) => reader.problem_help(
            Code::UnknownSchemaVersion,
            node.span,
            format!("this card has schema version {version}, and only 1 is known"),
            "write `schema_version: 1`, or use a newer release that knows it",
        ),
        _ => reader.wrong_kind("schema_version", "a whole number", node),
    }
}

fn read_instruction(
    document: &Document,
    reader: &mut Reader<'_>,
    project: &Project,
    filled: &[String],
) -> Option<Arc<str>> {
    let source = Arc::clone(reader.source);
    let field = present(&document.tree, "instruction");
    let from_field =
        field.and_then(|node| Some((reader.words_of("instruction", node)?, node.span)));
    if let (Some(body), Some((key, _))) = (&document.body, document.tree.entry("instruction"))
        && field.is_some()
    {
        let line = source.line_col(body.span.start as usize).line;
        reader.problem_help(
            Code::InstructionTwice,
            key.span,
            format!("the body (line {line}) is an instruction, and so is this field"),
            "keep one of the two",
        );
    }
    let (text, span) = match (&document.body, from_field) {
        (Some(body), _) => (body.text.clone(), body.span),
        (None, Some((text, span))) => (text, span),
        (None, None) => return None,
    };
    instruction::check(&text, &source, span, project, filled, reader.report);
    Some(text.into())
}
