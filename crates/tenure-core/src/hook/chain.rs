//! Entries, compiled per point once, when an agent is built.

use super::order;
use super::text::{Text, TextFilter};
use super::{AgentLifecycle, Origin, Point, Points, Policy, Registration};
use crate::kernel::Bounds;
use crate::phase::{Phase, PhasePattern};
use std::sync::Arc;
use std::time::Duration;

/// The limits that count where a registration names none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) hook: Duration,
    pub(crate) observer: Duration,
    pub(crate) end: Duration,
}

/// One hook at its place in the chain.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) hook: Arc<dyn AgentLifecycle>,
    pub(crate) points: Points,
    pub(crate) observes: bool,
    pub(crate) origin: Origin,
    pub(crate) inherited: bool,
    /// Whether what it decides at a begin is not recorded.
    pub(crate) again: bool,
    /// What a begin or a wrap of it is held to.
    pub(crate) bounds: Bounds,
    limit: Duration,
    end_limit: Duration,
    policies: [Policy; 11],
    transition: Option<(PhasePattern, PhasePattern)>,
    text: Text,
    innermost: bool,
}

impl Entry {
    #[inline]
    pub(crate) fn policy(&self, point: Point) -> Policy {
        self.policies[point as usize]
    }

    #[inline]
    pub(crate) fn limit(&self, point: Point) -> Duration {
        if point.is_end() { self.end_limit } else { self.limit }
    }

    pub(crate) fn wants_transition(&self, from: Phase, to: Phase) -> bool {
        self.transition.is_none_or(|(source, target)| source.matches(from) && target.matches(to))
    }

    /// Whether its end runs in a scope that has passed `entered` entries: those it has passed, and
    /// whoever has nothing at `begin`, wherever it stands.
    #[inline]
    pub(crate) fn was_entered(&self, place: usize, entered: usize, begin: Point) -> bool {
        place < entered || !self.points.contains(begin)
    }

    /// A guard denies wherever it can, and comes along to clones (G11).
    pub(crate) fn is_guard(&self) -> bool {
        self.points.iter().any(|point| self.policy(point) == Policy::Deny)
    }
}

/// How far output is held back from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hold {
    /// Deltas go out as they come.
    Nothing,
    /// A response goes out when every wrap and every `after_model` has seen it.
    Response,
    /// Output goes out when every `after_agent` has seen it.
    Turn,
}

/// A place in the chain is kept in 16 bits; this leaves room for the guards of parents.
const MOST_HOOKS: usize = 10_000;

/// The entries of an agent, in order and per point.
pub(crate) struct Chain {
    pub(crate) entries: Box<[Entry]>,
    /// Which entries each point calls, in the order in which it calls them.
    calls: [Box<[u16]>; 11],
    pub(crate) mask: Points,
    pub(crate) hold: Hold,
    /// What a text goes through on its way to a reader, in this order.
    pub(crate) filters: Box<[Arc<dyn TextFilter>]>,
}

impl Chain {
    /// Sorts, checks and compiles `registrations`. What is wrong is added to `problems`.
    pub(crate) fn compile(
        registrations: Vec<Registration>,
        defaults: Defaults,
        problems: &mut Vec<String>,
    ) -> Chain {
        if registrations.len() > MOST_HOOKS {
            problems.push(format!(
                "it has {} hooks, and there can be {MOST_HOOKS}; put several into one",
                registrations.len()
            ));
            return Chain::of(Vec::new());
        }
        let sorted = order::resolve(registrations, problems);
        let entries =
            sorted.into_iter().map(|(name, it)| entry(name, it, defaults, problems)).collect();
        Chain::of(entries)
    }

    /// This chain with another's guards next to the effect: innermost on wraps, last among
    /// `before_*`, last to judge in `after_model` (G11).
    pub(crate) fn with_guards_of(&self, parent: &Chain) -> Chain {
        let mut entries = self.entries.to_vec();
        for guard in parent.entries.iter().filter(|entry| entry.is_guard()) {
            if !entries.iter().any(|own| Arc::ptr_eq(&own.hook, &guard.hook)) {
                let mut guard = guard.clone();
                // Only what judges comes along; the guard's begin and end of a life stay home.
                guard.points = guard
                    .points
                    .iter()
                    .filter(|point| guard.policy(*point) == Policy::Deny)
                    .filter(|point| *point != Point::OnStart && *point != Point::BeforeChat)
                    .collect();
                guard.inherited = true;
                entries.push(guard);
            }
        }
        Chain::of(entries)
    }

