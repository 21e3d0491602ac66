//! Questions that outlive the process that asks them.

use crate::runs::support::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, Ask, PendingAsk};
use tenure_core::engine::{Engine, NewRun, RunStatus, Signalled};
use tenure_core::hook;
use tenure_core::tool::{Effect, ToolOutput};
use tenure_core::{Outcome, RunId};
use tenure_store::{AskInfo, AskQuery, LocalEngine, Now, Recovery, Resume, Store};
use tokio::time::{sleep, timeout};

/// Waits until so many questions of a run are open.
async fn open(store: &Store, run: RunId, count: usize) -> Vec<AskInfo> {
    let query = AskQuery::open().run(run);
    let wait = async {
        loop {
            let open = store.asks(&query).expect("asks can be read");
            if open.len() == count {
                return open;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("the questions are asked")
}

/// An agent that asks before its one tool, and the tool.
fn asker(
    effects: &Effects,
    ask: impl Fn() -> Ask + Send + Sync + 'static,
) -> tenure_core::agent::AgentBuilder {
    let ask = Arc::new(ask);
    Agent::builder("agent")
        .model(model(effects, &[&["plain"]]))
        .tool(Counts("plain", Effect::Idempotent, effects.clone()))
        .with_lifecycle(hook::wrap_tool_call(move |cx, request, next| {
            let ask = ask.clone();
            Box::pin(async move {
                match cx.ask(ask()).await? {
                    Answer::Approve => Ok(next.call(request).await?),
                    other => Ok(ToolOutput::denied(format!("{other:?}"))),
                }
            })
        }))
}

#[tokio::test]
async fn an_answer_given_while_nothing_runs_is_there_at_the_next_start() {
    let (file, effects) = (File::new(), Effects::default());
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let engine = LocalEngine::open_with(file.path(), &crate::keys::keys()).unwrap();
    engine.register("agent", Arc::new(blueprint(waiting(&effects))));
    engine.start(run).await.unwrap();
    open(engine.store(), id, 2).await;
    engine.shutdown().await;
    drop(engine);

    // Nothing runs. Somebody else answers.
    let elsewhere = file.store();
    let info = elsewhere.run(id).unwrap().unwrap();
    assert_eq!((info.driven, info.asks, info.outcome), (false, 2, None));
    for ask in elsewhere.asks(&AskQuery::open()).unwrap() {
        let answer = if ask.action == Some(json!("one")) {
            Answer::Approve
        } else {
            Answer::Reject("no".into())
        };
        assert_eq!(elsewhere.answer(&ask.id, answer, "ada").unwrap(), Signalled::Accepted);
        let late = elsewhere.answer(&ask.id, Answer::Reject("late".into()), "bob").unwrap();
        assert!(matches!(late, Signalled::AlreadyDecided(_)), "{late:?}");
    }

    let engine = LocalEngine::open_with(file.path(), &crate::keys::keys()).unwrap();
    engine.register("agent", Arc::new(blueprint(waiting(&effects))));
    let recovered = engine.recover(Recovery::Resume).await.unwrap();
    assert_eq!(recovered.resumed.len(), 1);
    // It goes on by itself, until its next question.
    let ask = open(engine.store(), id, 1).await.remove(0);
    assert_eq!(engine.signal(&ask.id, Answer::Approve, "ada").await.unwrap(), Signalled::Accepted);
    let info = timeout(PATIENCE, engine.result(id)).await.unwrap().unwrap().unwrap();
    assert_eq!((info.status, info.output), (RunStatus::Ended, Some(Value::from("done!"))));
    let done = effects.take();
    assert_eq!((done["model"], done["tool one"], done.get("tool two")), (3, 2, None));
    ends(&records(engine.store(), id));
    assert!(engine.store().asks(&AskQuery::open()).unwrap().is_empty());
}

#[tokio::test]
async fn an_answer_from_elsewhere_is_noticed_while_the_run_waits() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let agent = blueprint(asker(&effects, || Ask::approval("may I?", json!("pay"))));
    let elsewhere = file.store();
    let answering = async {
        log.waits().await;
        let ask = open(&elsewhere, id, 1).await.remove(0);
        let status = elsewhere.run(id).unwrap().unwrap().status;
        assert_eq!(status, RunStatus::Waiting);
        assert_eq!(elsewhere.answer(&ask.id, Answer::Approve, "ada").unwrap(), Signalled::Accepted);
        Instant::now()
    };
    let (result, answered) = tokio::join!(work(&agent, &log), answering);
    let took = answered.elapsed();
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    let info = log.finish(result).await.unwrap();
    assert_eq!((info.outcome, info.asks), (Some(Outcome::Ok), 0));
    assert_eq!(effects.take()["tool plain"], 1);
    let names: Vec<_> = records(&elsewhere, id).into_iter().map(|record| record.name).collect();
    let at = |name: &str| names.iter().position(|it| it == name);
    assert!(at("ask.opened") < at("run.waiting") && at("run.waiting") < at("ask.answered"));
    assert_eq!(names.iter().filter(|name| *name == "ask.answered").count(), 1, "{names:?}");
}

#[tokio::test]
async fn the_first_answer_counts_whoever_gives_it() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let elsewhere = file.store();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    // Whoever is here says no, and is too late: the question was answered from here on its way.
    let store = elsewhere.clone();
    let agent =
        asker(&effects, || Ask::approval("may I?", json!("pay"))).on_ask(move |_: &PendingAsk| {
            let ask = store.asks(&AskQuery::open().run(id)).unwrap().remove(0);
            assert_eq!(store.answer(&ask.id, Answer::Approve, "ada").unwrap(), Signalled::Accepted);
            Some(Answer::Reject("no".into()))
        });
    let result = work(&blueprint(agent), &log).await;
    log.finish(result).await.unwrap();
    assert_eq!(effects.take()["tool plain"], 1, "the first answer was yes");
    let ask = elsewhere.asks(&AskQuery::all().run(id)).unwrap().remove(0);
    assert_eq!((ask.answer, ask.by.as_deref()), (Some(Answer::Approve), Some("ada")));
}

#[tokio::test]
async fn time_to_answer_is_counted_over_all_lives() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let ask = || Ask::approval("may I?", json!("pay")).expires_after(Duration::from_secs(2));
    let log = begin(&driver, run).await;
    let agent = blueprint(asker(&effects, ask));
    tokio::select! {
        result = work(&agent, &log) => panic!("nobody has answered: {result:?}"),
        () = log.waits() => {}
    }
    drop(log);
    sleep(Duration::from_millis(2050)).await;
    let started = Instant::now();
    let (_, info) = resume(&driver, id, Resume::GoOn, &agent).await;
    assert_eq!(info.outcome, Some(Outcome::Ok));
    assert!(started.elapsed() < Duration::from_millis(1900), "its time was over already");
    assert_eq!(effects.take().get("tool plain"), None);
    let ask = driver.store().asks(&AskQuery::all().run(id)).unwrap().remove(0);
    assert_eq!(ask.status, tenure_store::AskStatus::Expired);
    assert_eq!(ask.answer, Some(Answer::Reject("nobody answered in time".into())));

    // And in one life.
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let result = work(&agent, &log).await;
    log.finish(result).await.unwrap();
    let ask = driver.store().asks(&AskQuery::all().run(id)).unwrap().remove(0);
    assert_eq!(ask.answer, Some(Answer::Reject("nobody answered in time".into())));
}

