//! The file `agents`: who takes part.

use super::data::VariablesFile;
use super::data::{AgentEntry, AgentKind};
use super::part::{Folder, Part, meant, named_entries, unknown_fields};
use super::prompt;
use super::scope::Visible;
use super::team::{Team, is_reserved};
use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::FIELDS as CARD_FIELDS;
use tenure_cards::diagnostic::{Code, Report};
use tenure_cards::embed::{Reader, SpecScope, nearest, present};
use tenure_cards::source::{Key, Node, Span, Value};

/// Fields of an entry that a card does not have.
const OWN: &[&str] = &[
    "prompt_sections",
    "prompt_sections_custom",
    "system_message",
    "max_consecutive_auto_reply",
    "auto_tool_mode",
    "structured_outputs_required",
    "human_input_mode",
    "card",
    "workflow",
];
/// Fields of an entry that says nothing of its own: it points to something.
const POINTING: &[&str] = &[
    "name",
    "max_consecutive_auto_reply",
    "auto_tool_mode",
    "structured_outputs_required",
    "human_input_mode",
];
/// Fields of a card that say who a person talks to, which a workflow decides otherwise.
const MEANINGLESS: &[&str] = &["default", "tool_only"];

/// An entry with its name, before it is read.
pub(super) struct Draft<'p> {
    pub(super) name: Arc<str>,
    pub(super) name_span: Span,
    pub(super) node: &'p Node,
    pub(super) label: String,
}

/// An agent that was read, with what is still to be checked of it.
pub(super) struct Read {
    pub(super) entry: AgentEntry,
    pub(super) label: String,
    /// Where `auto_tool_mode: true` is written.
    pub(super) auto_span: Option<Span>,
    /// Where `structured_outputs_required: true` is written.
    pub(super) required_span: Option<Span>,
    /// The workflow that it is, and where that is written.
    pub(super) workflow: Option<(String, Span)>,
}

/// The entries with their names. Who has none, or one that is taken, is reported.
pub(super) fn names<'p>(folder: &mut Folder<'_, '_>, part: &'p Part) -> (Vec<Draft<'p>>, Team) {
    let mut drafts: Vec<Draft<'p>> = Vec::new();
    let mut is_whole = true;
    let source = &part.source;
    let list = match part.tree.field("agents") {
        Some(list) => list,
        None => &part.tree,
    };
    folder.entry(source, "", |scope| {
        if part.tree.field("agents").is_some() {
            unknown_fields(scope.reader, &part.tree, "the file", &["agents"]);
        }
        let reader = &mut *scope.reader;
        let entries: Vec<(Option<&Key>, &Node)> = match &list.value {
            Value::List(items) => items.iter().map(|item| (None, item)).collect(),
            Value::Map(_) => named_entries(list).map(|(key, item)| (Some(key), item)).collect(),
            _ => {
                reader.wrong_kind("agents", "a list or a mapping of agents", list);
                is_whole = false;
                return;
            }
        };
        for (at, (key, node)) in entries.into_iter().enumerate() {
            match named(at, key, node, reader) {
                Some((name, name_span)) => {
                    if drafts.iter().any(|draft| *draft.name == *name) {
                        let message = format!("another agent has the name `{name}`");
                        let help = "names are unique in a workflow; choose another";
                        reader.problem_help(Code::DuplicateAgent, name_span, message, help);
                        continue;
                    }
                    let label = format!("agents[{at}] `{name}`");
                    drafts.push(Draft { name: name.into(), name_span, node, label });
                }
                None => is_whole = false,
            }
        }
        if drafts.is_empty() && is_whole {
            let message = "the workflow has no agents";
            let help = "declare one: a name, and what it is told in `system_message`";
            reader.problem_help(Code::MissingField, list.span, message, help);
        }
    });
    let names = drafts.iter().map(|draft| Arc::clone(&draft.name)).collect();
    (drafts, Team { names, is_whole })
}

