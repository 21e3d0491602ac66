//! Runs that are given up: everything that began gets its end, once.

use crate::runs::support::*;
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::engine::{Engine as _, NewRun, RunStatus};
use tenure_core::hook::{After, AgentLifecycle, HookError};
use tenure_core::{Outcome, RunId};
use tenure_store::{Driver, LocalEngine, Resume, Wish};
use tokio::sync::Notify;

/// A run that waits for somebody, and whose process is gone.
async fn left_waiting(driver: &Driver, effects: &Effects) -> RunId {
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    dies_waiting(blueprint(waiting(effects)), begin(driver, run).await).await;
    effects.take();
    effects.said();
    id
}

#[tokio::test]
async fn g1_a_run_that_is_given_up_delivers_every_end_once_with_that_outcome() {
    for (mode, outcome) in
        [(Resume::Abandon, Outcome::Abandoned), (Resume::Cancel, Outcome::Cancelled)]
    {
        let (file, effects) = (File::new(), Effects::default());
        let driver = file.drive();
        let id = left_waiting(&driver, &effects).await;
        let (_, info) = resume(&driver, id, mode, &blueprint(busy(&effects))).await;
        assert_eq!((info.status, info.outcome), (RunStatus::Ended, Some(outcome)));
        assert_eq!(info.asks, 0, "nobody is asked any more");

        let said = effects.said();
        let said: Vec<_> = said.iter().map(|line| line.rsplit_once(' ').unwrap().0).collect();
        let end = format!("end {outcome}");
        assert_eq!(said, ["shutdown crashed", &*end, "shutdown completed"]);
        let done = effects.take();
        assert_eq!(done, [("after_agent".to_owned(), 1), ("step".to_owned(), 1)].into());

        let ends = ends(&records(driver.store(), id));
        let turn = ends.iter().find(|(scope, _)| scope.starts_with("turn"));
        assert_eq!(turn.map(|(_, outcome)| *outcome), Some(outcome), "{ends:?}");
        let instances = ends.iter().filter(|(scope, _)| scope.starts_with("instance"));
        let instances: Vec<_> = instances.map(|(_, outcome)| *outcome).collect();
        assert_eq!(instances, [Outcome::Abandoned, Outcome::Ok], "{ends:?}");

        // It is over: there is nothing to deliver a second time.
        assert!(driver.resume(id, mode).await.is_err());
    }
}

/// An end that does not come to an end, in a process that dies in it.
struct Hangs(Arc<Notify>);

#[async_trait]
impl AgentLifecycle for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }

    fn points(&self) -> tenure_core::hook::Points {
        tenure_core::hook::Point::AfterAgent.into()
    }

    async fn after_agent(&self, _: TurnCx<'_>, _: &mut TurnEnd<'_>) -> Result<After, HookError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// The same entry, so that the chain is as long as in every other life.
struct Goes;

#[async_trait]
impl AgentLifecycle for Goes {
    fn name(&self) -> &str {
        "hangs"
    }

    fn points(&self) -> tenure_core::hook::Points {
        tenure_core::hook::Point::AfterAgent.into()
    }
}

#[tokio::test]
async fn g1_a_process_that_dies_while_it_gives_a_run_up_changes_nothing() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let agent = blueprint(waiting(&effects).with_lifecycle(Goes));
    dies_waiting(agent.clone(), begin(&driver, run).await).await;
    effects.take();
    effects.said();

    // `hangs` is the last entry, so its end comes first; the one of `hooks` is not reached. The
    // process dies there twice.
    for _ in 0..2 {
        let here = Arc::new(Notify::new());
        let agent = blueprint(waiting(&effects).with_lifecycle(Hangs(here.clone())));
        let agent: &'static _ = Box::leak(Box::new(agent));
        let log: &'static _ =
            Box::leak(Box::new(driver.resume(id, Resume::Abandon).await.unwrap()));
        let mut run = Box::pin(work(agent, log));
        tokio::select! {
            result = &mut run => panic!("its end hangs: {result:?}"),
            () = here.notified() => {}
        }
        std::mem::forget(run);
        let said = effects.said();
        assert_eq!(said.len(), 1, "only the dead instance was told: {said:?}");
        assert!(said[0].starts_with("shutdown crashed"), "{said:?}");
    }
    let (_, info) = resume(&driver, id, Resume::Abandon, &agent).await;
    assert_eq!((info.outcome, info.lives), (Some(Outcome::Abandoned), 4));
    let said = effects.said();
    assert_eq!(said.iter().filter(|line| line.starts_with("end abandoned")).count(), 1, "{said:?}");
    let records = records(driver.store(), id);
    let ends = ends(&records);
    assert_eq!(ends.iter().filter(|(scope, _)| scope.starts_with("instance")).count(), 4);
    let deliveries = records.iter().filter_map(|record| record.step.as_ref());
    let deliveries = deliveries.filter(|key| &*key.kind == "after_agent").count();
    assert_eq!(deliveries, 2, "one for each entry");
}

