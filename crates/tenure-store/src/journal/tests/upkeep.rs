//! Checking, copying and compacting a file.

use super::*;
use crate::{Compaction, Fault};
use rusqlite::Connection;
use std::fs;
use std::time::Duration;

/// A store with a run that is over, one that is not, and content that is kept apart.
fn filled() -> (Place, RunId, RunId) {
    let place = Place::new();
    let driving = place.drive();
    let (over, open) = (RunId::unique(), RunId::unique());
    let writer = driving.writer();
    let long = |name: &str| {
        json!({ "value": { "text": name.repeat(5000), "messages": [
        { "role": "user", "content": name.repeat(600) }, { "role": "assistant", "content": "so" },
    ] } })
    };
    for (run, name, status, ended) in
        [(over, "over", "ended", Some(5)), (open, "open", "running", None)]
    {
        let key = StepKey::new("turn", "tool", "read", 0, 7);
        writer.send(Box::new(move |tx| known(tx, run, status, ended)));
        writer.send(append(run, NewRow::new("run.started")));
        writer.send(append(run, scope("scope.began", "turn:")));
        writer.send(append(run, NewRow::step(&key, &long(name))));
        (1..20).for_each(|number| writer.send(append(run, step(number))));
    }
    writer.send(append(over, scope("scope.ended", "turn:")));
    writer.commit_blocking(append(over, NewRow::new("run.ended"))).expect("it is written");
    drop(driving);
    (place, over, open)
}

/// Changes the file behind the store's back.
fn tamper(place: &Place, sql: &str) -> Vec<Fault> {
    let conn = Connection::open(place.store.path()).expect("it opens");
    let changed = conn.execute(sql, []).expect("it is changed");
    assert!(changed > 0, "nothing was changed by {sql}");
    drop(conn);
    place.store.verify().expect("it can be looked at").faults
}

#[test]
fn a_file_that_is_whole_is_found_so() {
    let (place, ..) = filled();
    let verified = place.store.verify().expect("it can be looked at");
    assert_eq!(verified.faults, []);
    assert_eq!((verified.runs, verified.events), (2, 22 + 24));
}

#[test]
fn every_sort_of_damage_is_found_and_named() {
    for (sql, table, said) in [
        ("UPDATE events SET data = '{}' WHERE seq = 7", "events", "row 7"),
        ("UPDATE events SET time = time + 1 WHERE seq = 9", "events", "row 9"),
        ("UPDATE events SET chain = zeroblob(16) WHERE seq = 4", "events", "row 4"),
        ("DELETE FROM events WHERE seq = 5", "events", "row 5"),
        ("DELETE FROM events WHERE type = 'run.ended'", "events", "row 24"),
        ("DELETE FROM heads", "events", "table heads"),
        ("UPDATE heads SET seq = seq - 1", "events", "heads"),
        ("UPDATE runs SET lives = 3", "runs", "checksum"),
        ("DELETE FROM runs WHERE status = 'running'", "events", "not in table runs"),
        ("UPDATE blobs SET body = 'x' || body", "blobs", "another"),
        ("DELETE FROM blobs WHERE body LIKE 'over%'", "blobs", "missing"),
        ("DELETE FROM messages", "messages", "missing"),
        ("UPDATE messages SET body = '[]'", "messages", "other"),
    ] {
        let (place, ..) = filled();
        let faults = tamper(&place, sql);
        let named = |fault: &&Fault| {
            fault.table.as_deref() == Some(table) && fault.to_string().contains(said)
        };
        assert!(faults.iter().any(|fault| named(&fault)), "{sql}: {faults:#?}");
    }
}

#[test]
fn a_scope_that_never_ended_in_a_run_that_is_over_is_found() {
    let (place, over, _) = filled();
    let driving = place.drive();
    driving.writer().send(append(over, scope("scope.began", "turn:2")));
    driving
        .writer()
        .commit_blocking(append(over, NewRow::new("run.ended")))
        .expect("it is written");
    let faults = place.store.verify().expect("it can be looked at").faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].to_string().contains("scope turn:2: the run is over, but it never ended"));
}

#[test]
fn an_end_is_recorded_once_and_a_second_one_refused() {
    let (place, over, _) = filled();
    let second = place.store.write(append(over, scope("scope.ended", "turn:")));
    second.expect_err("there is one already");
    assert!(place.store.verify().expect("it can be looked at").is_whole());
}

#[test]
fn what_is_changed_behind_our_back_is_never_read_as_if_it_were_written() {
    let (place, over, _) = filled();
    tamper(&place, "UPDATE events SET data = replace(data, 'answer', 'anwser') WHERE seq = 12");
    let error = place.store.records(over, 0, usize::MAX).expect_err("it is damaged");
    assert_eq!(error.kind(), StoreErrorKind::Damaged);
    assert!(error.to_string().contains(&format!("row 12 of run {over}")), "{error}");
    assert_eq!(place.store.records(over, 0, 11).expect("before it all is well").len(), 11);
}

#[test]
fn a_backup_is_a_whole_store_and_never_takes_the_place_of_a_file() {
    let (place, over, open) = filled();
    let driving = place.drive();
    let copy = place.path("copy.db");
    let size = place.store.backup(&copy).expect("it is copied while somebody drives");
    assert_eq!(size, fs::metadata(&copy).expect("it is there").len());
    drop(driving);
    let copied = crate::testing::open_existing(&copy).expect("it opens");
    assert!(copied.verify().expect("it can be looked at").is_whole());
    for run in [over, open] {
        let all = place.store.records(run, 0, usize::MAX).expect("they are read");
        assert_eq!(copied.records(run, 0, usize::MAX).expect("they are read"), all);
    }
    fs::write(place.path("mine"), "mine").expect("it is written");
    let error = place.store.backup(place.path("mine")).expect_err("it is taken");
    assert!(error.to_string().contains("there is such a file already"), "{error}");
    assert_eq!(fs::read(place.path("mine")).expect("it is there"), b"mine");
    let names: Vec<_> = fs::read_dir(place.folder.path())
        .expect("it is a folder")
        .map(|entry| entry.expect("it is there").file_name())
        .filter(|name| name.to_string_lossy().contains("part"))
        .collect();
    assert!(names.is_empty(), "{names:?} is left");
}

#[test]
fn compacting_takes_what_is_over_and_old_and_leaves_what_is_not_over() {
    let (place, over, open) = filled();
    let before = place.store.records(open, 0, usize::MAX).expect("they are read");
    let hour = Duration::from_secs(3600);
    let kept =
        place.store.compact(&Compaction::new().older_than(hour).keep_last(1)).expect("it goes");
    assert_eq!((kept.runs, kept.events, kept.texts, kept.lists), (0, 0, 0, 0));
    let gone = place.store.compact(&Compaction::new().older_than(hour)).expect("it goes");
    assert_eq!((gone.runs, gone.events, gone.texts, gone.lists), (1, 24, 2, 1));
    assert!(gone.bytes_won() > 20_000, "{gone:?}");
    assert_eq!(place.store.records(over, 0, usize::MAX).expect("there are none"), []);
    assert_eq!(place.store.records(open, 0, usize::MAX).expect("they are read"), before);
    assert!(place.store.verify().expect("it can be looked at").is_whole());
    let _driving = place.drive();
    let error = place.store.compact(&Compaction::new()).expect_err("somebody drives");
    assert_eq!(error.kind(), StoreErrorKind::Driven);
}
