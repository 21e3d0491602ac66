//! What can be wrong only between cards.

use crate::card::{AgentRef, Card, CardKind, list_words};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::nearest::nearest;
use crate::source::Span;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Names that an agent cannot have.
const RESERVED: &[&str] = &["subagent"];

/// Checks the cards together. `broken` are names of cards that could not be read.
pub(super) fn check(cards: &[Card], broken: &HashSet<Arc<str>>, report: &mut Report) {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (at, card) in cards.iter().enumerate() {
        match by_name.get(&*card.name) {
            Some(first) => twice(&cards[*first], card, report),
            None => {
                by_name.insert(&card.name, at);
            }
        }
        reserved(card, report);
        tools(card, report);
    }
    defaults(cards, report);
    for card in cards {
        references(card, &by_name, broken, report);
    }
    circles(cards, &by_name, report);
}

fn place(card: &Card) -> String {
    let at = card.source.line_col(card.name_span.start as usize);
    format!("{}:{}:{}", card.source.path().display(), at.line, at.column)
}

/// Reports both places.
fn twice(first: &Card, second: &Card, report: &mut Report) {
    for (card, other) in [(first, second), (second, first)] {
        report.push(
            Diagnostic::new(
                Code::DuplicateAgent,
                &card.source,
                card.name_span,
                format!("another agent has the name `{}`", card.name),
            )
            .label(format!("also in {}", place(other)))
            .help("names are unique in a run; give one of them another `name`"),
        );
    }
}

fn reserved(card: &Card, report: &mut Report) {
    let name = &*card.name;
    let clone = name.ends_with(']') && name.contains('[') || name.contains('#');
    let help = if RESERVED.contains(&name) {
        "this is the name of helpers that a model starts; choose another"
    } else if name.chars().any(char::is_control) {
        "a name is one line of text; choose another"
    } else if clone {
        "clones and forks get names such as `child[1]` and `child#1`; choose another"
    } else {
        return;
    };
    let message = format!("an agent cannot have the name `{name}`");
    let diagnostic = Diagnostic::new(Code::ReservedName, &card.source, card.name_span, message);
    report.push(diagnostic.help(help));
}

/// The name that a child has as a tool, with `_` for what models do not take in a name.
fn tool_name(child: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    format!("agent__{}", child.replace(odd, "_"))
}

fn tools(card: &Card, report: &mut Report) {
    let CardKind::Agent(agent) = &card.kind else { return };
    let children = agent.agents.iter().map(|child| (tool_name(&child.name), child.span));
    let functions = agent.function_tools.iter().map(|it| (it.spec.name.to_string(), it.span));
    let mut seen: HashSet<String> = HashSet::new();
    for (name, span) in children.chain(functions) {
        if seen.contains(&name) {
            let message = format!("two tools of this agent have the name `{name}`");
            let diagnostic = Diagnostic::new(Code::ToolNameClash, &card.source, span, message);
            report.push(diagnostic.help("remove or rename one of them"));
        }
        seen.insert(name);
    }
}

fn defaults(cards: &[Card], report: &mut Report) {
    let defaults: Vec<&Card> = cards.iter().filter(|card| card.default).collect();
    if defaults.len() < 2 {
        return;
    }
    for card in &defaults {
        let others: Vec<&str> =
            defaults.iter().map(|it| &*it.name).filter(|name| **name != *card.name).collect();
        let span = card.tree().entry("default").map_or(card.name_span, |(key, _)| key.span);
        report.push(
            Diagnostic::new(
                Code::TwoDefaults,
                &card.source,
                span,
                format!("more than one agent is the default: also {}", list_words(&others, "and")),
            )
            .help("keep `default: true` in one card"),
        );
    }
}

fn references(
    card: &Card,
    by_name: &HashMap<&str, usize>,
    broken: &HashSet<Arc<str>>,
    report: &mut Report,
) {
    for reference in card.references() {
        let name = &*reference.name;
        if name == &*card.name {
            report.push(
                Diagnostic::new(
                    Code::SelfReference,
                    &card.source,
                    reference.span,
                    format!("`{name}` names itself in `{}`", reference.field),
                )
                .help("name another agent"),
            );
        } else if !by_name.contains_key(name)
            && !broken.contains(name)
            && !report.is_full(&card.source, Code::MissingAgent)
        {
            let others = by_name.keys().copied().filter(|other| *other != &*card.name);
            let mut others: Vec<&str> = others.collect();
            others.sort_unstable();
            let help = match nearest(name, others.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if others.is_empty() => {
                    "load the folder that holds its card, or write the card".to_owned()
                }
                None => format!(
                    "there {} {}",
                    if others.len() == 1 { "is" } else { "are" },
                    list_words(&others, "and")
                ),
            };
            let message =
                format!("`{}` names the agent `{name}`, which is not there", reference.field);
            report.push(
                Diagnostic::new(Code::MissingAgent, &card.source, reference.span, message)
                    .help(help),
            );
        }
    }
}

/// Reports each circle once, at the reference that closes it.
fn circles(cards: &[Card], by_name: &HashMap<&str, usize>, report: &mut Report) {
    let edges: Vec<Vec<(usize, &AgentRef)>> = cards
        .iter()
        .enumerate()
        .map(|(at, card)| {
            let to = |it: &&AgentRef| by_name.get(&*it.name).copied().filter(|to| *to != at);
            card.references().into_iter().filter_map(|it| Some((to(&it)?, it))).collect()
        })
        .collect();
    let mut done = vec![false; cards.len()];
    for start in 0..cards.len() {
        let mut path: Vec<(usize, usize)> = if done[start] { Vec::new() } else { vec![(start, 0)] };
        while let Some((at, next)) = path.pop() {
            let Some((to, reference)) = edges[at].get(next).copied() else {
                done[at] = true;
                continue;
            };
            path.push((at, next + 1));
            if let Some(begin) = path.iter().position(|(on_path, _)| *on_path == to) {
                let mut names: Vec<&str> =
                    path[begin..].iter().map(|(at, _)| &*cards[*at].name).collect();
                names.push(&cards[to].name);
                circle(&cards[at], reference.span, &names, report);
            } else if !done[to] {
                path.push((to, 0));
            }
        }
    }
}

fn circle(card: &Card, span: Span, names: &[&str], report: &mut Report) {
    report.push(
        Diagnostic::new(
            Code::AgentCycle,
            &card.source,
            span,
            format!("these agents name each other in a circle: {}", names.join(" -> ")),
        )
        .help("remove one of the references: a request would never end"),
    );
}
