//! Where the value of a variable comes from.

use super::database::{entity, persist_to, reference};
use super::part::{head, meant, unknown_fields};
use super::team::Team;
use super::variables::{Tools, kind};
use crate::variables::{
    Computed, Config, File, FileFormat, Pattern, Source, SourceKind, State, Transition, Trigger,
};
use std::path::Path;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Origin, Reader, present};
use tenure_cards::source::Node;

const FORMATS: &[(&str, FileFormat)] =
    &[("json", FileFormat::Json), ("yaml", FileFormat::Yaml), ("text", FileFormat::Text)];

/// The source that a mapping with `type` describes.
pub(super) fn read(
    node: &Node,
    reader: &mut Reader<'_>,
    team: &Team,
    tools: &Tools,
    origin: &Origin<'_>,
) -> Option<Source> {
    if node.map().is_none() {
        reader.wrong_kind("source", "a mapping with `type`", node);
        return None;
    }
    let Some(place) = present(node, "type") else {
        let known: Vec<&str> = SourceKind::names().collect();
        let message = "this source has no `type`";
        let help = format!("add `type`: {}", tenure_cards::embed::list_words(&known, "or"));
        reader.problem_help(Code::UnknownSource, head(node), message, help);
        return None;
    };
    let text = reader.words_of("type", place)?;
    let Some(kind) = SourceKind::parse(text.trim()) else {
        let known: Vec<&str> = SourceKind::names().collect();
        let message = format!("there is no source of type `{}`", text.trim());
        let help = meant(text.trim(), &known, "type");
        reader.problem_help(Code::UnknownSource, place.span, message, help);
        return None;
    };
    let name = text.trim().to_owned();
    let only = |reader: &mut Reader<'_>, fields: &[&str]| {
        let all: Vec<&str> = fields.iter().copied().chain(["type"]).collect();
        unknown_fields(reader, node, &format!("a source of type {name}"), &all);
    };
    Some(match kind {
        SourceKind::Config => {
            only(reader, &["env_var", "default", "required"]);
            let mut config = Config::new(words(reader, node, "env_var").unwrap_or_default());
            config.default = default(node);
            config.required = reader.truth(node, "required").unwrap_or(false);
            Source::Config(config)
        }
        SourceKind::State => {
            only(reader, &["default", "triggers", "transitions", "persist"]);
            let mut state = State::new(default(node).unwrap_or_default());
            state.triggers = triggers(node, reader, team, tools);
            state.persist = reader.truth(node, "persist").unwrap_or(true);
            Source::State(state)
        }
        SourceKind::Computed
            if present(node, "computation").is_none() && node.field("default").is_some() =>
        {
            only(reader, &["computation", "inputs", "output_type", "persist_to", "default"]);
            let message = "nothing computes this variable, so `computed` means `state`";
            let help = "write `type: state`, or add `computation`";
            reader.problem_help(Code::MeaninglessField, place.span, message, help);
            Source::State(State::new(default(node).unwrap_or_default()))
        }
        SourceKind::Computed => {
            only(reader, &["computation", "inputs", "output_type", "persist_to"]);
            let mut computed = Computed::new(needed(reader, node, "computation")?);
            computed.inputs = list(reader, node, "inputs");
            computed.output_type = kind_of(reader, node);
            computed.persist_to = persist_to(reader, node, origin);
            Source::Computed(computed)
        }
        SourceKind::File => {
            only(reader, &["path", "format", "encoding", "default", "required"]);
            file(node, reader, origin)?
        }
        SourceKind::Static => {
            only(reader, &["value", "default"]);
            let value = node.field("value").or(node.field("default"));
            let Some(value) = value else {
                let message = "a static source has no `value`";
                reader.problem_help(Code::MissingField, head(node), message, "add `value`");
                return None;
            };
            Source::Static(value.to_json())
        }
        SourceKind::DataReference => reference(node, &["type"], reader, origin),
        SourceKind::DataEntity => {
            only(
                reader,
                &[
                    "db_type",
                    "database_name",
                    "collection",
                    "schema",
                    "indexes",
                    "write_strategy",
                    "search_by",
                ],
            );
            entity(node, reader, origin)
        }
        SourceKind::Refused(help) => {
            let message = format!("a source of type `{name}` is not read by Tenure");
            reader.problem_help(Code::UnknownSource, place.span, message, help);
            return None;
        }
    })
}

