mod crowd;

use super::*;
use crate::Store;
use crate::StoreErrorKind;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::RunId;
use tenure_core::ask::{Ask, PendingAsk};
use tenure_core::secret::Redactor;
use tenure_core::step::StepKey;

fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::testing::open(folder.path().join("tenure.db")).unwrap();
    (folder, store)
}

fn key(name: &str) -> StepKey {
    StepKey::new("turn", "ask", name, 0, 0)
}

fn put(store: &Store, run: RunId, name: &str, question: &PendingAsk) -> Opened {
    let ask = NewAsk::new(store, run, &key(name), question).unwrap();
    store.write_with(move |tx| open(tx, &ask)).unwrap()
}

/// Asks, and says the id.
fn asked(store: &Store, run: RunId, name: &str, ask: Ask) -> String {
    let opened = put(store, run, name, &PendingAsk::new("clerk", ask));
    assert!(matches!(opened, Opened::Open { .. }), "{opened:?}");
    key(name).id(run)
}

fn respond(text: &str) -> Answer {
    Answer::Respond(text.to_owned())
}

fn names(store: &Store, run: RunId) -> Vec<String> {
    store.records(run, 0, 100).unwrap().into_iter().map(|record| record.name).collect()
}

#[test]
fn the_first_answer_counts_and_the_second_is_told_which_one() {
    let (folder, store) = new_store();
    let run = RunId::unique();
    let id = asked(&store, run, "q", Ask::approval("Go?", json!({ "path": "a" })));
    // From somewhere else.
    let other = crate::testing::open_existing(folder.path().join("tenure.db")).unwrap();
    assert_eq!(other.answer(&id, Answer::Approve, "ada").unwrap(), Signalled::Accepted);
    let late = store.answer(&id, Answer::Reject("no".into()), "bob").unwrap();
    assert_eq!(late, Signalled::AlreadyDecided(Answer::Approve));

    let info = store.ask(&id).unwrap();
    assert_eq!((info.status, info.answer), (AskStatus::Answered, Some(Answer::Approve)));
    assert_eq!((info.by.as_deref(), &*info.agent), (Some("ada"), "clerk"));
    assert_eq!(info.action, Some(json!({ "path": "a" })));
    assert!(info.decided.unwrap() >= info.created);
    assert!(store.asks(&AskQuery::open()).unwrap().is_empty());
    assert_eq!(store.asks(&AskQuery::all()).unwrap().len(), 1);

    assert_eq!(names(&store, run), ["ask.opened", "ask.answered"]);
    let answered = &store.records(run, 1, 1).unwrap()[0];
    assert_eq!(answered.data["answer"], json!({ "decision": "approve" }));
    assert_eq!(answered.data["by"], "ada");
    assert_eq!(answered.data["action"], Value::from(info.action_hash));
}

#[test]
fn a_question_asked_again_in_another_life_is_the_same_one() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let ask = || Ask::input("Where to?").expires_after(Duration::from_secs(60));
    let id = asked(&store, run, "q", ask());
    let first = store.ask(&id).unwrap();
    // Another instance asks, and the time still counts from the first asking.
    match put(&store, run, "q", &PendingAsk::new("clerk", ask())) {
        Opened::Open { expires } => assert_eq!(expires, first.expires),
        opened => panic!("{opened:?}"),
    }
    assert_eq!(names(&store, run), ["ask.opened"]);
    // An answer that was given while nothing ran is there at the next start.
    assert_eq!(store.answer(&id, respond("Bern"), "ada").unwrap(), Signalled::Accepted);
    match put(&store, run, "q", &PendingAsk::new("clerk", ask())) {
        Opened::Decided(answer) => assert_eq!(answer, respond("Bern")),
        opened => panic!("{opened:?}"),
    }
}

#[test]
fn an_answer_never_counts_for_another_action() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let id = asked(&store, run, "q", Ask::approval("Delete?", json!({ "path": "a" })));
    store.answer(&id, Answer::Approve, "ada").unwrap();
    let other = PendingAsk::new("clerk", Ask::approval("Delete?", json!({ "path": "b" })));
    match put(&store, run, "q", &other) {
        Opened::Other(then) => assert_eq!(then.action, Some(json!({ "path": "a" }))),
        opened => panic!("{opened:?}"),
    }
}