    fn of(entries: Vec<Entry>) -> Chain {
        let calls = Point::ALL.map(|point| {
            let mut calls: Vec<usize> =
                (0..entries.len()).filter(|at| entries[*at].points.contains(point)).collect();
            if point.is_end() || point == Point::AfterModel {
                calls.reverse();
            }
            if point == Point::AfterModel {
                calls.sort_by_key(|at| entries[*at].inherited);
            }
            if order::WRAPS.contains(&point) {
                // A parent's guards are next to the effect, and then the agent's own.
                calls.sort_by_key(|at| (entries[*at].inherited, entries[*at].innermost));
            }
            calls.into_iter().map(|at| at as u16).collect()
        });
        let mask = entries.iter().fold(Points::NONE, |mask, entry| mask | entry.points);
        let held = |points: Points| {
            entries.iter().any(|entry| {
                let changes = match &entry.text {
                    Text::Changes => !entry.observes,
                    Text::Keeps => false,
                    // It filters what models say, and not what a turn gives back.
                    Text::Filters(_) => !entry.observes && points.contains(Point::AfterAgent),
                };
                changes && entry.points.intersects(points)
            })
        };
        let hold = if held(Point::AfterAgent.into()) {
            Hold::Turn
        } else if held(Points::from(Point::AfterModel).with(Point::WrapModelCall)) {
            Hold::Response
        } else {
            Hold::Nothing
        };
        let filters = entries.iter().rev().filter_map(|entry| match &entry.text {
            Text::Filters(filter) => Some(filter.clone()),
            _ => None,
        });
        let filters = filters.collect();
        Chain { entries: entries.into(), calls, mask, hold, filters }
    }

    /// Whether any entry has the point. One bit test (G10).
    #[inline]
    pub(crate) fn has(&self, point: Point) -> bool {
        self.mask.contains(point)
    }

    /// The entries that `point` calls, in calling order.
    #[inline]
    pub(crate) fn calls(&self, point: Point) -> &[u16] {
        &self.calls[point as usize]
    }
}

fn entry(
    name: Arc<str>,
    registration: Registration,
    defaults: Defaults,
    problems: &mut Vec<String>,
) -> Entry {
    let Registration {
        hook,
        points,
        policy,
        policy_at,
        limit,
        observes,
        origin,
        transition,
        again,
        text,
        stands,
        ..
    } = registration;
    if limit.is_some_and(|limit| limit.is_zero()) {
        problems.push(format!(
            "hook `{name}` has a limit of zero; give it more than zero, or leave the limit out"
        ));
    }
    if points.is_empty() && !hook.points().is_empty() {
        problems.push(format!(
            "hook `{name}` has none of the points that it is registered for, so it would never \
             run; look at `only`, and at the functions of its impl"
        ));
    }
    if let Some((source, target)) = transition
        && !PhasePattern::can_meet(source, target)
    {
        problems.push(format!(
            "hook `{name}` waits for {source} -> {target}, a transition that no agent makes; {}",
            PhasePattern::instead_of(source, target)
        ));
    }
    for (point, policy) in &policy_at {
        if !points.contains(*point) {
            problems.push(format!(
                "hook `{name}` has the policy {} at {point}, a point that it does not have",
                policy.as_str()
            ));
        }
    }
    let mut declared = policy.iter().chain(policy_at.iter().map(|(_, policy)| policy));
    let judges_failures = declared.any(|policy| *policy != Policy::Continue);
    if observes && judges_failures {
        problems.push(format!(
            "hook `{name}` only observes, so its failures are ignored and a policy would never be \
             met; take `observes` away, or the policy"
        ));
    }
    // A hook without `#[lifecycle]` claims every point, so a policy for all of them says nothing
    // about ends; only a hook that really has an end is wrong to deny there.
    let claims_all = points == Points::ALL;
    let policies = Point::ALL.map(|point| {
        let judges = !point.is_end() && point != Point::OnTransition;
        let at = policy_at.iter().rev().find(|(at, _)| *at == point).map(|(_, policy)| *policy);
        let wanted = at.or(policy);
        if wanted == Some(Policy::Deny) && !judges && points.contains(point) {
            if at.is_some() || !claims_all {
                problems.push(format!(
                    "hook `{name}` has the policy deny at {point}, which has nothing left to \
                     deny; use continue there (`policy_at`), or register the end as a hook of \
                     its own"
                ));
            }
            return Policy::Continue;
        }
        match wanted {
            // A failing end or transition never changes what happened (G5).
            _ if !judges => Policy::Continue,
            Some(policy) => policy,
            None if observes => Policy::Continue,
            None => Policy::Abort,
        }
    });
    let usual = if observes { defaults.observer } else { defaults.hook };
    Entry {
        name,
        hook,
        points,
        observes,
        origin,
        inherited: false,
        bounds: Bounds::begin(limit.unwrap_or(usual)),
        limit: limit.unwrap_or(usual),
        end_limit: limit.unwrap_or(defaults.end),
        policies,
        transition,
        text,
        innermost: stands.innermost,
        again,
    }
}
