//! What a memory promises.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tenure_core::memory::{Memory, Read, Search, Write};

/// Holds a memory against what agents expect of one. It knows nothing yet of `clerk` and `cook`.
///
/// What is kept if two write the same key is the memory's own rule, and not looked at here.
pub async fn memory<M: Memory + ?Sized>(memory: &M) {
    keeps_what_it_is_given(memory).await;
    finds_what_it_keeps(memory).await;
}

async fn keeps_what_it_is_given<M: Memory + ?Sized>(memory: &M) {
    assert_eq!(all(memory, "clerk").await, values([]), "nothing is known of a new agent");
    let facts = [("facts", json!({ "city": "Bern", "n": [1, null, 2.5] })), ("name", json!("Ada"))];
    memory.store("clerk", values(facts.clone())).await.expect("a memory stores");
    assert_eq!(all(memory, "clerk").await, values(facts), "what was stored is there, as it was");
    memory.store("clerk", values([("name", json!("Bob"))])).await.expect("a memory stores");
    let now = all(memory, "clerk").await;
    assert_eq!(now["name"], "Bob", "what is stored again is overwritten");
    assert_eq!(now["facts"]["city"], "Bern", "what is not stored again stays");
    assert_eq!(all(memory, "cook").await, values([]), "another agent knows nothing of it");

    let read = memory.recall("clerk").await.expect("a memory recalls");
    let recalled = read.iter().map(|(key, kept)| (key.clone(), kept.value.clone())).collect();
    assert_eq!(now, recalled, "what is recalled is what is loaded");
    let write = Write { value: json!("Eve"), read: Read::from(read["name"].clone()) };
    let changes = BTreeMap::from([("name".to_owned(), write), ("new".to_owned(), Write::new(1))]);
    let kept = memory.commit("clerk", "an instance", changes).await.expect("a memory commits");
    let now = all(memory, "clerk").await;
    assert_eq!((&now["name"], &now["new"]), (&json!("Eve"), &json!(1)), "a commit is stored");
    for (key, kept) in kept {
        assert_eq!(kept.value, now[&key], "a commit says what is kept");
        let recalled = memory.recall("clerk").await.expect("a memory recalls");
        assert_eq!(kept, recalled[&key], "and which version of it");
    }
}

async fn finds_what_it_keeps<M: Memory + ?Sized>(memory: &M) {
    let notes = [
        ("note/tea", json!("Green tea in the afternoon")),
        ("note/coffee", json!({ "how": ["black", "strong"], "when": "in the morning" })),
        ("other", json!("Morning gymnastics, then green apples")),
    ];
    memory.store("cook", values(notes)).await.expect("a memory stores");
    let table: [(Search, &[&str]); 11] = [
        (Search::keys("note/"), &["note/coffee", "note/tea"]),
        (Search::keys("note/tea"), &["note/tea"]),
        (Search::keys("Note"), &[]),
        (Search::text("TEA"), &["note/tea"]),
        (Search::text("strong black"), &["note/coffee"]),
        (Search::text("green morning"), &["other"]),
        (Search::text("tea unicorn"), &["note/tea"]),
        (Search::text("after"), &["note/tea"]),
        (Search::text("\"green tea\""), &["note/tea"]),
        (Search::text("unicorn"), &[]),
        (Search::text("* \" ( NEAR"), &[]),
    ];
    for (search, expected) in table {
        let found = memory.search("cook", &search, 9).await.expect("a memory searches");
        let keys: Vec<&str> = found.iter().map(|found| &*found.key).collect();
        assert_eq!(keys, expected, "{search:?}");
        for found in found {
            assert_eq!(found.value, all(memory, "cook").await[&found.key], "{search:?}");
        }
    }
    let every = Search::keys("");
    let found = memory.search("cook", &every, 2).await.expect("a memory searches");
    assert_eq!(found.len(), 2, "no more is found than was wanted");
    let found = memory.search("clerk", &Search::text("tea"), 9).await.expect("a memory searches");
    assert!(found.is_empty(), "nothing is found in the memory of another agent");
}

async fn all<M: Memory + ?Sized>(memory: &M, agent: &str) -> BTreeMap<String, Value> {
    memory.load(agent).await.expect("a memory loads")
}

fn values<const N: usize>(values: [(&str, Value); N]) -> BTreeMap<String, Value> {
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

#[cfg(test)]
mod tests {
    use tenure_core::memory::InMemory;

    #[tokio::test]
    async fn the_memory_of_a_process_keeps_what_memories_promise() {
        super::memory(&InMemory::new()).await;
    }
}