#[test]
fn an_id_may_be_short_as_long_as_it_means_one() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let mut ids: Vec<String> = (0..40)
        .map(|n| asked(&store, run, &format!("q{n}"), Ask::input(format!("Number {n}?"))))
        .collect();
    ids.sort();
    let unique = |id: &str, length: usize| {
        ids.iter().filter(|other| other.starts_with(&id[..length])).count() == 1
    };
    let id = &ids[0];
    let short = (1..16).find(|length| unique(id, *length)).unwrap();
    assert_eq!(store.ask(&id[..short]).unwrap().id, *id);
    assert_eq!(store.answer(&id[..short], respond("x"), "ada").unwrap(), Signalled::Accepted);

    // 40 ids of 16 beginnings: two have the same.
    let twins = ids.windows(2).find(|pair| pair[0][..1] == pair[1][..1]).unwrap();
    let error = store.ask(&twins[0][..1]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);
    let said = error.to_string();
    assert!(
        said.contains(&*twins[0]) && said.contains(&*twins[1]) && said.contains("Number"),
        "{said}"
    );
    let error = store.answer(&twins[0][..1], respond("x"), "ada").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Ambiguous);

    for unknown in ["", "zzz", "%", "_", "0000000000000000ff"] {
        let error = store.ask(unknown).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unknown, "{unknown}");
        assert_eq!(store.answer(unknown, respond("x"), "ada").unwrap(), Signalled::Unknown);
    }
}

#[test]
fn an_answer_of_another_form_is_refused_and_the_question_stays_open() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let number = json!({ "type": "integer", "minimum": 1 });
    let id = asked(&store, run, "n", Ask::input("How many?").schema(number));
    for unfit in [respond("many"), respond("0"), Answer::Edit(json!("two"))] {
        let signalled = store.answer(&id, unfit, "ada").unwrap();
        assert!(matches!(signalled, Signalled::Unfit(_)), "{signalled:?}");
    }
    assert_eq!(store.ask(&id).unwrap().status, AskStatus::Open);
    assert_eq!(store.answer(&id, respond("3"), "ada").unwrap(), Signalled::Accepted);

    // An edited action has to be a call of the tool.
    let mut question = PendingAsk::new("clerk", Ask::approval("Send?", json!({ "to": "all" })));
    question.tool = Some("send".into());
    let parameters = json!({
        "type": "object", "required": ["to"], "properties": { "to": { "type": "string" } },
    });
    question.parameters = Some(Arc::new(parameters));
    put(&store, run, "e", &question);
    let id = key("e").id(run);
    match store.answer(&id, Answer::Edit(json!({ "to": 3 })), "ada").unwrap() {
        Signalled::Unfit(misfit) => assert_eq!(misfit.field, "to"),
        signalled => panic!("{signalled:?}"),
    }
    assert_eq!(store.ask(&id).unwrap().tool.as_deref(), Some("send"));
    let edited = Answer::Edit(json!({ "to": "Ada" }));
    assert_eq!(store.answer(&id, edited.clone(), "ada").unwrap(), Signalled::Accepted);
    assert_eq!(store.ask(&id).unwrap().answer, Some(edited));
}

#[test]
fn who_answers_too_late_finds_the_question_rejected() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let id = asked(&store, run, "q", Ask::input("Now?").expires_after(Duration::ZERO));
    let rejected = Answer::Reject("nobody answered in time".into());
    let late = store.answer(&id, respond("yes"), "ada").unwrap();
    assert_eq!(late, Signalled::AlreadyDecided(rejected.clone()));
    let info = store.ask(&id).unwrap();
    assert_eq!((info.status, info.answer), (AskStatus::Expired, Some(rejected.clone())));
    assert_eq!(names(&store, run), ["ask.opened", "ask.answered"]);

    // A run that asks again after that time goes on with the same.
    let id = asked(&store, run, "r", Ask::input("Now?").expires_after(Duration::ZERO));
    let again = PendingAsk::new("clerk", Ask::input("Now?").expires_after(Duration::ZERO));
    match put(&store, run, "r", &again) {
        Opened::Decided(answer) => assert_eq!(answer, rejected),
        opened => panic!("{opened:?}"),
    }
    let expired = store.write_with({
        let id = id.clone();
        move |tx| expire(tx, &id)
    });
    assert_eq!(expired.unwrap(), Some(rejected));
    assert_eq!(store.ask(&id).unwrap().status, AskStatus::Expired);
}

