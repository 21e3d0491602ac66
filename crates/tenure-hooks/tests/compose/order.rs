//! Where hooks stand.

use crate::compose::stage::{Stage, builder, model, pairs};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tenure_core::agent::{AgentBuilder, Blueprint};
use tenure_core::hook::{Point, Registration};
use tenure_hooks::ready::{self, Ready};

fn blueprint(hooks: impl IntoIterator<Item = Registration>) -> Result<Blueprint, String> {
    let builder = builder(&Arc::new(AtomicUsize::new(0))).model(model());
    let agent = hooks.into_iter().fold(builder, AgentBuilder::with_lifecycle);
    agent.blueprint().map_err(|error| error.to_string())
}

/// Every hook, made once: making some of them takes longer than putting them in order.
fn made(stage: &Stage) -> HashMap<&'static str, Registration> {
    ready::all().map(|(_, hook)| (hook.name(), stage.hook(hook))).collect()
}

/// The points at which the entries of a chain are called from the first to the last.
const FORWARD: [Point; 6] = [
    Point::OnStart,
    Point::BeforeChat,
    Point::BeforeAgent,
    Point::BeforeModel,
    Point::WrapModelCall,
    Point::WrapToolCall,
];

/// Whether `one` says that it has to stand before `two`, or `two` that it has to stand behind.
fn has_to_precede(one: &Registration, two: &Registration) -> bool {
    let kind = |it: &Registration| it.kind_name().expect("every ready-made hook has a kind");
    one.stands().0.contains(&kind(two)) || two.stands().1.contains(&kind(one))
}

/// Whether `two` is a guard that is called last at a call that `one` wraps too.
fn is_judged_by(one: &Registration, two: &Registration) -> bool {
    two.is_innermost()
        && !one.is_innermost()
        && !one.is_observer()
        && WRAPS.into_iter().any(|it| one.points().contains(it) && two.points().contains(it))
}

const WRAPS: [Point; 2] = [Point::WrapModelCall, Point::WrapToolCall];

#[test]
fn any_two_hooks_stand_as_they_have_to_both_ways() {
    let mut constrained = 0;
    let stage = Stage::new();
    let made = made(&stage);
    for (one, two) in pairs() {
        let (first, then) = (made[one.name()].clone(), made[two.name()].clone());
        let (before, after) = (has_to_precede(&first, &then), has_to_precede(&then, &first));
        let both = format!("{} and {}", one.name(), two.name());
        assert!(!(before && after), "{both} want to stand before each other");
        assert!(
            !(after && is_judged_by(&then, &first)),
            "{both}: it cannot be called behind a guard"
        );
        let (inner_one, inner_two) = (first.is_innermost(), then.is_innermost());
        let blueprint = blueprint([first, then]).unwrap_or_else(|why| panic!("{both}: {why}"));
        for point in FORWARD {
            let names: Vec<_> = blueprint.entrants(point).into_iter().map(|it| it.name).collect();
            let place = |hook: &Ready| names.iter().position(|name| **name == *hook.name());
            let (Some(here), Some(there)) = (place(one), place(two)) else { continue };
            let is_first = match WRAPS.contains(&point) && inner_one != inner_two {
                true => inner_two,
                // Without a constraint they stand as they are given.
                false => !after,
            };
            assert_eq!(here < there, is_first, "{both} at {point}: {names:?}");
            constrained += usize::from(before || after || inner_one != inner_two);
        }
    }
    assert!(constrained > 50, "only {constrained} pairs have an order");
}

#[test]
fn an_order_that_contradicts_what_a_hook_needs_is_refused_and_says_why() {
    let mut contradicted = 0;
    let stage = Stage::new();
    let made = made(&stage);
    for (one, two) in pairs() {
        let (first, then) = (made[one.name()].clone(), made[two.name()].clone());
        if !has_to_precede(&first, &then) && !is_judged_by(&first, &then) {
            continue;
        }
        let refused = blueprint([first.after(two.name()), then])
            .expect_err("somebody asks for an order that cannot work");
        assert!(refused.contains("cannot be put in order"), "{refused}");
        for name in [one.name(), two.name()] {
            assert!(refused.contains(&format!("`{name}`")), "{refused}");
        }
        contradicted += 1;
    }
    assert!(contradicted > 25, "only {contradicted}");
}

#[test]
fn all_kinds_that_hooks_name_exist() {
    let stage = Stage::new();
    for (_, hook) in ready::all() {
        let registration = stage.hook(hook);
        let (outside, inside) = registration.stands();
        for kind in outside.iter().chain(inside) {
            assert!(ready::find(kind).is_some(), "{} names `{kind}`", hook.name());
            assert_ne!(*kind, hook.name(), "it names itself");
        }
        assert_eq!(registration.kind_name(), Some(hook.name()));
    }
}
