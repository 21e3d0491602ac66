//! The file `context_variables`.

use super::data::VariablesFile;
use super::part::{Folder, Part, meant, named_entries, unknown_fields};
use super::scope::Visible;
use super::team::Team;
use super::{database, source};
use crate::variables::{
    Definition, DescribedSchema, Exposure, Kind, Provided, Source, State, check,
};
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Origin, Reader, nearest, present};
use tenure_cards::source::{Key, Node, Span, Value};
use tenure_core::chat::Chat;
use tenure_hosts::PythonFile;

const FIELDS: &[&str] = &["name", "type", "description", "source", "database", "default", "enum"];

/// Which tools there are, for triggers that wait for what people say to them.
pub(super) struct Tools {
    pub(super) names: Vec<String>,
    pub(super) is_whole: bool,
    /// The Python that the tools are in.
    pub(super) files: Vec<Arc<PythonFile>>,
}

/// A variable that was read, with its place.
struct Placed<'p> {
    definition: Definition,
    span: Span,
    label: String,
    node: &'p Node,
    /// Whether nothing is wrong with it so far.
    is_sound: bool,
}

/// Reads the file: the variables, and which agents see which.
pub(super) fn read(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    team: &Team,
    tools: &Tools,
) -> (VariablesFile, Visible) {
    let Shape { definitions, agents, schema } = shape(folder, part);
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut is_whole = true;
    for (at, (key, node)) in definitions.iter().enumerate() {
        let name = key.map(|key| key.text.as_str());
        let name = name.or_else(|| node.field("name").and_then(Node::text)).map(str::trim);
        let label = match name {
            Some(name) => format!("definitions[{at}] `{name}`"),
            None => format!("definitions[{at}]"),
        };
        let read = folder.entry(&part.source, &label, |scope| {
            let (name, span) = named(*key, node, &placed, scope.reader)?;
            let definition = one(&name, span, node, scope.reader, team, tools, &scope.origin);
            Some((name, span, definition))
        });
        let Some((name, span, definition)) = read else {
            is_whole = false;
            continue;
        };
        let is_sound = definition.is_some();
        // The name counts even if the rest is wrong: whoever mentions it is not.
        let fallback = || Definition::new(name, Kind::Any, Source::State(State::default()));
        let definition = definition.unwrap_or_else(fallback);
        placed.push(Placed { definition, span, label, node, is_sound });
    }
    let mut names: Vec<_> = placed.iter().map(|it| it.definition.name.clone()).collect();
    let provided = provided(folder, tools, &names);
    names.extend(provided.iter().map(|it| it.name.clone()));
    let visible = Visible { names, is_whole };
    net(folder, part, &placed, &provided, &visible);
    let exposures = match agents {
        Some(agents) => exposures(folder, part, agents, team, &visible),
        None => Vec::new(),
    };
    let definitions = placed.into_iter().map(|it| it.definition).chain(provided).collect();
    (VariablesFile { definitions, exposures, schema }, visible)
}

/// What the platform provides and the files of the workflow mention, if they do not declare it.
pub(super) fn provided(
    folder: &Folder<'_, '_>,
    tools: &Tools,
    declared: &[String],
) -> Vec<Definition> {
    let files = || folder.sources.iter().map(|(_, source)| source.text());
    let is_mentioned = |name: &str| {
        let python = tools.files.iter().map(|file| &**file.source());
        files().chain(python).any(|text| text.contains(name))
    };
    let all = Provided::definitions().filter(|it| !declared.contains(&it.name));
    all.filter(|it| is_mentioned(&it.name)).collect()
}

type Entries<'p> = Vec<(Option<&'p Key>, &'p Node)>;

/// The parts of the file, wherever its shape has them.
#[derive(Default)]
struct Shape<'p> {
    definitions: Entries<'p>,
    agents: Option<&'p Node>,
    schema: DescribedSchema,
}

fn shape<'p>(folder: &mut Folder<'_, '_>, part: &'p Part) -> Shape<'p> {
    folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        let tree = match part.tree.field("context_variables") {
            Some(inner) => {
                unknown_fields(reader, &part.tree, "the file", &["context_variables"]);
                inner
            }
            None => &part.tree,
        };
        let list = |entries: &'p [Node]| entries.iter().map(|node| (None, node)).collect();
        let map = |node: &'p Node| -> Entries<'p> {
            named_entries(node).map(|(key, node)| (Some(key), node)).collect()
        };
        let all = |definitions| Shape { definitions, ..Shape::default() };
        if tree.map().is_none() {
            return match &tree.value {
                Value::List(items) => all(list(items)),
                Value::Null => Shape::default(),
                _ => {
                    reader.wrong_kind("context_variables", "a mapping", tree);
                    Shape::default()
                }
            };
        }
        let is_list = |name: &str| tree.field(name).is_some_and(|it| it.list().is_some());
        let is_split = tree.field("definitions").is_some() || tree.field("agents").is_some();
        // A variable may be called `variables`; a list of them is the older name of definitions.
        if !is_split && !is_list("variables") {
            return all(map(tree));
        }
        let known = ["definitions", "variables", "agents", "schema_overview"];
        unknown_fields(reader, tree, "context_variables", &known);
        let (newer, older) = (present(tree, "definitions"), present(tree, "variables"));
        if let (Some(_), Some(older)) = (newer, older) {
            let message = "`variables` is the older name of `definitions`, and both are here";
            reader.problem_help(Code::Contradiction, older.span, message, "make them one");
        }
        let definitions = match newer.or(older) {
            None => Vec::new(),
            Some(node) => match &node.value {
                Value::List(items) => list(items),
                Value::Map(_) => map(node),
                _ => {
                    reader.wrong_kind("definitions", "a list or a mapping of variables", node);
                    Vec::new()
                }
            },
        };
        let schema = described(tree, reader, &scope.origin);
        Shape { definitions, agents: present(tree, "agents"), schema }
    })
}

