//! The file `_pack/workflow_graph`: journeys in the middle of a chat (version 3), and journeys over
//! workflows (version 2).

use super::graph;
use super::part::{Folder, Part, head, meant, unknown_fields};
use super::scope::Visible;
use super::team::Team;
use crate::journey::{
    FanIn, FanOut, InputContract, Journey, MergeMode, OnPartialFailure, OutputContract, SpawnMode,
};
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, found, present};
use tenure_cards::source::{Node, Span, Value};

const JOURNEY: &[&str] =
    &["id", "description", "trigger_agent", "trigger_on", "requires", "fan_out", "fan_in"];
const FAN_OUT: &[&str] = &[
    "spawn_mode",
    "generator_workflow",
    "child_initial_agent",
    "max_children",
    "timeout_seconds",
    "input_contract",
    "child_context_seed",
];
const FAN_IN: &[&str] =
    &["resume_agent", "merge_mode", "inject_as", "on_partial_failure", "output_contract"];
/// The one moment at which a journey begins.
const TRIGGER: &str = "structured_output_ready";

/// A journey that was read, with what is still to be checked of it.
pub(super) struct Read {
    pub(super) journey: Journey,
    pub(super) label: String,
    /// Where the agent that begins it is written.
    pub(super) trigger_span: Span,
    /// The workflow of its children, and where that is written.
    pub(super) workflow: (String, Span),
    /// Where the agent that begins in a child is written.
    pub(super) child_span: Option<Span>,
}

/// Reads the file of a workflow.
pub(super) fn read(
    folder: &mut Folder<'_, '_>,
    part: &Part,
    team: &Team,
    visible: &Visible,
) -> Vec<Read> {
    let tree = &part.tree;
    let is_mid_flight = folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        if let Some((key, _)) = tree.entry("nested_chats") {
            let message = "`nested_chats` is the first version of this file, which is not read";
            let help = "write `version: 3` and `mid_flight_journeys`";
            reader.problem_help(Code::NotInTenure, key.span, message, help);
            return false;
        }
        if tree.field("workflows").is_some() || tree.field("journeys").is_some() {
            return false;
        }
        unknown_fields(reader, tree, "the file", &["version", "mid_flight_journeys"]);
        version(tree, 3, reader);
        true
    });
    if tree.field("workflows").is_some() || tree.field("journeys").is_some() {
        let workflows = folder.dir.parent().map(super::folder::siblings).unwrap_or_default();
        graph::check(folder, part, &workflows);
        return Vec::new();
    }
    let Some(list) = present(tree, "mid_flight_journeys").filter(|_| is_mid_flight) else {
        return Vec::new();
    };
    let Some(items) = list.list() else {
        folder.entry(&part.source, "", |scope| {
            scope.reader.wrong_kind("mid_flight_journeys", "a list of journeys", list);
        });
        return Vec::new();
    };
    let ids = items.iter().filter_map(|item| item.field("id").and_then(Node::text));
    let ids: Vec<&str> = ids.filter(|id| !id.trim().is_empty()).collect();
    let mut journeys: Vec<Read> = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let id = node.field("id").and_then(Node::text).filter(|id| !id.trim().is_empty());
        let label = match id {
            Some(id) => format!("mid_flight_journeys[{at}] `{id}`"),
            None => format!("mid_flight_journeys[{at}]"),
        };
        let errors = folder.report.errors();
        let read = folder.entry(&part.source, &label, |scope| {
            let reader = &mut *scope.reader;
            let read = journey(node, reader, team, visible, &ids)?;
            if journeys.iter().any(|other| other.journey.id == read.journey.id) {
                let span = node.field("id").map_or(node.span, |id| id.span);
                let message = format!("another journey has the id `{}`", read.journey.id);
                let help = "ids are unique; choose another";
                reader.problem_help(Code::DuplicateEntry, span, message, help);
            }
            Some(read)
        });
        let read = read.filter(|_| folder.report.errors() == errors);
        journeys.extend(read.map(|read| Read { label, ..read }));
    }
    circles(folder, part, &journeys);
    journeys
}

