//! The order of entries: origin, then `order`, then as registered, bent by `before` and `after`.

use super::Registration;
use std::collections::HashMap;
use std::sync::Arc;

/// Names every registration and sorts them. What is wrong is added to `problems`, all of it.
pub(super) fn resolve(
    registrations: Vec<Registration>,
    problems: &mut Vec<String>,
) -> Vec<(Arc<str>, Registration)> {
    let mut entries = name_all(registrations, problems);
    entries.sort_by_key(|(_, registration)| (registration.origin, registration.order));

    let places: HashMap<Arc<str>, usize> =
        entries.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for (at, (name, registration)) in entries.iter().enumerate() {
        let before = registration.before.iter().map(|other| (other, "before", true));
        let after = registration.after.iter().map(|other| (other, "after", false));
        for (other, word, first) in before.chain(after) {
            match places.get(other) {
                Some(&place) if first => edges.push((at, place)),
                Some(&place) => edges.push((place, at)),
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

    match sort(entries.len(), &edges).map(|sorted| moved(&entries, &edges).unwrap_or(sorted)) {
        Ok(order) => {
            let mut slots: Vec<_> = entries.into_iter().map(Some).collect();
            order.into_iter().filter_map(|at| slots[at].take()).collect()
        }
        Err(cycle) => {
            let names: Vec<_> = cycle.iter().map(|at| format!("`{}`", entries[*at].0)).collect();
            problems.push(format!(
                "the hooks {} each want to stand before one another; take one of their \
                 `before` or `after` constraints away",
                names.join(", ")
            ));
            entries
        }
    }
}

/// The order in which whoever states a constraint moves for it, and nobody else, where that works
/// out: a hook that wants to stand before a guard does not push the guard back.
fn moved(entries: &[(Arc<str>, Registration)], edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    for _ in 0..=entries.len() {
        let broken = edges.iter().find_map(|&(first, then)| {
            let place = |at| order.iter().position(|other| *other == at);
            let (before, after) = (place(first)?, place(then)?);
            (before > after).then_some((first, before, then, after))
        });
        let Some((first, before, then, after)) = broken else { return Some(order) };
        let states = |at: usize, other: usize, words: fn(&Registration) -> &[Arc<str>]| {
            words(&entries[at].1).contains(&entries[other].0)
        };
        if states(first, then, |it| &it.before) {
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
    let mut seen: HashMap<Arc<str>, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(registrations.len());
    for registration in registrations {
        let given = registration.name.clone();
        let mut name: Arc<str> = given.clone().unwrap_or_else(|| registration.hook.name().into());
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            if given.is_some() {
                problems
                    .push(format!("two hooks have the name `{name}`; give each a name of its own"));
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
