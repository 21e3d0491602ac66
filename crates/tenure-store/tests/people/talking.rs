//! A conversation that goes on another day.

use crate::people::new_store;
use tenure_core::agent::Agent;
use tenure_core::message::{History, Message};
use tenure_models::Passthrough;

async fn turn(history: &History, message: &str) -> History {
    let agent = Agent::builder("echo").model(Passthrough::new()).build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent.set_history(history.clone()).expect("it works here");
    agent.run(message).await.expect("it works here");
    let history = agent.history();
    agent.shutdown().await;
    history
}

#[tokio::test]
async fn what_was_said_in_an_earlier_process_is_said_before_what_is_said_now() {
    let (_folder, path, store) = new_store();
    let said = turn(&History::new(), "My name is Ada.").await;
    store.threads().for_user("ada").save("t1", "echo", &said).await.unwrap();
    drop(store);

    let threads = crate::keys::open_existing(&path).unwrap().threads();
    let latest = threads.latest(Some("echo")).unwrap().expect("a conversation was saved");
    let before = threads.load(&latest.thread, "echo").unwrap().unwrap();
    assert_eq!(before, said);
    let said = turn(&before, "What is my name?").await;
    threads.save(&latest.thread, "echo", &said).await.unwrap();

    let threads = crate::keys::open_existing(&path).unwrap().threads();
    let history = threads.load("t1", "echo").unwrap().unwrap();
    let texts: Vec<&str> = history.iter().map(Message::text).collect();
    let expected = ["My name is Ada.", "My name is Ada.", "What is my name?", "What is my name?"];
    assert_eq!(texts, expected);
    let latest = threads.latest(None).unwrap().unwrap();
    assert_eq!((latest.length, latest.user.as_deref()), (4, Some("ada")));
}

#[tokio::test]
async fn a_conversation_is_kept_when_the_file_is_made_smaller() {
    let (_folder, path, store) = new_store();
    let threads = store.threads();
    let mut history = History::new();
    for number in 0..40 {
        history.push(Message::user(format!("message {number}, which is said once")));
        threads.save("kept", "echo", &history).await.unwrap();
        threads.save("gone", "echo", &history.truncated(number / 2)).await.unwrap();
    }
    threads.forget("gone").await.unwrap();
    store.compact(&Default::default()).unwrap();
    assert!(store.verify().unwrap().is_whole());
    let loaded = crate::keys::open_existing(&path).unwrap().threads().load("kept", "echo").unwrap();
    assert_eq!(loaded, Some(history.clone()));
    // Here it goes on with what was saved before, and what is gone is written again.
    history.push(Message::user("one more"));
    threads.save("kept", "echo", &history).await.unwrap();
    threads.save("gone", "echo", &history).await.unwrap();
    let threads = crate::keys::open_existing(&path).unwrap().threads();
    assert_eq!(threads.load("kept", "echo").unwrap(), Some(history.clone()));
    assert_eq!(threads.load("gone", "echo").unwrap(), Some(history));
    assert!(store.verify().unwrap().is_whole());
}
