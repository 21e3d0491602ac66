//! `lifecycle_tools` of the file `tools`.

use super::function::{self, Named};
use super::order;
use super::part::{Folder, Part, declared, described, head, meaningless, meant, unknown_fields};
use super::team::Team;
use crate::lifecycle::{LifecycleTool, Run, Trigger};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{SpecScope, Use, list_words, nearest, present};
use tenure_cards::hook::{On, Places};
use tenure_cards::source::{Node, Span, Value};
use tenure_core::hook::{Limit, Policy};

const FIELDS: &[&str] = &[
    "trigger",
    "agent",
    "file",
    "function",
    "description",
    "run",
    "use",
    "with",
    "name",
    "policy",
    "timeout",
    "retries",
    "backoff",
    "when",
    "again_on_resume",
    "writes",
    "before",
    "after",
    "order",
    "tool_type",
    "auto_invoke",
    "ui",
];
const MEANINGLESS: &[(&str, &str)] = &[
    ("tool_type", "a lifecycle tool is called by the workflow, not by a model; remove it"),
    ("auto_invoke", "a lifecycle tool always runs at its trigger; remove it"),
    ("ui", "a lifecycle tool asks a person with `ctx.ask`; remove it"),
];

/// A tool that was read, with what its order says.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) explicit: bool,
    pub(super) name_span: Span,
    pub(super) label: String,
    pub(super) trigger: Option<Trigger>,
    pub(super) before: Vec<(String, Span)>,
    pub(super) after: Vec<(String, Span)>,
    pub(super) order: i32,
    /// None if something about it is wrong; its name still counts.
    pub(super) tool: Option<LifecycleTool>,
}

/// Reads the list. The tools are in the order in which they run at each trigger.
pub(super) fn read(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> Vec<LifecycleTool> {
    let Some(list) = present(&part.tree, "lifecycle_tools") else { return Vec::new() };
    let Some(items) = list.list() else {
        folder.entry(&part.source, "", |scope| {
            scope.reader.wrong_kind("lifecycle_tools", "a list of lifecycle tools", list);
        });
        return Vec::new();
    };
    let mut drafts: Vec<Draft> = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let label = label(at, node);
        let errors = folder.report.errors();
        let draft =
            folder.expanded_entry(&part.source, &label, |scope| one(node, part, scope, team));
        let sound = folder.report.errors() == errors;
        drafts.extend(draft.map(|mut draft| {
            draft.label = label;
            draft.tool = draft.tool.filter(|_| sound);
            draft
        }));
    }
    order::settle(folder, &part.source, drafts)
}

fn label(at: usize, node: &Node) -> String {
    let text = |name: &str| node.field(name).and_then(Node::text).map(str::trim);
    match text("name").or_else(|| text("function")).or_else(|| text("run")).or_else(|| text("use"))
    {
        Some(name) => format!("lifecycle_tools[{at}] `{name}`"),
        None => format!("lifecycle_tools[{at}]"),
    }
}

