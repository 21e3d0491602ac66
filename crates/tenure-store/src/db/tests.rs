//! Files as they are made, and files that are not what they were.

mod forged;

use crate::ask::{NewAsk, open};
use crate::runs::{self, RunRow};
use crate::{AskQuery, Store, StoreErrorKind};
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;
use tenure_core::RunId;
use tenure_core::ask::{Ask, PendingAsk};
use tenure_core::engine::{NewRun, RunQuery};
use tenure_core::step::StepKey;

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tenure.db");
    (folder, path)
}

fn mode(path: &Path) -> u32 {
    let file = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.permissions().mode() & 0o777
}

/// A run with a question.
fn add(store: &Store, name: &str) -> (RunId, String) {
    let run = NewRun::new("test", json!("in")).name(name);
    let key = StepKey::new("turn", "ask", name, 0, 0);
    let (id, ask) = (run.id, PendingAsk::new("clerk", Ask::input("Where to?")));
    let ask = NewAsk::new(store, id, &key, &ask).expect("it can be asked");
    let row = RunRow::new(&run, SystemTime::now());
    let added = store.write_with(move |tx| {
        runs::insert(tx, &row)?;
        open(tx, &ask)
    });
    added.expect("it is written");
    (id, key.id(id))
}

/// A store of some pages that nobody has open.
fn closed(path: &Path) {
    let store = crate::testing::open(path).expect("it is made");
    for number in 0..50 {
        add(&store, &format!("run {number}"));
    }
}

#[test]
fn what_is_new_is_for_its_owner_and_what_is_there_keeps_its_mode() {
    let (folder, path) = place();
    let store = crate::testing::open(&path).expect("it is made");
    let driver = store.drive("a test").expect("nobody else drives");
    add(&store, "one");
    let copy = folder.path().join("copy.db");
    store.backup(&copy).expect("it is copied");
    let names = ["tenure.db", "tenure.db-wal", "tenure.db-shm", "tenure.db.driver", "copy.db"];
    for name in names {
        assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}");
    }
    let entries = fs::read_dir(folder.path()).expect("it is a folder");
    let is_keys = |entry: &fs::DirEntry| entry.file_name() == "keys";
    let entries = entries.flatten().filter(|entry| !is_keys(entry));
    assert_eq!(entries.count(), names.len(), "nothing else is left");
    drop((driver, store));
    let driver = folder.path().join("tenure.db.driver");
    for path in [&path, &driver] {
        fs::set_permissions(path, Permissions::from_mode(0o640)).expect("they are set");
    }
    let store = crate::testing::open(&path).expect("it opens");
    let _driver = store.drive("a test").expect("nobody else drives");
    assert_eq!((mode(&path), mode(&driver)), (0o640, 0o640));
}

#[test]
fn a_link_to_where_nothing_is_yet_says_where_a_store_is_made() {
    let (folder, path) = place();
    std::os::unix::fs::symlink("elsewhere/it.db", &path).expect("it is linked");
    add(&crate::testing::open(&path).expect("it is made"), "one");
    assert_eq!(mode(&folder.path().join("elsewhere/it.db")), 0o600);
    assert!(path.is_symlink());
}

#[test]
fn many_that_make_a_store_at_once_make_one() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let store = crate::testing::open(path).expect("it opens");
                add(&store, &format!("run {number}"));
            });
        }
    });
    let store = crate::testing::open_existing(&path).expect("it is there");
    assert_eq!(store.runs(&RunQuery::default()).expect("they are read").len(), 8);
}

#[test]
fn an_empty_file_is_a_store_that_is_gone_and_no_new_one() {
    let (_folder, path) = place();
    fs::write(&path, "").expect("it is written");
    for opened in [crate::testing::open(&path), crate::testing::open_existing(&path)] {
        let error = opened.expect_err("there is nothing in it");
        assert_eq!(error.kind(), StoreErrorKind::Damaged);
        assert!(error.to_string().contains("it is empty: whatever was in it is gone"), "{error}");
    }
    assert_eq!(fs::read(&path).expect("it is there"), b"", "nothing was changed");
}

