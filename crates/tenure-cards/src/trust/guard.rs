//! The guards of a card, a workflow and a project: everything that keeps in bounds what runs.
//!
//! What would run is covered by what was agreed to as long as it is a part of it. Guards are the other way round: one
//! that is taken away lets more happen. So all guards of one card are one item, with a hash over them in their order,
//! and an item is there also if there are none. Any other set of guards is another item's contents.

use super::collect::Collector;
use super::{Item, ItemKind, sha256_hex};
use crate::card::{Card, CardKind};
use crate::hook::{CardHooks, DeclaredHook, Places, Run};
use crate::project::{CONFIG_FILE, ProjectConfig};
use crate::sandbox::Grant;
use crate::server::quoted;
use crate::source::Source;
use serde_json::Value;
use std::fmt::Display;

/// Fields of a card that are limits, or that narrow what its model may do.
const LIMITS: [&str; 16] = [
    "request_params",
    "human_input",
    "tools",
    "resources",
    "prompts",
    "cwd",
    "tool_input_schema",
    "max_parallel",
    "child_timeout_sec",
    "min_rating",
    "max_refinements",
    "plan_iterations",
    "k",
    "max_samples",
    "red_flag_max_length",
    "request_timeout_seconds",
];

/// Options of ready-made hooks that may hold a secret: of those only the names are shown.
const UNSHOWN: [&str; 6] = ["env", "header", "key", "token", "password", "secret"];

/// The most characters of one option that are shown. All of it is hashed.
const MOST_SHOWN: usize = 160;

/// The guards of one thing, in order.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    lines: Vec<String>,
    hashed: String,
}

impl Guards {
    /// No guards.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a limit, a policy or another setting that keeps something in bounds. The grants of a confined process are
    /// added here too, each by its name and what it allows.
    pub fn setting(&mut self, name: &str, value: impl Display) {
        let line = format!("{name} {}", one_line(&value.to_string()));
        self.add(line, "");
    }

    /// Adds the hooks that a file declares, in their order.
    pub fn hooks(&mut self, hooks: &CardHooks, source: &Source) {
        for hook in &hooks.declared {
            let written = source.slice(hook.span);
            let line = described(hook, source);
            self.sandbox(hook.sandbox.as_ref(), &format!("{line}: "));
            self.add(line, &with_aliases(written, source));
        }
        for (place, hook) in hooks.tool_hooks.iter() {
            self.add(format!("hook {place} {}", hook.spec), "");
        }
    }

    /// Adds what a confinement takes from the usual, a line for each, so that one that is gone is told by itself.
    pub(super) fn sandbox(&mut self, grant: Option<&Grant>, of: &str) {
        for line in grant.into_iter().flat_map(Grant::restrictions) {
            self.add(format!("{of}{line}"), "");
        }
    }

    /// Adds a line that a person reads, and what counts beside it.
    fn add(&mut self, line: String, written: &str) {
        self.hashed.push_str(&format!("{line:?} {written:?}\n"));
        self.lines.push(line);
    }

    fn item(self, of: String) -> Item {
        let Self { lines, hashed } = self;
        let sha256 = Some(sha256_hex(hashed.as_bytes()));
        Item { kind: ItemKind::Guard, what: of, sha256, used_by: lines }
    }
}

impl Collector<'_> {
    /// Adds what guards something, named as in `desk in agents/desk.md`. It counts if anything would run.
    pub fn guards(&mut self, of: impl Into<String>, guards: Guards) {
        self.guards.push(guards.item(of.into()));
    }

    /// Adds what guards a card.
    pub(super) fn card_guards(&mut self, card: &Card) {
        let mut guards = Guards::new();
        guards.hooks(&card.hooks, &card.source);
        for name in LIMITS {
            if let Some(node) = card.tree().field(name) {
                let written = card.source.slice(node.span);
                let meant = with_aliases(written, &card.source);
                let line = format!("{name} {}", one_line(written));
                guards.add(line, if meant == written { "" } else { &meant });
            }
        }
        if let CardKind::Agent(agent) = &card.kind {
            for tool in &agent.function_tools {
                if let Some(grant) = &tool.sandbox {
                    guards.setting(&format!("tool {}", tool.spec.name), format!("sandbox {grant}"));
                }
            }
        }
        let file = card.source.path().file_name().unwrap_or_default();
        let file = self.project.relative(&card.dir().join(file));
        self.guards(format!("{} in {file}", card.name), guards);
    }

    /// Adds the limits of the project, which hold for every card.
    pub(super) fn project_guards(&mut self) {
        let mut guards = Guards::new();
        let config = &self.project.config;
        for (name, limit) in limits(config) {
            if let Some(limit) = limit {
                guards.setting(&format!("limits.{name}"), limit);
            }
        }
        if !config.store.record {
            guards.setting("store.record", false);
        }
        let sandbox = &config.sandbox;
        guards.sandbox(Some(&sandbox.grant), "");
        if let Some(processes) = sandbox.processes {
            guards.setting("sandbox: at most", format!("{processes} processes"));
        }
        if let Some(memory) = sandbox.memory_mib {
            guards.setting("sandbox: at most", format!("{memory} MiB of memory for each process"));
        }
        if !config.secrets.names.is_empty() {
            guards.setting("secrets.names", config.secrets.names.join(" "));
        }
        if config.secrets.ignores_shapes {
            guards.setting("secrets.shapes", false);
        }
        self.guards(format!("every agent, by {CONFIG_FILE}"), guards);
    }
}