fn one(node: &Node, part: &Part, scope: &mut SpecScope<'_, '_>, team: &Team) -> Option<Draft> {
    if node.map().is_none() {
        scope.reader.wrong_kind("an entry of lifecycle_tools", "a mapping", node);
        return None;
    }
    unknown_fields(scope.reader, node, "a lifecycle tool", FIELDS);
    meaningless(scope.reader, node, MEANINGLESS);
    let trigger = trigger(node, scope);
    let agent = agent(node, scope, trigger, team);
    let run = run(node, scope);
    // An unknown trigger must not hide what else is wrong.
    let on = On::Points(trigger.map_or(tenure_core::hook::Points::NONE, |it| it.point().into()));
    let policy = scope.policy(node, Some(&on));
    if let (Some(Policy::Abort), Some(trigger), Some(place)) =
        (policy, trigger.filter(|it| it.is_end()), node.field("policy"))
    {
        let message = format!("a failure at {trigger} cannot abort anything: it is over by then");
        let help = "remove `policy`: a failure there is told, and the other ends run";
        scope.reader.problem_help(Code::Contradiction, place.span, message, help);
    }
    let timeout = scope.duration(node, "timeout");
    let backoff = scope.duration(node, "backoff").map(Limit::duration);
    let retries = scope.reader.whole(node, "retries", 0..=10).unwrap_or(0);
    if let (None | Some(Value::Int(0)), Some((key, _))) =
        (present(node, "retries").map(|it| it.value.clone()), node.entry("backoff"))
    {
        let message = "`backoff` is the wait before a repetition, and there is none";
        let help = "add `retries`, or remove `backoff`";
        scope.reader.problem_help(Code::Contradiction, key.span, message, help);
    }
    let when = scope.when(node, &on);
    let again = scope.reader.truth(node, "again_on_resume").unwrap_or(false);
    if let (true, Some(trigger), Some((key, _))) =
        (again, trigger.filter(|it| it.is_end()), node.entry("again_on_resume"))
    {
        let message = format!("`again_on_resume` means nothing at {trigger}: an end is told once");
        let help = "remove it; declare it at the begin that makes what is used here";
        scope.reader.problem_help(Code::MeaninglessField, key.span, message, help);
    }
    let writes = scope.writes(node, None);
    let before = scope.names(node, "before");
    let after = scope.names(node, "after");
    let whole = i64::from(i32::MIN)..=i64::from(i32::MAX);
    let order = scope.reader.whole(node, "order", whole).and_then(|it| i32::try_from(it).ok());
    let description = scope.reader.words(node, "description");
    let said = scope.reader.words(node, "name").map(|name| name.trim().to_owned());
    let (explicit, name_span) = match present(node, "name") {
        Some(name) => (said.is_some(), name.span),
        None => (false, run.as_ref().map_or(head(node), |run| run.span)),
    };
    let name = said.or_else(|| run.as_ref().map(|run| run.name.clone()))?;
    let tool = match (trigger, agent, run.and_then(|run| Some((run.run?, run.file, run.function))))
    {
        (Some(trigger), Some(agent), Some((run, file, function))) => {
            let mut tool = LifecycleTool::new(trigger, name.as_str(), run);
            tool.agent = agent;
            tool.description = description.as_deref().and_then(described);
            tool.policy = policy;
            tool.timeout = timeout;
            tool.retries = u32::try_from(retries).unwrap_or(0);
            tool.backoff = backoff;
            tool.when = when.map(|when| when.expression.into());
            tool.again_on_resume = again;
            tool.writes = writes;
            tool.before = before.iter().map(|(name, _)| Arc::from(name.as_str())).collect();
            tool.after = after.iter().map(|(name, _)| Arc::from(name.as_str())).collect();
            tool.order = order.unwrap_or(0);
            tool.file = file.into();
            tool.function = function.into();
            tool.declared = Some(declared(&part.source, head(node)));
            tool.place = Some((part.source.clone(), head(node)));
            Some(tool)
        }
        _ => None,
    };
    let (label, order) = (String::new(), order.unwrap_or(0));
    Some(Draft { name, explicit, name_span, label, trigger, before, after, order, tool })
}

fn trigger(node: &Node, scope: &mut SpecScope<'_, '_>) -> Option<Trigger> {
    let names = Trigger::ALL.map(Trigger::as_str);
    let Some(place) = present(node, "trigger") else {
        let span = node.entry("trigger").map_or(head(node), |(key, _)| key.span);
        let message = "this lifecycle tool has no `trigger`";
        let help = format!("add `trigger`: {}", list_words(&names, "or"));
        scope.reader.problem_help(Code::MissingField, span, message, help);
        return None;
    };
    let text = scope.reader.words_of("trigger", place)?;
    let found = text.trim().parse().ok();
    if found.is_none() {
        let message = format!("there is no trigger `{}`", text.trim());
        let help = meant(text.trim(), &names, "trigger");
        scope.reader.problem_help(Code::UnknownTrigger, place.span, message, help);
    }
    found
}

/// The agent: `Some(None)` is all of them, or the chat itself.
fn agent(
    node: &Node,
    scope: &mut SpecScope<'_, '_>,
    trigger: Option<Trigger>,
    team: &Team,
) -> Option<Option<Arc<str>>> {
    let of_chat = trigger.is_some_and(Trigger::is_of_chat);
    let Some((key, place)) = node.entry("agent") else {
        let help = match trigger {
            Some(_) if of_chat => "add `agent: null`: the tool belongs to the chat".to_owned(),
            _ => "add `agent`: the name of an agent, or null for all of them".to_owned(),
        };
        let message = "this lifecycle tool has no `agent`";
        scope.reader.problem_help(Code::AgentOfTrigger, head(node), message, help);
        return None;
    };
    match (&place.value, trigger) {
        (Value::Null, _) => Some(None),
        (_, Some(trigger)) if of_chat => {
            let message =
                format!("a tool at {trigger} belongs to the chat, and `agent` must be null");
            let turn = if trigger.is_end() { "after_agent" } else { "before_agent" };
            let help = format!("write `agent: null`, or `trigger: {turn}` for one agent's turns");
            scope.reader.problem_help(Code::AgentOfTrigger, place.span, message, help);
            None
        }
        (Value::Text(_), _) => {
            let name = scope.reader.words_of("agent", place)?;
            team.agent_or_user(name.trim(), place.span, "`agent`", scope.reader).map(Some)
        }
        _ => {
            let shown = tenure_cards::embed::found(place);
            let message = format!("`agent` must be the name of an agent or null, but is {shown}");
            let help = "write one entry for each agent, or null for all of them";
            scope.reader.problem_help(Code::AgentOfTrigger, key.span, message, help);
            None
        }
    }
}

