//! What is on disk: how much, and what happens when there is no room.

use super::*;
use crate::journal::pack::{Parts, pack, unpack};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

fn bytes(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

/// The size of a store after so many steps.
fn grown(steps: usize, step: impl Fn(usize) -> NewRow) -> u64 {
    let place = Place::new();
    let driving = place.drive();
    let run = RunId::unique();
    for number in 0..steps {
        driving.writer().send(append(run, step(number)));
    }
    drop(driving);
    let empty: Job = Box::new(|_| Ok(Value::Null));
    place.store.write(empty).expect("it is written");
    let path = place.store.path().to_owned();
    assert_eq!(place.store.load(&run.to_string(), |_, _| true).expect("it is whole").len(), steps);
    let last = place.store.records(run, steps as u64 - 1, 1).expect("it is read");
    let expected = step(steps - 1).data.expect("it has some");
    let again = pack(&last[0].data);
    assert_eq!(again.text, expected.text);
    // The last one that closes the file moves the log into it.
    let folder = place.folder;
    drop(place.store);
    let size = bytes(&path);
    drop(folder);
    size
}

fn message(number: usize) -> Value {
    json!({ "role": "user", "content": format!("message {number}: {}", "word ".repeat(20)) })
}

#[test]
fn ten_times_the_steps_are_ten_times_the_bytes() {
    let (few, many) = (grown(200, step), grown(2000, step));
    assert!(many <= 11 * few, "{many} bytes after 2000 steps, {few} after 200");
}

#[test]
fn a_hook_that_edits_the_whole_conversation_at_each_step_does_not_square_the_file() {
    // An edit in front, in the middle, and a new message at the end: every time.
    let edited = |number: usize| {
        let mut messages: Vec<Value> = (0..number + 8).map(message).collect();
        messages[0] = json!({ "role": "system", "content": format!("it is step {number}") });
        messages[number / 2 + 1]["content"] = json!("left out");
        let key = StepKey::new("turn", "before_model", "trim", number as u32, number as u64);
        NewRow::step(&key, &json!({ "value": { "request": { "messages": messages } } }))
    };
    let (few, many) = (grown(60, edited), grown(600, edited));
    assert!(many <= 11 * few, "{many} bytes after 600 steps, {few} after 60");
}

#[test]
fn a_full_disk_is_a_clear_error_and_nothing_acknowledged_is_lost() {
    let place = Place::new();
    let driving = place.drive();
    let (run, writer) = (RunId::unique(), driving.writer());
    let limit = |pages: &'static str| -> Job {
        Box::new(move |tx| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            tx.conn().query_row(&sql, [], |_| Ok(())).explain(tx.path(), "limit the file")?;
            Ok(Value::Null)
        })
    };
    writer.commit_blocking(append(run, step(0))).expect("there is room");
    writer.commit_blocking(limit("1")).expect("it is limited to what there is");
    let mut acknowledged = 1;
    let error = loop {
        match writer.commit_blocking(append(run, step(acknowledged))) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 10_000, "it never gets full");
    };
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    for part in ["tenure.db", "append to the journal", "disk is full"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let again = writer.commit_blocking(append(run, step(acknowledged)));
    assert_eq!(again.expect_err("it still is").kind(), StoreErrorKind::Full);
    let records = place.store.records(run, 0, usize::MAX).expect("they are read");
    assert_eq!(records.len(), acknowledged);
    writer.commit_blocking(limit("1000000")).expect("somebody made room");
    writer.commit_blocking(append(run, step(acknowledged))).expect("and it goes on");
    let records = place.store.records(run, 0, usize::MAX).expect("they are read");
    assert_eq!(records.len(), acknowledged + 1);
}

#[derive(Default)]
struct Kept {
    texts: HashMap<String, String>,
    lists: HashMap<String, Vec<Value>>,
}

impl Parts for Kept {
    type Error = String;

    fn text(&mut self, hash: &str) -> Result<String, String> {
        self.texts.get(hash).cloned().ok_or_else(|| hash.to_owned())
    }

    fn messages(&mut self, hash: &str) -> Result<Vec<Value>, String> {
        self.lists.get(hash).cloned().ok_or_else(|| hash.to_owned())
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z$\"\\\\é]{0,8}".prop_map(Value::from),
        (4000_usize..5000).prop_map(|length| Value::from("x".repeat(length))),
    ];
    let key = prop_oneof!["[a-z$]{0,3}", Just("messages".to_owned()), Just("$blob".to_owned())];
    leaf.prop_recursive(5, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_taken_apart_is_put_together_again(value in any_json()) {
        use crate::journal::sum::hex;
        let packed = pack(&value);
        let mut kept = Kept::default();
        kept.texts.extend(packed.blobs.iter().map(|(hash, body)| (hex(hash), body.clone())));
        for list in &packed.lists {
            let bodies = list.bodies.iter().map(|body| serde_json::from_str(body).unwrap());
            kept.lists.insert(hex(&list.hash), bodies.collect());
        }
        let stored: Value = serde_json::from_str(&packed.text).unwrap();
        prop_assert_eq!(unpack(stored, &mut kept), Ok(value));
    }
}