/// A text, trimmed.
pub(super) fn words(reader: &mut Reader<'_>, node: &Node, name: &str) -> Option<String> {
    reader.words(node, name).map(|it| it.trim().to_owned())
}

/// A text that has to be there.
fn needed(reader: &mut Reader<'_>, node: &Node, name: &str) -> Option<String> {
    if present(node, name).is_none() {
        let span = node.entry(name).map_or(head(node), |(key, _)| key.span);
        let message = format!("this source has no `{name}`");
        reader.problem_help(Code::MissingField, span, message, format!("add `{name}`"));
    }
    words(reader, node, name)
}

/// The texts of a list.
pub(super) fn list(reader: &mut Reader<'_>, node: &Node, name: &str) -> Vec<String> {
    let texts = reader.texts(node, name).unwrap_or_default();
    texts.into_iter().map(|(text, _)| text).collect()
}

/// What `default` says, unless it is null.
pub(super) fn default(node: &Node) -> Option<serde_json::Value> {
    present(node, "default").map(Node::to_json)
}

fn kind_of(reader: &mut Reader<'_>, node: &Node) -> Option<crate::variables::Kind> {
    kind(node, "output_type", reader)
}

fn file(node: &Node, reader: &mut Reader<'_>, origin: &Origin<'_>) -> Option<Source> {
    let format = reader.one_of(node, "format", FORMATS);
    let path = needed(reader, node, "path")?;
    let place = present(node, "path")?;
    let guessed = match Path::new(&path).extension().and_then(|end| end.to_str()) {
        Some("yaml" | "yml") => FileFormat::Yaml,
        Some("json") => FileFormat::Json,
        _ => FileFormat::Text,
    };
    let mut file = File::new(&path, format.unwrap_or(guessed));
    file.encoding = words(reader, node, "encoding");
    // `default: null` is said too: the variable has no value then.
    file.default = node.field("default").map(Node::to_json);
    file.required = reader.truth(node, "required").unwrap_or(file.default.is_none());
    if let Err(error) = file.located(&origin.project.root, origin.dir) {
        let missing = matches!(error, tenure_cards::project::ConfineError::Missing);
        if !missing || file.required {
            let message = format!("the file `{path}` {error}");
            let help = match missing {
                true => {
                    "a path starts from the workflow's folder or from the project's; correct it, or \
                     give a `default`"
                }
                false => "name a file beneath the project's folder",
            };
            let code = if missing { Code::PathMissing } else { Code::OutsideProject };
            reader.problem_help(code, place.span, message, help);
            return None;
        }
    }
    Some(Source::File(file))
}

/// `triggers`, and the older `transitions`.
fn triggers(node: &Node, reader: &mut Reader<'_>, team: &Team, tools: &Tools) -> Vec<Transition> {
    let mut found = Vec::new();
    for field in ["triggers", "transitions"] {
        let Some(place) = present(node, field) else { continue };
        let Some(items) = place.list() else {
            reader.wrong_kind(field, "a list", place);
            continue;
        };
        for item in items {
            if item.map().is_none() {
                reader.wrong_kind(&format!("an entry of {field}"), "a mapping", item);
                continue;
            }
            let change = match field {
                "triggers" => trigger(item, reader, team, tools).map(Transition::new),
                _ => transition(item, reader, team, tools),
            };
            found.extend(change);
        }
    }
    found
}

