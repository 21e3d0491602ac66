//! The engine: starts, results, cancels, and what it finds at its next start.

use crate::runs::support::*;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::engine::{Engine, NewRun, RunCx, RunInfo, RunQuery, RunStatus, Runnable, Started};
use tenure_core::secret::Redactor;
use tenure_core::{Error, Outcome, RunId};
use tenure_models::Hanging;
use tenure_store::{LocalEngine, Recovery, Wish};
use tokio::time::timeout;

async fn result(engine: &LocalEngine, run: RunId) -> RunInfo {
    let result = timeout(PATIENCE, engine.result(run)).await.expect("it does not hang");
    result.expect("it is known").expect("there is such a run")
}

fn engine(file: &File, effects: &Effects) -> LocalEngine {
    let engine =
        LocalEngine::open_with(file.path(), &crate::keys::keys()).expect("nobody else drives it");
    engine.register("agent", Arc::new(blueprint(busy(effects))));
    let hangs =
        Agent::builder("agent").model(Hanging::new()).with_lifecycle(Hooks(effects.clone()));
    engine.register("hangs", Arc::new(blueprint(hangs)));
    engine.register("panics", Arc::new(Panics));
    engine
}

struct Panics;

#[async_trait]
impl Runnable for Panics {
    async fn run(&self, run: RunCx) -> Result<Value, Error> {
        let _: u32 = run.steps.step("a", &1, async { Ok(1) }).await?;
        panic!("the code of run {} is broken", run.input);
    }
}

/// Waits until a run has come to its model, which never answers.
async fn hanging(engine: &LocalEngine, run: RunId) {
    let wait = async {
        let has_begun = |record: &tenure_store::Record| {
            record.step.as_ref().is_some_and(|key| &*key.kind == "before_agent")
        };
        while !records(engine.store(), run).iter().any(has_begun) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("it comes to its model");
}

#[tokio::test]
async fn a_run_is_started_once_and_its_result_is_known_after_a_restart() {
    let (file, effects) = (File::new(), Effects::default());
    let first = engine(&file, &effects);
    let run = NewRun::new("agent", json!("go")).name("ada").thread("t1");
    let id = run.id;
    assert_eq!(first.start(run.clone()).await.unwrap(), Started::New);
    assert!(matches!(first.start(run.clone()).await.unwrap(), Started::Known(_)));
    let info = result(&first, id).await;
    assert_eq!((info.outcome, info.output.clone()), (Some(Outcome::Ok), Some(json!("done!"))));
    assert_eq!(first.start(run.clone()).await.unwrap(), Started::Known(RunStatus::Ended));
    assert_eq!(effects.take()["before_agent"], 1);
    first.shutdown().await;
    drop(first);

    let second = engine(&file, &effects);
    let recovered = second.recover(Recovery::Resume).await.unwrap();
    assert!(recovered.resumed.is_empty() && recovered.kept.is_empty());
    let again = result(&second, id).await;
    assert_eq!((again.output, again.lives, &*again.name), (info.output, 1, "ada"));
    assert!(second.result(RunId::unique()).await.unwrap().is_none());
    let mut query = RunQuery::default();
    query.thread = Some("t1".into());
    assert_eq!(second.list(&query).await.unwrap().len(), 1);
    query.unfinished = true;
    assert!(second.list(&query).await.unwrap().is_empty());
    let prefix = &id.to_string()[..id.to_string().len() - 1];
    assert_eq!(second.store().find(prefix).unwrap(), id);
}

#[tokio::test]
async fn a_second_engine_is_told_who_drives_and_reads_all_the_same() {
    let (file, effects) = (File::new(), Effects::default());
    let first = engine(&file, &effects);
    let run = NewRun::new("hangs", json!("go"));
    let id = run.id;
    first.start(run).await.unwrap();
    hanging(&first, id).await;
    let error = LocalEngine::open_with(file.path(), &crate::keys::keys()).unwrap_err();
    assert!(error.is_driven(), "{error}");
    let info = file.store().run(id).unwrap().unwrap();
    assert_eq!((info.driven, info.status), (true, RunStatus::Running));
    first.shutdown().await;
    assert!(!file.store().run(id).unwrap().unwrap().driven);
}

#[tokio::test]
async fn g1_a_cancel_from_another_process_ends_the_run_in_good_order() {
    let (file, effects) = (File::new(), Effects::default());
    let engine = engine(&file, &effects);
    for how in ["engine", "elsewhere"] {
        let run = NewRun::new("hangs", json!("go"));
        let id = run.id;
        engine.start(run).await.unwrap();
        hanging(&engine, id).await;
        match how {
            "engine" => assert!(engine.cancel(id).await.unwrap()),
            _ => assert!(file.store().request(id, Wish::Cancel).unwrap()),
        }
        let info = result(&engine, id).await;
        assert_eq!(info.outcome, Some(Outcome::Cancelled), "{how}");
        assert!(effects.said()[0].starts_with("end cancelled"));
        ends(&records(engine.store(), id));
        assert!(!engine.cancel(id).await.unwrap(), "it is over");
        effects.take();
    }
    assert!(!engine.cancel(RunId::unique()).await.unwrap());
}

#[tokio::test]
async fn a_run_that_nobody_drives_is_cancelled_too() {
    let (file, effects) = (File::new(), Effects::default());
    let first = engine(&file, &effects);
    let run = NewRun::new("hangs", json!("go"));
    let id = run.id;
    first.start(run).await.unwrap();
    hanging(&first, id).await;
    // Dropped, not shut down: as good as dead.
    drop(first);
    let second = reopened(&file, &effects).await;
    let kept = second.recover(Recovery::Keep).await.unwrap().kept;
    assert_eq!((kept.len(), kept[0].status, kept[0].driven), (1, RunStatus::Running, false));
    effects.said();
    assert!(second.cancel(id).await.unwrap());
    let info = result(&second, id).await;
    assert_eq!((info.outcome, info.lives), (Some(Outcome::Cancelled), 2));
    let ended = effects.said();
    assert_eq!(
        ended.iter().filter(|line| line.starts_with("end cancelled")).count(),
        1,
        "{ended:?}"
    );
    ends(&records(second.store(), id));
}

/// An engine of the next process; the tasks of the one before may take a moment to be dropped.
async fn reopened(file: &File, effects: &Effects) -> LocalEngine {
    let wait = async {
        while crate::keys::open(file.path())
            .and_then(|store| store.driver())
            .expect("it can be read")
            .is_some()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("the right is given back");
    engine(file, effects)
}

#[tokio::test]
async fn g1_what_an_earlier_process_left_is_given_up_if_that_is_wanted() {
    let (file, effects) = (File::new(), Effects::default());
    let first = engine(&file, &effects);
    let runs: Vec<_> = (0..3).map(|_| NewRun::new("hangs", json!("go"))).collect();
    for run in &runs {
        first.start(run.clone()).await.unwrap();
        hanging(&first, run.id).await;
    }
    drop(first);
    let second = reopened(&file, &effects).await;
    effects.said();
    let recovered = second.recover(Recovery::Abandon).await.unwrap();
    assert_eq!(recovered.abandoned.len(), 3, "{recovered:?}");
    for run in &runs {
        let info = result(&second, run.id).await;
        assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(Outcome::Abandoned)));
        ends(&records(second.store(), run.id));
    }
    let ended = effects.said();
    assert_eq!(
        ended.iter().filter(|line| line.starts_with("end abandoned")).count(),
        3,
        "{ended:?}"
    );
    assert!(second.recover(Recovery::Abandon).await.unwrap().abandoned.is_empty());
}

