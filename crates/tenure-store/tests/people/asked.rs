//! Somebody is asked, and answers from another process.

use crate::people::new_store;
use serde_json::json;
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::RunId;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::ask::{Answer, Ask};
use tenure_core::engine::{Engine, NewRun, RunStatus, Signalled};
use tenure_core::hook::{self, Flow};
use tenure_models::Passthrough;
use tenure_store::{AskInfo, AskQuery, AskStatus, LocalEngine, Recovery, Store};

/// In a process that answers: the file, the question and the reply.
const FILE: &str = "TENURE_STORE_PEOPLE_FILE";
const QUESTION: &str = "TENURE_STORE_PEOPLE_QUESTION";
const REPLY: &str = "TENURE_STORE_PEOPLE_REPLY";
const CHILD: &str = "people::asked::a_person_at_another_terminal";

/// Not a test of its own: what the other process does.
#[test]
fn a_person_at_another_terminal() {
    let Ok(file) = env::var(FILE) else { return };
    let (question, reply) = (env::var(QUESTION).unwrap(), env::var(REPLY).unwrap());
    let store = crate::keys::open_existing(file).unwrap();
    let signalled = store.answer(&question, Answer::Respond(reply), "somebody else").unwrap();
    assert_eq!(signalled, Signalled::Accepted);
}

fn answer_elsewhere(file: &Path, question: &str, reply: &str) {
    let status = Command::new(env::current_exe().expect("it works here"))
        .args(["--exact", CHILD, "--nocapture"])
        .env(FILE, file)
        .env(QUESTION, question)
        .env(REPLY, reply)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("it works here");
    assert!(status.success(), "{status}");
}

type Said = Arc<Mutex<Vec<Answer>>>;

/// An agent that asks where to go before each turn, and notes what it is told.
fn guide(said: &Said) -> Blueprint {
    let said = said.clone();
    let asks = hook::before_agent(move |cx, _input| {
        let said = said.clone();
        Box::pin(async move {
            let reply = json!({ "type": "string", "minLength": 2 });
            let answer = cx.ask(Ask::input("Where to?").schema(reply)).await?;
            said.lock().expect("it works here").push(answer);
            Ok(Flow::Continue)
        })
    });
    let guide = Agent::builder("guide").model(Passthrough::new()).with_lifecycle(asks);
    guide.blueprint().expect("it works here")
}

fn engine(store: &Store, said: &Said) -> LocalEngine {
    let engine = LocalEngine::new(store.drive("a test").expect("it works here"));
    engine.register("guide", Arc::new(guide(said)));
    engine
}

async fn question(store: &Store, run: RunId) -> AskInfo {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(ask) = store.asks(&AskQuery::open().run(run)).expect("it works here").pop() {
            return ask;
        }
        assert!(Instant::now() < deadline, "no question comes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_answer_from_another_process_reaches_the_run_that_waits() {
    let (_folder, path, store) = new_store();
    let said = Said::default();
    let engine = engine(&store, &said);
    let run = NewRun::new("guide", json!("hello"));
    let id = run.id;
    engine.start(run).await.unwrap();
    let ask = question(&store, id).await;
    assert_eq!((&*ask.agent, &*ask.prompt, &*ask.run_name), ("guide", "Where to?", "guide"));
    assert_eq!(ask.status, AskStatus::Open);

    // Whatever does not have the form is refused here as there.
    let short = engine.signal(&ask.id, Answer::Respond("B".into()), "me").await.unwrap();
    assert!(matches!(short, Signalled::Unfit(_)), "{short:?}");
    let file = path.clone();
    let id_there = ask.id.clone();
    tokio::task::spawn_blocking(move || answer_elsewhere(&file, &id_there, "Bern")).await.unwrap();
    let late = engine.signal(&ask.id, Answer::Respond("Basel".into()), "me").await.unwrap();
    assert_eq!(late, Signalled::AlreadyDecided(Answer::Respond("Bern".into())));

    let waiting = tokio::time::timeout(Duration::from_secs(30), engine.result(id));
    let info = waiting.await.expect("the run goes on").unwrap().unwrap();
    assert_eq!((info.status, info.output), (RunStatus::Ended, Some(json!("hello"))));
    assert_eq!(*said.lock().unwrap(), [Answer::Respond("Bern".into())]);
    let ask = store.ask(&ask.id).unwrap();
    assert_eq!(ask.by.as_deref(), Some("somebody else"));
    let noticed = info.ended.unwrap().duration_since(ask.decided.unwrap()).unwrap_or_default();
    // Noticed within 200 ms on a machine that has time; this one may have other things to do.
    assert!(noticed < Duration::from_secs(5), "noticed after {noticed:?}");
    eprintln!("the run was over {noticed:?} after the answer");
    engine.shutdown().await;
}

#[tokio::test]
async fn an_answer_given_while_nothing_runs_is_there_at_the_next_start() {
    let (_folder, path, store) = new_store();
    let said = Said::default();
    let first = engine(&store, &said);
    let run = NewRun::new("guide", json!("hello"));
    let id = run.id;
    first.start(run).await.unwrap();
    let ask = question(&store, id).await;
    first.shutdown().await;
    drop(first);
    assert_eq!(*said.lock().unwrap(), []);
    answer_elsewhere(&path, &ask.id[..12], "Basel");

    let second = engine(&store, &said);
    let recovered = second.recover(Recovery::Resume).await.unwrap();
    assert_eq!(recovered.resumed.len(), 1, "{recovered:?}");
    let waiting = tokio::time::timeout(Duration::from_secs(30), second.result(id));
    let info = waiting.await.expect("the run goes on").unwrap().unwrap();
    assert_eq!((info.status, info.lives), (RunStatus::Ended, 2));
    assert_eq!(*said.lock().unwrap(), [Answer::Respond("Basel".into())]);
    assert_eq!(store.asks(&AskQuery::all()).unwrap().len(), 1, "nobody was asked twice");
    second.shutdown().await;
    assert!(store.verify().unwrap().is_whole());
}
