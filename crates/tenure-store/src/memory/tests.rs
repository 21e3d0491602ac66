use super::*;
use serde_json::json;
use tempfile::TempDir;
use tenure_core::memory::Read;
use tenure_core::secret::Redactor;

fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path().join("tenure.db")).unwrap();
    (folder, store)
}

fn changes<const N: usize>(values: [(&str, Value); N]) -> BTreeMap<String, Value> {
    values.map(|(key, value)| (key.to_owned(), value)).into()
}

/// One instance that reads, and writes later.
struct Instance<'a> {
    memory: &'a StoreMemory,
    id: &'static str,
    read: BTreeMap<String, Kept>,
}

impl<'a> Instance<'a> {
    async fn start(memory: &'a StoreMemory, id: &'static str) -> Self {
        Self { memory, id, read: memory.recall("clerk").await.unwrap() }
    }

    async fn write(&mut self, key: &str, value: Value) -> Result<Value, BoxError> {
        let read = self.read.get(key).cloned().map(Read::from).unwrap_or_default();
        let change = [(key.to_owned(), Write { value, read })].into();
        let kept = self.memory.commit("clerk", self.id, change).await?;
        let kept = kept[key].clone();
        self.read.insert(key.to_owned(), kept.clone());
        Ok(kept.value)
    }
}

#[test]
fn sqlite_is_built_with_full_text_search() {
    let conn = rusqlite::Connection::open_in_memory().unwrap();
    let built = "SELECT count(*) FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'";
    let count: i64 = conn.query_row(built, [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1, "SQLite is built without FTS5, so memory cannot be searched");
    conn.execute_batch("CREATE VIRTUAL TABLE words USING fts5 (text)").unwrap();
}

#[tokio::test]
async fn what_is_stored_is_there_in_another_process() {
    let (folder, store) = new_store();
    let memory = store.memory();
    let values = changes([("facts", json!({ "city": "Bern" })), ("history", json!([1, 2]))]);
    memory.store("clerk", values.clone()).await.unwrap();
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().memory();
    assert_eq!(other.load("clerk").await.unwrap(), values);
    assert!(other.load("cook").await.unwrap().is_empty());
    let memos = other.memos("clerk").unwrap();
    assert_eq!((&*memos[0].key, memos[0].version), ("facts", 1));
    assert!(memory.forget("clerk", "facts").await.unwrap());
    assert!(!memory.forget("clerk", "facts").await.unwrap());
    assert_eq!(other.load("clerk").await.unwrap().len(), 1);
    assert!(other.search("clerk", &Search::text("bern"), 5).await.unwrap().is_empty());
}

#[tokio::test]
async fn agents_and_users_do_not_see_each_others_memory() {
    let (_folder, store) = new_store();
    let memory = store.memory();
    let (ada, bob) = (memory.clone().for_user("ada"), memory.clone().for_user("bob"));
    ada.store("clerk", changes([("name", json!("Ada likes tea"))])).await.unwrap();
    memory.store("clerk", changes([("name", json!("nobody likes tea"))])).await.unwrap();
    // Names that would run into each other.
    memory.store("clerk/ada", changes([("name", json!("another agent"))])).await.unwrap();
    memory.store("clerk%2Fada", changes([("name", json!("a third one"))])).await.unwrap();
    assert!(bob.load("clerk").await.unwrap().is_empty());
    assert_eq!(ada.load("clerk").await.unwrap()["name"], "Ada likes tea");
    assert_eq!(memory.load("clerk").await.unwrap()["name"], "nobody likes tea");
    let found = ada.search("clerk", &Search::text("likes"), 9).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].value, "Ada likes tea");
    let names = ["clerk", "clerk%252Fada", "clerk%2Fada", "clerk/ada"];
    assert_eq!(memory.namespaces().unwrap(), names);
}

