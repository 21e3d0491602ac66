//! `tools` of the file `tools`: functions that agents may call.

use super::data::{ToolEntry, ToolType, UiComponent, UiMode};
use super::function::{self, Named};
use super::part::{Folder, Part, declared, head, unknown_fields};
use super::team::Team;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{SpecScope, present};
use tenure_cards::source::{Node, Value};
use tenure_core::tool::Effect;

const FIELDS: &[&str] = &[
    "agent",
    "file",
    "function",
    "description",
    "effect",
    "tool_type",
    "auto_invoke",
    "ui",
    "constraints",
];
const CONSTRAINTS: &[&str] =
    &["read_only", "no_external_mutations", "tenant_scoped", "allowed_external_calls"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agent,
    Ui,
}

const KINDS: &[(&str, Kind)] = &[("Agent_Tool", Kind::Agent), ("UI_Tool", Kind::Ui)];
const MODES: &[(&str, UiMode)] = &[("inline", UiMode::Inline), ("artifact", UiMode::Artifact)];

/// Reads the list. What it names and could not be found is not among the result.
pub(super) fn read(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> Vec<ToolEntry> {
    let Some(list) = present(&part.tree, "tools") else { return Vec::new() };
    let Some(items) = list.list() else {
        folder.entry(&part.source, "", |scope| {
            scope.reader.wrong_kind("tools", "a list of tools", list);
        });
        return Vec::new();
    };
    let mut tools: Vec<ToolEntry> = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let name = node.field("function").and_then(Node::text).map(str::trim);
        let label = match name {
            Some(name) => format!("tools[{at}] `{name}`"),
            None => format!("tools[{at}]"),
        };
        let tool = folder.entry(&part.source, &label, |scope| {
            let tool = one(node, part, scope, team)?;
            clashes(&tool, &tools, node, scope);
            Some(tool)
        });
        tools.extend(tool);
    }
    tools
}

fn one(node: &Node, part: &Part, scope: &mut SpecScope<'_, '_>, team: &Team) -> Option<ToolEntry> {
    if node.map().is_none() {
        scope.reader.wrong_kind("an entry of tools", "a mapping", node);
        return None;
    }
    unknown_fields(scope.reader, node, "a tool", FIELDS);
    let agents = agents(node, scope, team);
    let kind = scope.reader.one_of(node, "tool_type", KINDS).unwrap_or(Kind::Agent);
    let ui = ui(node, scope, kind);
    let invoked = scope.reader.truth(node, "auto_invoke");
    let description = scope.reader.words(node, "description");
    let read_only = constraints(node, scope);
    let effect = effect(node, scope, read_only);
    let named = function::named(scope, node, "file", "tool");
    let Named { spec, file, span, .. } = named?;
    let mut tool = scope.tool(&spec, span)?;
    let spec = Arc::make_mut(&mut tool.spec);
    if let Some(description) = description {
        spec.description = description.trim().to_owned();
    }
    if let Some(effect) = effect {
        spec.effect = effect;
    }
    Some(ToolEntry {
        agents: agents?,
        tool,
        shown: Some(ui.clone()).filter(|ui| kind == Kind::Agent && ui.component.is_some()),
        tool_type: match kind {
            Kind::Agent => ToolType::Agent,
            Kind::Ui => ToolType::Ui(ui),
        },
        auto_invoke: invoked.unwrap_or(kind == Kind::Ui),
        file: file.into(),
        declared: declared(&part.source, head(node)),
    })
}

/// One agent, or several.
fn agents(node: &Node, scope: &mut SpecScope<'_, '_>, team: &Team) -> Option<Vec<Arc<str>>> {
    let Some(place) = present(node, "agent") else {
        let span = node.entry("agent").map_or(head(node), |(key, _)| key.span);
        let help = "add `agent`, the name of an agent or a list of names";
        scope.reader.problem_help(Code::MissingField, span, "this tool has no `agent`", help);
        return None;
    };
    let names = match &place.value {
        Value::Text(_) => vec![(scope.reader.words_of("agent", place)?, place.span)],
        Value::List(items) if items.is_empty() => {
            let message = "`agent` is an empty list, so nobody has this tool";
            scope.reader.problem_help(Code::EmptyText, place.span, message, "name an agent");
            return None;
        }
        Value::List(_) => scope.reader.texts_of("agent", place)?,
        _ => {
            scope.reader.wrong_kind("agent", "the name of an agent or a list of names", place);
            return None;
        }
    };
    let mut found: Vec<Arc<str>> = Vec::new();
    let mut sound = true;
    for (name, span) in names {
        match team.agent(name.trim(), span, "`agent`", scope.reader) {
            Some(agent) if !found.contains(&agent) => found.push(agent),
            Some(_) => {}
            None => sound = false,
        }
    }
    sound.then_some(found)
}