#[tokio::test]
async fn an_answer_never_counts_for_another_action() {
    let (file, effects) = (File::new(), Effects::default());
    let driver = file.drive();
    let run = NewRun::new("agent", json!("go"));
    let id = run.id;
    let log = begin(&driver, run).await;
    let agent = |sum: u32| {
        blueprint(asker(&effects, move || Ask::approval("may I?", json!({ "pay": sum }))))
    };
    let first = agent(10);
    tokio::select! {
        result = work(&first, &log) => panic!("nobody has answered: {result:?}"),
        () = log.waits() => {}
    }
    drop(log);
    let ask = open(driver.store(), id, 1).await.remove(0);
    driver.store().answer(&ask.id, Answer::Approve, "ada").unwrap();

    let (log, info) = resume(&driver, id, Resume::GoOn, &agent(10_000)).await;
    assert_eq!(info.status, RunStatus::Parked);
    let difference = log.difference().expect("it says where");
    assert_eq!(&*difference.step.kind, "ask");
    let Now::OtherQuestion { question } = difference.now else { panic!("{difference:?}") };
    assert_eq!(question["action"], json!({ "pay": 10_000 }));
    assert_eq!(effects.take().get("tool plain"), None);
    drop(log);

    let (_, info) = resume(&driver, id, Resume::GoOn, &first).await;
    assert_eq!(info.outcome, Some(Outcome::Ok));
    assert_eq!(effects.take()["tool plain"], 1);
}
