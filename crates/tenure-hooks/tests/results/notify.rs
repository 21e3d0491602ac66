//! Commands that are told of results.

use crate::results::run;
use crate::support::refused;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tenure_core::Outcome;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::result::Notify;
use tenure_models::Passthrough;

fn echo() -> AgentBuilder {
    Agent::builder("clerk").model(Passthrough::new())
}

#[tokio::test]
async fn a_command_is_told_on_its_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let text = "cat > told.json; echo $TENURE_AGENT $TENURE_OUTCOME > seen; env > env";
    let notify = Notify::command(["sh", "-c", text]).dir(folder.path());
    let (output, failures) = run(echo().with_lifecycle(notify), "hello").await.unwrap();
    assert_eq!((output.as_str(), failures.len()), ("hello", 0), "{failures:?}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let told: Value = serde_json::from_str(&read("told.json")).unwrap();
    assert_eq!((&told["output"], &told["outcome"]), (&json!("hello"), &json!("ok")));
    assert_eq!(read("seen"), "clerk ok\n");
    let env = read("env");
    assert!(env.contains(&format!("TENURE_DELIVERY={}", told["delivery"].as_str().unwrap())));
    assert!(!env.contains("CARGO_"), "{env}");
}

#[tokio::test]
async fn nobody_is_told_of_an_outcome_that_was_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let notify = Notify::command(["touch", "told"]).dir(folder.path()).on([Outcome::Failed]);
    run(echo().with_lifecycle(notify), "hello").await.unwrap();
    assert!(!folder.path().join("told").exists());
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_and_the_outcome_stays() {
    let folder = tempfile::tempdir().unwrap();
    let text = "(sleep 2; touch late) & sleep 60";
    let notify = Notify::command(["sh", "-c", text]).dir(folder.path());
    let notify = notify.limit(Duration::from_millis(300));
    let since = Instant::now();
    let (output, failures) = run(echo().with_lifecycle(notify), "hello").await.unwrap();
    assert_eq!(output, "hello");
    assert!(failures.len() == 1 && failures[0].contains("notify"), "{failures:?}");
    assert!(since.elapsed() < Duration::from_secs(15));
    tokio::time::sleep(Duration::from_millis(2300)).await;
    assert!(!folder.path().join("late").exists(), "what it started lived on");
}

#[tokio::test]
async fn a_command_that_fails_or_is_not_there_changes_nothing_but_the_report() {
    for (argv, why) in [
        (vec!["false"], "ended with exit code 1"),
        (vec!["sh", "-c", "kill -9 $$"], "SIGKILL"),
        (vec!["no-such-program"], "there is no program"),
    ] {
        let notify = Notify::command(argv);
        let (output, failures) = run(echo().with_lifecycle(notify), "hello").await.unwrap();
        assert_eq!(output, "hello");
        assert!(failures.len() == 1 && failures[0].contains(why), "{failures:?}");
    }
}

#[tokio::test]
async fn a_command_that_options_name_runs_in_their_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new().root(folder.path());
    let with = json!({ "command": ["sh", "-c", "echo $SIGN > told"], "env": { "SIGN": "yes" } });
    let hook = ready::find("notify").unwrap().make(&with, &bench).unwrap();
    let (_, failures) = run(echo().with_lifecycle(hook), "hello").await.unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(std::fs::read_to_string(folder.path().join("told")).unwrap(), "yes\n");
}

#[test]
fn options_are_checked() {
    for (with, field) in [
        (json!({}), ""),
        (json!({ "command": ["a"], "url": "https://x.test" }), ""),
        (json!({ "command": [] }), "command"),
        (json!({ "command": ["a"], "secret_env": "S" }), "url"),
        (json!({ "command": ["a"], "limit": "16s" }), "limit"),
        (json!({ "command": ["a"], "attempts": 0 }), "attempts"),
        (json!({ "command": ["a"], "attempts": 2 }), "attempts"),
        (json!({ "url": "https://x.test", "unsigned": true, "env": { "A": "b" } }), "env"),
        (json!({ "url": "https://x.test", "unsigned": true, "pass_env": ["A"] }), "pass_env"),
        (json!({ "command": ["a"], "what": [] }), "what"),
        (json!({ "command": ["a"], "on": ["never"] }), "on[0]"),
        (json!({ "command": ["a"], "env": { "A B": "c" } }), "env"),
    ] {
        assert_eq!(refused("notify", with.clone()), field, "{with}");
    }
}