/// The version of a file, if it says so.
pub(super) fn version(tree: &Node, wanted: i64, reader: &mut Reader<'_>) {
    let Some(place) = present(tree, "version") else { return };
    let said = match &place.value {
        Value::Int(version) => Some(*version),
        Value::Text(text) => text.trim().split('.').next().and_then(|it| it.parse().ok()),
        Value::Float(version) => Some(*version as i64),
        _ => None,
    };
    if said != Some(wanted) {
        let message = format!("`version` is {}, but must be {wanted} here", found(place));
        let help = "version 3 has `mid_flight_journeys`, version 2 `workflows` and `journeys`";
        reader.problem_help(Code::BadJourney, place.span, message, help);
    }
}

/// A text that has to be there.
fn needed(reader: &mut Reader<'_>, node: &Node, name: &str, what: &str) -> Option<(String, Span)> {
    let Some(place) = present(node, name) else {
        let span = node.entry(name).map_or(head(node), |(key, _)| key.span);
        let message = format!("{what} has no `{name}`");
        reader.problem_help(Code::MissingField, span, message, format!("add `{name}`"));
        return None;
    };
    Some((reader.words_of(name, place)?.trim().to_owned(), place.span))
}

fn journey(
    node: &Node,
    reader: &mut Reader<'_>,
    team: &Team,
    visible: &Visible,
    ids: &[&str],
) -> Option<Read> {
    if node.map().is_none() {
        reader.wrong_kind("a journey", "a mapping", node);
        return None;
    }
    unknown_fields(reader, node, "a journey", JOURNEY);
    let id = needed(reader, node, "id", "this journey");
    let description = reader.words(node, "description").unwrap_or_default();
    let trigger = needed(reader, node, "trigger_agent", "this journey");
    let trigger = trigger
        .and_then(|(name, span)| Some((team.agent(&name, span, "`trigger_agent`", reader)?, span)));
    if let Some(place) = present(node, "trigger_on")
        && let Some(text) = reader.words_of("trigger_on", place)
        && text.trim() != TRIGGER
    {
        let message = format!("a journey cannot begin on `{}`", text.trim());
        let help = format!("write `{TRIGGER}`");
        reader.problem_help(Code::BadJourney, place.span, message, help);
    }
    let mut requires: Vec<Arc<str>> = Vec::new();
    for (name, span) in reader.texts(node, "requires").unwrap_or_default() {
        if !ids.contains(&name.as_str()) {
            let message = format!("`requires` names the journey `{name}`, which is not there");
            let help = meant(&name, ids, "journey");
            reader.problem_help(Code::BadJourney, span, message, help);
        }
        requires.push(name.into());
    }
    let out = section(node, "fan_out", reader);
    let out = out.and_then(|out| fan_out(out, reader, visible));
    let fan_in = section(node, "fan_in", reader);
    let fan_in = fan_in.and_then(|it| self::fan_in(it, reader, team));
    let ((trigger, trigger_span), (fan_out, workflow, child_span)) = (trigger?, out?);
    let fan_in = fan_in?;
    let resume = Arc::clone(&fan_in.resume_agent);
    let mut journey = Journey::new(id?.0, trigger, workflow.0.as_str(), resume);
    journey.description = description.trim().to_owned();
    journey.requires = requires;
    journey.fan_out = fan_out;
    journey.fan_in = fan_in;
    Some(Read { journey, label: String::new(), trigger_span, workflow, child_span })
}

fn section<'n>(node: &'n Node, name: &str, reader: &mut Reader<'_>) -> Option<&'n Node> {
    if present(node, name).is_none() {
        let message = format!("this journey has no `{name}`");
        reader.problem_help(Code::MissingField, head(node), message, format!("add `{name}`"));
    }
    reader.mapping(node, name)
}

type Out = (FanOut, (String, Span), Option<Span>);

