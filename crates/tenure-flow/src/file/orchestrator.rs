//! The file `orchestrator`.

use super::data::OrchestratorFile;
use super::part::{Folder, Part, meaningless, meant, unknown_fields};
use super::team::Team;
use crate::StartupMode;
use crate::contract::ErrorStrategy;
use crate::route::Pattern;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, SpecScope, nearest, present, read_hooks};
use tenure_cards::hook::CardHooks;
use tenure_cards::source::{Node, Source, Value};
use tenure_core::hook::Limit;

const FIELDS: &[&str] = &[
    "workflow_name",
    "max_turns",
    "human_in_the_loop",
    "startup_mode",
    "orchestration_pattern",
    "initial_message",
    "initial_message_to_user",
    "initial_agent",
    "error_strategy",
    "max_retries",
    "backoff",
    "seed",
    "hooks",
    "selector_model",
    "entry_point",
    "runtime_extensions",
    "metadata",
    "triggers",
    "inputs",
    "outputs",
];
/// What older files carry, and what to do instead.
const MEANINGLESS: &[(&str, &str)] = &[
    ("entry_point", "any workflow can be run by its name; remove it"),
    ("metadata", "it is for people who read the file; nothing looks at it"),
    ("triggers", "nothing starts a workflow by itself; run it from a scheduler of yours"),
    ("inputs", "declare what a chat is given in context_variables"),
    ("outputs", "declare what agents answer with in structured_outputs"),
];
const MODES: &[(&str, StartupMode)] = &[
    ("AgentDriven", StartupMode::AgentDriven),
    ("UserDriven", StartupMode::UserDriven),
    ("BackendOnly", StartupMode::BackendOnly),
];
const STRATEGIES: &[(&str, ErrorStrategy)] = &[
    ("fail_fast", ErrorStrategy::FailFast),
    ("continue", ErrorStrategy::Continue),
    ("retry", ErrorStrategy::RETRY),
    ("fallback", ErrorStrategy::Fallback),
];
/// The turns of a chat, unless the file says otherwise.
const MAX_TURNS: usize = 50;

/// What counts where nothing is said.
pub(super) fn defaults(source: Arc<Source>) -> OrchestratorFile {
    OrchestratorFile {
        max_turns: MAX_TURNS,
        human_in_the_loop: false,
        startup_mode: StartupMode::default(),
        pattern: Pattern::default(),
        initial_message: None,
        initial_message_to_user: None,
        initial_agent: None,
        error_strategy: ErrorStrategy::default(),
        seed: 0,
        selector_model: None,
        hooks: CardHooks::default(),
        source,
    }
}

/// The name that the file gives the workflow.
pub(super) fn name(part: &Part) -> Option<&str> {
    let name = part.tree.field("workflow_name").and_then(Node::text)?.trim();
    (!name.is_empty()).then_some(name)
}

/// Whether the pattern that the file names, if it names one, is known.
pub(super) fn has_known_pattern(part: &Part) -> bool {
    let named = present(&part.tree, "orchestration_pattern");
    named.is_none_or(|it| it.text().is_some_and(|text| Pattern::of_name(text.trim()).is_some()))
}

pub(super) fn read(folder: &mut Folder<'_, '_>, part: &Part, team: &Team) -> OrchestratorFile {
    let tree = &part.tree;
    let mut file = defaults(Arc::clone(&part.source));
    folder.entry(&part.source, "", |scope| {
        if tree.map().is_none() {
            scope.reader.wrong_kind("the file", "a mapping", tree);
            return;
        }
        fields(tree, scope, team, &mut file);
    });
    file.hooks = folder.expanded_entry(&part.source, "", |scope| {
        let hooks = tree.entry("hooks").map(|(key, node)| (key.clone(), node.clone()));
        let only = Node::new(tree.span, Value::Map(hooks.into_iter().collect()));
        read_hooks(&only, scope)
    });
    file
}

