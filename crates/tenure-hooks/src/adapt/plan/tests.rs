//! What the planner promises, whatever it is shown.

use super::*;
use crate::adapt::log::{Book, Entry, Log, replay};
use crate::adapt::policy::{Bounds, Goals};
use proptest::prelude::*;
use std::time::Duration;

fn policy() -> Policy {
    let goals =
        Goals::new().latency_p95(Duration::from_secs(1)).error_rate(0.1).cost_per_turn(0.01);
    let mut policy = Policy::new(goals);
    policy.bounds =
        Bounds::new().models(["best", "middle", "cheap"]).concurrency(2..=4).retries(0..=2);
    (policy.window, policy.min_samples, policy.cooldown, policy.recover_after) = (6, 3, 4, 5);
    policy
}

/// Shows the same turn again and again, until something is changed.
fn until_changed(
    knowledge: &mut Knowledge,
    policy: &Policy,
    turn: &Observation,
    most: usize,
) -> Option<Decision> {
    (0..most).find_map(|_| {
        let revision = knowledge.setting.revision;
        let decision = knowledge.observe(policy, Observation { revision, ..turn.clone() }.into());
        decision.filter(|it| matches!(it, Decision::Changed { .. }))
    })
}

fn calls(count: usize, us: u64) -> Observation {
    Observation { calls_us: vec![us; count], ..Observation::default() }
}

fn good() -> Observation {
    calls(1, 1_000)
}

#[test]
fn errors_are_met_by_attempts_then_by_fewer_calls_then_by_another_model() {
    let policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    let bad = Observation { failed: 1, retryable: 1, pressed: 1, ..calls(2, 1_000) };
    let mut seen = Vec::new();
    while let Some(Decision::Changed { to, goal, .. }) =
        until_changed(&mut knowledge, &policy, &bad, 8).filter(|_| seen.len() < 20)
    {
        assert_eq!(goal, Some(Goal::ErrorRate));
        seen.push((to.retries, to.concurrency, to.model));
    }
    let step = |retries, places, model: &str| (retries, Some(places), Some(model.to_owned()));
    assert_eq!(
        seen,
        [
            step(1, 4, "best"),
            step(2, 4, "best"),
            step(2, 3, "best"),
            step(2, 2, "best"),
            step(2, 2, "middle"),
            step(2, 2, "cheap"),
        ]
    );
    // What is then considered in vain is said once.
    let revision = knowledge.setting.revision;
    let turn = Observation { revision, ..bad };
    assert!((0..50).all(|_| knowledge.observe(&policy, turn.clone().into()).is_none()));
    let (goal, why) = knowledge.considered.unwrap();
    assert_eq!((goal, &*why), (Goal::ErrorRate, "the bounds allow nothing that would help"));
}

#[test]
fn errors_that_stay_are_not_repeated() {
    let policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    let bad = Observation { failed: 1, ..calls(1, 1_000) };
    let Some(Decision::Changed { to, .. }) = until_changed(&mut knowledge, &policy, &bad, 3) else {
        panic!("nothing was changed");
    };
    assert_eq!((to.model.as_deref(), to.retries), (Some("middle"), 0));
}

#[test]
fn slow_calls_get_a_faster_model_unless_they_only_wait() {
    let policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    knowledge.setting.concurrency = Some(2);
    let waits = Observation { waited_us: 1_900_000, ..calls(1, 2_000_000) };
    let Some(Decision::Changed { to, reason, .. }) =
        until_changed(&mut knowledge, &policy, &waits, 3)
    else {
        panic!("nothing was changed");
    };
    assert_eq!((to.concurrency, to.model.as_deref()), (Some(3), Some("best")), "{reason}");
    let Some(Decision::Changed { to, .. }) =
        until_changed(&mut knowledge, &policy, &calls(1, 2_000_000), 9)
    else {
        panic!("nothing was changed");
    };
    assert_eq!((to.concurrency, to.model.as_deref()), (Some(3), Some("middle")));
}

#[test]
fn a_step_back_that_does_not_hold_is_tried_again_later_and_later() {
    let policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    let slow = calls(1, 2_000_000);
    let mut waited = Vec::new();
    for _ in 0..4 {
        assert!(until_changed(&mut knowledge, &policy, &slow, 9).is_some());
        let mut turns = 0;
        while !matches!(
            until_changed(&mut knowledge, &policy, &good(), 1),
            Some(Decision::Changed { goal: None, .. })
        ) {
            turns += 1;
            assert!(turns < 500);
        }
        waited.push(turns);
    }
    assert!(waited.is_sorted() && waited[0] * 3 < waited[3], "{waited:?}");
}

