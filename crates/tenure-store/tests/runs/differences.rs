//! Code that has changed under a run.

use crate::runs::support::*;
use async_trait::async_trait;
use serde_json::{Value, json};
use tenure_core::engine::{NewRun, RunCx, RunStatus, Runnable};
use tenure_core::{Error, Outcome, RunId};
use tenure_store::{Now, Resume};

/// Takes steps of its own, by name.
struct Steps(&'static [&'static str], Effects);

#[async_trait]
impl Runnable for Steps {
    async fn run(&self, run: RunCx) -> Result<Value, Error> {
        let mut all = Vec::new();
        for name in self.0 {
            let (name, effects) = (*name, self.1.clone());
            let effect = async move {
                effects.ran(name);
                match name.strip_prefix("fails ") {
                    Some(why) => Err(Error::invalid(why)),
                    None => Ok(name.to_owned()),
                }
            };
            let value: String = run.steps.step(name, &run.input, effect).await?;
            all.push(value);
        }
        Ok(json!(all))
    }
}

async fn left_after(file: &File, steps: &'static [&'static str], effects: &Effects) -> RunId {
    let driver = file.drive();
    let run = NewRun::new("steps", json!("in"));
    let id = run.id;
    let log = begin(&driver, run).await;
    work(&Steps(steps, effects.clone()), &log).await.expect("it ends well");
    effects.take();
    id
}

const HOW: &str = "was recorded with another input: the instruction has changed since (record ";

#[tokio::test]
async fn a_step_with_another_input_parks_the_run_and_names_the_step() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    work(&blueprint(busy(&effects)), &log).await.expect("it ends well");
    drop(log);
    effects.take();
    effects.said();

    let changed = blueprint(busy(&effects).instruction("be long"));
    let log = driver.resume(id, Resume::GoOn).await.unwrap();
    let error = work(&changed, &log).await.expect_err("the model's input is another");
    assert!(error.parks(), "{error}");
    let difference = log.difference().expect("it says where");
    assert_eq!((&*difference.step.kind, difference.seq > 0), ("model", true));
    assert!(matches!(difference.now, Now::OtherInput { input } if input != difference.step.input));
    assert!(!difference.recorded.is_null());
    let parts: Vec<_> = difference.changed.iter().map(|change| &*change.part).collect();
    assert_eq!(parts, ["instruction"], "{difference:?}");
    let info = log.finish(Err(error)).await.unwrap();
    assert_eq!((info.status, info.outcome), (RunStatus::Parked, None));
    let said = info.error.expect("it says why");
    for part in [&*difference.step.to_string(), HOW, "tenure restart"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert_eq!(effects.take(), Default::default(), "nothing was done");
    drop(log);

    // With the code restored it goes on, and ends once.
    let (_, info) = resume(&driver, id, Resume::GoOn, &blueprint(busy(&effects))).await;
    assert_eq!((info.outcome, info.error), (Some(Outcome::Ok), None));
    assert_eq!(effects.take(), Default::default(), "all of it was on record");
    ends(&records(driver.store(), id));
}

#[tokio::test]
async fn a_recorded_step_that_never_comes_again_parks_the_run() {
    let (file, effects) = (File::new(), Effects::default());
    let id = left_after(&file, &["a", "b", "c"], &effects).await;
    let driver = file.drive();
    let (log, info) = resume(&driver, id, Resume::GoOn, &Steps(&["a", "c"], effects.clone())).await;
    assert_eq!(info.status, RunStatus::Parked);
    let difference = log.difference().expect("it says where");
    assert_eq!((&*difference.step.name, &difference.now), ("b", &Now::NeverCame));
    assert_eq!(difference.recorded, json!("b"));
    assert_eq!(effects.take(), Default::default());
}

#[tokio::test]
async fn a_replay_does_nothing_records_nothing_and_says_where_the_record_ends() {
    let (file, effects) = (File::new(), Effects::default());
    let id = left_after(&file, &["a", "b"], &effects).await;
    let store = file.store();
    let before = records(&store, id);
    let lives = store.run(id).unwrap().unwrap().lives;

    // No right to drive is needed.
    let elsewhere = file.drive();
    let replay = store.replay(id).unwrap();
    let error = work(&Steps(&["a", "b", "c"], effects.clone()), &replay).await.unwrap_err();
    assert!(error.to_string().contains("the record of run"), "{error}");
    assert!(error.to_string().contains("ends here: step step:c#0"), "{error}");
    assert_eq!(replay.end_of_record().map(|key| key.name.to_string()).as_deref(), Some("c"));
    assert!(replay.difference().is_none());
    replay.finish(Err(error)).await.unwrap();

    let replay = elsewhere.resume(id, Resume::Replay).await.unwrap();
    let result = work(&Steps(&["b"], effects.clone()), &replay).await;
    replay.finish(result).await.unwrap();
    assert_eq!(replay.difference().map(|it| it.step.name.to_string()).as_deref(), Some("a"));

    assert_eq!(effects.take(), Default::default(), "nothing was done");
    assert_eq!(records(&store, id), before, "nothing was recorded");
    assert_eq!(store.run(id).unwrap().unwrap().lives, lives);
}

