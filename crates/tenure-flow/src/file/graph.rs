//! Journeys over workflows: version 2 of a pack.

use super::pack::version;
use super::part::{Folder, Part, head, meant, unknown_fields};
use tenure_cards::diagnostic::Code;
use tenure_cards::embed::{Reader, present};
use tenure_cards::source::{Node, Span, Value};

/// A workflow that a pack lists.
struct Listed {
    id: String,
    label: String,
    span: Span,
    needs: Vec<(String, Span)>,
}

/// Checks a pack. `there` are the workflows that exist.
pub(super) fn check(folder: &mut Folder<'_, '_>, part: &Part, there: &[String]) {
    let tree = &part.tree;
    folder.entry(&part.source, "", |scope| {
        let reader = &mut *scope.reader;
        let known = ["pack_name", "version", "description", "workflows", "journeys"];
        unknown_fields(reader, tree, "a pack", &known);
        version(tree, 2, reader);
        for name in ["pack_name", "description"] {
            reader.words(tree, name);
        }
    });
    let listed = workflows(folder, part, there);
    let needs: Vec<Vec<usize>> = listed
        .iter()
        .map(|it| {
            let position = |(name, _): &(String, Span)| listed.iter().position(|it| it.id == *name);
            it.needs.iter().filter_map(position).collect()
        })
        .collect();
    if let Some(circle) = circle(&needs) {
        let names: Vec<String> = circle.iter().map(|at| format!("`{}`", listed[*at].id)).collect();
        let first = &listed[circle[0]];
        folder.entry(&part.source, &first.label, |scope| {
            let message = format!("these workflows need each other: {}", names.join(" -> "));
            let help = "remove one of the dependencies";
            scope.reader.problem_help(Code::WorkflowCycle, first.span, message, help);
        });
    }
    journeys(folder, part, &listed);
}

/// The items of a list, each with its label.
fn items<'p>(folder: &mut Folder<'_, '_>, part: &'p Part, field: &str) -> Vec<(String, &'p Node)> {
    let Some(list) = present(&part.tree, field) else { return Vec::new() };
    let Some(items) = list.list() else {
        folder.entry(&part.source, "", |scope| scope.reader.wrong_kind(field, "a list", list));
        return Vec::new();
    };
    let label = |(at, node): (usize, &'p Node)| {
        let label = match node.field("id").and_then(Node::text) {
            Some(id) => format!("{field}[{at}] `{id}`"),
            None => format!("{field}[{at}]"),
        };
        (label, node)
    };
    items.iter().enumerate().map(label).collect()
}

fn id(node: &Node, reader: &mut Reader<'_>, what: &str) -> Option<(String, Span)> {
    if node.map().is_none() {
        reader.wrong_kind(what, "a mapping with `id`", node);
        return None;
    }
    let Some(place) = present(node, "id") else {
        let message = format!("{what} has no `id`");
        reader.problem_help(Code::MissingField, head(node), message, "add `id`");
        return None;
    };
    Some((reader.words_of("id", place)?.trim().to_owned(), place.span))
}

fn workflows(folder: &mut Folder<'_, '_>, part: &Part, there: &[String]) -> Vec<Listed> {
    let mut listed: Vec<Listed> = Vec::new();
    for (label, node) in items(folder, part, "workflows") {
        let found = folder.entry(&part.source, &label, |scope| {
            let reader = &mut *scope.reader;
            let (id, span) = id(node, reader, "a workflow")?;
            unknown_fields(reader, node, "a workflow", &["id", "description", "dependencies"]);
            reader.words(node, "description");
            let needs = reader.texts(node, "dependencies").unwrap_or_default();
            if listed.iter().any(|other| other.id == id) {
                let message = format!("the workflow `{id}` is listed twice");
                reader.problem_help(Code::DuplicateEntry, span, message, "remove one of the two");
                return None;
            }
            if !there.contains(&id) {
                missing(&id, span, "this entry", there, reader);
            }
            Some((id, span, needs))
        });
        listed.extend(found.map(|(id, span, needs)| Listed { id, label, span, needs }));
    }
    let ids: Vec<String> = listed.iter().map(|it| it.id.clone()).collect();
    for each in &listed {
        folder.entry(&part.source, &each.label, |scope| {
            for (name, span) in each.needs.iter().filter(|(name, _)| !ids.contains(name)) {
                missing(name, *span, "`dependencies`", &ids, scope.reader);
            }
        });
    }
    listed
}

fn missing(name: &str, span: Span, who: &str, there: &[String], reader: &mut Reader<'_>) {
    let known: Vec<&str> = there.iter().map(String::as_str).collect();
    let message = format!("{who} names the workflow `{name}`, which is not there");
    let help = meant(name, &known, "workflow");
    reader.problem_help(Code::UnknownWorkflow, span, message, help);
}

fn journeys(folder: &mut Folder<'_, '_>, part: &Part, listed: &[Listed]) {
    let ids: Vec<String> = listed.iter().map(|it| it.id.clone()).collect();
    let mut seen: Vec<String> = Vec::new();
    for (label, node) in items(folder, part, "journeys") {
        folder.entry(&part.source, &label, |scope| {
            let reader = &mut *scope.reader;
            let Some((id, span)) = id(node, reader, "a journey") else { return };
            unknown_fields(reader, node, "a journey", &["id", "description", "steps"]);
            reader.words(node, "description");
            if seen.contains(&id) {
                let message = format!("another journey has the id `{id}`");
                reader.problem_help(Code::DuplicateEntry, span, message, "choose another");
            }
            seen.push(id);
            let message = "a journey over workflows means nothing: nothing starts it by itself";
            let help = "run its workflows one after the other, or write a workflow whose agents are \
                        these";
            reader.problem_help(Code::MeaninglessField, span, message, help);
            let Some(steps) = present(node, "steps") else {
                let message = "this journey has no `steps`";
                reader.problem_help(Code::MissingField, span, message, "add `steps`");
                return;
            };
            let Some(steps) = steps.list() else {
                reader.wrong_kind("steps", "a list of workflows", steps);
                return;
            };
            for step in steps {
                let parallel = match &step.value {
                    Value::List(items) => items.as_slice(),
                    _ => std::slice::from_ref(step),
                };
                for each in parallel {
                    let Some(name) = reader.words_of("a step", each) else { continue };
                    if !ids.iter().any(|it| it == name.trim()) {
                        missing(name.trim(), each.span, "`steps`", &ids, reader);
                    }
                }
            }
        });
    }
}

/// A circle, first and last the same.
pub(super) fn circle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut done = vec![false; needs.len()];
    for start in 0..needs.len() {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((at, next)) = path.pop() {
            if done[at] && next == 0 {
                continue;
            }
            let Some(to) = needs[at].get(next).copied() else {
                done[at] = true;
                continue;
            };
            path.push((at, next + 1));
            if let Some(begin) = path.iter().position(|(on_path, _)| *on_path == to) {
                let mut circle: Vec<usize> = path[begin..].iter().map(|(at, _)| *at).collect();
                circle.push(to);
                return Some(circle);
            }
            if !done[to] {
                path.push((to, 0));
            }
        }
    }
    None
}
