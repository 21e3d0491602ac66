//! What agents know of people comes back, also if several learn at once.

use crate::people::new_store;
use serde_json::{Value, json};
use std::error::Error as _;
use std::sync::Arc;
use tenure_core::ErrorKind;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::memory::{Conflict, InMemory, Memory, Search};
use tenure_models::Passthrough;
use tenure_store::Rule;
use tenure_testkit::compliance;

fn clerk(memory: impl Memory) -> Blueprint {
    Agent::builder("clerk")
        .model(Passthrough::new())
        .memory(memory)
        .blueprint()
        .expect("it works here")
}

#[tokio::test]
async fn the_memory_of_a_file_and_that_of_a_process_keep_the_same_promises() {
    let (_folder, _path, store) = new_store();
    compliance::memory(&store.memory()).await;
    compliance::memory(&InMemory::new()).await;
    compliance::memory(&store.memory().for_user("ada")).await;
    assert!(store.verify().unwrap().is_whole());
}

#[tokio::test]
async fn what_an_agent_learns_about_a_user_is_there_next_time_and_for_that_user_only() {
    let (_folder, path, store) = new_store();
    let agent = clerk(store.memory().for_user("ada")).instance();
    agent.startup().await.unwrap();
    agent.memory().unwrap().update("facts", json!({ "name": "Ada" })).unwrap();
    agent.shutdown().await;

    let store = crate::keys::open_existing(&path).unwrap();
    for (user, known) in [("ada", Some(json!({ "name": "Ada" }))), ("bob", None)] {
        let agent = clerk(store.memory().for_user(user)).instance();
        agent.startup().await.unwrap();
        assert_eq!(agent.memory().unwrap().get("facts"), known, "{user}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn clones_that_learn_at_once_lose_nothing_where_the_rule_is_to_merge() {
    const CLONES: usize = 12;
    let (_folder, _path, store) = new_store();
    let blueprint = clerk(store.memory().rule("facts", Rule::Merge).rule("history", Rule::Max));
    let clones: Vec<Agent> = (0..CLONES).map(|_| blueprint.instance()).collect();
    for clone in &clones {
        clone.startup().await.unwrap();
    }
    for (number, clone) in clones.iter().enumerate() {
        let memory = clone.memory().unwrap();
        memory.update("facts", json!({ number.to_string(): [number] })).unwrap();
        memory.update("history", number).unwrap();
    }
    // All at once, each with what it read when there was nothing.
    let tasks = tokio_util::task::TaskTracker::new();
    for clone in clones {
        tasks.spawn(async move { clone.shutdown().await });
    }
    tasks.close();
    tasks.wait().await;
    let known = store.memory().load("clerk").await.unwrap();
    let facts = known["facts"].as_object().unwrap();
    assert_eq!(facts.len(), CLONES);
    assert!((0..CLONES).all(|number| facts[&number.to_string()] == json!([number])));
    assert_eq!(known["history"], json!(CLONES - 1));
}

#[tokio::test]
async fn a_clone_that_may_not_choose_is_told_what_it_read_and_what_is_there() {
    let (_folder, _path, store) = new_store();
    let blueprint = clerk(store.memory().rule("*", Rule::Refuse));
    let (one, two) = (blueprint.instance(), blueprint.instance());
    for agent in [&one, &two] {
        agent.startup().await.unwrap();
    }
    one.memory().unwrap().update("facts", "the first").unwrap();
    one.memory().unwrap().flush().await.unwrap();
    let memory = two.memory().unwrap();
    memory.update("facts", "the second").unwrap();
    let error = memory.flush().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    let conflict = error.source().and_then(|it| it.downcast_ref::<Conflict>());
    let conflict = conflict.expect("the conflict is the cause");
    assert_eq!((&*conflict.key, &conflict.read), ("facts", &None));
    assert_eq!(conflict.there, Value::from("the first"));
    assert!(memory.is_dirty(), "what was not stored is not forgotten");
    assert_eq!(memory.get("facts"), Some(json!("the second")));
    one.shutdown().await;
    two.shutdown().await;
    assert_eq!(store.memory().load("clerk").await.unwrap()["facts"], "the first");
}

#[tokio::test]
async fn an_agent_sees_what_others_have_learnt_once_it_has_stored_its_own() {
    let (_folder, _path, store) = new_store();
    let blueprint = clerk(store.memory().rule("facts", Rule::Merge));
    let (one, two) = (blueprint.instance(), blueprint.instance());
    for agent in [&one, &two] {
        agent.startup().await.unwrap();
    }
    one.memory().unwrap().update("facts", json!({ "city": "Bern" })).unwrap();
    one.memory().unwrap().flush().await.unwrap();
    let memory = two.memory().unwrap();
    memory.update("facts", json!({ "drink": "green tea" })).unwrap();
    // A search stores first, and finds both.
    let found = memory.search(&Search::text("tea"), 5).await.unwrap();
    assert_eq!(found[0].value, json!({ "city": "Bern", "drink": "green tea" }));
    assert!(found[0].excerpt.contains("[tea]"), "{}", found[0].excerpt);
    assert_eq!(memory.get("facts"), Some(json!({ "city": "Bern", "drink": "green tea" })));
    assert!(!memory.is_dirty());
    one.shutdown().await;
    two.shutdown().await;
}

#[tokio::test]
async fn ten_thousand_memories_of_others_do_not_get_in_the_way_of_a_search() {
    let (_folder, _path, store) = new_store();
    let everybody = Arc::new(store.memory());
    for user in 0..100 {
        let memory = everybody.as_ref().clone().for_user(user.to_string());
        let notes = (0..100).map(|n| (format!("note/{n}"), json!(format!("likes number {n}"))));
        memory.store("clerk", notes.collect()).await.unwrap();
    }
    let memory = store.memory().for_user("7");
    let found = memory.search("clerk", &Search::text("number 42"), 5).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, "note/42");
    assert_eq!(memory.search("clerk", &Search::text("likes"), 1_000).await.unwrap().len(), 100);
}
