//! A process may die after any record.

use crate::runs::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tenure_core::Outcome;
use tenure_core::engine::{NewRun, RunStatus};
use tenure_store::{Record, Resume};

/// Which effect a step is the record of.
fn effect(record: &Record) -> Option<String> {
    let key = record.step.as_ref().filter(|_| record.name == "step.recorded")?;
    match &*key.kind {
        // How often an instance ends is a question of lives.
        "on_shutdown" => None,
        "tool" => Some(format!("tool {}", key.name.split(':').next().unwrap_or(&key.name))),
        kind => Some(kind.to_owned()),
    }
}

fn counts<'a>(records: impl IntoIterator<Item = &'a Record>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for effect in records.into_iter().filter_map(effect) {
        *counts.entry(effect).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn g7_nothing_recorded_is_done_again_wherever_the_process_died() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let whole = work(&blueprint(busy(&effects)), &log).await.expect("it ends well");
    assert_eq!(whole, "done!");
    drop((log, driver));

    let store = file.store();
    let all = records(&store, id);
    let mut done = effects.take();
    assert_eq!((done["model"], done["tool one"], done["tool plain"]), (3, 2, 1));
    assert_eq!(done.get("tool two"), None, "nobody approved of it");
    let recorded = counts(&all);
    for (effect, count) in &recorded {
        assert_eq!(done.remove(effect), Some(*count), "{effect} is recorded as often as it ran");
    }
    assert_eq!(done, BTreeMap::new(), "everything is a step");

    for cut_at in 1..=all.len() {
        let to = file.folder.path().join(format!("cut{cut_at}.db"));
        let store = cut(&store, id, cut_at as u64, &to);
        let driver = store.drive("a test").expect("nobody else drives it");
        let (log, info) = resume(&driver, id, Resume::GoOn, &blueprint(busy(&effects))).await;
        let found = format!("cut after {cut_at}: {info:?} {:?}", log.difference());
        assert_eq!(info.status, RunStatus::Ended, "{found}");
        assert_eq!(
            (info.outcome, info.output),
            (Some(Outcome::Ok), Some(whole.clone())),
            "{found}"
        );
        assert_eq!(info.lives, 2);
        let before = counts(&all[..cut_at]);
        for (effect, count) in effects.take() {
            // What was answered before the process died is not asked again, although the answer is
            // no step yet.
            let left = recorded[&effect] - before.get(&effect).copied().unwrap_or(0);
            let exact = effect != "ask";
            assert!(
                count == left || (!exact && count <= left),
                "{effect}: {count}, {left}; {found}"
            );
        }
        let records = records(&store, id);
        assert_eq!(counts(&records), recorded, "{found}");
        let ends = ends(&records);
        let turn: Vec<_> = ends.iter().filter(|(scope, _)| scope.starts_with("turn")).collect();
        assert!(matches!(&*turn, [(_, Outcome::Ok)]), "{ends:?}");
    }
}

#[tokio::test]
async fn g7_a_run_that_is_dropped_goes_on_where_it_was() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let agent = blueprint(waiting(&effects));
    // Nobody answers: it waits, and is dropped.
    tokio::select! {
        result = work(&agent, &log) => panic!("nobody has answered: {result:?}"),
        () = log.waits() => {}
    }
    assert_eq!(driver.store().run(id).unwrap().unwrap().status, RunStatus::Waiting);
    drop(log);
    assert_eq!(effects.said(), [""; 0], "nothing has ended");
    let first = effects.take();
    assert_eq!(
        first,
        BTreeMap::from([("before_agent".into(), 1), ("model".into(), 1), ("step".into(), 1)])
    );

    let (_, info) = resume(&driver, id, Resume::GoOn, &blueprint(busy(&effects))).await;
    assert_eq!(info.output, Some(Value::from("done!")));
    let second = effects.take();
    assert_eq!((second.get("before_agent"), second["model"], second["after_agent"]), (None, 2, 1));
    ends(&records(driver.store(), id));
}

/// Serving a record must not cost much more than reading it.
#[tokio::test]
async fn a_run_of_a_thousand_steps_is_taken_up_quickly() {
    let file = File::new();
    let driver = file.drive();
    let run = NewRun::new("steps", json!(1000));
    let id = run.id;
    let log = begin(&driver, run).await;
    take_steps(&log, 1000).await;
    drop(log);
    let started = std::time::Instant::now();
    let rows = records(driver.store(), id).len();
    let reading = started.elapsed();
    assert!(rows >= 1000);
    let started = std::time::Instant::now();
    let log = driver.resume(id, Resume::GoOn).await.unwrap();
    take_steps(&log, 1000).await;
    let resuming = started.elapsed();
    // The figure is the benchmark's; this notices that something went badly wrong.
    assert!(resuming < reading * 40, "reading {reading:?}, resuming {resuming:?}");
    println!("reading {reading:?}, resuming {resuming:?}");
}

async fn take_steps(log: &tenure_store::RunLog, count: usize) {
    let steps = tenure_core::step::Steps::new(std::sync::Arc::new(log.clone()));
    for n in 0..count {
        let value = json!({ "n": n, "text": "x".repeat(200) });
        let taken: Value = steps
            .step(&format!("s{n}"), &n, async { Ok(value) })
            .await
            .expect("it can be recorded");
        assert_eq!(taken["n"], n);
    }
}