fn transition(
    node: &Node,
    reader: &mut Reader<'_>,
    team: &Team,
    tools: &Tools,
) -> Option<Transition> {
    unknown_fields(reader, node, "a transition", &["from", "to", "trigger"]);
    let place = reader.mapping(node, "trigger");
    if present(node, "trigger").is_none() {
        let message = "this transition has no `trigger`";
        reader.problem_help(Code::UnknownTrigger, head(node), message, "add `trigger`");
    }
    let mut transition = Transition::new(trigger(place?, reader, team, tools)?);
    transition.from = present(node, "from").map(Node::to_json);
    transition.to = node.field("to").map(Node::to_json);
    Some(transition)
}

fn trigger(node: &Node, reader: &mut Reader<'_>, team: &Team, tools: &Tools) -> Option<Trigger> {
    const KINDS: [&str; 2] = ["agent_text", "ui_response"];
    let Some(place) = present(node, "type") else {
        let message = "this trigger has no `type`";
        let help = "add `type: agent_text` or `type: ui_response`";
        reader.problem_help(Code::UnknownTrigger, head(node), message, help);
        return None;
    };
    let text = reader.words_of("type", place)?;
    match text.trim() {
        "agent_text" => {
            unknown_fields(reader, node, "agent_text", &["type", "agent", "match", "ui_hidden"]);
            let ui_hidden = reader.truth(node, "ui_hidden").unwrap_or(false);
            let agent = needed(reader, node, "agent");
            let agent = agent.and_then(|name| {
                let span = present(node, "agent")?.span;
                team.agent_or_user(&name, span, "the trigger", reader)
            });
            let matches = pattern(node, reader);
            Some(Trigger::AgentText { agent: agent?.to_string(), matches: matches?, ui_hidden })
        }
        "ui_response" => {
            unknown_fields(reader, node, "ui_response", &["type", "tool", "response_key"]);
            let response_key = words(reader, node, "response_key");
            let tool = needed(reader, node, "tool")?;
            if tools.is_whole && !tools.names.contains(&tool) {
                let known: Vec<&str> = tools.names.iter().map(String::as_str).collect();
                let message = format!("the trigger names the tool `{tool}`, which is not there");
                let span = present(node, "tool").map_or(node.span, |it| it.span);
                let help = meant(&tool, &known, "tool");
                reader.problem_help(Code::UnknownTool, span, message, help);
                return None;
            }
            Some(Trigger::UiResponse { tool, response_key })
        }
        other => {
            let message = format!("there is no trigger of type `{other}`");
            let help = meant(other, &KINDS, "type");
            reader.problem_help(Code::UnknownTrigger, place.span, message, help);
            None
        }
    }
}

/// What has to be said: exactly one of three.
fn pattern(node: &Node, reader: &mut Reader<'_>) -> Option<Pattern> {
    const WAYS: [&str; 3] = ["equals", "contains", "regex"];
    let Some(place) = reader.mapping(node, "match") else {
        if present(node, "match").is_none() {
            let message = "this trigger has no `match`";
            let help = "add `match`, as in `match: { equals: NEXT }`";
            reader.problem_help(Code::UnknownTrigger, head(node), message, help);
        }
        return None;
    };
    unknown_fields(reader, place, "`match`", &WAYS);
    let said: Vec<&str> = WAYS.into_iter().filter(|way| present(place, way).is_some()).collect();
    let [way] = *said.as_slice() else {
        let message = match said.len() {
            0 => "`match` says nothing".to_owned(),
            _ => "`match` says more than one thing".to_owned(),
        };
        let help = "write one of `equals`, `contains` and `regex`";
        reader.problem_help(Code::UnknownTrigger, place.span, message, help);
        return None;
    };
    let text = reader.words(place, way)?;
    match way {
        "equals" => Some(Pattern::Equals(text)),
        "contains" => Some(Pattern::Contains(text)),
        _ => match Pattern::regex(&text) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                let span = present(place, way).map_or(place.span, |it| it.span);
                let message = format!("the regular expression cannot be used: {why}");
                let help = "write one without look-around and back-references, or use `contains`";
                reader.problem_help(Code::BadVariable, span, message, help);
                None
            }
        },
    }
}
