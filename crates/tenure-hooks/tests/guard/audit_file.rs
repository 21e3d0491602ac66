//! The file of an audit log: who may change it without being found out.

use crate::guard::support::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tenure_core::message::ToolStatus::{Denied, Ok as Done};
use tenure_hooks::guard::AuditLog;

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("it works here")).collect()
}

/// Appends two lines per call.
async fn log(path: &Path, calls_made: usize) {
    let seen = Seen::default();
    let replies = json!([calls("search", calls_made), "end"]);
    let turn = run(scripted(&seen, replies).with_lifecycle(AuditLog::new(path))).await;
    assert_eq!(statuses(&turn), vec![Done; calls_made]);
}

#[tokio::test]
async fn a_line_that_was_changed_taken_away_put_in_or_moved_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    log(&path, 3).await;
    let verified = AuditLog::verify(&path).unwrap();
    assert_eq!(verified.lines, 6);
    let whole = fs::read_to_string(&path).unwrap();
    let good: Vec<&str> = whole.lines().collect();
    let broken_at = |lines: &[&str]| {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        AuditLog::verify(&path).err().map(|broken| broken.line)
    };
    for at in 0..good.len() {
        let number = at as u64 + 1;
        let changed = good[at].replace("search", "searsh");
        assert_ne!(changed, good[at]);
        let mut lines = good.clone();
        lines[at] = &changed;
        assert_eq!(broken_at(&lines), Some(number), "line {number} changed");
        let blank = good[at].replace("\",", "\", ");
        lines[at] = &blank;
        assert_eq!(broken_at(&lines), Some(number), "line {number} has more blanks");
        let mut lines = good.clone();
        lines.insert(at, good[at]);
        assert!(broken_at(&lines).is_some(), "line {number} twice");
        if at + 1 < good.len() {
            let mut lines = good.clone();
            lines.remove(at);
            assert_eq!(broken_at(&lines), Some(number), "line {number} is gone");
            let mut lines = good.clone();
            lines.swap(at, at + 1);
            assert_eq!(broken_at(&lines), Some(number), "line {number} moved");
        }
    }
    // What is missing at the end shows against the head that somebody kept.
    assert_eq!(broken_at(&good[..4]), None);
    assert_ne!(AuditLog::verify(&path).unwrap().head, verified.head);
    assert_eq!(broken_at(&good), None);
    assert_eq!(AuditLog::verify(&path).unwrap(), verified);
    fs::write(&path, whole.trim_end()).unwrap();
    assert_eq!(AuditLog::verify(&path).unwrap_err().line, 6, "the last line has no end");
    assert_eq!(AuditLog::verify(folder.path().join("none")).unwrap_err().line, 0);
}

#[tokio::test]
async fn the_chain_goes_on_in_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/log.jsonl");
    for runs in 1..=3 {
        // Each agent's writer ends with it, so this begins anew with what is in the file.
        log(&path, 1).await;
        assert_eq!(AuditLog::verify(&path).unwrap().lines, 2 * runs);
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_torn_line_is_kept_aside_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    log(&path, 1).await;
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}{{\"hash\":\"12")).unwrap();
    assert_eq!(AuditLog::verify(&path).unwrap_err().line, 3);
    log(&path, 1).await;
    assert_eq!(AuditLog::verify(&path).unwrap().lines, 5);
    let noted = &lines(&path)[2];
    assert_eq!((&noted["kind"], &noted["bytes"]), (&json!("torn"), &json!(11)));
    let kept = fs::read_to_string(folder.path().join("log.jsonl.torn")).unwrap();
    assert_eq!(kept, "{\"hash\":\"12\n");
}

#[tokio::test]
async fn several_agents_write_one_chain_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let again = folder.path().join("./log.jsonl");
    let logs = (0..8).map(|at| log(if at % 2 == 0 { &path } else { &again }, 5));
    futures_util::future::join_all(logs).await;
    assert_eq!(AuditLog::verify(&path).unwrap().lines, 80);
}