#[tokio::test]
async fn a_run_that_somebody_wants_cancelled_is_cancelled_when_it_is_taken_up() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let id = left_waiting(&driver, &effects).await;
    drop(driver);
    let elsewhere = file.store();
    assert!(elsewhere.request(id, tenure_store::Wish::Cancel).unwrap());
    assert!(!elsewhere.request(RunId::unique(), tenure_store::Wish::Cancel).unwrap());

    let driver = file.drive();
    let (log, info) = resume(&driver, id, Resume::GoOn, &blueprint(busy(&effects))).await;
    assert_eq!((log.mode(), info.outcome), (Resume::Cancel, Some(Outcome::Cancelled)));
    ends(&records(driver.store(), id));
    assert!(!elsewhere.request(id, tenure_store::Wish::Cancel).unwrap(), "it is over");
}

/// A cancel that comes while a run is still at its record finds what began in earlier lives.
#[tokio::test]
async fn g1_a_cancel_in_the_first_moments_of_a_later_life_skips_no_end() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let id = left_waiting(&driver, &effects).await;
    let log = driver.resume(id, Resume::GoOn).await.unwrap();
    driver.store().request(id, tenure_store::Wish::Cancel).unwrap();
    // It is noticed before anything is taken up.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let result = work(&blueprint(busy(&effects)), &log).await;
    let info = log.finish(result).await.unwrap();
    assert_eq!(info.outcome, Some(Outcome::Cancelled), "{:?}", info.error);
    let said = effects.said();
    assert_eq!(said.iter().filter(|line| line.starts_with("end cancelled")).count(), 1, "{said:?}");
    ends(&records(driver.store(), id));
}

/// What was given up after the end of its record was reached comes to the outcome of its record.
#[tokio::test]
async fn a_run_that_had_only_its_ends_left_ends_as_it_would_have() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    work(&blueprint(busy(&effects)), &log).await.expect("it ends well");
    drop(log);
    effects.take();
    effects.said();
    let (_, info) = resume(&driver, id, Resume::Abandon, &blueprint(busy(&effects))).await;
    assert_eq!((info.outcome, info.output), (Some(Outcome::Ok), Some(json!("done!"))));
    assert_eq!(effects.take(), Default::default());
    ends(&records(driver.store(), id));
}

#[tokio::test]
async fn nothing_is_recorded_behind_the_end_of_a_run_that_was_killed() {
    let (file, effects) = (File::new(), Effects::default());
    let engine = LocalEngine::open_with(file.path(), &crate::keys::keys()).unwrap();
    let hangs = Agent::builder("agent")
        .model(tenure_models::Hanging::new())
        .with_lifecycle(Hooks(effects.clone()));
    engine.register("hangs", Arc::new(blueprint(hangs)));
    let run = NewRun::new("hangs", json!("go"));
    let id = run.id;
    engine.start(run).await.unwrap();
    while !records(engine.store(), id).iter().any(|it| it.name == "model.started") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(file.store().request(id, Wish::Kill).unwrap());
    engine.result(id).await.unwrap();
    engine.shutdown().await;
    let names: Vec<_> = records(engine.store(), id).iter().map(|it| it.name.clone()).collect();
    assert_eq!(names.last().map(String::as_str), Some("run.ended"), "{names:?}");
    let verified = engine.store().verify().unwrap();
    assert!(verified.is_whole(), "{:?}", verified.faults);
}