#[tokio::test]
async fn parallel_clones_keep_what_the_rule_of_the_key_says() {
    let (_folder, store) = new_store();
    let memory = store
        .memory()
        .rule("first", Rule::FirstWriter)
        .rule("facts/*", Rule::Merge)
        .rule("best", Rule::Max)
        .rule("cheapest", Rule::Min);
    let start = changes([
        ("last", json!(0)),
        ("first", json!(0)),
        ("facts/a", json!({ "old": 1, "both": [1] })),
        ("best", json!(0)),
        ("cheapest", json!(100)),
    ]);
    memory.store("clerk", start).await.unwrap();
    let mut one = Instance::start(&memory, "one").await;
    let mut two = Instance::start(&memory, "two").await;
    let table = [
        ("last", json!(1), json!(2), json!(2)),
        ("first", json!(1), json!(2), json!(1)),
        (
            "facts/a",
            json!({ "old": 1, "both": [1, 2], "one": true }),
            json!({ "old": 5, "both": [1, 3] }),
            json!({ "old": 5, "both": [1, 2, 3], "one": true }),
        ),
        ("best", json!(7), json!(3), json!(7)),
        ("cheapest", json!(7), json!(3), json!(3)),
        ("new", json!("a"), json!("b"), json!("b")),
    ];
    for (key, first, second, kept) in table {
        one.write(key, first).await.unwrap();
        let now = two.write(key, second).await.unwrap();
        assert_eq!(now, kept, "{key}");
        assert_eq!(memory.load("clerk").await.unwrap()[key], kept, "{key}");
        // Whoever is told what is there knows it, and may write what it wants.
        assert_eq!(two.write(key, json!("settled")).await.unwrap(), json!("settled"), "{key}");
    }
}

#[tokio::test]
async fn a_key_that_must_not_be_chosen_is_refused_and_the_others_are_stored() {
    let (_folder, store) = new_store();
    let memory = store.memory().rule("plan", Rule::Refuse);
    memory.store("clerk", changes([("plan", json!("A"))])).await.unwrap();
    let mut one = Instance::start(&memory, "one").await;
    let two = Instance::start(&memory, "two").await;
    one.write("plan", json!("B")).await.unwrap();
    let read = |key: &str| two.read.get(key).cloned().map(Read::from).unwrap_or_default();
    let changes = BTreeMap::from([
        ("other".to_owned(), Write::new("kept")),
        ("plan".to_owned(), Write { value: json!("C"), read: read("plan") }),
    ]);
    let error = memory.commit("clerk", "two", changes).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`plan` of clerk was changed meanwhile: \"A\" was read, \"B\" is there now (written by \
         one), so \"C\" was not stored; read it again and decide"
    );
    let conflict = error.downcast::<Conflict>().unwrap();
    assert_eq!((conflict.read, conflict.there), (Some(json!("A")), json!("B")));
    let now = memory.load("clerk").await.unwrap();
    assert_eq!((&now["plan"], &now["other"]), (&json!("B"), &json!("kept")));
    // Two that write the same are of one mind.
    let mut two = two;
    assert_eq!(two.write("plan", json!("B")).await.unwrap(), json!("B"));
}

#[tokio::test]
async fn whoever_writes_twice_is_not_in_conflict_with_itself() {
    let (_folder, store) = new_store();
    let memory = store.memory().rule("*", Rule::Refuse);
    let write = |value: &str| BTreeMap::from([("plan".to_owned(), Write::new(value))]);
    memory.commit("clerk", "one", write("A")).await.unwrap();
    memory.commit("clerk", "one", write("B")).await.unwrap();
    memory.commit("clerk", "two", write("C")).await.unwrap_err();
    assert_eq!(memory.load("clerk").await.unwrap()["plan"], "B");
}