fn named(
    at: usize,
    key: Option<&Key>,
    node: &Node,
    reader: &mut Reader<'_>,
) -> Option<(String, Span)> {
    if node.map().is_none() {
        let each =
            key.map_or(format!("entry {at} of agents"), |key| format!("the agent {}", key.text));
        reader.wrong_kind(&each, "a mapping", node);
        return None;
    }
    let said = node.field("name").filter(|name| name.value != Value::Null);
    let (name, span) = match (key, said) {
        (None, None) => {
            let span = super::part::head(node);
            let message = format!("agents[{at}] has no name");
            reader.problem_help(Code::MissingField, span, message, "add `name`");
            return None;
        }
        (Some(key), None) => (key.text.trim().to_owned(), key.span),
        (_, Some(node)) => (reader.words_of("name", node)?.trim().to_owned(), node.span),
    };
    if let Some(key) = key.filter(|key| key.text.trim() != name) {
        let message = format!("this agent stands under `{}`, and its `name` is `{name}`", key.text);
        reader.problem_help(
            Code::Contradiction,
            span,
            message,
            "remove `name`, or make it the same",
        );
        return None;
    }
    let help = if name.is_empty() {
        "write a name".to_owned()
    } else if is_reserved(&name) {
        "`user` is the person and `terminate` the end of a chat; choose another".to_owned()
    } else if name.contains(char::is_whitespace) {
        let words: Vec<&str> = name.split_whitespace().collect();
        format!("a name is one word; write `{}`", words.join("_"))
    } else {
        return Some((name, span));
    };
    let message = format!("an agent cannot have the name `{name}`");
    reader.problem_help(Code::ReservedName, span, message, help);
    None
}

