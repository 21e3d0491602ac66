//! The file `hooks` (message hooks), and the file `ui_config`.

use super::data::UiConfig;
use super::function;
use super::part::{Folder, Part, declared, described, head, meaningless, meant, unknown_fields};
use super::team::Team;
use crate::lifecycle::USER;
use crate::message_hook::{MessageHook, MessageHookType};
use crate::route::Target;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{SpecScope, Use, list_words, nearest, present};
use tenure_cards::source::{Node, Span, Value};
use tenure_core::hook::Policy;

const FIELDS: &[&str] = &[
    "hook_type",
    "hook_agent",
    "filename",
    "function",
    "name",
    "policy",
    "timeout",
    "again_on_resume",
    "description",
];
/// What older files say about how a workflow is shown, beside who is heard.
const SHOWN: &[(&str, &str)] = &[
    ("display_name", "a workflow is shown by its name; remove it"),
    ("description", "it is for people who read the file; nothing looks at it"),
    ("icon", "nothing here shows it; remove it"),
    ("category", "nothing here looks at it; remove it"),
    ("interactive", "whether a person takes part is `human_in_the_loop` of the orchestrator"),
    ("dashboard", "nothing here looks at it; remove it"),
    ("components", "a component is named by the tool that shows it, in `ui`"),
    ("notifications", "nothing here looks at it; write an after_chat lifecycle tool"),
];

/// Reads the message hooks.
pub(super) fn read(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> Vec<MessageHook> {
    let list = match &part.tree.value {
        Value::List(_) => &part.tree,
        _ => {
            folder.entry(&part.source, "", |scope| {
                unknown_fields(scope.reader, &part.tree, "the file", &["hooks"]);
            });
            let Some(list) = present(&part.tree, "hooks") else { return Vec::new() };
            list
        }
    };
    let Some(items) = list.list() else {
        folder.entry(&part.source, "", |scope| {
            scope.reader.wrong_kind("hooks", "a list of message hooks", list);
        });
        return Vec::new();
    };
    let mut hooks: Vec<MessageHook> = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let name = node.field("name").or(node.field("function")).and_then(Node::text);
        let label = match name {
            Some(name) => format!("hooks[{at}] `{}`", name.trim()),
            None => format!("hooks[{at}]"),
        };
        let errors = folder.report.errors();
        let hook = folder.entry(&part.source, &label, |scope| {
            let hook = one(node, part, scope, team)?;
            if present(node, "name").is_some() && hooks.iter().any(|it| it.name == hook.name) {
                let span = node.field("name").map_or(node.span, |it| it.span);
                let message = format!("another message hook has the name `{}`", hook.name);
                let help = "names are unique in a workflow; choose another";
                scope.reader.problem_help(Code::DuplicateEntry, span, message, help);
            }
            Some(hook)
        });
        if let Some(mut hook) = hook.filter(|_| folder.report.errors() == errors) {
            let base = Arc::clone(&hook.name);
            let mut number = 2;
            while hooks.iter().any(|other| other.name == hook.name) {
                hook.name = format!("{base}#{number}").into();
                number += 1;
            }
            hooks.push(hook);
        }
    }
    hooks
}

fn one(
    node: &Node,
    part: &Part,
    scope: &mut SpecScope<'_, '_>,
    team: &Team,
) -> Option<MessageHook> {
    if node.map().is_none() {
        scope.reader.wrong_kind("an entry of hooks", "a mapping", node);
        return None;
    }
    unknown_fields(scope.reader, node, "a message hook", FIELDS);
    let kind = kind(node, scope);
    let agent = agent(node, scope, team);
    let policy = scope.policy(node, None);
    if let (Some(kind), Some(Some(agent))) = (kind, &agent)
        && &**agent == USER
    {
        of_person(node, scope, kind, policy);
    }
    let timeout = scope.duration(node, "timeout");
    let again = scope.reader.truth(node, "again_on_resume").unwrap_or(false);
    if let (true, Some(kind), Some((key, _))) = (again, kind, node.entry("again_on_resume")) {
        meaningless_again(scope, kind, key.span);
    }
    let name = scope.reader.words(node, "name");
    let description = scope.reader.words(node, "description");
    let named = function::named(scope, node, "filename", "message hook")?;
    let used = Use::Values(kind?.parameters());
    let function = scope.python(&named.spec, named.span, used)?.function;
    let mut hook = MessageHook::new(kind?, function);
    hook.agent = agent?;
    hook.description = description.as_deref().and_then(described);
    hook.policy = policy;
    hook.timeout = timeout;
    hook.again_on_resume = again;
    hook.declared = Some(declared(&part.source, head(node)));
    if let Some(name) = name {
        hook.name = name.trim().into();
    }
    Some(hook)
}