#[test]
fn a_question_that_has_time_left_does_not_expire() {
    let (_folder, store) = new_store();
    let run = RunId::unique();
    let id = asked(&store, run, "q", Ask::input("Now?").expires_after(Duration::from_secs(60)));
    let expired = store.write_with({
        let id = id.clone();
        move |tx| expire(tx, &id)
    });
    assert_eq!(expired.unwrap(), None);
    assert_eq!(store.answer(&id, respond("yes"), "ada").unwrap(), Signalled::Accepted);
}

#[test]
fn the_open_questions_of_one_run_are_taken_back_together() {
    let (_folder, store) = new_store();
    let (run, other) = (RunId::unique(), RunId::unique());
    let first = asked(&store, run, "a", Ask::input("One?"));
    let second = asked(&store, run, "b", Ask::input("Two?"));
    let kept = asked(&store, other, "a", Ask::input("Three?"));
    store.answer(&first, respond("1"), "ada").unwrap();
    let count = store.read(|conn| count_open(conn, store.file(), &run.to_string())).unwrap();
    assert_eq!(count, 1);
    let taken = store.write_with(move |tx| cancel_open(tx, run, "the run was cancelled")).unwrap();
    assert_eq!(taken, 1);
    let status = |id: &str| store.ask(id).unwrap().status;
    assert_eq!(status(&first), AskStatus::Answered);
    assert_eq!(status(&second), AskStatus::Cancelled);
    assert_eq!(status(&kept), AskStatus::Open);
    let late = store.answer(&second, respond("2"), "ada").unwrap();
    assert_eq!(late, Signalled::AlreadyDecided(Answer::Reject("the run was cancelled".into())));
    let of_run = AskQuery::all().run(other).limit(5);
    assert_eq!(store.asks(&of_run).unwrap()[0].id, kept);
    let decided = store.read(|conn| decision(conn, store.file(), &first)).unwrap();
    assert_eq!(decided, Some(respond("1")));
    let decided = store.read(|conn| decision(conn, store.file(), &kept)).unwrap();
    assert_eq!(decided, None);
}

#[test]
fn a_question_that_was_tampered_with_is_not_shown_and_takes_no_answer() {
    let (folder, store) = new_store();
    let run = RunId::unique();
    let id = asked(&store, run, "q", Ask::approval("Delete?", json!({ "path": "a" })));
    let conn = rusqlite::Connection::open(folder.path().join("tenure.db")).unwrap();
    let changed =
        conn.execute("UPDATE asks SET question = replace(question, '\"a\"', '\"/\"')", []);
    assert_eq!(changed.unwrap(), 1);
    assert!(store.ask(&id).unwrap_err().is_damaged());
    assert!(store.answer(&id, Answer::Approve, "ada").unwrap_err().is_damaged());
    let status: String = conn.query_row("SELECT status FROM asks", [], |row| row.get(0)).unwrap();
    assert_eq!(status, "open");
}

#[test]
fn no_secret_is_written_neither_of_the_question_nor_of_the_answer() {
    let (folder, store) = new_store();
    let store = store.redact_with(&Redactor::of(["hunter2"]));
    let run = RunId::unique();
    let action = json!({ "command": "login hunter2" });
    let id = asked(&store, run, "q", Ask::approval("Use hunter2?", action));
    let info = store.ask(&id).unwrap();
    assert_eq!(info.prompt, "Use [redacted]?");
    assert_eq!(info.action, Some(json!({ "command": "login [redacted]" })));
    store.answer(&id, respond("not hunter2"), "ada").unwrap();
    assert_eq!(store.ask(&id).unwrap().answer, Some(respond("not [redacted]")));
    drop(store);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let Ok(bytes) = std::fs::read(entry.unwrap().path()) else { continue };
        assert!(!bytes.windows(7).any(|window| window == b"hunter2"));
    }
}
