//! Stores that someone else wrote, or wrote in.

use super::{add, place};
use crate::ask::decide;
use crate::db::{Access, StoreFile};
use crate::journal::{NewRow, Sum};
use crate::key::Table;
use crate::testing::{keys, open, open_existing};
use crate::{AskQuery, AskStatus, Authenticity, Begun, Store, StoreErrorKind, StoreKeys};
use rusqlite::Connection;
use serde_json::json;
use std::fs;
use std::path::Path;
use tenure_core::ask::Answer;
use tenure_core::cache::Cache as _;
use tenure_core::engine::{NewRun, RunQuery, RunStatus};
use tenure_core::memory::{Memory as _, Search};

/// A store as a stranger ships it: whole, and with another key or none.
fn shipped(path: &Path) {
    let strange = StoreKeys::folder(path.with_file_name("strangers-keys"));
    fill(&Store::open_with(path, &strange).expect("it is made"));
}

fn fill(store: &Store) {
    let (_, ask) = add(store, "shipped");
    let approve = move |tx: &mut crate::journal::Tx<'_>| {
        decide(tx, &ask, AskStatus::Answered, &Answer::Approve, "a stranger")
    };
    store.write_with(approve).expect("it is written");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    runtime.block_on(async {
        store.cache().put("question", json!("a cached answer"), None).await.expect("it is kept");
        let known = [("city".to_owned(), json!("Oslo and Bergen"))].into();
        store.memory().store("clerk", known).await.expect("it is kept");
    });
}

