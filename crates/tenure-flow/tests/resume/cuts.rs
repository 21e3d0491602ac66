//! A process dies at every step of a chat, and the next one goes on.

use crate::resume::mortal::{Death, GivenUp, Mortal};
use crate::resume::world::{World, shape};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::step::{MemoryStepLog, StepKey};
use tenure_flow::ChatStatus;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

fn process() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// What a run leaves that nobody interrupted.
struct Whole {
    shape: Value,
    steps: usize,
    deliveries: BTreeMap<String, usize>,
    effects: BTreeMap<&'static str, usize>,
    calls: usize,
}

const EFFECTS: [&str; 6] = ["charge", "note", "make", "look", "put", "insert"];

fn effects(world: &World) -> BTreeMap<&'static str, usize> {
    EFFECTS.into_iter().map(|name| (name, world.count(&format!("{name} ")))).collect()
}

fn whole() -> Whole {
    process().block_on(async {
        let (world, log) = (World::new().await, MemoryStepLog::new());
        let report = world.chat(log.clone()).run().await;
        assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
        let effects = effects(&world);
        assert_eq!((effects["charge"], effects["note"], effects["make"]), (1, 1, 2));
        assert_eq!((effects["look"], effects["put"], effects["insert"]), (1, 1, 1));
        assert!(log.scopes().iter().all(|(_, end)| end.is_some()));
        let steps = log.keys().len();
        assert!(steps > 40, "{steps}");
        let (deliveries, calls) = (world.deliveries(), world.calls());
        Whole { shape: shape(&report), steps, deliveries, effects, calls }
    })
}

/// A process dies after so many steps; another goes on.
fn die_and_go_on(whole: &Whole, steps: usize, death: Death) {
    let at = format!("{steps} steps, {death:?} the next");
    let log = MemoryStepLog::new();
    let first = process();
    let world = first.block_on(async {
        let world = World::new().await;
        let mortal = Mortal::new(log.clone(), steps, death);
        let chat = world.chat(mortal.clone()).run();
        tokio::select! {
            () = mortal.died() => {}
            report = chat => panic!("{at}: it ended as {:?}: {:?}", report.status, report.error),
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("{at}: it hangs"),
        }
        world
    });
    // Everything that ran in it is gone at once.
    first.shutdown_background();
    let before = log.keys();
    let second = log.resumed();
    let report = process().block_on(async {
        let report = timeout(Duration::from_secs(20), world.chat(second.clone()).run()).await;
        report.unwrap_or_else(|_| panic!("{at}: it hangs after {:?}", before.last()))
    });
    assert_eq!(shape(&report), whole.shape, "{at}, after {:?}", before.last());
    // What was recorded stays as it was, and nothing is there twice.
    assert_eq!(second.keys()[..before.len()], before[..], "{at}");
    let mut known = Vec::new();
    for key in second.keys() {
        assert!(!known.iter().any(|it| key.is_same_step(it)), "{at}: {key} is there twice");
        known.push(key);
    }
    for (scope, end) in second.scopes() {
        assert!(end.is_some(), "{at}: {} has no end", scope.id);
    }
    assert_eq!(world.deliveries(), whole.deliveries, "{at}, after {:?}", before.last());
    for (instance, (started, stopped)) in &*world.lives.lock().expect("whole") {
        assert!(*started == 1 && (1..=2).contains(stopped), "{at}: {instance} {started} {stopped}");
        assert!(*stopped == 1 || death == Death::After, "{at}: {instance} ended {stopped} times");
    }
    let done = effects(&world);
    match death {
        Death::Before => {
            let mut expected = whole.effects.clone();
            // It was about to be called, and nobody knows whether it was: the person is asked.
            if before.last().is_some_and(|it| &*it.kind == "intent") {
                expected.insert("charge", 0);
                let asked = world.asked.lock().expect("whole");
                let unknown = asked.iter().filter(|it| it.contains("nobody knows"));
                assert_eq!(unknown.count(), 1, "{at}: {asked:?}");
            }
            assert_eq!(done, expected, "{at}, after {:?}", before.last());
            assert_eq!(world.calls(), whole.calls, "{at}");
        }
        // What was done and not recorded is done once more, unless it must not be.
        Death::After => {
            assert_eq!(done["charge"], 1, "{at}");
            for (name, count) in &done {
                let once = whole.effects[name];
                assert!((once..=once + 1).contains(count), "{at}: {name} {count} times");
            }
            let more = done.iter().map(|(name, count)| count - whole.effects[name]).sum::<usize>();
            let told = world.calls() - whole.calls;
            assert!(more + told <= 1, "{at}: {done:?} {told}");
        }
    }
}

#[test]
fn a_chat_that_died_before_any_of_its_steps_goes_on_to_the_same_end() {
    let whole = whole();
    for steps in 0..whole.steps {
        die_and_go_on(&whole, steps, Death::Before);
    }
}