/// Reads the entries: each becomes a card, or points to one, or to a workflow.
pub(super) fn read(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    drafts: &[Draft<'_>],
    variables: &VariablesFile,
    visible: &Visible,
) -> Vec<Read> {
    let mut found = Vec::new();
    // Those that an agent does not see are reported with what to do.
    folder.loader.filled = visible.names.clone();
    for draft in drafts {
        let (node, label) = (draft.node, draft.label.as_str());
        let (common, tree, points) = folder.entry(&part.source, label, |scope| {
            fields(node, scope.reader);
            let points = pointing(node, scope.reader);
            let common = common(node, scope);
            let tree = match points {
                Points::Nowhere => Some(card_tree(draft, scope.reader)),
                _ => None,
            };
            (common, tree, points)
        });
        let mut workflow = None;
        let kind = match points {
            Points::Nowhere => {
                let mut report = Report::new();
                let tree = tree.unwrap_or_else(|| node.clone());
                let dir = folder.dir.clone();
                let name = folder.loader.embedded(&part.source, tree, &dir, &mut report);
                folder.report.extend(report.within(&part.source, label));
                Some(AgentKind::Card(name))
            }
            Points::Card(path, span) => card(folder, part, draft, &path, span).map(AgentKind::Card),
            Points::Workflow(name, span) => {
                workflow = Some((name.clone(), span));
                Some(AgentKind::Workflow(name.into()))
            }
            Points::Wrong => None,
        };
        let Some(kind) = kind else { continue };
        if let AgentKind::Card(name) = &kind {
            let told = folder.loader.cards().iter().find(|card| card.name == *name);
            let told = told.and_then(|card| card.instruction.clone());
            unseen(folder, part, draft, told.as_deref().unwrap_or_default(), variables);
        }
        let entry = AgentEntry {
            name: Arc::clone(&draft.name),
            kind,
            auto_tool_mode: common.auto.is_some(),
            output: None,
            max_consecutive_auto_reply: common.most,
            source: Arc::clone(&part.source),
            span: draft.name_span,
        };
        found.push(Read {
            entry,
            label: draft.label.clone(),
            auto_span: common.auto,
            required_span: common.required,
            workflow,
        });
    }
    found
}

/// Warns of variables that an instruction mentions and that its agent does not get to see: nobody puts
/// their values there.
fn unseen(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    draft: &Draft<'_>,
    told: &str,
    variables: &VariablesFile,
) {
    let seen: Vec<&String> = variables
        .exposures
        .iter()
        .filter(|it| *it.agent == *draft.name)
        .flat_map(|it| &it.variables)
        .collect();
    for (whole, name) in marks(told) {
        let is_declared = variables.definitions.iter().any(|it| it.name == name);
        if !is_declared || seen.iter().any(|it| *it == name) {
            continue;
        }
        let written = part.source.slice(draft.node.span).find(whole);
        let span = written.map_or(draft.name_span, |at| {
            let start = draft.node.span.start as usize + at;
            Span::new(start, start + whole.len())
        });
        folder.entry(&part.source, &draft.label, |scope| {
            let message =
                format!("`{whole}` stays as it is: `{}` does not see this variable", draft.name);
            let help = format!(
                "add `{name}` to what `{}` sees, under `agents` in context_variables",
                draft.name
            );
            scope.reader.problem_help(Code::UnknownTemplate, span, message, help);
        });
    }
}

/// Every `{{name}}` and `${name}` of a text, with the name in it.
fn marks(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (open, close) in [("{{", "}}"), ("${", "}")] {
        for (at, _) in text.match_indices(open) {
            let inner = &text[at + open.len()..];
            if let Some(end) = inner.find(close) {
                let whole = &text[at..at + open.len() + end + close.len()];
                found.push((whole, inner[..end].trim()));
            }
        }
    }
    found
}

/// Fields that are neither an agent's nor a card's.
fn fields(node: &Node, reader: &mut Reader<'_>) {
    let known = || OWN.iter().copied().chain(CARD_FIELDS.iter().map(|field| field.name));
    for (key, _) in named_entries(node) {
        if known().any(|field| field == key.text) {
            continue;
        }
        let help = match nearest(&key.text, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it; an agent has the fields of a card, and those of a workflow's agent"
                .to_owned(),
        };
        let message = format!("`{}` is not a field of an agent", key.text);
        reader.problem_help(Code::UnknownEntryField, key.span, message, help);
    }
    let asks = present(node, "human_input_mode");
    if let Some(place) = asks.filter(|it| it.text().is_none_or(|it| it.trim() != "NEVER")) {
        let message = "`human_input_mode` can only be `NEVER`: no agent speaks for a person";
        let help = "remove it, and hand over to `user` where a person is to be asked";
        reader.problem_help(Code::NotOneOf, place.span, message, help);
    }
    for name in MEANINGLESS {
        if let Some((key, _)) = present(node, name).and_then(|_| node.entry(name)) {
            let message = format!("`{name}` means nothing in a workflow");
            let help = "remove it; who speaks is what the orchestrator and the handoffs say";
            reader.problem_help(Code::MeaninglessField, key.span, message, help);
        }
    }
}

/// What an entry is.
enum Points {
    /// The agent itself.
    Nowhere,
    Card(String, Span),
    Workflow(String, Span),
    Wrong,
}

fn pointing(node: &Node, reader: &mut Reader<'_>) -> Points {
    let (card, workflow) = (present(node, "card"), present(node, "workflow"));
    let (field, place) = match (card, workflow) {
        (None, None) => return Points::Nowhere,
        (Some(_), Some(other)) => {
            let message = "this agent has both `card` and `workflow`";
            reader.problem_help(Code::Contradiction, other.span, message, "keep one of the two");
            return Points::Wrong;
        }
        (Some(card), None) => ("card", card),
        (None, Some(workflow)) => ("workflow", workflow),
    };
    let others = named_entries(node).filter(|(key, value)| {
        key.text != field && !POINTING.contains(&&*key.text) && value.value != Value::Null
    });
    for (key, _) in others {
        let message = format!("`{}` has no effect beside `{field}`", key.text);
        let help = match field {
            "card" => "write it into the card",
            _ => "write it into that workflow's own files",
        };
        reader.problem_help(Code::Contradiction, key.span, message, help);
    }
    if field == "workflow" && present(node, "auto_tool_mode").is_some() {
        let message = "`auto_tool_mode` is said of agents with tools, and this is a workflow";
        reader.problem_help(Code::Contradiction, place.span, message, "remove it");
    }
    match (reader.words_of(field, place), field) {
        (None, _) => Points::Wrong,
        (Some(text), "card") => Points::Card(text.trim().to_owned(), place.span),
        (Some(text), _) => Points::Workflow(text.trim().to_owned(), place.span),
    }
}

struct Common {
    most: Option<u32>,
    auto: Option<Span>,
    required: Option<Span>,
}

fn common(node: &Node, scope: &mut SpecScope<'_, '_>) -> Common {
    let reader = &mut *scope.reader;
    let most = reader.whole(node, "max_consecutive_auto_reply", 0..=i64::from(u32::MAX));
    let mut said = |name: &str| {
        let place = node.field(name).map(|it| it.span);
        reader.truth(node, name).filter(|truth| *truth).and(place)
    };
    Common {
        most: most.and_then(|most| u32::try_from(most).ok()),
        auto: said("auto_tool_mode"),
        required: said("structured_outputs_required"),
    }
}

/// The entry as the tree of a card: without what only workflows have, with its name and its prompt.
fn card_tree(draft: &Draft<'_>, reader: &mut Reader<'_>) -> Node {
    let node = draft.node;
    let known = |name: &str| CARD_FIELDS.iter().any(|field| field.name == name);
    let fields = node.map().unwrap_or_default().iter().filter(|(key, _)| {
        known(&key.text) && key.text != "name" && !MEANINGLESS.contains(&&*key.text)
    });
    let mut entries: Vec<(Key, Node)> = Vec::new();
    let field = |name: &str, span: Span, text: String| {
        (Key { span, text: name.to_owned() }, Node::new(span, Value::Text(text)))
    };
    entries.push(field("name", draft.name_span, draft.name.to_string()));
    entries.extend(fields.cloned());
    if let Some((text, span)) = prompt::read(node, draft.name_span, reader) {
        entries.push(field("instruction", span, text));
    }
    Node::new(node.span, Value::Map(entries))
}

/// The card of a file. It has the name that the entry gives it.
fn card(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    draft: &Draft<'_>,
    path: &str,
    span: Span,
) -> Option<Arc<str>> {
    let dir = folder.dir.clone();
    let problem = |folder: &mut Folder<'_, '_>, code, message: String, help: String| {
        folder.entry(&part.source, &draft.label, |scope| {
            scope.reader.problem_help(code, span, message, help);
        });
    };
    let file = match folder.loader.project.confine(&dir, Path::new(path)) {
        Ok(file) => file,
        Err(error) => {
            let names: Vec<String> = cards_in(&dir);
            let near: Vec<&str> = names.iter().map(String::as_str).collect();
            let help = match nearest(path, near.iter().copied()) {
                Some(_) => meant(path, &near, "card"),
                None => "a path starts from the workflow's folder".to_owned(),
            };
            let message = format!("the card `{path}` {error}");
            problem(folder, Code::PathMissing, message, help);
            return None;
        }
    };
    let shown = folder.shown.join(path);
    let shown = shown.components().as_path().to_owned();
    if folder.loader.cards().iter().any(|card| card.source.path() == shown) {
        let message = format!("the card `{path}` is another agent of this workflow already");
        let help = "an agent takes part once; remove one of the two entries".to_owned();
        problem(folder, Code::DuplicateAgent, message, help);
        return None;
    }
    let name = folder.loader.card_file(&file, &shown)?;
    if *name != *draft.name {
        let message = format!("the card `{path}` is the agent `{name}`, not `{}`", draft.name);
        let help = format!("write `name: {name}` here, or `name: {}` into the card", draft.name);
        problem(folder, Code::Contradiction, message, help);
        return None;
    }
    Some(name)
}

/// Markdown files of the folder and of `cards/` and `agents/` in it.
fn cards_in(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for sub in ["", "cards/", "agents/"] {
        let entries = std::fs::read_dir(dir.join(sub)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        found.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{sub}{name}")));
    }
    found.sort();
    found
}