#[tokio::test]
async fn a_replay_of_a_run_that_is_over_says_whether_it_comes_to_the_same() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let result = work(&blueprint(busy(&effects)), &log).await;
    log.finish(result).await.unwrap();
    effects.take();
    effects.said();

    let replay = driver.store().replay(id).unwrap();
    let result = work(&blueprint(busy(&effects)), &replay).await;
    let info = replay.finish(result.clone()).await.unwrap();
    assert_eq!((info.status, replay.difference()), (RunStatus::Ended, None));
    assert_eq!(effects.take(), Default::default());

    let replay = driver.store().replay(id).unwrap();
    work(&blueprint(busy(&effects)), &replay).await.unwrap();
    replay.finish(Ok(json!("other"))).await.unwrap();
    let now = replay.difference().map(|it| it.now);
    assert_eq!(now, Some(Now::OtherOutput { output: json!("other") }));
}

#[tokio::test]
async fn a_fork_does_again_what_comes_from_its_step_on_and_leaves_the_old_run_alone() {
    let (file, effects) = (File::new(), Effects::default());
    let id = left_after(&file, &["a", "b", "c"], &effects).await;
    let driver = file.drive();
    let old = Steps(&["a", "b", "c"], effects.clone());
    resume(&driver, id, Resume::GoOn, &old).await;
    let before = records(driver.store(), id);

    let from = before.iter().find(|it| it.step.as_ref().is_some_and(|key| &*key.name == "b"));
    let from = from.expect("it is on record");
    for from in [from.seq.to_string(), "step:b#0".to_owned()] {
        let fork = driver.fork(id, &from).await.unwrap();
        assert_ne!(fork, id);
        let (_, info) = resume(&driver, fork, Resume::GoOn, &old).await;
        assert_eq!((info.status, info.output), (RunStatus::Ended, Some(json!(["a", "b", "c"]))));
        let done: Vec<_> = effects.take().into_keys().collect();
        assert_eq!(done, ["b", "c"], "from {from}");
        let first = &records(driver.store(), fork)[0];
        assert_eq!((&*first.name, first.cause.clone()), ("run.started", Some(id.to_string())));
    }
    assert_eq!(records(driver.store(), id), before);
    let error = driver.fork(id, "step:x#0").await.unwrap_err();
    assert!(error.to_string().contains("has no step `step:x#0`"), "{error}");
}

#[tokio::test]
async fn an_older_life_records_nothing_any_more() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("steps", json!("in"));
    let id = run.id;
    let old = begin(&driver, run).await;
    work(&Steps(&["a"], effects.clone()), &old).await.unwrap();
    let new = driver.resume(id, Resume::GoOn).await.unwrap();
    let before = records(driver.store(), id);

    let error = work(&Steps(&["a", "b"], effects.clone()), &old).await.unwrap_err();
    assert!(error.to_string().contains("life 2 has taken over from life 1"), "{error}");
    assert!(old.finish(Ok(json!("old"))).await.is_err());
    drop(old);
    assert_eq!(records(driver.store(), id), before);
    let result = work(&Steps(&["a", "b"], effects.clone()), &new).await;
    let info = new.finish(result).await.unwrap();
    assert_eq!((info.lives, info.output), (2, Some(json!(["a", "b"]))));
    assert_eq!(effects.take(), [("a".to_owned(), 1), ("b".to_owned(), 1)].into());

    // And it is over.
    let error = driver.resume(id, Resume::GoOn).await.unwrap_err();
    assert!(error.to_string().contains("is over (outcome ok)"), "{error}");
}

#[tokio::test]
async fn what_fails_is_not_recorded_and_is_tried_again() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("steps", json!("in"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let steps = Steps(&["a", "fails badly"], effects.clone());
    let error = work(&steps, &log).await.unwrap_err();
    drop(log);
    let (_, info) = resume(&driver, id, Resume::GoOn, &steps).await;
    assert_eq!((info.outcome, info.error), (Some(Outcome::Failed), Some(error.to_string())));
    assert_eq!(effects.take(), [("a".to_owned(), 1), ("fails badly".to_owned(), 2)].into());
}