fn fan_out(node: &Node, reader: &mut Reader<'_>, visible: &Visible) -> Option<Out> {
    unknown_fields(reader, node, "`fan_out`", FAN_OUT);
    let modes = SpawnMode::ALL.map(|mode| (mode.as_str(), mode));
    let mode = reader.one_of(node, "spawn_mode", &modes).unwrap_or_default();
    let child = reader.words(node, "child_initial_agent");
    let most = reader.whole(node, "max_children", 0..=i64::from(u32::MAX)).unwrap_or(0);
    let timeout = match node.field("timeout_seconds").map(|it| &it.value) {
        Some(Value::Int(0)) => None,
        _ => reader.seconds(node, "timeout_seconds"),
    };
    let (required, optional) = contract(node, "input_contract", reader);
    for (name, span) in required.iter().chain(&optional) {
        if visible.is_whole && !visible.has(name) {
            let known: Vec<&str> = visible.names.iter().map(String::as_str).collect();
            let message = format!("`input_contract` names `{name}`, which is not declared");
            let help = meant(name, &known, "variable");
            reader.problem_help(Code::UnknownVariable, *span, message, help);
        }
    }
    let seed = reader.mapping(node, "child_context_seed").map(Node::to_json);
    let workflow = needed(reader, node, "generator_workflow", "`fan_out`")?;
    let mut out = FanOut::new(workflow.0.as_str());
    out.spawn_mode = mode;
    out.child_initial_agent = child.map(|it| it.trim().into());
    out.max_children = usize::try_from(most).unwrap_or(usize::MAX);
    out.timeout = timeout;
    out.input_contract = InputContract::new(texts(required), texts(optional));
    if let Some(serde_json::Value::Object(seed)) = seed {
        out.child_context_seed = seed.into_iter().collect();
    }
    let child_span = present(node, "child_initial_agent").map(|it| it.span);
    Some((out, workflow, child_span))
}

fn fan_in(node: &Node, reader: &mut Reader<'_>, team: &Team) -> Option<FanIn> {
    unknown_fields(reader, node, "`fan_in`", FAN_IN);
    let modes = MergeMode::ALL.map(|mode| (mode.as_str(), mode));
    let merge = reader.one_of(node, "merge_mode", &modes).unwrap_or_default();
    let failures = OnPartialFailure::ALL.map(|it| (it.as_str(), it));
    let failure = reader.one_of(node, "on_partial_failure", &failures).unwrap_or_default();
    let inject = reader.words(node, "inject_as").map(|it| it.trim().to_owned());
    let (required, optional) = contract(node, "output_contract", reader);
    let (resume, span) = needed(reader, node, "resume_agent", "`fan_in`")?;
    let mut fan_in = FanIn::new(team.agent(&resume, span, "`resume_agent`", reader)?);
    fan_in.merge_mode = merge;
    fan_in.on_partial_failure = failure;
    if let Some(inject) = inject {
        fan_in.inject_as = inject;
    }
    fan_in.output_contract = OutputContract::new(texts(required), texts(optional));
    Some(fan_in)
}

type Names = Vec<(String, Span)>;

fn contract(node: &Node, name: &str, reader: &mut Reader<'_>) -> (Names, Names) {
    let Some(place) = reader.mapping(node, name) else { return (Vec::new(), Vec::new()) };
    unknown_fields(reader, place, &format!("`{name}`"), &["required", "optional"]);
    let required = reader.texts(place, "required").unwrap_or_default();
    (required, reader.texts(place, "optional").unwrap_or_default())
}

fn texts(names: Names) -> Vec<String> {
    names.into_iter().map(|(name, _)| name).collect()
}

/// Journeys that wait for each other never begin.
fn circles(folder: &mut Folder<'_, '_>, part: &Part, journeys: &[Read]) {
    let position = |id: &Arc<str>| journeys.iter().position(|it| it.journey.id == *id);
    let needs: Vec<Vec<usize>> = journeys
        .iter()
        .map(|it| it.journey.requires.iter().filter_map(position).collect())
        .collect();
    let Some(circle) = graph::circle(&needs) else { return };
    let names: Vec<String> =
        circle.iter().map(|at| format!("`{}`", journeys[*at].journey.id)).collect();
    let first = &journeys[circle[0]];
    folder.entry(&part.source, &first.label, |scope| {
        let message = format!("these journeys wait for each other: {}", names.join(" -> "));
        let help = "remove one of them from `requires`";
        scope.reader.problem_help(Code::BadJourney, first.trigger_span, message, help);
    });
}
