//! The fields of a declared hook.

use super::order::{self, Named};
use super::spec::SpecScope;
use super::{CardHooks, DeclaredHook, On, Places, Run, ToolHookSet};
use crate::card::{list_words, present};
use crate::diagnostic::Code;
use crate::nearest::nearest;
use crate::python::{FunctionProcess, Use};
use crate::sandbox;
use crate::source::{Key, Node, Span, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::hook::{Limit, Point, Points, Policy};
use tenure_hosts::Role;

const FIELDS: &[&str] = &[
    "run",
    "use",
    "with",
    "on",
    "name",
    "policy",
    "timeout",
    "retries",
    "backoff",
    "when",
    "before",
    "after",
    "order",
    "again_on_resume",
    "writes",
    "sandbox",
];
const LIFECYCLE: &[(&str, Point)] =
    &[("on_start", Point::OnStart), ("on_shutdown", Point::OnShutdown)];

/// Reads `lifecycle_hooks`, `hooks` and `tool_hooks`.
#[doc(alias = "lifecycle_hook_loader")]
pub fn read_hooks(tree: &Node, scope: &mut SpecScope<'_, '_>) -> CardHooks {
    let mut drafts = Vec::new();
    if let Some(map) = scope.reader.mapping(tree, "lifecycle_hooks") {
        for (key, node) in map.map().unwrap_or_default() {
            match LIFECYCLE.iter().find(|(name, _)| *name == key.text) {
                Some((_, point)) => drafts.extend(scope.lifecycle(key, node, *point)),
                None => scope.unknown_key(key, "lifecycle_hooks", &["on_start", "on_shutdown"]),
            }
        }
    }
    if let Some(node) = present(tree, "hooks") {
        match node.list() {
            Some(items) => drafts.extend(items.iter().filter_map(|item| scope.listed(item))),
            None => scope.reader.wrong_kind("hooks", "a list of hooks", node),
        }
    }
    let mut tool_hooks = ToolHookSet::default();
    if let Some(map) = scope.reader.mapping(tree, "tool_hooks") {
        for (key, node) in map.map().unwrap_or_default() {
            let Some(slot) = tool_hooks.slot(&key.text) else {
                scope.unknown_key(key, "tool_hooks", &ToolHookSet::NAMES);
                continue;
            };
            *slot = scope.tool_hook(key, node);
        }
    }
    let mut fields = Vec::new();
    if tree.field("tool_hooks").and_then(Node::map).is_some_and(|map| !map.is_empty()) {
        fields.push("tool_hooks");
    }
    if tree.field("trim_tool_history").is_some_and(|node| node.value == Value::Bool(true)) {
        fields.push("trim_tool_history");
    }
    let declared = order::settle(drafts, &fields, scope.reader);
    CardHooks { declared, tool_hooks }
}

/// A hook that was read, with what its order says.
pub(super) struct Draft {
    pub(super) named: Named,
    pub(super) before: Vec<(String, Span)>,
    pub(super) after: Vec<(String, Span)>,
    /// None if something about it is wrong; its name still counts.
    pub(super) hook: Option<DeclaredHook>,
}

impl SpecScope<'_, '_> {
    fn unknown_key(&mut self, key: &Key, field: &str, names: &[&str]) {
        let help = match nearest(&key.text, names.iter().copied()) {
            _ if key.text.parse::<Point>().is_ok() => {
                format!(
                    "write it under `hooks`, as in `- {{ on: {}, run: file.py:function }}`",
                    key.text
                )
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("possible are {}", list_words(names, "and")),
        };
        let message = format!("`{}` is not one of {field}", key.text);
        self.reader.problem_help(Code::UnknownHookKey, key.span, message, help);
    }

    fn not_a_hook(&mut self, name: &str, node: &Node) {
        let found = crate::card::found(node);
        self.reader.problem_help(
            Code::NotAHook,
            node.span,
            format!("{name} must be a spec, a command or a table, but is {found}"),
            "write `file.py:function`, or [\"./program\"], or { run: file.py:function, timeout: 5s }",
        );
    }

    /// An entry of `lifecycle_hooks`.
    fn lifecycle(&mut self, key: &Key, node: &Node, point: Point) -> Option<Draft> {
        let on = On::Points(point.into());
        match &node.value {
            Value::Text(_) | Value::List(_) => {
                let (name, run) = self.run(node, &on);
                Some(plain(name?, on, run, node.span))
            }
            Value::Map(_) => {
                if let Some((place, _)) = node.entry("on") {
                    self.reader.problem_help(
                        Code::UnknownHookField,
                        place.span,
                        format!("`on` is said already: this stands under `{}`", key.text),
                        "remove `on`, or move the table to `hooks`",
                    );
                }
                self.table(node, Some(on))
            }
            _ => {
                self.not_a_hook(&format!("`{}`", key.text), node);
                None
            }
        }
    }

    /// An entry of `hooks`.
    fn listed(&mut self, node: &Node) -> Option<Draft> {
        match &node.value {
            Value::Map(_) => self.table(node, None),
            Value::Text(text) => {
                self.reader.problem_help(
                    Code::MissingPoint,
                    node.span,
                    "this hook does not say where it is called",
                    format!("write a table, as in `{{ on: before_agent, run: {} }}`", text.trim()),
                );
                None
            }
            _ => {
                self.not_a_hook("an entry of `hooks`", node);
                None
            }
        }
    }

    /// One of the five.
    fn tool_hook(&mut self, key: &Key, node: &Node) -> Option<super::PythonRef> {
        let spec = match &node.value {
            Value::Map(_) => {
                for (field, _) in node.map().unwrap_or_default() {
                    if field.text != "run" {
                        self.reader.problem_help(
                            Code::UnknownHookField,
                            field.span,
                            format!("`{}` cannot be said of a tool hook", field.text),
                            "write a hook under `hooks` to say more of it",
                        );
                    }
                }
                let Some(run) = present(node, "run") else {
                    self.reader.problem_help(
                        Code::RunOrUse,
                        node.span,
                        format!("`{}` does not say what to run", key.text),
                        format!("write `{}: file.py:function`", key.text),
                    );
                    return None;
                };
                run
            }
            _ => node,
        };
        match &spec.value {
            Value::Text(text) => {
                let text = self.reader.expanded(text, spec.span);
                self.python(&text, spec.span, Use::ToolHook)
            }
            Value::List(_) => {
                self.reader.problem_help(
                    Code::NotAHook,
                    spec.span,
                    format!("`{}` must be a Python function, but is a command", key.text),
                    "write `file.py:function`; a command can hook every point under `hooks`",
                );
                None
            }
            _ => {
                self.not_a_hook(&format!("`{}`", key.text), spec);
                None
            }
        }
    }

    /// The name that `run` gives, and what it runs if that can be run.
    fn run(&mut self, node: &Node, on: &On) -> (Option<String>, Option<Run>) {
        match &node.value {
            Value::Text(text) => {
                let text = self.reader.expanded(text, node.span);
                let name = super::spec::split(&text)
                    .map(|spec| format!("{}:{}", spec.path, spec.function));
                let points = match on {
                    On::Points(points) => *points,
                    On::Transition { .. } => Point::OnTransition.into(),
                    On::Own => Points::NONE,
                };
                let run = self.python(&text, node.span, Use::Hook(points)).map(Run::Python);
                (name, run)
            }
            Value::List(items) => {
                let first = items.first().and_then(Node::text).unwrap_or_default();
                let name = Path::new(first).file_name().map(|it| it.to_string_lossy().into_owned());
                (name, self.command(node).map(Run::Command))
            }
            _ => {
                self.not_a_hook("`run`", node);
                (None, None)
            }
        }
    }

    /// A table. `fixed` is where the hook is called, if its place says so.
    fn table(&mut self, node: &Node, fixed: Option<On>) -> Option<Draft> {
        let before_errors = self.reader.report.errors();
        self.reader.only(node, "a hook", FIELDS, Code::UnknownHookField);
        let (run, used) = (present(node, "run"), present(node, "use"));
        let head = node.map().and_then(|map| map.first()).map_or(node.span, |(key, _)| key.span);
        match (run, used) {
            (None, None) => self.reader.problem_help(
                Code::RunOrUse,
                head,
                "this hook does not say what to run",
                "give it `run: file.py:function`, a command, or `use: name`",
            ),
            (Some(_), Some(other)) => self.reader.problem_help(
                Code::RunOrUse,
                other.span,
                "this hook has both `run` and `use`",
                "keep one of them; write two hooks to have both",
            ),
            _ => {}
        }
        let on = match (fixed, present(node, "on")) {
            (Some(fixed), _) => Some(fixed),
            (None, Some(on)) => self.on(on),
            (None, None) if used.is_some() => Some(On::Own),
            (None, None) => {
                self.reader.problem_help(
                    Code::MissingPoint,
                    head,
                    "this hook does not say where it is called",
                    "give it `on: before_agent`, another point, or a transition such as \
                     `on: \"idle -> paused\"`",
                );
                None
            }
        };
        // An unknown point must not hide what is wrong with the function.
        let place = on.clone().unwrap_or(On::Points(Points::NONE));
        let (default, mut run) = match (run, used) {
            (Some(run), _) => self.run(run, &place),
            (None, Some(used)) => self.used(node, used),
            (None, None) => (None, None),
        };
        if let (None, Some((key, _))) = (used, node.entry("with")) {
            self.reader.problem_help(
                Code::WithWithoutUse,
                key.span,
                "`with` configures a hook that is named by `use`, and there is none here",
                "remove `with`; a function or command gets nothing from it",
            );
        }
        let name = self.reader.words(node, "name").map(|name| name.trim().to_owned());
        let policy = self.policy(node, on.as_ref());
        let timeout = self.duration(node, "timeout");
        let backoff = self.duration(node, "backoff").map(Limit::duration);
        let retries = self.reader.whole(node, "retries", 0..=10).unwrap_or(0);
        let when = self.when(node, &place);
        let before = self.names(node, "before");
        let after = self.names(node, "after");
        let order = self.reader.whole(node, "order", i64::from(i32::MIN)..=i64::from(i32::MAX));
        let again_on_resume = self.again(node, on.as_ref());
        let writes = self.written(node, run.as_mut());
        let sandbox = sandbox::grant(self.reader, node);
        if let Some(Run::Python(python)) = &run {
            let role = if policy == Some(Policy::Deny) { Role::Guard } else { Role::Other };
            let process = FunctionProcess { role, sandbox: sandbox.clone() };
            self.python.note_process(&python.function, process);
        }
        let span = node.span;
        let sound = self.reader.report.errors() == before_errors;
        let named = Named {
            explicit: name.is_some(),
            span: node.field("name").map_or(head, |name| name.span),
            name: name.or(default)?,
        };
        let hook = match (on, run) {
            (Some(on), Some(run)) if sound => Some(DeclaredHook {
                name: named.name.as_str().into(),
                on,
                run,
                policy,
                timeout,
                retries: u32::try_from(retries).unwrap_or(0),
                backoff,
                when,
                before: before.iter().map(|(name, _)| Arc::from(name.as_str())).collect(),
                after: after.iter().map(|(name, _)| Arc::from(name.as_str())).collect(),
                order: order.and_then(|order| i32::try_from(order).ok()).unwrap_or(0),
                again_on_resume,
                writes,
                sandbox,
                span,
            }),
            _ => None,
        };
        Some(Draft { named, before, after, hook })
    }

    /// The files that a command writes, which it gets to know too.
    fn written(&mut self, node: &Node, run: Option<&mut Run>) -> Vec<PathBuf> {
        match run {
            Some(Run::Command(command)) => {
                let files = self.writes(node, Some(command));
                command.writes.extend(files.iter().cloned());
                files
            }
            Some(Run::Python(_)) => {
                if let Some((key, _)) = node.entry("writes") {
                    let message =
                        "`writes` means nothing for a function: it is about a command's files";
                    let help = "remove it; a function may write what it likes";
                    self.reader.problem_help(Code::MeaninglessField, key.span, message, help);
                }
                Vec::new()
            }
            _ => self.writes(node, None),
        }
    }

    fn used(&mut self, table: &Node, node: &Node) -> (Option<String>, Option<Run>) {
        let Some(name) = self.reader.words_of("use", node) else { return (None, None) };
        let name = name.trim().to_owned();
        let (with, places) = match self.reader.mapping(table, "with") {
            Some(with) => (self.reader.settings(with), Places::of(with)),
            None => (serde_json::json!({}), Places::default()),
        };
        if let Some(registered) = self.registered
            && !registered.contains(&name)
            && tenure_hooks::ready::find(&name).is_none()
            && tenure_hooks::ready::left_out(&name).is_none()
        {
            let ready = tenure_hooks::ready::all().map(|(_, hook)| hook.name());
            let names: Vec<&str> = registered.iter().map(String::as_str).chain(ready).collect();
            let own: Vec<&str> = registered.iter().map(String::as_str).collect();
            let help = match (nearest(&name, names.iter().copied()), own.as_slice()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, []) => "`tenure hooks` lists those that there are".to_owned(),
                (None, own) => format!(
                    "registered are {}, beside those that `tenure hooks` lists",
                    list_words(own, "and")
                ),
            };
            let message = format!("no hook is registered as `{name}`");
            self.reader.problem_help(Code::UnknownUse, node.span, message, help);
            return (Some(name), None);
        }
        let dir = self.origin.dir.to_owned();
        (Some(name.clone()), Some(Run::Use { name, with, places, dir }))
    }
}

fn plain(name: String, on: On, run: Option<Run>, span: Span) -> Draft {
    let named = Named { name, explicit: false, span };
    let hook = run.map(|run| DeclaredHook {
        name: named.name.as_str().into(),
        on,
        run,
        policy: None,
        timeout: None,
        retries: 0,
        backoff: None,
        when: None,
        before: Vec::new(),
        after: Vec::new(),
        order: 0,
        again_on_resume: false,
        writes: Vec::new(),
        sandbox: None,
        span,
    });
    Draft { named, before: Vec::new(), after: Vec::new(), hook }
}
