//! Names and order of a card's hooks.

use super::DeclaredHook;
use super::table::Draft;
use crate::card::{Reader, list_words};
use crate::diagnostic::Code;
use crate::nearest::nearest;
use crate::source::Span;
use std::sync::Arc;

/// The name of a hook, and where it comes from.
pub(super) struct Named {
    pub(super) name: String,
    /// Whether the field `name` gives it.
    pub(super) explicit: bool,
    pub(super) span: Span,
}

/// Makes names unique, and reports names that are there twice, constraints that name nothing, and
/// circles. `fields` are fields of the card that are hooks as well, under their own names.
pub(super) fn settle(
    mut drafts: Vec<Draft>,
    fields: &[&str],
    reader: &mut Reader<'_>,
) -> Vec<DeclaredHook> {
    for at in 0..drafts.len() {
        let named = &drafts[at].named;
        let earlier = drafts[..at]
            .iter()
            .any(|other| other.named.explicit && named.explicit && other.named.name == named.name);
        if earlier || fields.contains(&named.name.as_str()) {
            reader.problem_help(
                Code::DuplicateHookName,
                named.span,
                format!("another hook has the name `{}`", named.name),
                "names are unique among the hooks of a file or an agent; choose another",
            );
        }
    }
    // A function that is hooked twice without a name of its own gets a number.
    for at in 0..drafts.len() {
        if drafts[at].named.explicit {
            continue;
        }
        let base = drafts[at].named.name.clone();
        let taken = |name: &str, drafts: &[Draft]| {
            drafts.iter().enumerate().any(|(other, draft)| {
                draft.named.name == name && (other < at || (other > at && draft.named.explicit))
            })
        };
        let mut name = base.clone();
        let mut number = 2;
        while taken(&name, &drafts) {
            name = format!("{base}#{number}");
            number += 1;
        }
        if let Some(hook) = &mut drafts[at].hook {
            hook.name = Arc::from(name.as_str());
        }
        drafts[at].named.name = name;
    }
    constraints(&drafts, fields, reader);
    drafts.into_iter().filter_map(|draft| draft.hook).collect()
}

fn constraints(drafts: &[Draft], fields: &[&str], reader: &mut Reader<'_>) {
    let names: Vec<&str> = drafts.iter().map(|draft| draft.named.name.as_str()).collect();
    // `edges[a]` holds every hook that stands behind a.
    let mut edges: Vec<Vec<(usize, Span)>> = vec![Vec::new(); drafts.len()];
    for (at, draft) in drafts.iter().enumerate() {
        let all = draft.before.iter().map(|it| (it, true));
        for ((name, span), before) in all.chain(draft.after.iter().map(|it| (it, false))) {
            let field = if before { "before" } else { "after" };
            match names.iter().position(|other| other == name) {
                Some(other) if other == at => reader.problem_help(
                    Code::OrderCycle,
                    *span,
                    format!("`{name}` cannot stand {field} itself"),
                    format!("remove it from `{field}`"),
                ),
                Some(other) if before => edges[at].push((other, *span)),
                Some(other) => edges[other].push((at, *span)),
                None if fields.contains(&name.as_str()) => {}
                None => {
                    let others: Vec<&str> =
                        names.iter().copied().filter(|it| *it != names[at]).collect();
                    let help = match (nearest(name, others.iter().copied()), others.as_slice()) {
                        (Some(near), _) => format!("did you mean `{near}`?"),
                        (None, []) => "there is no other hook".to_owned(),
                        (None, others) => {
                            format!("the other hooks are {}", list_words(others, "and"))
                        }
                    };
                    reader.problem_help(
                        Code::UnknownHookName,
                        *span,
                        format!("`{field}` names `{name}`, but no hook here has that name"),
                        help,
                    );
                }
            }
        }
    }
    if let Some((circle, span)) = circle(&edges) {
        let path: Vec<String> = circle.iter().map(|at| format!("`{}`", names[*at])).collect();
        reader.problem_help(
            Code::OrderCycle,
            span,
            format!("these hooks stand before each other in a circle: {}", path.join(" -> ")),
            "remove one of the constraints",
        );
    }
}

/// A circle, first and last the same, and the place of the constraint that closes it.
fn circle(edges: &[Vec<(usize, Span)>]) -> Option<(Vec<usize>, Span)> {
    let mut done = vec![false; edges.len()];
    for start in 0..edges.len() {
        let mut path = vec![(start, 0)];
        while let Some((at, next)) = path.pop() {
            if done[at] && next == 0 {
                continue;
            }
            let Some((to, span)) = edges[at].get(next).copied() else {
                done[at] = true;
                continue;
            };
            path.push((at, next + 1));
            if let Some(begin) = path.iter().position(|(on_path, _)| *on_path == to) {
                let mut circle: Vec<usize> = path[begin..].iter().map(|(at, _)| *at).collect();
                circle.push(to);
                return Some((circle, span));
            }
            if !done[to] {
                path.push((to, 0));
            }
        }
    }
    None
}
