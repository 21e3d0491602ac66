use super::*;
use rusqlite::Connection;
use tempfile::TempDir;
use tenure_core::message::ToolCall;
use tenure_core::secret::Redactor;

fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path().join("tenure.db")).unwrap();
    (folder, store)
}

fn numbered(count: usize) -> History {
    (0..count).map(|n| Message::user(format!("message {n}"))).collect()
}

fn counts(store: &Store) -> (i64, i64) {
    let conn = Connection::open(store.path()).unwrap();
    let count = |table: &str| {
        conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    (count("blobs"), count("messages"))
}

#[tokio::test]
async fn a_conversation_comes_back_as_it_was() {
    let (folder, store) = new_store();
    let mut history = numbered(3);
    let calls = vec![ToolCall::new("c1", "look", r#"{"a":1}"#)];
    history.push(Message::Assistant { content: "".into(), calls });
    history.push(Message::system("{\"$messages\":\"not a reference\"}"));
    let run = RunId::unique();
    let threads = store.threads().in_run(run).for_user("ada");
    threads.save("t", "clerk", &history).await.unwrap();
    threads.save("empty", "clerk", &History::new()).await.unwrap();
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
    assert_eq!(other.load("t", "clerk").unwrap(), Some(history.clone()));
    assert_eq!(other.load("empty", "clerk").unwrap(), Some(History::new()));
    assert_eq!(other.load("t", "cook").unwrap(), None);
    let info = &other.of("t").unwrap()[0];
    assert_eq!((info.length, info.run, info.user.as_deref()), (5, Some(run), Some("ada")));
    // Who saves without saying so does not take it over.
    other.save("t", "clerk", &history).await.unwrap();
    assert_eq!(threads.of("t").unwrap()[0].run, Some(run));
}

#[tokio::test]
async fn ten_messages_more_are_ten_rows_more_and_what_was_said_is_not_read() {
    let (folder, store) = new_store();
    let threads = store.threads();
    let mut history = numbered(10_000);
    threads.save("t", "clerk", &history).await.unwrap();
    assert_eq!(counts(&store), (10_000, 1));
    // If an old message were read, it would be noticed.
    let conn = Connection::open(store.path()).unwrap();
    conn.execute("UPDATE blobs SET body = '\"gone\"'", []).unwrap();
    history.extend((0..10).map(|n| Message::assistant(format!("answer {n}"))));
    threads.save("t", "clerk", &history).await.unwrap();
    assert_eq!(counts(&store), (10_010, 2));
    let size: i64 = conn
        .query_row("SELECT length(body) FROM messages ORDER BY rowid DESC", [], |row| row.get(0))
        .unwrap();
    assert!(size < 1_000, "the list is said by the one before it, in {size} bytes");
    // A process that has not seen the conversation hashes it, and reads nothing either.
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
    history.push(Message::user("one more"));
    other.save("t", "clerk", &history).await.unwrap();
    assert_eq!(counts(&store), (10_011, 3));
    assert!(threads.load("t", "clerk").unwrap_err().is_damaged());
}

#[tokio::test]
async fn a_history_that_was_edited_or_cut_is_kept_as_it_is_now() {
    let (folder, store) = new_store();
    let threads = store.threads();
    let whole = numbered(50);
    threads.save("t", "clerk", &whole).await.unwrap();
    let mut edited = whole.truncated(20);
    edited.push(Message::user("something else"));
    let summary: History = [Message::system("what was said before")]
        .into_iter()
        .chain(edited.iter().cloned())
        .collect();
    for history in [edited, summary, whole.truncated(3), History::new(), whole] {
        threads.save("t", "clerk", &history).await.unwrap();
        let other =
            crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
        assert_eq!(other.load("t", "clerk").unwrap(), Some(history));
    }
}

#[tokio::test]
async fn what_another_process_saved_meanwhile_is_noticed() {
    let (folder, store) = new_store();
    let threads = store.threads();
    let mut history = numbered(30);
    threads.save("t", "clerk", &history).await.unwrap();
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
    other.save("t", "clerk", &numbered(2)).await.unwrap();
    // As if what nobody refers to had been cleared away.
    let conn = Connection::open(store.path()).unwrap();
    conn.execute("DELETE FROM blobs WHERE body LIKE '%message 2_%'", []).unwrap();
    history.push(Message::user("more"));
    threads.save("t", "clerk", &history).await.unwrap();
    let read = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
    assert_eq!(read.load("t", "clerk").unwrap(), Some(history));
}

#[tokio::test]
async fn the_latest_conversation_is_the_one_in_which_something_was_said_last() {
    let (_folder, store) = new_store();
    let threads = store.threads();
    assert_eq!(threads.latest(None).unwrap(), None);
    for (thread, agent) in [("a", "clerk"), ("b", "clerk"), ("b", "cook"), ("a", "clerk")] {
        threads.save(thread, agent, &numbered(1)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let names = |list: Vec<ThreadInfo>| -> Vec<String> {
        list.into_iter().map(|info| format!("{}/{}", info.thread, info.agent)).collect()
    };
    assert_eq!(names(threads.list(9).unwrap()), ["a/clerk", "b/cook", "b/clerk"]);
    assert_eq!(threads.list(1).unwrap().len(), 1);
    assert_eq!(threads.latest(Some("cook")).unwrap().unwrap().thread, "b");
    assert_eq!(threads.latest(None).unwrap().unwrap().thread, "a");
    assert_eq!(names(threads.of("b").unwrap()), ["b/cook", "b/clerk"]);
    assert_eq!(threads.forget("b").await.unwrap(), 2);
    assert_eq!(threads.load("b", "cook").unwrap(), None);
    assert_eq!(threads.list(9).unwrap().len(), 1);
    // Said again after it was forgotten.
    threads.save("b", "cook", &numbered(4)).await.unwrap();
    assert_eq!(threads.load("b", "cook").unwrap(), Some(numbered(4)));
}

#[tokio::test]
async fn no_secret_is_kept_and_a_row_that_was_tampered_with_is_not_believed() {
    let (folder, store) = new_store();
    let store = store.redact_with(&Redactor::of(["hunter2"]));
    let threads = store.threads();
    let mut history = numbered(1);
    history.push(Message::user("hunter2"));
    threads.save("t", "clerk", &history).await.unwrap();
    history.push(Message::user("more"));
    threads.save("t", "clerk", &history).await.unwrap();
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap().threads();
    let loaded = other.load("t", "clerk").unwrap().unwrap();
    assert_eq!((loaded.len(), loaded.get(1).unwrap().text()), (3, "[redacted]"));

    let conn = Connection::open(store.path()).unwrap();
    conn.execute("UPDATE threads SET length = 2", []).unwrap();
    assert!(other.load("t", "clerk").unwrap_err().is_damaged());
    assert!(other.list(9).unwrap_err().is_damaged());
}