/// Returns what is written with what its aliases lead to. Which lines those are is not looked for: in a file in which a
/// guard is an alias everything counts.
fn with_aliases(written: &str, source: &Source) -> String {
    let mut names = written.split('*').skip(1).map(|rest| {
        let length = rest.find(|found: char| !(found.is_alphanumeric() || "_-".contains(found)));
        &rest[..length.unwrap_or(rest.len())]
    });
    let text = source.text();
    let is_alias = |name: &str| !name.is_empty() && text.contains(&format!("&{name}"));
    if names.any(is_alias) { format!("{written}\n{text}") } else { written.to_owned() }
}

/// The table `[limits]`.
fn limits(config: &ProjectConfig) -> [(&'static str, Option<tenure_core::hook::Limit>); 6] {
    [
        ("hook", config.hook_limit),
        ("end", config.end_limit),
        ("ends", config.ends_limit),
        ("turn", config.turn_limit),
        ("model", config.model_limit),
        ("tool", config.tool_limit),
    ]
}

/// A hook as a person reads it: `hook wrap_tool_call guard.py:check (policy deny, timeout 5s)`.
fn described(hook: &DeclaredHook, source: &Source) -> String {
    let place = super::collect::place_of(hook);
    let mut said = Vec::new();
    let run = match &hook.run {
        Run::Python(python) => python.spec.clone(),
        Run::Command(command) => {
            command.written.iter().map(|part| quoted(part)).collect::<Vec<_>>().join(" ")
        }
        Run::Use { name, with, places, .. } => {
            said.extend(shown_options(with, places, source));
            format!("use {name}")
        }
    };
    said.extend(super::collect::how_called(hook, source));
    let mut more = |name: &str, value: String| said.push(format!("{name} {value}"));
    if let Some(timeout) = hook.timeout {
        more("timeout", timeout.to_string());
    }
    if hook.retries > 0 {
        more("retries", hook.retries.to_string());
    }
    if !hook.before.is_empty() {
        more("before", hook.before.join("+"));
    }
    if !hook.after.is_empty() {
        more("after", hook.after.join("+"));
    }
    if hook.order != 0 {
        more("order", hook.order.to_string());
    }
    if hook.again_on_resume {
        said.push("again on resume".to_owned());
    }
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    format!("hook {place} {run}{said}")
}

/// The options of a ready-made hook.
pub(super) fn shown_options(with: &Value, places: &Places, source: &Source) -> Vec<String> {
    let options = with.as_object().into_iter().flatten();
    let shown = options.map(|(option, value)| {
        let from = places.find(option).map(|span| source.slice(span));
        shown_option(option, value, from)
    });
    shown.collect()
}

/// An option of a ready-made hook. What comes from the environment is shown as it is written.
fn shown_option(option: &str, value: &Value, written: Option<&str>) -> String {
    let lower = option.to_lowercase();
    if UNSHOWN.iter().any(|part| lower.contains(part)) {
        return format!("with {option}");
    }
    match written.filter(|text| text.contains("${")) {
        Some(written) => format!("with {}", one_line(written)),
        None => format!("with {option} {}", one_line(&value.to_string())),
    }
}

/// A text on one line, and not too long.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MOST_SHOWN) {
        Some((at, _)) => format!("{}… ({})", &text[..at], &sha256_hex(text.as_bytes())[..32]),
        None => text,
    }
}