/// What a tool runs.
struct Runs {
    /// What it is called if it has no name.
    name: String,
    span: Span,
    file: String,
    function: String,
    run: Option<Run>,
}

fn run(node: &Node, scope: &mut SpecScope<'_, '_>) -> Option<Runs> {
    let said = |name: &str| present(node, name);
    if let (None, Some((key, _))) = (said("use"), node.entry("with")) {
        let message = "`with` configures what `use` names, and there is none here";
        scope.reader.problem_help(Code::WithWithoutUse, key.span, message, "remove `with`");
    }
    let ways = [said("file").or(said("function")), said("run"), said("use")];
    match ways {
        [None, Some(place), None] => ran(place, scope),
        [None, None, Some(place)] => used(node, place, scope),
        [_, None, None] => {
            let named = function::named(scope, node, "file", "lifecycle tool")?;
            let Named { spec, file, function, span } = named;
            let found = scope.python(&spec, span, Use::LifecycleTool);
            let run = found.map(|found| Run::Python(found.function));
            Some(Runs { name: function.clone(), span, file, function, run })
        }
        _ => {
            let second = ways.iter().flatten().nth(1).map_or(node.span, |it| it.span);
            let message = "this lifecycle tool says in two ways what it runs";
            let help = "keep `file` and `function`, or `run`, or `use`";
            scope.reader.problem_help(Code::RunOrUse, second, message, help);
            None
        }
    }
}

/// `run`: a command, or `file.py:function`.
fn ran(place: &Node, scope: &mut SpecScope<'_, '_>) -> Option<Runs> {
    match &place.value {
        Value::List(items) => {
            let first = items.first().and_then(Node::text).unwrap_or_default();
            let name = Path::new(first).file_name().map(|it| it.to_string_lossy().into_owned());
            let command = scope.command(place);
            let run = command.map(|it| Run::Command { argv: it.argv, dir: it.dir });
            let name = name.unwrap_or_default();
            Some(Runs { function: name.clone(), name, span: place.span, file: String::new(), run })
        }
        Value::Text(text) => {
            let text = scope.reader.expanded(text, place.span);
            let (file, function) = text.rsplit_once(':').unwrap_or(("", text.as_str()));
            let (file, function) = (file.trim().to_owned(), function.trim().to_owned());
            let found = scope.python(&text, place.span, Use::LifecycleTool);
            let run = found.map(|found| Run::Python(found.function));
            Some(Runs { name: function.clone(), span: place.span, file, function, run })
        }
        _ => {
            let wanted = "`file.py:function` or a command as a list";
            scope.reader.wrong_kind("run", wanted, place);
            None
        }
    }
}

fn used(node: &Node, place: &Node, scope: &mut SpecScope<'_, '_>) -> Option<Runs> {
    let name = scope.reader.words_of("use", place)?.trim().to_owned();
    let (with, places) = match scope.reader.mapping(node, "with") {
        Some(with) => (scope.reader.settings(with), Places::of(with)),
        None => (json!({}), Places::default()),
    };
    let known = scope.registered.is_none_or(|registered| registered.contains(&name))
        || tenure_cards::embed::is_ready_made(&name);
    if let (false, Some(registered)) = (known, scope.registered) {
        let names: Vec<&str> = registered.iter().map(String::as_str).collect();
        let help = match (nearest(&name, names.iter().copied()), names.as_slice()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, []) => "nothing is registered here; use `run`, or `file` and `function`".into(),
            (None, names) => format!("registered are {}", list_words(names, "and")),
        };
        let message = format!("nothing is registered as `{name}`");
        scope.reader.problem_help(Code::UnknownUse, place.span, message, help);
    }
    let run = known.then(|| Run::Use { name: name.clone(), with, places });
    Some(Runs { function: name.clone(), name, span: place.span, file: String::new(), run })
}