/// Another name of the same file has a writer of its own, as another process has.
#[tokio::test]
async fn writers_who_do_not_know_of_each_other_write_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("log.jsonl"), folder.path().join("other.jsonl"));
    log(&path, 1).await;
    fs::hard_link(&path, &other).unwrap();
    let seen = Seen::default();
    let agent = |path: &Path| {
        let replies = (0..5).flat_map(|_| [calls("search", 3), json!("end")]).collect();
        scripted(&seen, replies).with_lifecycle(AuditLog::new(path)).build().unwrap()
    };
    let (one, two) = (agent(&path), agent(&other));
    one.startup().await.unwrap();
    two.startup().await.unwrap();
    for _ in 0..2 {
        one.run("go").await.unwrap();
        two.run("go").await.unwrap();
    }
    for _ in 0..3 {
        let (one, two) = tokio::join!(one.run("go"), two.run("go"));
        assert!(one.is_ok() && two.is_ok());
    }
    one.shutdown().await;
    two.shutdown().await;
    assert_eq!(seen.count(), 30);
    assert_eq!(AuditLog::verify(&path).unwrap().lines, 2 + 60);
}

#[tokio::test]
async fn a_log_that_is_taken_away_under_way_denies_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("log.jsonl"), folder.path().join("aside.jsonl"));
    let seen = Seen::default();
    let replies = (0..4).flat_map(|_| [calls("search", 1), json!("end")]).collect();
    let agent = scripted(&seen, replies).with_lifecycle(AuditLog::new(&path)).build().unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    assert_eq!(seen.count(), 1);
    fs::rename(&path, &aside).unwrap();
    let denied = async || {
        let (status, why) = results(&agent.run("go").await).pop().expect("there is a result");
        assert_eq!((status, seen.count()), (Denied, 1), "{why}");
        why
    };
    let why = denied().await;
    assert!(why.contains("moved or deleted"), "{why}");
    fs::rename(&aside, &path).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    let why = denied().await;
    assert!(why.contains("cut off"), "{why}");
    fs::write(&path, whole).unwrap();
    agent.run("go").await.unwrap();
    agent.shutdown().await;
    assert_eq!(seen.count(), 2);
    assert_eq!(AuditLog::verify(&path).unwrap().lines, 4);
}

#[tokio::test]
async fn a_log_that_was_tampered_with_or_taken_away_is_not_gone_on_with() {
    let denied = async |path: &Path| {
        let seen = Seen::default();
        let replies = json!([calls("search", 1), "end"]);
        let turn = run(scripted(&seen, replies).with_lifecycle(AuditLog::new(path))).await;
        assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0), "{}", path.display());
        results(&turn).remove(0).1
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    log(&at("changed"), 1).await;
    let changed = fs::read_to_string(at("changed")).unwrap().replace("search", "searsh");
    fs::write(at("changed"), changed).unwrap();
    assert!(denied(&at("changed")).await.contains("its hash does not fit"));
    fs::write(at("foreign"), "hello\n").unwrap();
    denied(&at("foreign")).await;
    fs::create_dir(at("folder")).unwrap();
    denied(&at("folder")).await;
    log(&at("real"), 1).await;
    std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
    denied(&at("link")).await;
    denied(&at("real").join("beneath")).await;
}

#[tokio::test]
async fn a_log_that_another_process_holds_denies_and_does_not_hang() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    log(&path, 1).await;
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    let seen = Seen::default();
    let replies = json!([calls("search", 1), "end"]);
    let turn = run(scripted(&seen, replies).with_lifecycle(AuditLog::new(&path))).await;
    assert_eq!((statuses(&turn), seen.count()), (vec![Denied], 0));
    held.unlock().unwrap();
    log(&path, 1).await;
    assert_eq!(AuditLog::verify(&path).unwrap().lines, 4);
}