fn ui(node: &Node, scope: &mut SpecScope<'_, '_>, kind: Kind) -> UiComponent {
    let reader = &mut *scope.reader;
    let Some(place) = reader.mapping(node, "ui") else {
        if kind == Kind::Ui && node.field("ui").is_none_or(|ui| ui.value == Value::Null) {
            let span = node.field("tool_type").map_or(head(node), |it| it.span);
            let message = "a tool that people see has no `ui`";
            let help = "add `ui` with the `component` that a front end shows for it";
            reader.problem_help(Code::MissingField, span, message, help);
        }
        return UiComponent::default();
    };
    unknown_fields(reader, place, "`ui`", &["component", "mode"]);
    let component = reader.words(place, "component").map(|it| it.trim().to_owned());
    let mode = reader.one_of(place, "mode", MODES);
    match kind {
        Kind::Ui if component.is_none() && present(place, "component").is_none() => {
            let message = "`ui` names no component";
            let help = "add `component`, the name that a front end knows it by";
            reader.problem_help(Code::MissingField, place.span, message, help);
        }
        Kind::Agent if component.is_none() && mode.is_some() => {
            let message = "`ui` says where the tool is shown, and not with which component";
            let help = "add `component`, the name that a front end knows it by, or remove `mode`";
            reader.problem_help(Code::MissingField, place.span, message, help);
        }
        _ => {}
    }
    UiComponent { component, mode }
}

/// Whether the tool only reads. The others are promises that nothing here can keep.
fn constraints(node: &Node, scope: &mut SpecScope<'_, '_>) -> bool {
    let reader = &mut *scope.reader;
    let Some(place) = reader.mapping(node, "constraints") else { return false };
    unknown_fields(reader, place, "`constraints`", CONSTRAINTS);
    for name in &CONSTRAINTS[1..] {
        if let Some((key, _)) = present(place, name).and_then(|_| place.entry(name)) {
            let message = format!("`{name}` means nothing: nothing here enforces it");
            let help = "put a hook on wrap_tool_call with `policy: deny` to guard the tool";
            reader.problem_help(Code::MeaninglessField, key.span, message, help);
        }
    }
    reader.truth(place, "read_only").unwrap_or(false)
}

/// What a crash means for a call under way: what the entry says, else that a tool which only reads
/// may be called again, else what the function says.
fn effect(node: &Node, scope: &mut SpecScope<'_, '_>, read_only: bool) -> Option<Effect> {
    let said = scope.effect(node);
    if let (true, Some(said), Some(place)) = (read_only, said, present(node, "effect"))
        && said != Effect::Idempotent
    {
        let message = format!("a tool that is `read_only` is not `{}`", said.as_str());
        let help = "remove `effect`, or write `read_only: false`";
        scope.reader.problem_help(Code::Contradiction, place.span, message, help);
    }
    said.or(read_only.then_some(Effect::Idempotent))
}

/// Two tools of one name cannot belong to one agent.
fn clashes(tool: &ToolEntry, others: &[ToolEntry], node: &Node, scope: &mut SpecScope<'_, '_>) {
    let name = &tool.tool.spec.name;
    let same = others.iter().filter(|other| other.tool.spec.name == *name);
    for agent in same.flat_map(|other| &other.agents).filter(|it| tool.agents.contains(it)) {
        let span = node.field("function").map_or(node.span, |it| it.span);
        let message = format!("`{agent}` has another tool `{name}`");
        let help = "remove one of them, or rename the function";
        scope.reader.problem_help(Code::ToolNameClash, span, message, help);
    }
}
