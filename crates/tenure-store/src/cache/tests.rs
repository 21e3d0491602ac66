use super::*;
use crate::{Compaction, StoreErrorKind};
use rusqlite::Connection;
use serde_json::json;
use std::path::PathBuf;
use std::thread::sleep;
use tempfile::TempDir;
use tenure_core::secret::Redactor;

fn new_store() -> (TempDir, PathBuf, Store) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure.db");
    let store = crate::testing::open(&path).unwrap();
    (folder, path, store)
}

const SOON: Option<Duration> = Some(Duration::from_millis(40));
const LATER: Option<Duration> = Some(Duration::from_secs(600));

fn after_soon() {
    sleep(Duration::from_millis(60));
}

#[tokio::test]
async fn what_is_kept_is_there_in_another_process_until_it_is_over() {
    let (_folder, path, store) = new_store();
    let cache = store.cache();
    assert_eq!(cache.get("a").await.unwrap(), None);
    cache.put("a", json!({ "text": "yes" }), LATER).await.unwrap();
    cache.put("b", json!(1), SOON).await.unwrap();
    cache.put("c", json!(2), Some(Duration::MAX)).await.unwrap();
    let other = crate::testing::open_existing(&path).unwrap().cache();
    assert_eq!(other.get("a").await.unwrap(), Some(json!({ "text": "yes" })));
    assert_eq!(other.get("c").await.unwrap(), Some(json!(2)), "for ever is no overflow");
    after_soon();
    assert_eq!(other.get("b").await.unwrap(), None);
    // Another process writes, while this one drives the runs.
    let driver = store.drive("a test").unwrap();
    other.put("a", json!("newer"), None).await.unwrap();
    assert_eq!(cache.get("a").await.unwrap(), Some(json!("newer")));
    cache.put("a", json!("newest"), None).await.unwrap();
    assert_eq!(other.get("a").await.unwrap(), Some(json!("newest")));
    other.remove("a").await.unwrap();
    assert_eq!(cache.get("a").await.unwrap(), None);
    drop(driver);
}

#[tokio::test]
async fn the_oldest_goes_when_there_is_no_room_for_more() {
    let (_folder, _path, store) = new_store();
    let cache = store.cache().entries(3);
    for key in ["a", "b", "c"] {
        cache.put(key, json!(key), None).await.unwrap();
    }
    // What is written again is the newest.
    cache.put("a", json!("again"), None).await.unwrap();
    cache.put("d", json!("d"), None).await.unwrap();
    assert_eq!(cache.get("b").await.unwrap(), None);
    assert_eq!(cache.get("a").await.unwrap(), Some(json!("again")));
    assert_eq!(cache.used().unwrap().0, 3);

    let small = store.cache().bytes(40);
    small.put("e", json!("0123456789"), None).await.unwrap();
    small.put("f", json!("0123456789"), None).await.unwrap();
    small.put("g", json!("0123456789"), None).await.unwrap();
    let (entries, bytes) = small.used().unwrap();
    assert!(bytes <= 40, "{bytes} bytes");
    assert_eq!(entries, 3);
    assert_eq!(small.get("a").await.unwrap(), None);
    small.put("g", json!("x".repeat(50)), None).await.unwrap();
    assert_eq!(small.get("g").await.unwrap(), None, "neither the big one nor the one before it");
    assert_eq!(small.get("f").await.unwrap(), Some(json!("0123456789")));
}

#[tokio::test]
async fn what_is_over_goes_with_the_next_write_and_with_compaction() {
    let (_folder, _path, store) = new_store();
    let cache = store.cache();
    cache.put("a", json!(1), SOON).await.unwrap();
    after_soon();
    assert_eq!(cache.used().unwrap().0, 1);
    cache.put("c", json!(1), LATER).await.unwrap();
    assert_eq!(cache.used().unwrap().0, 1);
    cache.put("b", json!(1), SOON).await.unwrap();
    after_soon();
    let compacted = store.compact(&Compaction::new()).unwrap();
    assert_eq!((compacted.answers, cache.used().unwrap().0), (1, 1));
    assert_eq!(cache.get("c").await.unwrap(), Some(json!(1)));
    assert_eq!(store.compact(&Compaction::new()).unwrap().answers, 0);
}

#[tokio::test]
async fn no_secret_is_kept() {
    let (_folder, path, store) = new_store();
    let store = store.redact_with(&Redactor::of(["hunter2"]));
    let cache = store.cache();
    cache.put("a", json!({ "text": "fine" }), None).await.unwrap();
    cache.put("a", json!({ "text": "hunter2" }), None).await.unwrap();
    assert_eq!(cache.get("a").await.unwrap(), None, "neither the secret, nor what it replaced");
    drop((cache, store));
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let Ok(bytes) = std::fs::read(file.unwrap().path()) else { continue };
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    }
}

#[tokio::test]
async fn a_row_that_was_tampered_with_is_not_believed_and_can_be_replaced() {
    let (_folder, path, store) = new_store();
    let cache = store.cache();
    cache.put("a", json!("yes"), None).await.unwrap();
    cache.put("b", json!("yes"), None).await.unwrap();
    assert!(store.verify().unwrap().is_whole());
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE cache SET value = '\"no\"' WHERE key = 'a'", []).unwrap();
    let error = cache.get("a").await.unwrap_err();
    assert!(error.to_string().contains("its checksum is wrong"), "{error}");
    let raw = store.read(|conn| table::find(conn, store.file(), "a", 0)).unwrap_err();
    assert_eq!(raw.kind(), StoreErrorKind::Damaged);
    let verified = store.verify().unwrap();
    assert_eq!(verified.faults.len(), 1);
    assert_eq!(verified.faults[0].table.as_deref(), Some("cache"));
    assert_eq!(cache.get("b").await.unwrap(), Some(json!("yes")));
    cache.put("a", json!("again"), None).await.unwrap();
    assert_eq!(cache.get("a").await.unwrap(), Some(json!("again")));
    assert!(store.verify().unwrap().is_whole());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_at_once_keep_the_bound() {
    let (_folder, path, store) = new_store();
    let caches =
        [store.cache().entries(20), crate::testing::open(&path).unwrap().cache().entries(20)];
    let mut all = tokio::task::JoinSet::new();
    for (writer, cache) in caches.iter().cloned().enumerate() {
        for number in 0..60 {
            let cache = cache.clone();
            all.spawn(async move {
                let key = format!("{}", (number * 7 + writer) % 40);
                let value = json!({ "writer": writer, "key": key });
                cache.put(&key, value, LATER).await.unwrap();
                if let Some(found) = cache.get(&key).await.unwrap() {
                    assert_eq!(found["key"], key);
                }
            });
        }
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
    assert_eq!(caches[0].used().unwrap().0, 20);
    assert!(store.verify().unwrap().is_whole());
}
