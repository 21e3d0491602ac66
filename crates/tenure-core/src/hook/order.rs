//! The order of entries: origin, then `order`, then as registered, bent by `before` and `after`.

use super::{Point, Registration};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One entry has to stand before another.
#[derive(Clone, Copy, Debug)]
struct Edge {
    first: usize,
    then: usize,
    /// Which of the two gives way.
    moves: usize,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Whoever registered one of them says so.
    Asked,
    /// The hook itself needs it.
    Kind,
}

/// Adds what hooks need of each other, whoever registered them.
fn needed(entries: &[(Arc<str>, Registration)], edges: &mut Vec<Edge>) {
    for (at, (_, own)) in entries.iter().enumerate() {
        for (other, (_, it)) in entries.iter().enumerate().filter(|(other, _)| *other != at) {
            if it.kind.is_some_and(|kind| own.stands.outside.contains(&kind)) {
                edges.push(Edge { first: at, then: other, moves: at, why: Why::Kind });
            }
            if it.kind.is_some_and(|kind| own.stands.inside.contains(&kind)) {
                edges.push(Edge { first: other, then: at, moves: at, why: Why::Kind });
            }
        }
    }
}

/// What is innermost is called last at wraps, wherever else it stands. Whoever asks to be called behind
/// it there asks for what cannot be.
fn refuse_behind_guards(
    entries: &[(Arc<str>, Registration)],
    edges: &[Edge],
    problems: &mut Vec<String>,
) {
    for edge in edges {
        let ((first, guard), (then, other)) = (&entries[edge.first], &entries[edge.then]);
        let shared = |point| guard.points.contains(point) && other.points.contains(point);
        if guard.stands.innermost
            && !other.stands.innermost
            && !other.observes
            && WRAPS.into_iter().any(shared)
        {
            problems.push(format!(
                "the hooks cannot be put in order: `{first}` judges what is really done, so \
                 `{then}` has to stand before it; take the `before` or `after` away that \
                 contradicts this"
            ));
        }
    }
}

/// The points that are wrapped around a call.
pub(super) const WRAPS: [Point; 2] = [Point::WrapModelCall, Point::WrapToolCall];

/// Says why entries cannot be put in order.
fn contradiction(entries: &[(Arc<str>, Registration)], edges: &[Edge], cycle: &[usize]) -> String {
    let inside: Vec<_> = edges
        .iter()
        .filter(|edge| cycle.contains(&edge.first) && cycle.contains(&edge.then))
        .collect();
    if inside.iter().all(|edge| edge.why == Why::Asked) {
        let names: Vec<_> = cycle.iter().map(|at| format!("`{}`", entries[*at].0)).collect();
        return format!(
            "the hooks {} each want to stand before one another; take one of their `before` or \
             `after` constraints away",
            names.join(", ")
        );
    }
    let mut said: Vec<String> = Vec::new();
    for edge in inside {
        let (first, then) = (&entries[edge.first].0, &entries[edge.then].0);
        let line = match edge.why {
            Why::Asked => format!("`{first}` is asked to stand before `{then}`"),
            Why::Kind => format!("`{first}` has to stand before `{then}` by what it does"),
        };
        if !said.contains(&line) {
            said.push(line);
        }
    }
    format!(
        "the hooks cannot be put in order: {}; take a `before` or `after` away that contradicts \
         this",
        said.join(", ")
    )
}