#[test]
fn what_is_no_database_is_no_store() {
    let (_folder, path) = place();
    for text in ["x", "a letter to somebody\n", &"name,amount\n".repeat(1000)] {
        fs::write(&path, text).expect("it is written");
        let error = crate::testing::open_existing(&path).expect_err("it is something else");
        assert_eq!(error.kind(), StoreErrorKind::Foreign, "{error}");
        assert!(error.to_string().contains("is no store"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
    }
}

#[test]
fn of_a_file_that_is_broken_is_said_what_to_do_and_not_to_check_it_again() {
    let (_folder, path) = place();
    closed(&path);
    let whole = fs::read(&path).expect("it is there");
    let broken = |from: usize, bytes: &[u8]| {
        let mut broken = whole.clone();
        broken[from..from + bytes.len()].copy_from_slice(bytes);
        broken
    };
    let mut refused = 0;
    let cases = [
        ("the first bytes", broken(0, b"XXXXXXXXXXXXXXXX")),
        ("the size of a page", broken(16, &[0xff, 0xff])),
        ("the schema", broken(100, &[0xff; 400])),
        ("all but 10 bytes", whole[..10].to_vec()),
        ("all but 50 bytes", whole[..50].to_vec()),
        ("all but the first page", whole[..4096].to_vec()),
        ("the second half", whole[..whole.len() / 2].to_vec()),
        ("the last page", whole[..whole.len() - 4096].to_vec()),
    ];
    for (what, bytes) in cases {
        fs::write(&path, bytes).expect("it is written");
        match crate::testing::open_existing(&path).and_then(|store| store.verify()) {
            Ok(verified) => {
                assert!(!verified.is_whole(), "{what}");
                for fault in &verified.faults {
                    assert!(!fault.to_string().contains("db verify"), "{what}: {fault}");
                }
            }
            Err(error) => {
                refused += 1;
                let said = error.to_string();
                assert_eq!(error.kind(), StoreErrorKind::Damaged, "{what}: {said}");
                assert!(!said.contains("db verify"), "{what}: {said}");
                assert!(said.contains("its runs cannot be read"), "{what}: {said}");
                assert!(said.contains("Put a backup in its place"), "{what}: {said}");
                for twice in ["malformed", "not a database", "is damaged"] {
                    assert!(said.matches(twice).count() < 2, "{what}: {said}");
                }
            }
        }
    }
    assert!(refused >= 5, "{refused}");
}

#[test]
fn a_damaged_row_does_not_hide_the_others() {
    let (_folder, path) = place();
    let store = crate::testing::open(&path).expect("it is made");
    let [one, two, three] = ["one", "two", "three"].map(|name| add(&store, name));
    // Nothing but the checksum, and a value of another type.
    let tamper = |sql: &str, id: &str| {
        let conn = rusqlite::Connection::open(&path).expect("it opens");
        assert_eq!(conn.execute(sql, [id]).expect("it is changed"), 1);
    };
    tamper("UPDATE runs SET name = 'three?' WHERE id = ?1", &three.0.to_string());
    tamper("UPDATE runs SET input = x'00ff' WHERE id = ?1", &two.0.to_string());
    tamper("UPDATE asks SET prompt = 'Where from?' WHERE id = ?1", &one.1);
    tamper("UPDATE asks SET created = 'then' WHERE id = ?1", &two.1);

    let mut query = RunQuery::default();
    let listed = |query: &RunQuery| -> Vec<RunId> {
        store.runs(query).expect("the others are read").iter().map(|info| info.id).collect()
    };
    assert_eq!(listed(&query), [one.0]);
    // The newest of those that are whole.
    query.limit = Some(1);
    assert_eq!(listed(&query), [one.0]);
    let asks = store.asks(&AskQuery::open()).expect("the others are read");
    assert_eq!(asks.iter().map(|ask| &ask.id).collect::<Vec<_>>(), [&three.1]);

    for run in [two.0, three.0] {
        assert!(store.run(run).expect_err("it is damaged").is_damaged());
    }
    for ask in [&one.1, &two.1] {
        assert!(store.ask(ask).expect_err("it is damaged").is_damaged());
    }
    let faults = store.verify().expect("it can be looked at").faults;
    let said: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let named = [("runs", two.0.to_string()), ("runs", three.0.to_string())];
    for (table, id) in named.into_iter().chain([("asks", one.1), ("asks", two.1)]) {
        let names = |said: &&String| said.contains(&format!("table {table}")) && said.contains(&id);
        assert!(said.iter().any(|said| names(&said)), "{table} {id}: {said:#?}");
    }
}