#[test]
fn a_setting_is_not_judged_by_turns_with_another() {
    let policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    assert!(until_changed(&mut knowledge, &policy, &calls(1, 2_000_000), 9).is_some());
    let old = Observation { revision: 0, ..calls(1, 9_000_000) };
    assert!((0..50).all(|_| knowledge.observe(&policy, old.clone().into()).is_none()));
    assert_eq!(knowledge.setting.revision, 1);
}

#[test]
fn what_is_recalled_is_brought_within_new_bounds() {
    let mut policy = policy();
    let mut knowledge = Knowledge::new(&policy);
    knowledge.setting =
        Setting { model: Some("gone".to_owned()), concurrency: Some(99), retries: 9, revision: 7 };
    let knowledge = knowledge.fit(&policy);
    assert!(policy.bounds.allow(&knowledge.setting), "{:?}", knowledge.setting);
    assert_eq!(knowledge.setting.revision, 8);
    policy.bounds = Bounds::new();
    assert!(policy.bounds.allow(&knowledge.fit(&policy).setting));
}

fn turns() -> impl Strategy<Value = Observation> {
    let calls = prop::collection::vec(0u64..4_000_000, 0..4);
    (calls, 0u64..5_000_000, 0usize..3, any::<(bool, bool)>(), 0usize..3, 0u64..40_000_000)
        .prop_map(|(calls_us, waited_us, failed, (retryable, pressed), retried, cost_nano_usd)| {
            let failed = failed.min(calls_us.len());
            Observation {
                turn_us: calls_us.iter().sum(),
                waited_us,
                failed,
                retryable: if retryable { failed } else { 0 },
                pressed: if pressed { failed } else { 0 },
                retried,
                cost_nano_usd,
                calls_us,
                revision: 0,
            }
        })
}

/// What happens: a turn by an instance that is so many settings behind, or a freeze or a thaw.
fn happenings() -> impl Strategy<Value = Vec<(Option<bool>, u64, Observation)>> {
    let frozen = prop_oneof![20 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let behind = prop_oneof![6 => Just(0u64), 1 => 1u64..3];
    // Runs of the same turn, so that goals are missed and met for a while.
    let run = (frozen, behind, turns(), 1usize..25);
    prop::collection::vec(run, 1..25).prop_map(|runs| {
        let repeat = |(frozen, behind, turn, times): (_, _, Observation, usize)| {
            (0..times).map(move |_| (frozen, behind, turn.clone()))
        };
        runs.into_iter().flat_map(repeat).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn settings_stay_within_their_bounds_and_the_same_log_gives_the_same_decisions(
        happenings in happenings(),
    ) {
        let policy = policy();
        let mut knowledge = Knowledge::new(&policy);
        let mut book = Book::new(knowledge.clone());
        let mut since: Option<usize> = None;
        for (frozen, behind, turn) in happenings {
            if let Some(frozen) = frozen {
                book.begin(&knowledge, Entry::Frozen(frozen));
                knowledge.frozen = frozen;
            }
            let before = knowledge.setting.clone();
            let revision = before.revision.saturating_sub(behind);
            let turn = std::sync::Arc::new(Observation { revision, ..turn });
            book.begin(&knowledge, Entry::Observed(turn.clone()));
            let decision = knowledge.observe(&policy, turn);
            since = since.map(|turns| turns + 1);
            prop_assert!(policy.bounds.allow(&knowledge.setting), "{:?}", knowledge.setting);
            if let Some(Decision::Changed { from, to, reason, .. }) = &decision {
                prop_assert_eq!(from, &before);
                prop_assert_eq!(to, &knowledge.setting);
                prop_assert!(!knowledge.frozen, "it was frozen");
                prop_assert!(since.is_none_or(|turns| turns >= policy.cooldown));
                prop_assert!(!reason.is_empty());
                since = Some(0);
                let model = policy.bounds.place(from).abs_diff(policy.bounds.place(to));
                let retries = from.retries.abs_diff(to.retries);
                let places = from.concurrency.unwrap().abs_diff(to.concurrency.unwrap());
                prop_assert_eq!(model + retries + places, 1, "one step at a time");
            } else {
                prop_assert_eq!(&before, &knowledge.setting);
            }
            decision.into_iter().for_each(|it| book.decided(it));
        }
        let log = book.log().clone();
        prop_assert_eq!(replay(&log, &policy), log.decisions());
        // What was written down and read again is the same.
        let written = serde_json::to_string(&(&log, &policy)).unwrap();
        let (log, policy): (Log, Policy) = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(replay(&log, &policy), log.decisions());
    }
}