/// Names every registration and sorts them. What is wrong is added to `problems`, all of it.
pub(super) fn resolve(
    registrations: Vec<Registration>,
    problems: &mut Vec<String>,
) -> Vec<(Arc<str>, Registration)> {
    let mut entries = name_all(registrations, problems);
    entries.sort_by_key(|(_, registration)| (registration.origin, registration.order));

    let places: HashMap<Arc<str>, usize> =
        entries.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
    let mut edges: Vec<Edge> = Vec::new();
    for (at, (name, registration)) in entries.iter().enumerate() {
        let before = registration.before.iter().map(|other| (other, "before", true));
        let after = registration.after.iter().map(|other| (other, "after", false));
        for (other, word, first) in before.chain(after) {
            match places.get(other) {
                Some(&place) if first => {
                    edges.push(Edge { first: at, then: place, moves: at, why: Why::Asked });
                }
                Some(&place) => {
                    edges.push(Edge { first: place, then: at, moves: at, why: Why::Asked });
                }
                None => {
                    let mut known: Vec<_> = places.keys().map(|name| &**name).collect();
                    known.sort_unstable();
                    problems.push(format!(
                        "hook `{name}` wants to stand {word} `{other}`, but there is no hook of \
                         that name; there are: {}",
                        known.join(", ")
                    ));
                }
            }
        }
    }

    needed(&entries, &mut edges);
    refuse_behind_guards(&entries, &edges, problems);

    let pairs: Vec<_> = edges.iter().map(|edge| (edge.first, edge.then)).collect();
    match sort(entries.len(), &pairs).map(|sorted| moved(entries.len(), &edges).unwrap_or(sorted)) {
        Ok(order) => {
            let mut slots: Vec<_> = entries.into_iter().map(Some).collect();
            order.into_iter().filter_map(|at| slots[at].take()).collect()
        }
        Err(cycle) => {
            problems.push(contradiction(&entries, &edges, &cycle));
            entries
        }
    }
}

/// The order in which whoever states a constraint moves for it, and nobody else, where that works
/// out: a hook that wants to stand before a guard does not push the guard back.
fn moved(count: usize, edges: &[Edge]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..count).collect();
    for _ in 0..=count * count {
        let broken = edges.iter().filter_map(|edge| {
            let place = |at| order.iter().position(|other| *other == at);
            let (before, after) = (place(edge.first)?, place(edge.then)?);
            (before > after).then_some((*edge, before, after))
        });
        // Of several that move behind the same one the last goes first, and of several that move
        // before it the first: so they stay in the order that they have.
        let broken = broken.min_by_key(|(edge, before, after)| match edge.moves == edge.first {
            true => *before,
            false => usize::MAX - after,
        });
        let Some((Edge { first, then, moves, .. }, before, after)) = broken else {
            return Some(order);
        };
        if moves == first {
            order.remove(before);
            order.insert(after, first);
        } else {
            order.remove(after);
            order.insert(before, then);
        }
    }
    None
}

fn name_all(
    registrations: Vec<Registration>,
    problems: &mut Vec<String>,
) -> Vec<(Arc<str>, Registration)> {
    let said = |it: &Registration| it.name.clone().unwrap_or_else(|| it.hook.name().into());
    let all_said: HashSet<Arc<str>> = registrations.iter().map(said).collect();
    let mut seen: HashMap<Arc<str>, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(registrations.len());
    for registration in registrations {
        let mut name = said(&registration);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            if registration.name.is_some() {
                problems
                    .push(format!("two hooks have the name `{name}`; give each a name of its own"));
            }
            // What is made here must not be what another hook is called.
            while all_said.contains(&*format!("{name}#{count}")) {
                *count += 1;
            }
            name = format!("{name}#{count}").into();
        }
        entries.push((name, registration));
    }
    entries
}

/// A stable topological sort, or the entries that are caught in a cycle.
fn sort(count: usize, edges: &[(usize, usize)]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order = Vec::with_capacity(count);
    let mut placed = vec![false; count];
    while order.len() < count {
        let free = (0..count).find(|at| {
            !placed[*at] && edges.iter().all(|(first, then)| then != at || placed[*first])
        });
        match free {
            Some(at) => {
                placed[at] = true;
                order.push(at);
            }
            None => {
                // What is left waits for a cycle or is in one; keep those that others wait for.
                let mut stuck: Vec<_> = (0..count).filter(|at| !placed[*at]).collect();
                loop {
                    let before = stuck.len();
                    let left = stuck.clone();
                    stuck.retain(|at| {
                        edges.iter().any(|(first, then)| first == at && left.contains(then))
                    });
                    if stuck.len() == before {
                        return Err(stuck);
                    }
                }
            }
        }
    }
    Ok(order)
}
