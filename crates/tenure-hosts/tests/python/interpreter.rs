//! Which Python runs, and what is said if none does.

use crate::python::support::{Lab, fault};
use tenure_core::hook::{FaultKind, Point};
use tenure_hosts::Interpreter;
use tenure_testkit::{eventually, is_alive};

#[tokio::test]
async fn an_interpreter_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let lab = Lab::with(dir, Interpreter::at("/no/such/python3"), "def f(ctx): pass\n");
    let agent = lab.agent().with_lifecycle(lab.hook("f", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let (kind, message) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::NotStarted);
    assert!(message.contains("/no/such/python3"), "{message}");
    agent.shutdown().await;
}

#[tokio::test]
async fn an_interpreter_that_is_none_shows_its_last_words() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("python3");
    std::fs::write(&path, "#!/bin/sh\necho I am no snake >&2\nexit 9\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("made executable");
    let lab = Lab::with(dir, Interpreter::at(path), "def f(ctx): pass\n");
    let agent = lab.agent().with_lifecycle(lab.hook("f", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let (kind, message) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::NotStarted, "{message}");
    assert!(message.contains("I am no snake"), "{message}");
    agent.shutdown().await;
}

#[tokio::test]
async fn an_interpreter_that_never_gets_ready_is_given_up_and_killed() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("python3");
    std::fs::write(&path, "#!/bin/sh\necho $$ > \"$0.pid\"\nexec sleep 600\n").expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("made executable");
    let lab = Lab::with(dir, Interpreter::at(path), "def f(ctx): pass\n");
    let agent = lab.agent().with_lifecycle(lab.hook("f", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let (kind, message) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::NotStarted, "{message}");
    assert!(message.contains("was not ready within"), "{message}");
    let pid = std::fs::read_to_string(lab.path().join("python3.pid")).expect("it was started");
    eventually("it is killed", || !is_alive(&pid)).await;
    agent.shutdown().await;
}

#[tokio::test]
async fn the_virtual_environment_of_the_project_is_used() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let python = Interpreter::find(dir.path()).expect("there is a Python");
    let made = std::process::Command::new(python.path())
        .args(["-m", "venv", "--without-pip"])
        .arg(dir.path().join(".venv"))
        .status()
        .expect("venv runs");
    assert!(made.success());
    let site = std::fs::read_dir(dir.path().join(".venv/lib"))
        .expect("it has a lib")
        .next()
        .expect("of one version")
        .expect("that can be read")
        .path()
        .join("site-packages/only_here.py");
    std::fs::write(site, "word = 'installed'\n").expect("written");
    let found = Interpreter::find(dir.path()).expect("the environment works");
    assert!(found.path().starts_with(dir.path().join(".venv")), "{found:?}");
    assert!(found.version().starts_with("3."), "{found:?}");
    let source = "import only_here\ndef f(ctx): return {'finish': only_here.word}\n";
    let lab = Lab::with(dir, found, source);
    let agent = lab.agent().with_lifecycle(lab.hook("f", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    assert_eq!(agent.run("hello").await.expect("it finishes").output(), "installed");
    agent.shutdown().await;
}

#[test]
fn a_broken_environment_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir_all(dir.path().join(".venv/bin")).expect("made");
    std::fs::write(dir.path().join(".venv/bin/python"), "").expect("written");
    let error = Interpreter::find(dir.path()).expect_err("it does not work");
    assert!(error.to_string().contains("make it anew"), "{error}");
}
