//! The order of lifecycle tools: as they are written, unless they say otherwise.

use super::lifecycle::Draft;
use super::part::{Folder, meant};
use crate::lifecycle::LifecycleTool;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_cards::diagnostic::Code;
use tenure_cards::source::{Source, Span};

/// Makes names unique, checks the constraints, and puts the tools into the order in which they run.
pub(super) fn settle(
    folder: &mut Folder<'_, '_>,
    source: &Arc<Source>,
    mut drafts: Vec<Draft>,
) -> Vec<LifecycleTool> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for draft in drafts.iter().filter(|draft| draft.explicit) {
        if !taken.insert(draft.name.clone()) {
            let message = format!("another lifecycle tool has the name `{}`", draft.name);
            let help = "names are unique in a workflow; choose another";
            folder.entry(source, &draft.label, |scope| {
                scope.reader.problem_help(Code::DuplicateEntry, draft.name_span, message, help);
            });
        }
    }
    // A function that stands at several triggers gets a number where it has no name of its own.
    for draft in drafts.iter_mut().filter(|draft| !draft.explicit) {
        let base = draft.name.clone();
        let mut number = 2;
        while !taken.insert(draft.name.clone()) {
            draft.name = format!("{base}#{number}");
            number += 1;
        }
        if let Some(tool) = &mut draft.tool {
            tool.name = draft.name.as_str().into();
        }
    }
    let edges = constraints(folder, source, &drafts);
    let sorted = sort(folder, source, &drafts, &edges);
    let mut tools: Vec<Option<LifecycleTool>> =
        drafts.into_iter().map(|draft| draft.tool).collect();
    sorted.into_iter().filter_map(|at| tools[at].take()).collect()
}

/// `edges[a]` holds every tool that runs behind a.
type Edges = Vec<Vec<(usize, Span)>>;

fn constraints(folder: &mut Folder<'_, '_>, source: &Arc<Source>, drafts: &[Draft]) -> Edges {
    let mut edges: Edges = vec![Vec::new(); drafts.len()];
    for (at, draft) in drafts.iter().enumerate() {
        let all = draft.before.iter().map(|it| (it, "before"));
        for ((name, span), field) in all.chain(draft.after.iter().map(|it| (it, "after"))) {
            let found = drafts.iter().position(|other| other.name == *name);
            let other = found.map(|other| &drafts[other]);
            let problem = match (found, other) {
                (Some(other), _) if other == at => Some((
                    Code::OrderCycle,
                    format!("`{name}` cannot stand {field} itself"),
                    format!("remove it from `{field}`"),
                )),
                (Some(_), Some(other))
                    if draft.trigger.zip(other.trigger).is_some_and(|(a, b)| a != b) =>
                {
                    let own = draft.trigger.map_or("", |it| it.as_str());
                    let others = other.trigger.map_or("", |it| it.as_str());
                    Some((
                        Code::UnknownHookName,
                        format!("`{field}` names `{name}`, which runs at {others}, not at {own}"),
                        format!("remove it: `{field}` orders the tools of one trigger"),
                    ))
                }
                (Some(_), _) => None,
                (None, _) => {
                    let others = drafts.iter().filter(|other| other.name != draft.name);
                    let known: Vec<&str> = others.map(|other| other.name.as_str()).collect();
                    Some((
                        Code::UnknownHookName,
                        format!("`{field}` names `{name}`, but no lifecycle tool has that name"),
                        meant(name, &known, "other lifecycle tool"),
                    ))
                }
            };
            match (problem, found) {
                (Some((code, message, help)), _) => {
                    folder.entry(source, &draft.label, |scope| {
                        scope.reader.problem_help(code, *span, message, help);
                    });
                }
                (None, Some(other)) if field == "before" => edges[at].push((other, *span)),
                (None, Some(other)) => edges[other].push((at, *span)),
                (None, None) => {}
            }
        }
    }
    edges
}

/// The tools by `order`, then as they are written, each behind those that it has to follow. A circle
/// is reported.
fn sort(
    folder: &mut Folder<'_, '_>,
    source: &Arc<Source>,
    drafts: &[Draft],
    edges: &Edges,
) -> Vec<usize> {
    let mut waits_for = vec![0usize; drafts.len()];
    for (to, _) in edges.iter().flatten() {
        waits_for[*to] += 1;
    }
    let mut open: BTreeSet<(i32, usize)> = BTreeSet::new();
    let ready = |at: usize| (drafts[at].order, at);
    open.extend((0..drafts.len()).filter(|at| waits_for[*at] == 0).map(ready));
    let mut sorted = Vec::with_capacity(drafts.len());
    while let Some((_, at)) = open.pop_first() {
        sorted.push(at);
        for (to, _) in &edges[at] {
            waits_for[*to] -= 1;
            if waits_for[*to] == 0 {
                open.insert(ready(*to));
            }
        }
    }
    let left: Vec<usize> = (0..drafts.len()).filter(|at| !sorted.contains(at)).collect();
    let Some(first) = left.first().copied() else { return sorted };
    let (path, span) = circle(first, &left, edges);
    let names: Vec<String> = path.iter().map(|at| format!("`{}`", drafts[*at].name)).collect();
    let message = format!("these run before each other in a circle: {}", names.join(" -> "));
    let label = path.first().map_or("", |at| drafts[*at].label.as_str());
    folder.entry(source, label, |scope| {
        let help = "remove one of the constraints";
        scope.reader.problem_help(Code::OrderCycle, span, message, help);
    });
    sorted.extend(left);
    sorted
}

/// A circle among those that are left, first and last the same, and where it is closed.
fn circle(first: usize, left: &[usize], edges: &Edges) -> (Vec<usize>, Span) {
    // Everybody left waits for somebody left: going backwards ends in a circle.
    let before = |at: usize| {
        left.iter().copied().find_map(|from| {
            let edge = edges[from].iter().find(|(to, _)| *to == at);
            edge.map(|(_, span)| (from, *span))
        })
    };
    let mut path = vec![first];
    let mut span = Span::default();
    while let Some((from, place)) = before(path[path.len() - 1]) {
        span = place;
        let known = path.iter().position(|at| *at == from);
        path.push(from);
        if let Some(begin) = known {
            path.drain(..begin);
            break;
        }
    }
    path.reverse();
    (path, span)
}
