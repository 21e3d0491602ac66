//! What a card's hooks say that fits neither each other nor the agent.

use super::agent::Workshop;
use super::model::place;
use crate::card::Card;
use crate::diagnostic::{Code, Diagnostic};
use crate::hook::{DeclaredHook, Run};
use crate::source::Span;
use serde_json::Value;
use tenure_core::agent::Blueprint;

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