#[test]
fn a_chat_that_died_after_the_effect_of_any_of_its_steps_goes_on_to_the_same_end() {
    let whole = whole();
    for steps in 0..whole.steps {
        die_and_go_on(&whole, steps, Death::After);
    }
}

#[test]
fn a_chat_that_dies_at_every_tenth_step_comes_to_the_same_end_all_the_same() {
    let whole = whole();
    let mut log = MemoryStepLog::new();
    let world = process().block_on(World::new());
    let mut lives = 0;
    loop {
        lives += 1;
        assert!(lives < 30, "it does not come to its end");
        let life = process();
        let mortal = Mortal::new(log.clone(), 10, Death::Before);
        let report = life.block_on(async {
            let chat = world.chat(mortal.clone()).run();
            tokio::select! {
                () = mortal.died() => None,
                report = chat => Some(report),
                () = tokio::time::sleep(Duration::from_secs(20)) => panic!("it hangs"),
            }
        });
        life.shutdown_background();
        if let Some(report) = report {
            assert_eq!(shape(&report), whole.shape);
            break;
        }
        log = log.resumed();
    }
    assert!(lives > 4, "{lives}");
    assert_eq!(effects(&world), whole.effects);
    assert_eq!(world.deliveries(), whole.deliveries);
    assert!(log.scopes().iter().all(|(_, end)| end.is_some()), "{:?}", log.scopes());
}

#[test]
fn a_chat_that_goes_on_has_what_it_began_with_though_the_world_has_changed() {
    let log = MemoryStepLog::new();
    let first = process();
    let world = first.block_on(async {
        let world = World::new().await;
        let mortal = Mortal::new(log.clone(), 6, Death::Before);
        tokio::select! {
            () = mortal.died() => {}
            report = world.chat(mortal.clone()).run() => panic!("it ended: {:?}", report.error),
        }
        world
    });
    first.shutdown_background();
    let report = process().block_on(async {
        world.set_rate(2).await;
        let report = world.chat(log.resumed()).run().await;
        assert_eq!(world.profile().await.len(), 1);
        assert_eq!(world.profile().await[0]["paid"], 3);
        report
    });
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(report.variables["rate"], 1, "it was read when the chat began");
    assert_eq!(report.variables["terms"], "rate 1");
    assert_eq!(report.variables["latest"], 2, "it is read again in every phase");
}

/// How often hooks were called at this point, by agent; once for each delivery.
fn at_point(world: &World, point: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (place, count) in world.deliveries() {
        let mut words = place.split(' ');
        if let (Some(it), Some(agent)) = (words.next(), words.next())
            && it == point
        {
            *counts.entry(agent.to_owned()).or_insert(0) += count;
        }
    }
    counts
}

#[test]
fn a_chat_that_is_given_up_ends_what_it_began_and_does_nothing_more() {
    let whole = whole();
    for steps in (0..whole.steps - 6).step_by(3) {
        let log = MemoryStepLog::new();
        let first = process();
        let (world, done) = first.block_on(async {
            let world = World::new().await;
            let mortal = Mortal::new(log.clone(), steps, Death::Before);
            tokio::select! {
                () = mortal.died() => {}
                report = world.chat(mortal.clone()).run() => panic!("{steps}: {:?}", report.error),
            }
            let done = effects(&world);
            (world, done)
        });
        first.shutdown_background();
        let last = log.keys().pop();
        let second = GivenUp(log.resumed());
        let report = process().block_on(async {
            let chat = world.chat(second.clone()).run();
            timeout(Duration::from_secs(20), chat).await.expect("it ends")
        });
        // Where only ends were left it comes to its own.
        let is_whole = report.output == whole.shape["output"].as_str().expect("a text");
        let outcome = if is_whole { Outcome::Ok } else { Outcome::Abandoned };
        assert_eq!(report.outcome, outcome, "{steps}, {last:?}: {:?}", report.error);
        assert!(!is_whole || steps > whole.steps / 2, "{steps}");
        let more = second.0.keys().split_off(steps);
        assert!(more.iter().all(StepKey::is_end), "{steps}: {more:?}");
        for (scope, end) in second.0.scopes() {
            assert!(end.is_some(), "{steps}, after {last:?}: {} has no end", scope.id);
        }
        let now = effects(&world);
        for tool in ["charge", "note", "make", "look"] {
            assert_eq!(now[tool], done[tool], "{steps}: {tool}");
        }
        for (begin, end) in [("before_agent", "after_agent"), ("before_chat", "after_chat")] {
            let (begun, ended) = (at_point(&world, begin), at_point(&world, end));
            for (agent, count) in begun {
                assert!(
                    ended.get(&agent).is_some_and(|ended| *ended >= count),
                    "{steps}, after {last:?}: {agent} {begin} {count}, {ended:?}"
                );
            }
        }
        for (instance, life) in &*world.lives.lock().expect("whole") {
            assert_eq!(*life, (1, 1), "{steps}: {instance}");
        }
    }
}