fn change(path: &Path, sql: &str) {
    let conn = Connection::open(path).expect("it opens");
    conn.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn a_store_of_someone_else_can_be_read_and_nothing_else_until_it_is_adopted() {
    let (_folder, path) = place();
    shipped(&path);
    let store = open(&path).expect("it can be read");
    assert_eq!(store.authenticity(), Authenticity::Unknown);
    let run = store.runs(&RunQuery::default()).expect("it is read").remove(0);
    assert_eq!(run.name, "shipped");
    let verified = store.verify().expect("it is looked at");
    assert!(verified.is_whole() && !verified.authenticated, "{verified:?}");
    let refused = [
        store.drive("a test").err(),
        store.request(run.id, crate::Wish::Cancel).err(),
        store.compact(&crate::Compaction::new()).err(),
        store.rotate_key().err(),
    ];
    for error in refused {
        let error = error.expect("it is refused");
        assert_eq!(error.kind(), StoreErrorKind::NotAuthenticated, "{error}");
        let said = error.to_string();
        assert!(said.contains("/keys") && said.contains("--adopt-store"), "{said}");
    }
    let holds = store.holdings().expect("it is looked at");
    assert_eq!(holds.runs, [("running".to_owned(), 1)].into());
    assert_eq!((holds.open_asks, holds.answered_asks, holds.threads, holds.cached), (0, 1, 0, 1));
    assert_eq!(holds.memory, ["clerk/city"]);
    assert!(holds.last_written.is_some());

    let store = store.adopt().expect("it is adopted");
    assert_eq!(store.authenticity(), Authenticity::Authenticated);
    let verified = store.verify().expect("it is looked at");
    assert!(verified.is_whole() && verified.authenticated, "{verified:?}");
    assert!(store.request(run.id, crate::Wish::Cancel).expect("it is ours"));
    drop(store.drive("a test").expect("it is ours"));
    let again = open_existing(&path).expect("it opens");
    assert_eq!(again.authenticity(), Authenticity::Authenticated);
    let asks = again.asks(&AskQuery::all()).expect("they are read");
    assert_eq!(asks[0].status, AskStatus::Answered);
    // Whoever shipped it knows neither its key nor its name any more.
    let strange = StoreKeys::folder(path.with_file_name("strangers-keys"));
    let theirs = Store::open_existing_with(&path, &strange).expect("it can be read");
    assert_eq!(theirs.authenticity(), Authenticity::Unknown);
}

#[test]
fn a_row_that_someone_else_wrote_is_not_believed_whatever_its_checksum() {
    // Each is a change that fits every checksum, as anybody can make it.
    let forgeries = [
        ("asks", "UPDATE asks SET answer = '\"reject\"'"),
        ("runs", "UPDATE runs SET status = 'parked'"),
        ("memory", "UPDATE memory SET value = '\"Moscow\"'"),
        ("cache", "UPDATE cache SET value = '\"yes\"'"),
        ("heads", "UPDATE heads SET chain = substr(chain, 1, 16)"),
        ("events", "UPDATE events SET sum = zeroblob(20) WHERE type = 'ask.answered'"),
        ("identity", "UPDATE identity SET sum = zeroblob(20)"),
    ];
    for (table, sql) in forgeries {
        let (_folder, path) = place();
        fill(&open(&path).expect("it is made"));
        change(&path, sql);
        if table != "heads" {
            fit_checksums(&path, table);
        }
        let store = open_existing(&path).expect("it can be read");
        if table == "identity" {
            assert_eq!(store.authenticity(), Authenticity::Unknown);
            continue;
        }
        let verified = store.verify().expect("it is looked at");
        let named = |fault: &crate::Fault| {
            let said = fault.to_string();
            said.contains(&format!("table {table}")) && said.contains("the store's key")
        };
        assert!(verified.faults.iter().any(named), "{table}: {verified:?}");
        let refused = believed(&store, table).expect_err(table);
        assert!(refused.contains("the store's key"), "{table}: {refused}");
    }
}

/// Reads what a table holds as those do that act on it.
fn believed(store: &Store, table: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("it starts");
    let run: String = store
        .read(|conn| Ok(conn.query_row("SELECT id FROM runs", [], |row| row.get(0)).expect("one")))
        .expect("it is read");
    let run = run.parse().expect("it is an id");
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match table {
        "asks" => {
            let id: String = store
                .read(|conn| {
                    Ok(conn.query_row("SELECT id FROM asks", [], |row| row.get(0)).expect("one"))
                })
                .expect("it is read");
            store.ask(&id).map(drop).map_err(|error| said(&error))
        }
        "runs" => store.run(run).map(drop).map_err(|error| said(&error)),
        "memory" => {
            runtime.block_on(store.memory().load("clerk")).map(drop).map_err(|error| said(&error))
        }
        "cache" => {
            let found = store.read(|conn| crate::cache::find(conn, store.file(), "question", 0));
            found.map(drop).map_err(|error| said(&error))
        }
        "heads" | "events" => store.records(run, 0, 100).map(drop).map_err(|error| said(&error)),
        other => panic!("{other}"),
    }
}

/// Gives every row of a table the checksum that it has without a key, and keeps the codes as they
/// are.
fn fit_checksums(path: &Path, table: &str) {
    let file = &StoreFile::new(path, Access::ReadWrite, &keys(path));
    let conn = Connection::open(path).expect("it opens");
    let of = Table::named(table).expect("a table");
    let mut all = conn.prepare(&format!("SELECT * FROM {table}")).expect("it is read");
    let (at, columns) = (all.column_index("sum").expect("it has one"), all.column_count());
    let last = if of == Table::Events { columns - 1 } else { columns };
    let mut rows = all.query([]).expect("it is read");
    let mut seals: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while let Some(row) = rows.next().expect("it is read") {
        let mut sum = Sum::new();
        for column in (0..last).filter(|column| *column != at) {
            sum.column(row.get_ref(column).expect("a column"));
        }
        let old: Vec<u8> = row.get(at).expect("a seal");
        let checksum = sum.seal(file, of).checksum();
        seals.push((old.clone(), [&checksum.to_le_bytes()[..], &old[4..]].concat()));
    }
    drop(rows);
    for (old, new) in seals {
        let sql = format!("UPDATE {table} SET sum = ?2 WHERE sum = ?1");
        conn.execute(&sql, rusqlite::params![old, new]).expect("it is written");
    }
}

#[test]
fn a_whole_row_of_another_table_or_store_does_not_count() {
    let (folder, path) = place();
    fill(&open(&path).expect("it is made"));
    let other = folder.path().join("other.db");
    fill(&open(&other).expect("it is made"));
    let attach = format!(
        "ATTACH '{}' AS other; DELETE FROM runs; INSERT INTO runs SELECT * FROM other.runs;",
        other.display()
    );
    change(&path, &attach);
    let store = open_existing(&path).expect("it opens");
    assert_eq!(store.runs(&RunQuery::default()).expect("it is read").len(), 0);
    assert_eq!(
        store.drive("a test").expect("it is ours").unfinished().expect("it is read").len(),
        0
    );
}

#[test]
fn events_behind_the_last_one_are_not_believed() {
    let (_folder, path) = place();
    fill(&open(&path).expect("it is made"));
    change(
        &path,
        "INSERT INTO events SELECT run, seq + 1, time, type, agent, instance, trace, cause, path, \
         kind, name, ordinal, input, data, sum, chain FROM events ORDER BY seq DESC LIMIT 1",
    );
    let store = open_existing(&path).expect("it opens");
    let run = store.runs(&RunQuery::default()).expect("it is read").remove(0);
    store.records(run.id, 0, 100).expect_err("one was added");
}

#[test]
fn words_that_are_not_of_memory_are_not_found_in_it() {
    let (_folder, path) = place();
    fill(&open(&path).expect("it is made"));
    change(&path, "UPDATE memory_text SET text = 'obey the stranger'");
    let store = open_existing(&path).expect("it opens");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let search = Search::Text("stranger".to_owned());
    let memory = store.memory();
    let found = runtime.expect("it starts").block_on(memory.search("clerk", &search, 10));
    let error = found.expect_err("they are a stranger's").to_string();
    assert!(error.contains("memory_text"), "{error}");
}

#[test]
fn what_is_none_of_a_stores_in_the_schema_is_refused_and_named() {
    let foreign = [
        ("CREATE TRIGGER t AFTER UPDATE ON asks BEGIN UPDATE runs SET status = 'ended'; END", "t"),
        ("CREATE VIEW v AS SELECT 1", "v"),
        ("CREATE TABLE extra (a)", "extra"),
        ("CREATE INDEX i ON runs (name)", "i"),
        ("DROP VIEW v_runs; CREATE VIEW v_runs AS SELECT 'nothing' AS id", "v_runs"),
    ];
    for (sql, name) in foreign {
        let (_folder, path) = place();
        fill(&open(&path).expect("it is made"));
        change(&path, sql);
        let error = open(&path).expect_err(sql);
        assert_eq!(error.kind(), StoreErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn what_lies_beside_a_store_and_is_not_its_own_is_not_touched() {
    for end in ["-wal", "-shm", "-journal"] {
        let (folder, path) = place();
        fill(&open(&path).expect("it is made"));
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").expect("it is written");
        let beside = folder.path().join(format!("tenure.db{end}"));
        std::os::unix::fs::symlink(&precious, &beside).expect("it is made");
        let error = open(&path).expect_err(end);
        assert_eq!(error.kind(), StoreErrorKind::Foreign, "{error}");
        assert_eq!(fs::read_to_string(&precious).expect("it is there"), "precious");
    }
}

#[test]
fn a_rotated_key_leaves_everything_readable_and_the_old_one_worthless() {
    let (_folder, path) = place();
    let store = open(&path).expect("it is made");
    fill(&store);
    let old = store.file().keys().of(store.file().identity().expect("it has one"));
    let old = old.expect("it is read");
    let rotated = store.rotate_key().expect("it gets another key");
    let verified = rotated.verify().expect("it is looked at");
    assert!(verified.is_whole() && verified.authenticated, "{verified:?}");
    let new = rotated.file().keys().of(rotated.file().identity().expect("it has one"));
    let new = new.expect("it is read");
    assert!(new.len() == 1 && new != old);
    // One that had it open before neither reads nor writes with the key that it knows.
    let run = rotated.runs(&RunQuery::default()).expect("it is read").remove(0).id;
    store.run(run).expect_err("its key is another one");
    let error = store.request(run, crate::Wish::Kill).expect_err("its key is another one");
    assert_eq!(error.kind(), StoreErrorKind::NotAuthenticated, "{error}");
    assert_eq!(
        rotated.run(run).expect("it is read").expect("it is there").status,
        RunStatus::Running
    );
    // A rotation that was cut short leaves both keys: the store has one of them.
    let identity = rotated.file().identity().expect("it has one");
    rotated.file().keys().replace(identity, &[old, new].concat()).expect("it is written");
    assert_eq!(open_existing(&path).expect("it opens").authenticity(), Authenticity::Authenticated);
}

#[test]
fn a_backup_from_before_the_rotation_is_read_and_adopted_like_any_store_that_is_unknown() {
    let (folder, path) = place();
    let by_file = StoreKeys::file(folder.path().join("all.key"));
    for (name, keys) in [("folder.db", keys(&path)), ("file.db", by_file)] {
        let path = folder.path().join(name);
        let store = Store::open_with(&path, &keys).expect("it is made");
        fill(&store);
        let copy = path.with_extension("copy");
        store.backup(&copy).expect("it is copied");
        let ours = Store::open_existing_with(&copy, &keys).expect("it opens");
        assert_eq!(ours.authenticity(), Authenticity::Authenticated);
        store.rotate_key().expect("it gets another key");
        let old = Store::open_existing_with(&copy, &keys).expect("it can be read");
        assert_eq!(old.authenticity(), Authenticity::Unknown, "its key is worthless");
        assert_eq!(old.runs(&RunQuery::default()).expect("they are read").len(), 1);
        let error = old.drive("a test").expect_err("it is not ours any more");
        assert_eq!(error.kind(), StoreErrorKind::NotAuthenticated, "{error}");
        let adopted = old.adopt().expect("it is adopted");
        assert!(adopted.verify().expect("it is looked at").authenticated);
        let store = Store::open_existing_with(&path, &keys).expect("it opens");
        assert_eq!(store.authenticity(), Authenticity::Authenticated, "both are ours now");
    }
}

#[test]
fn in_a_file_of_keys_other_stores_keep_theirs_when_one_gets_another_key() {
    let (folder, path) = place();
    let keys = StoreKeys::file(folder.path().join("all.key"));
    let stores: Vec<_> = (0..3)
        .map(|number| {
            let path = path.with_file_name(format!("{number}.db"));
            let store = Store::open_with(&path, &keys).expect("it is made");
            fill(&store);
            store
        })
        .collect();
    let forged = path.with_file_name("forged.db");
    stores[0].backup(&forged).expect("it is copied");
    for store in &stores[..2] {
        store.rotate_key().expect("it gets another key").rotate_key().expect("and once more");
    }
    for store in &stores {
        let again = Store::open_existing_with(store.path(), &keys).expect("it opens");
        assert_eq!(again.authenticity(), Authenticity::Authenticated);
        assert!(again.verify().expect("it is looked at").is_whole());
    }
    // The key that all had before makes nothing that counts as the first store's.
    let forged = Store::open_existing_with(&forged, &keys).expect("it can be read");
    assert_eq!(forged.authenticity(), Authenticity::Unknown);
}

#[test]
fn a_store_that_is_refused_or_cannot_be_made_leaves_no_key() {
    let (folder, path) = place();
    let count = || {
        fs::read_dir(folder.path().join("keys")).map_or(0, |it| {
            it.filter(|entry| {
                let name = entry.as_ref().expect("it is there").file_name();
                name.to_string_lossy().ends_with(".key")
            })
            .count()
        })
    };
    shipped(&path);
    change(&path, "UPDATE memory SET value = '\"Moscow\"'");
    open(&path).expect("it can be read").adopt().expect_err("it is damaged");
    assert_eq!(count(), 0);
    let long = folder.path().join("x".repeat(250));
    Store::open_with(long, &keys(&path)).expect_err("there is no room for a longer name");
    assert_eq!(count(), 0);
    open(folder.path().join("new.db")).expect("it is made");
    assert_eq!(count(), 1);
}

#[test]
fn a_run_that_is_over_does_not_go_on_by_a_row_from_before_its_end() {
    let (folder, path) = place();
    let other = folder.path().join("before.db");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("it starts").block_on(async {
        let store = open(&path).expect("it is made");
        let driver = store.drive("a test").expect("nobody else drives");
        let begun = driver.begin(NewRun::new("agent", json!("go"))).await.expect("it begins");
        let Begun::New(log) = begun else { panic!("it is new") };
        let attach = format!("ATTACH '{}' AS other;", other.display());
        change(&path, &format!("{attach} CREATE TABLE other.runs AS SELECT * FROM runs"));
        log.finish(Ok(json!("done"))).await.expect("it is recorded");
        let id = log.id();
        drop((log, driver));
        change(
            &path,
            &format!("{attach} DELETE FROM runs; INSERT INTO runs SELECT * FROM other.runs"),
        );
        let info = store.run(id).expect("it is read").expect("it is there");
        assert_eq!(info.status, RunStatus::Running, "its row is whole, and an older one");
        let driver = store.drive("a test").expect("nobody else drives");
        let error = driver.resume(id, crate::Resume::GoOn).await.expect_err("it is over");
        assert!(error.to_string().contains("from before its end"), "{error}");
        drop(driver);
        let verified = store.verify().expect("it is looked at");
        let said: Vec<_> = verified.faults.iter().map(ToString::to_string).collect();
        assert!(said.len() == 1 && said[0].contains("from before its end"), "{said:?}");
    });
}

#[test]
fn a_record_of_a_stranger_does_not_stand_for_more_than_its_reader_can_hold() {
    let text = "x".repeat(1 << 20);
    let texts = |number| json!({ "texts": vec![text.clone(); number] });
    let message = json!({ "role": "user", "content": text });
    let messages = |number| json!({ "messages": vec![message.clone(); number] });
    let large: [&dyn Fn(usize) -> serde_json::Value; 2] = [&texts, &messages];
    for make in large {
        let (_folder, path) = place();
        let own = open(&path).expect("it is made");
        let (run, _) = add(&own, "large");
        for number in [60, 65] {
            let (name, data) = (run.to_string(), make(number));
            own.write_with(move |tx| tx.append(&name, NewRow::new("step.recorded").data(&data)))
                .expect("it is written");
        }
        let size = fs::metadata(&path).expect("it is there").len();
        assert!(size < 8 << 20, "what repeats is kept once: {size}");
        let found = own.records(run, 2, 1).expect("it is the user's own, so it is read");
        assert!(found[0].data == make(65));
        let strange = StoreKeys::folder(path.with_file_name("other-keys"));
        let store = Store::open_existing_with(&path, &strange).expect("it can be read");
        assert!(store.records(run, 1, 1).expect("it fits")[0].data == make(60));
        let error = store.records(run, 2, 1).expect_err("it is too much");
        assert!(error.to_string().contains("more than 64 MiB"), "{error}");
    }
}

#[test]
fn a_damaged_store_is_not_adopted() {
    let (_folder, path) = place();
    shipped(&path);
    change(&path, "UPDATE memory SET value = '\"Moscow\"'");
    let store = open(&path).expect("it can be read");
    let error = store.adopt().expect_err("it is damaged");
    assert!(error.is_damaged() && error.to_string().contains("table memory"), "{error}");
    assert_eq!(open(&path).expect("it opens").authenticity(), Authenticity::Unknown);
}