#[tokio::test]
async fn a_run_that_is_killed_ends_at_once_and_on_record_only() {
    let (file, effects) = (File::new(), Effects::default());
    let engine = engine(&file, &effects);
    let run = NewRun::new("hangs", json!("go"));
    let id = run.id;
    engine.start(run).await.unwrap();
    hanging(&engine, id).await;
    assert!(file.store().request(id, Wish::Kill).unwrap());
    let info = result(&engine, id).await;
    assert_eq!(info.outcome, Some(Outcome::Abandoned));
    let said = effects.said();
    assert!(!said.iter().any(|line| line.starts_with("end")), "no end is delivered: {said:?}");
    let ends = ends(&records(engine.store(), id));
    let turn = ends.iter().find(|(scope, _)| scope.starts_with("turn"));
    assert_eq!(turn.map(|(_, outcome)| *outcome), Some(Outcome::Abandoned), "{ends:?}");
}

#[tokio::test]
async fn a_run_that_panics_is_over_as_panicked() {
    let (file, effects) = (File::new(), Effects::default());
    let engine = engine(&file, &effects);
    let run = NewRun::new("panics", json!("x"));
    let id = run.id;
    engine.start(run).await.unwrap();
    let info = result(&engine, id).await;
    assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(Outcome::Panicked)));
    assert!(info.error.is_some_and(|error| error.contains("the code of run \"x\" is broken")));
}

#[tokio::test]
async fn a_kind_that_nobody_registered_is_an_error_that_names_those_that_are() {
    let (file, effects) = (File::new(), Effects::default());
    let engine = engine(&file, &effects);
    let error = engine.start(NewRun::new("card", json!("go"))).await.unwrap_err();
    assert!(error.to_string().contains("`card`"), "{error}");
    assert!(error.to_string().contains("`agent`, `hangs`, `panics`"), "{error}");
}

#[tokio::test]
async fn no_more_runs_than_there_is_room_for_are_in_memory() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let engine = LocalEngine::with_room(driver, 1);
    let hangs =
        Agent::builder("agent").model(Hanging::new()).with_lifecycle(Hooks(effects.clone()));
    engine.register("hangs", Arc::new(blueprint(hangs)));
    engine.register("agent", Arc::new(blueprint(busy(&effects))));
    let (first, second) = (NewRun::new("hangs", json!("go")), NewRun::new("agent", json!("go")));
    let (one, two) = (first.id, second.id);
    engine.start(first).await.unwrap();
    hanging(&engine, one).await;
    engine.start(second).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(records(engine.store(), two).len(), 1, "it is on record and has not begun");
    engine.cancel(one).await.unwrap();
    assert_eq!(result(&engine, two).await.outcome, Some(Outcome::Ok));
}

#[tokio::test]
async fn a_secret_is_not_in_the_file() {
    const SECRET: &str = "sk-very-secret";
    let (file, effects) = (File::new(), Effects::default());
    let store = file.store().redact_with(&Redactor::of([SECRET]));
    let engine = LocalEngine::new(store.drive("a test").unwrap());
    let agent = Agent::builder("agent")
        .model(tenure_models::Passthrough::new())
        .with_lifecycle(Hooks(effects.clone()));
    engine.register("agent", Arc::new(blueprint(agent)));
    let run = NewRun::new("agent", json!(format!("the key is {SECRET}")));
    let id = run.id;
    engine.start(run).await.unwrap();
    let info = result(&engine, id).await;
    assert!(info.output.is_some_and(|output| output.as_str().unwrap().contains("[redacted]")));
    engine.shutdown().await;
    drop(engine);
    for name in ["tenure.db", "tenure.db-wal"] {
        let bytes = std::fs::read(file.folder.path().join(name)).unwrap_or_default();
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{name} has the secret");
    }
}