/// `schema_overview`: the database that chats get to know.
fn described(tree: &Node, reader: &mut Reader<'_>, origin: &Origin<'_>) -> DescribedSchema {
    let Some(node) = reader.mapping(tree, "schema_overview") else {
        return DescribedSchema::default();
    };
    unknown_fields(reader, node, "`schema_overview`", &["enabled", "database_name"]);
    let is_included = reader.truth(node, "enabled").unwrap_or(false);
    let database = present(node, "database_name").map(|_| database::database(node, reader, origin));
    DescribedSchema { is_included, database }
}

fn named(
    key: Option<&Key>,
    node: &Node,
    others: &[Placed<'_>],
    reader: &mut Reader<'_>,
) -> Option<(String, Span)> {
    if node.map().is_none() {
        let each = key.map_or("a variable".to_owned(), |key| format!("the variable {}", key.text));
        reader.wrong_kind(&each, "a mapping with `type` and `source`", node);
        return None;
    }
    let said = present(node, "name");
    let (name, span) = match (key, said) {
        (None, None) => {
            let span = super::part::head(node);
            let message = "this variable has no name";
            reader.problem_help(Code::MissingField, span, message, "add `name`");
            return None;
        }
        (Some(key), None) => (key.text.trim().to_owned(), key.span),
        (_, Some(node)) => (reader.words_of("name", node)?.trim().to_owned(), node.span),
    };
    if key.is_some_and(|key| key.text.trim() != name) {
        let message = "this variable has two names";
        reader.problem_help(Code::Contradiction, span, message, "remove `name`");
    }
    let is_start = |c: char| c.is_alphabetic() || c == '_';
    let is_name = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_numeric());
    if !is_name {
        let message = format!("a variable cannot have the name `{name}`");
        let help = "a name has letters, digits and `_`, so that conditions can mention it";
        reader.problem_help(Code::BadVariable, span, message, help);
        return None;
    }
    if Chat::system_keys().contains(&name.as_str()) {
        let message = format!("`{name}` is set by the workflow itself");
        let help = "remove it; every chat has it, and nobody can change it";
        reader.problem_help(Code::BadVariable, span, message, help);
        return None;
    }
    if others.iter().any(|other| other.definition.name == name) {
        let message = format!("another variable has the name `{name}`");
        reader.problem_help(Code::DuplicateEntry, span, message, "remove one of the two");
        return None;
    }
    Some((name, span))
}

fn one(
    name: &str,
    span: Span,
    node: &Node,
    reader: &mut Reader<'_>,
    team: &Team,
    tools: &Tools,
    origin: &Origin<'_>,
) -> Option<Definition> {
    let errors = reader.report.errors();
    unknown_fields(reader, node, "a variable", FIELDS);
    let kind = kind(node, "type", reader).unwrap_or_default();
    let description = reader.words(node, "description");
    if let Some((key, _)) = present(node, "enum").and_then(|_| node.entry("enum")) {
        let message = "`enum` means nothing: nothing here enforces it";
        let help = "check the value in a hook, or in the tool that sets it";
        reader.problem_help(Code::MeaninglessField, key.span, message, help);
    }
    if let (Some(_), Some(second)) = (present(node, "source"), present(node, "database")) {
        let message = "this variable has both `source` and `database`";
        reader.problem_help(Code::Contradiction, second.span, message, "keep one of the two");
    }
    let source = match (present(node, "source"), node.field("default")) {
        // The oldest form: the source's fields without its type.
        (None, None) if present(node, "database").is_some() => reader
            .mapping(node, "database")
            .map(|place| database::reference(place, &["type"], reader, origin)),
        (Some(place), None | Some(Node { value: Value::Null, .. })) => {
            source::read(place, reader, team, tools, origin)
        }
        (Some(_), Some(default)) => {
            let message = "this variable has both `source` and `default`";
            let help = "write the default into the source";
            reader.problem_help(Code::Contradiction, default.span, message, help);
            None
        }
        // The short form: a state that begins with the default.
        (None, Some(default)) => Some(Source::State(State::new(default.to_json()))),
        (None, None) => {
            let message = format!("the variable `{name}` has no `source`");
            let help = "add `source`, as in `source: { type: state, default: null }`";
            reader.problem_help(Code::MissingField, span, message, help);
            None
        }
    };
    let mut definition = Definition::new(name, kind, source?);
    definition.description = description.map(|it| it.trim().to_owned());
    (reader.report.errors() == errors).then_some(definition)
}