#[tokio::test]
async fn words_are_found_best_first_with_where_they_stand() {
    let (_folder, store) = new_store();
    let memory = store.memory();
    let long = "The quick brown fox jumps over the lazy dog again and again until somebody in Zürich \
                serves it a cup of coffee and it sits down for the rest of the very long day";
    memory
        .store(
            "clerk",
            changes([
                ("drinks/coffee", json!({ "how": "black", "when": ["morning", "noon"] })),
                ("drinks/tea", json!("with milk, never coffee")),
                ("fox", json!(long)),
                ("number", json!(42)),
            ]),
        )
        .await
        .unwrap();
    let search = async |text: &str| memory.search("clerk", &Search::text(text), 9).await.unwrap();
    let keys = async |text: &str| -> Vec<String> {
        search(text).await.into_iter().map(|found| found.key).collect()
    };
    // In the key it counts more, in a long text less.
    let coffee = search("COFFEE").await;
    let order: Vec<&str> = coffee.iter().map(|found| &*found.key).collect();
    assert_eq!(order, ["drinks/coffee", "drinks/tea", "fox"]);
    assert!(coffee.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert_eq!(coffee[0].excerpt, "drinks/[coffee]");
    assert_eq!(coffee[1].excerpt, "with milk, never [coffee]");
    assert!(coffee[2].excerpt.contains("[coffee]") && coffee[2].excerpt.len() < long.len());
    assert_eq!(coffee[2].value, json!(long));

    assert_eq!(keys("milk coffee").await, ["drinks/tea"]);
    assert_eq!(keys("milk unicorn").await, ["drinks/tea"]);
    assert_eq!(keys("zurich").await, ["fox"]);
    assert_eq!(keys("morn").await, ["drinks/coffee"]);
    assert_eq!(keys("\"never coffee\"").await, ["drinks/tea"]);
    assert_eq!(keys("\"coffee never\"").await.len(), 0);
    assert_eq!(keys("42").await, ["number"]);
    assert_eq!(memory.search("clerk", &Search::text("coffee"), 1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn nothing_that_people_type_is_syntax() {
    let (_folder, store) = new_store();
    let memory = store.memory();
    memory.store("clerk", changes([("a", json!("NEAR or not, AND more"))])).await.unwrap();
    memory.clone().for_user("x").store("clerk", changes([("a", json!("secret"))])).await.unwrap();
    let typed = [
        "\"",
        "\"\"",
        "*",
        "a* OR",
        "NEAR(a b",
        "NOT",
        "a AND",
        "(",
        ")",
        "^a",
        "key:",
        "-a",
        "a + b",
        "{key}: x",
        "'; DROP TABLE memory; --",
        "\0",
        "%",
        "ns",
        "\u{2}",
        "a\u{301}",
        "🦀",
        "OR OR OR",
        "place : secret OR secret",
    ];
    for text in typed {
        let found = memory.search("clerk", &Search::text(text), 9).await;
        let found = found.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert!(found.iter().all(|found| found.value != "secret"), "{text:?}");
    }
    assert_eq!(memory.search("clerk", &Search::text("near AND"), 9).await.unwrap().len(), 1);
    assert_eq!(memory.search("clerk", &Search::keys("'"), 9).await.unwrap().len(), 0);
}

#[tokio::test]
async fn keys_are_found_by_how_they_begin_in_order() {
    let (_folder, store) = new_store();
    let memory = store.memory();
    let keys = ["b", "a/2", "a/10", "a/1", "a", "a\u{10ffff}", "A/1", "%"];
    let values = keys.map(|key| (key, json!(key)));
    memory.store("clerk", changes(values)).await.unwrap();
    let find = async |prefix: &str, limit| -> Vec<String> {
        let found = memory.search("clerk", &Search::keys(prefix), limit).await.unwrap();
        found.into_iter().map(|found| found.key).collect()
    };
    assert_eq!(find("a/", 9).await, ["a/1", "a/10", "a/2"]);
    assert_eq!(find("a", 9).await, ["a", "a/1", "a/10", "a/2", "a\u{10ffff}"]);
    assert_eq!(find("%", 9).await, ["%"]);
    assert_eq!(find("a/", 2).await, ["a/1", "a/10"]);
    assert_eq!(find("", 100).await.len(), keys.len());
}

#[tokio::test]
async fn a_memory_that_was_tampered_with_is_not_believed() {
    let (folder, store) = new_store();
    let memory = store.memory();
    memory.store("clerk", changes([("facts", json!("true"))])).await.unwrap();
    let conn = rusqlite::Connection::open(folder.path().join("tenure.db")).unwrap();
    assert_eq!(conn.execute("UPDATE memory SET value = '\"fals\"'", []).unwrap(), 1);
    let error = memory.load("clerk").await.unwrap_err();
    assert!(error.downcast::<StoreError>().unwrap().is_damaged());
    assert!(memory.search("clerk", &Search::text("true"), 9).await.is_err());
}

#[tokio::test]
async fn no_secret_is_remembered() {
    let (_folder, store) = new_store();
    let store = store.redact_with(&Redactor::of(["hunter2"]));
    let memory = store.memory();
    memory.store("clerk", changes([("facts", json!("hunter2"))])).await.unwrap();
    assert_eq!(memory.load("clerk").await.unwrap()["facts"], "[redacted]");
    assert!(memory.search("clerk", &Search::text("hunter2"), 9).await.unwrap().is_empty());
}