/// What an agent says is said once; what it is told, and how, is made up again.
fn meaningless_again(scope: &mut SpecScope<'_, '_>, kind: MessageHookType, span: Span) {
    if kind == MessageHookType::ProcessMessageBeforeSend {
        let message =
            format!("`again_on_resume` means nothing at {kind}: it is called again anyway");
        scope.reader.problem_help(Code::MeaninglessField, span, message, "remove it");
    }
}

/// Refuses what a hook of the person's cannot be: they have no model that would be called, and what
/// they have said is said.
fn of_person(
    node: &Node,
    scope: &mut SpecScope<'_, '_>,
    kind: MessageHookType,
    policy: Option<Policy>,
) {
    use MessageHookType::{ProcessAllMessagesBeforeReply, UpdateAgentState};
    if let (UpdateAgentState | ProcessAllMessagesBeforeReply, Some(place)) =
        (kind, node.field("hook_agent"))
    {
        let message = format!("{kind} is never called for `user`: a person has no model");
        let help = "name an agent that answers the person, or `all`";
        scope.reader.problem_help(Code::Contradiction, place.span, message, help);
    }
    if let (
        MessageHookType::ProcessMessageBeforeSend,
        Some(Policy::Abort | Policy::Deny),
        Some(at),
    ) = (kind, policy, node.field("policy"))
    {
        let message = "a failure of this hook cannot hold back what the person said: it is called \
                       when their turn is over";
        let help = "guard the agent that hears it, by process_last_received_message; or remove \
                    `policy`";
        scope.reader.problem_help(Code::Contradiction, at.span, message, help);
    }
}

fn kind(node: &Node, scope: &mut SpecScope<'_, '_>) -> Option<MessageHookType> {
    let names = MessageHookType::ALL.map(MessageHookType::as_str);
    let Some(place) = present(node, "hook_type") else {
        let message = "this message hook has no `hook_type`";
        let help = format!("add `hook_type`: {}", list_words(&names, "or"));
        scope.reader.problem_help(Code::MissingField, head(node), message, help);
        return None;
    };
    let text = scope.reader.words_of("hook_type", place)?;
    let found = text.trim().parse().ok();
    if found.is_none() {
        let message = format!("there is no type of message hook `{}`", text.trim());
        let help = meant(text.trim(), &names, "type");
        scope.reader.problem_help(Code::UnknownMessageHook, place.span, message, help);
    }
    found
}

/// `Some(None)` is all of them.
fn agent(node: &Node, scope: &mut SpecScope<'_, '_>, team: &Team) -> Option<Option<Arc<str>>> {
    let Some(place) = present(node, "hook_agent") else {
        let span = node.entry("hook_agent").map_or(head(node), |(key, _)| key.span);
        let message = "this message hook has no `hook_agent`";
        let help = "add `hook_agent`: the name of an agent, or `all`";
        scope.reader.problem_help(Code::MissingField, span, message, help);
        return None;
    };
    let name = scope.reader.words_of("hook_agent", place)?;
    let name = name.trim();
    if name == "all" && !team.names.iter().any(|agent| &**agent == "all") {
        return Some(None);
    }
    team.agent_or_user(name, place.span, "`hook_agent`", scope.reader).map(Some)
}

/// Reads who is heard.
pub(super) fn read_ui(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> UiConfig {
    folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        let tree = match present(&part.tree, "ui_config") {
            Some(inner) => {
                unknown_fields(reader, &part.tree, "the file", &["ui_config"]);
                inner
            }
            None => &part.tree,
        };
        if tree.map().is_none() {
            reader.wrong_kind("ui_config", "a mapping", tree);
            return UiConfig::default();
        }
        let known: Vec<&str> =
            SHOWN.iter().map(|(name, _)| *name).chain(["visual_agents"]).collect();
        unknown_fields(reader, tree, "ui_config", &known);
        meaningless(reader, tree, SHOWN);
        let Some(names) = reader.texts(tree, "visual_agents") else { return UiConfig::default() };
        let mut visual: Vec<Arc<str>> = Vec::new();
        for (name, span) in names {
            // Whoever left the workflow hides nobody; a slip of the pen would.
            let is_gone = team.is_whole && Target::of_name(&name, team.known()).is_none();
            if is_gone && nearest(&name, team.known().iter().copied()).is_none() {
                let message = format!("`visual_agents` names `{name}`, who takes no part");
                reader.problem_help(Code::MeaninglessField, span, message, "remove it");
                continue;
            }
            let found = team.agent_or_user(&name, span, "`visual_agents`", reader);
            visual.extend(found.filter(|it| !visual.contains(it)));
        }
        UiConfig { visual_agents: Some(visual) }
    })
}