/// A type of variable.
pub(super) fn kind(node: &Node, field: &str, reader: &mut Reader<'_>) -> Option<Kind> {
    let place = present(node, field)?;
    let text = reader.words_of(field, place)?;
    let found = Kind::parse(&text);
    if found.is_none() {
        let names: Vec<&str> = Kind::names().collect();
        let message = format!("`{field}` is `{}`, which is no type of variable", text.trim());
        let help = match nearest(text.trim(), names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use str, int, float, bool, list, dict, json or any".to_owned(),
        };
        reader.problem_help(Code::NotOneOf, place.span, message, help);
    }
    found
}

/// Reports what else the variables themselves find wrong, each at its field.
fn net(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    placed: &[Placed<'_>],
    provided: &[Definition],
    visible: &Visible,
) {
    let own = placed.iter().map(|it| &it.definition);
    let definitions: Vec<Definition> = own.chain(provided).cloned().collect();
    for problem in check(&definitions, &[]) {
        let Some(found) = placed.iter().find(|it| it.definition.name == problem.name) else {
            continue;
        };
        let unknown = problem.message.contains("not declared");
        let code = match problem.message.contains("circle") || problem.message.contains("itself") {
            true => Code::VariableCycle,
            false if unknown => Code::UnknownVariable,
            false => Code::BadVariable,
        };
        if !found.is_sound || unknown && !visible.is_whole {
            continue;
        }
        let field = problem.field.unwrap_or("name");
        let place = field.split('.').try_fold(found.node, |node, name| node.field(name));
        // The short form has its default beside its type.
        let place = place.or_else(|| found.node.field(field.rsplit('.').next().unwrap_or(field)));
        let span = place.map_or(found.span, |node| node.span);
        folder.entry(&part.source, &found.label, |scope| {
            let message = format!("the variable `{}`: {}", problem.name, problem.message);
            scope.reader.problem_help(code, span, message, problem.help);
        });
    }
}

/// Which agents see which variables: a list, or a mapping by agent.
fn exposures(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    node: &Node,
    team: &Team,
    visible: &Visible,
) -> Vec<Exposure> {
    let entries: Entries<'_> = match &node.value {
        Value::List(items) => items.iter().map(|item| (None, item)).collect(),
        Value::Map(_) => named_entries(node).map(|(key, item)| (Some(key), item)).collect(),
        _ => {
            folder.entry(&part.source, "", |scope| {
                scope.reader.wrong_kind("agents", "a list or a mapping of agents", node);
            });
            return Vec::new();
        }
    };
    let mut exposures: Vec<Exposure> = Vec::new();
    for (at, (key, item)) in entries.into_iter().enumerate() {
        let names = ["agent_name", "agent", "name"];
        let said = names.iter().find_map(|name| present(item, name));
        let shown = key.map(|key| key.text.as_str()).or_else(|| said.and_then(Node::text));
        let label = match shown {
            Some(name) => format!("agents[{at}] `{}`", name.trim()),
            None => format!("agents[{at}]"),
        };
        let exposure = folder.entry(&part.source, &label, |scope| {
            let reader = &mut *scope.reader;
            if item.map().is_some() {
                let known = ["agent_name", "agent", "name", "variables"];
                unknown_fields(reader, item, "an exposure", &known);
            }
            let (agent, span) = match (key, said) {
                (Some(key), _) => (key.text.clone(), key.span),
                (None, Some(place)) => (reader.words_of("agent", place)?, place.span),
                (None, None) => {
                    let message = "this entry names no agent";
                    reader.problem_help(Code::MissingField, item.span, message, "add `agent`");
                    return None;
                }
            };
            let agent = team.agent_or_user(agent.trim(), span, "this entry", reader);
            let list = match item.list() {
                Some(_) => reader.texts_of("variables", item),
                None => reader.texts(item, "variables"),
            };
            let mut variables: Vec<String> = Vec::new();
            for (name, span) in list.unwrap_or_default() {
                if visible.is_whole && !visible.has(&name) {
                    let known: Vec<&str> = visible.names.iter().map(String::as_str).collect();
                    let message = format!("`variables` names `{name}`, which is not declared");
                    let help = meant(&name, &known, "variable");
                    reader.problem_help(Code::UnknownVariable, span, message, help);
                } else if !variables.contains(&name) {
                    variables.push(name);
                }
            }
            let agent = agent?;
            if exposures.iter().any(|other| *other.agent == *agent) {
                let message = format!("another entry says what `{agent}` sees");
                reader.problem_help(Code::DuplicateEntry, span, message, "make one entry of them");
                return None;
            }
            Some(Exposure::new(&*agent, variables))
        });
        exposures.extend(exposure);
    }
    exposures
}
