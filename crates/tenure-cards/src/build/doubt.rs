//! What a card's hooks say that fits neither each other nor the agent.

use super::agent::Workshop;
use super::files::WRITE;
use super::model::place;
use crate::card::Card;
use crate::diagnostic::{Code, Diagnostic};
use crate::hook::{DeclaredHook, Run};
use crate::source::Span;
use serde_json::Value;
use tenure_core::agent::Blueprint;

/// The tool that runs commands.
const SHELL: &str = "execute";

impl Workshop<'_> {
    /// Doubts hooks that watch over tools by name which the agent does not have. What a tool server
    /// brings is known only once it is connected.
    pub(super) fn doubt_tools(&mut self, card: &Card, blueprint: &Blueprint) {
        let has = |tool: &str| blueprint.tools().iter().any(|spec| &*spec.name == tool);
        for declared in &card.hooks.declared {
            let Run::Use { name, with, places, .. } = &declared.run else { continue };
            for (field, tool) in watched(name, with) {
                if tool.contains(['*', '?', '[', '{', '!']) || has(tool) {
                    continue;
                }
                let message = format!(
                    "the hook `{name}` is about the tool `{tool}`, which `{}` does not have",
                    card.name
                );
                let had: Vec<&str> = blueprint.tools().iter().map(|spec| &*spec.name).collect();
                let help = match &*had {
                    [] => "it has no tools".to_owned(),
                    had => format!("it has {}", had.join(", ")),
                };
                let span = places.find(&field).unwrap_or(declared.span);
                let found = Diagnostic::new(Code::DoubtfulHook, &card.source, span, message);
                self.report.push(found.help(help));
            }
        }
    }

    /// Doubts hooks that stand before the shell and not before the tools for files that come with
    /// it: what a command may not do, a file that is written may.
    pub(super) fn doubt_shell(&mut self, card: &Card) {
        for declared in &card.hooks.declared {
            let with_when = declared.when.as_ref().map(|when| (when.span, &*when.expression));
            let by_when = with_when.filter(|(_, it)| says(it, SHELL) && !says(it, WRITE));
            let by_name = match &declared.run {
                Run::Use { name, with, places, .. } if judges(name, with) => {
                    let named = watched(name, with);
                    let is_shell = |it: &&(String, &str)| it.1 == SHELL;
                    let is_more = |it: &(String, &str)| match it.1.split_once('*') {
                        Some((begin, _)) => WRITE.starts_with(begin),
                        None => it.1 == WRITE,
                    };
                    let only = named.iter().find(is_shell).filter(|_| !named.iter().any(is_more));
                    only.map(|(field, _)| places.find(field).unwrap_or(declared.span))
                }
                _ => None,
            };
            let Some(span) = by_name.or(by_when.map(|(span, _)| span)) else { continue };
            let message = format!(
                "the hook `{}` is about `{SHELL}` and not about `{WRITE}`, which `shell` brings too",
                declared.name
            );
            let help = format!("let it judge `{WRITE}` as well");
            let found = Diagnostic::new(Code::DoubtfulHook, &card.source, span, message);
            self.report.push(found.help(help));
        }
    }

    /// Refuses an agent whose parts do not fit together, where the file says what does not fit.
    pub(super) fn refuse_whole(&mut self, card: &Card, error: &str) {
        let message = in_files(error);
        let is_order = message.contains("`before`");
        let is_named = |hook: &&DeclaredHook| message.contains(&format!("`{}`", hook.name));
        let orders = |hook: &&DeclaredHook| !hook.before.is_empty() || !hook.after.is_empty();
        let mut named = card.hooks.declared.iter().filter(is_named);
        let (span, help): (Option<Span>, &str) = if is_order {
            let found = named.clone().find(orders).or_else(|| named.next());
            (found.map(|hook| hook.span), "take the `before` or `after` away")
        } else if message.contains("hook `") {
            (named.next().map(|hook| hook.span), "correct the hook")
        } else {
            (Some(card.name_span), "correct the card")
        };
        let span = span.unwrap_or_else(|| place(card, "hooks"));
        self.refuse(card, Code::CannotBeBuilt, span, message, help);
    }
}

/// What builders of agents read, and what authors of files read in its place.
const WORDS: [(&str, &str); 3] = [
    ("look at `only`, and at the functions of its impl", "take its `on` away, or correct it"),
    (
        "use continue there (`policy_at`), or register the end as a hook of its own",
        "take the `policy` away, or declare the end as a hook of its own",
    ),
    ("take `observes` away, or the policy", "take the `policy` away"),
];

fn in_files(message: &str) -> String {
    WORDS.iter().fold(message.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns `true` if an expression has this text in it.
fn says(expression: &str, tool: &str) -> bool {
    ['\'', '"'].iter().any(|quote| expression.contains(&format!("{quote}{tool}{quote}")))
}

/// Returns `true` if a ready-made hook lets calls pass that it does not name.
fn judges(name: &str, with: &Value) -> bool {
    matches!(name, "approval" | "dry_run") || name == "permissions" && with["default"] == "allow"
}

/// The tools that a ready-made hook is about, each with where it is named.
fn watched<'w>(name: &str, with: &'w Value) -> Vec<(String, &'w str)> {
    let listed = |field: &'static str| {
        let items = with[field].as_array().into_iter().flatten().enumerate();
        items.filter_map(move |(at, it)| Some((format!("{field}[{at}]"), it.as_str()?)))
    };
    match name {
        "approval" | "call_limit" => {
            let tools = with["tools"].as_object().into_iter().flatten();
            tools.map(|(tool, _)| (format!("tools.{tool}"), &**tool)).collect()
        }
        "audit" | "dry_run" => listed("tools").chain(listed("except")).collect(),
        "permissions" => {
            let rules = with["rules"].as_array().into_iter().flatten().enumerate();
            let named = |(at, rule): (usize, &'w Value)| {
                ["allow", "deny", "ask"].into_iter().filter_map(move |word| {
                    Some((format!("rules[{at}].{word}"), rule[word].as_str()?))
                })
            };
            rules.flat_map(named).collect()
        }
        _ => Vec::new(),
    }
}