fn fields(tree: &Node, scope: &mut SpecScope<'_, '_>, team: &Team, file: &mut OrchestratorFile) {
    let reader = &mut *scope.reader;
    unknown_fields(reader, tree, "an orchestrator", FIELDS);
    meaningless(reader, tree, MEANINGLESS);
    extensions(tree, reader);
    if let Some(node) = tree.field("workflow_name") {
        reader.words_of("workflow_name", node);
    }
    let turns = reader.count(tree, "max_turns").and_then(|it| usize::try_from(it).ok());
    file.max_turns = turns.unwrap_or(MAX_TURNS);
    file.human_in_the_loop = human(tree, reader);
    file.startup_mode = reader.one_of(tree, "startup_mode", MODES).unwrap_or_default();
    file.pattern = pattern(tree, reader).unwrap_or_default();
    let said = |reader: &mut Reader<'_>, name: &str| {
        let node = present(tree, name)?;
        reader.text_of(name, node).filter(|text| !text.trim().is_empty())
    };
    file.initial_message = said(reader, "initial_message");
    file.initial_message_to_user = said(reader, "initial_message_to_user");
    if let Some(node) = present(tree, "initial_agent") {
        let name = reader.words_of("initial_agent", node);
        file.initial_agent =
            name.and_then(|name| team.agent(name.trim(), node.span, "`initial_agent`", reader));
    }
    file.seed = reader.whole(tree, "seed", 0..=i64::MAX).unwrap_or(0).unsigned_abs();
    file.selector_model = reader.words(tree, "selector_model").map(|it| it.trim().to_owned());
    let strategy = reader.one_of(tree, "error_strategy", STRATEGIES);
    let is_known = strategy.is_some() || present(tree, "error_strategy").is_none();
    let retries = reader.whole(tree, "max_retries", 0..=100);
    let backoff = scope.duration(tree, "backoff").map(Limit::duration);
    file.error_strategy = match strategy.unwrap_or_default() {
        ErrorStrategy::Retry { attempts, backoff: default } => ErrorStrategy::Retry {
            attempts: retries.and_then(|it| u32::try_from(it).ok()).unwrap_or(attempts),
            backoff: backoff.unwrap_or(default),
        },
        other => {
            for name in ["max_retries", "backoff"].into_iter().filter(|_| is_known) {
                if let Some((key, _)) = present(tree, name).and_then(|_| tree.entry(name)) {
                    let message =
                        format!("`{name}` goes with `error_strategy: retry`, and this is {other}");
                    let help = format!("write `error_strategy: retry`, or remove `{name}`");
                    scope.reader.problem_help(Code::Contradiction, key.span, message, help);
                }
            }
            other
        }
    };
}

/// Truth, in the words that files have for it.
fn human(tree: &Node, reader: &mut Reader<'_>) -> bool {
    let Some(node) = present(tree, "human_in_the_loop") else { return false };
    let word = match &node.value {
        Value::Bool(truth) => return *truth,
        Value::Int(_) => node.raw.to_string(),
        Value::Text(text) => text.trim().to_ascii_lowercase(),
        _ => String::new(),
    };
    match word.as_str() {
        "true" | "yes" | "1" | "on" | "always" => true,
        "false" | "no" | "0" | "off" | "never" => false,
        _ => {
            let shown = tenure_cards::embed::found(node);
            let shown = if word.is_empty() { shown } else { format!("`{word}`") };
            let message = format!("`human_in_the_loop` is {shown}, but must be true or false");
            let help = "`true`, `yes`, `on`, `1` and `always` are true";
            reader.problem_help(Code::NotOneOf, node.span, message, help);
            false
        }
    }
}

fn pattern(tree: &Node, reader: &mut Reader<'_>) -> Option<Pattern> {
    let node = present(tree, "orchestration_pattern")?;
    let text = reader.words_of("orchestration_pattern", node)?;
    let found = Pattern::of_name(text.trim());
    if found.is_none() {
        let names = Pattern::ALL.map(Pattern::as_str);
        let message = format!("there is no orchestration pattern `{}`", text.trim());
        // Who writes `RoundRobin` means `RoundRobinPattern`.
        let whole = format!("{}Pattern", text.trim());
        let help = match nearest(&whole, names) {
            _ if matches!(text.trim(), "manual" | "ManualPattern") => {
                "a person picks by handoffs: write `DefaultPattern`, and hand over to `user`"
                    .to_owned()
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => meant(text.trim(), &names, "pattern"),
        };
        reader.problem_help(Code::UnknownPattern, node.span, message, help);
    }
    found
}

/// Code that the origin loads into its server; here the same is done by hooks and lifecycle tools.
fn extensions(tree: &Node, reader: &mut Reader<'_>) {
    let Some(node) = present(tree, "runtime_extensions") else { return };
    if node.list().is_some_and(<[Node]>::is_empty) {
        return;
    }
    for (at, each) in node.list().unwrap_or(std::slice::from_ref(node)).iter().enumerate() {
        let kind = each.field("kind").and_then(Node::text).unwrap_or("an extension");
        let help = match kind {
            "lifecycle_hooks" => {
                "write lifecycle_tools with before_chat (on_start) and after_chat (on_complete; \
                 on_fail with `when: outcome != 'ok'`)"
            }
            "startup_service" => {
                "write `hooks` in this file with `on: before_chat`, or start the service beside \
                 Tenure"
            }
            "api_router" => "serve it beside Tenure; agents reach it through tools",
            _ => "use `hooks` in this file, or lifecycle_tools in the file `tools`",
        };
        let span = each.field("kind").map_or(each.span, |kind| kind.span);
        let message = format!("`runtime_extensions[{at}]` ({kind}) is not loaded by Tenure");
        reader.problem_help(Code::NotInTenure, span, message, help);
    }
}
