//! The shell: leave, limits, and what runs before and after.

use crate::results::{calling, result_of};
use crate::support::{refusal, tool_results};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::EventKind;
use tenure_core::hook::IntoRegistration;
use tenure_core::message::ToolStatus;
use tenure_core::tool::Effect;
use tenure_core::{CancelToken, Outcome};
use tenure_hooks::ready::{self, Bench};
use tenure_hooks::tools::{Environment, Otherwise, Shell};
use tenure_models::{Passthrough, Scripted};
use tenure_testkit::Recorder;

fn command(text: &str) -> tenure_core::agent::AgentBuilder {
    calling("shell", json!({ "command": text }))
}

fn free(dir: &Path) -> Shell {
    Shell::new(dir).otherwise(Otherwise::Allow)
}

#[tokio::test]
async fn an_allowed_command_runs_in_its_folder_with_little_of_our_environment() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::new(folder.path()).allow("(pwd|env)").unwrap();
    let result = result_of(command("pwd"), shell.clone()).await;
    assert_eq!(result.status, ToolStatus::Ok, "{}", result.content);
    let real = folder.path().canonicalize().unwrap();
    assert_eq!(result.content.text().trim(), real.to_str().unwrap());

    let shell = shell.environment(Environment::new().set("GIVEN", "yes"));
    let seen = result_of(command("env"), shell).await.content;
    assert!(seen.text().contains("GIVEN=yes"), "{seen}");
    assert!(seen.text().contains("TENURE_IDEMPOTENCY_KEY="), "{seen}");
    assert!(!seen.text().contains("CARGO_"), "{seen}");
}

#[tokio::test]
async fn what_nobody_allowed_is_refused_where_nobody_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["touch made", "ls; touch made", "ls\ntouch made"] {
        let shell = Shell::new(folder.path()).allow("ls.*").unwrap();
        let result = result_of(command(text), shell).await;
        assert_eq!(result.status, ToolStatus::Denied, "{text}");
        assert!(result.content.text().contains("nobody is there to ask"), "{}", result.content);
    }
    assert!(!folder.path().join("made").exists());
}

#[tokio::test]
async fn a_person_decides_about_every_other_command() {
    let folder = tempfile::tempdir().unwrap();
    let deny = || Shell::new(folder.path()).deny("rm").unwrap();
    let answered = |answer: Answer| {
        command("echo asked").on_ask(move |ask: &PendingAsk| {
            assert_eq!(ask.ask.action, Some(json!({ "command": "echo asked" })));
            assert_eq!(ask.hook.as_deref(), Some("shell"));
            Some(answer.clone())
        })
    };
    let result = result_of(answered(Answer::Approve), deny()).await;
    assert_eq!(result.content, "asked\n");
    let result = result_of(answered(Answer::Reject("not now".to_owned())), deny()).await;
    assert_eq!((result.status, result.content.text()), (ToolStatus::Denied, "not now"));
    let result = result_of(answered(Answer::Respond("it is 7".to_owned())), deny()).await;
    assert_eq!((result.status, result.content.text()), (ToolStatus::Ok, "it is 7"));
    let edit = Answer::Edit(json!({ "command": "echo edited" }));
    assert_eq!(result_of(answered(edit), deny()).await.content, "edited\n");
    // What is denied is denied to a person too.
    let edit = Answer::Edit(json!({ "command": "rm -r x" }));
    assert_eq!(result_of(answered(edit), deny()).await.status, ToolStatus::Denied);
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let shell = free(folder.path()).limit(Duration::from_millis(300));
    let since = Instant::now();
    let result = result_of(command("(sleep 2; touch late) & sleep 60"), shell).await;
    assert_eq!(result.status, ToolStatus::Error, "{}", result.content);
    assert!(since.elapsed() < Duration::from_secs(20));
    tokio::time::sleep(Duration::from_millis(2300)).await;
    assert!(!folder.path().join("late").exists(), "what it started lived on");
}

#[tokio::test]
async fn a_cancel_kills_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let shell = free(folder.path());
    let text = "touch begun; sleep 60; touch late";
    let agent = command(text).with_lifecycle(shell).build().unwrap();
    let token = CancelToken::new();
    let since = Instant::now();
    let ended = agent
        .scoped(async |agent| {
            let run = agent.request("go").cancel_on(&token).run();
            let cancel = async {
                while !folder.path().join("begun").exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                token.cancel();
            };
            let (ended, ()) = tokio::join!(run, cancel);
            ended
        })
        .await;
    assert!(ended.is_err_and(|error| error.is_cancelled()));
    assert!(since.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn what_it_writes_is_bounded_and_redacted() {
    let folder = tempfile::tempdir().unwrap();
    let shell = free(folder.path()).output_limit(40).redact("key-[0-9]+").unwrap();
    let text = "echo key-123 is mine; echo and key-45 >&2; exit 2";
    let result = result_of(command(text), shell.clone()).await;
    let expected = "[redacted] is mine\nand [redacted]\nthe command ended with exit code 2";
    assert_eq!((result.status, result.content.text()), (ToolStatus::Error, expected));
    // A secret that the bound cuts in two is not shown in part.
    let result =
        result_of(command("echo fine; echo 0123456789012345678901234567 key-1234567890"), shell);
    let content = result.await.content;
    assert!(content.text().starts_with("fine\n"), "{content}");
    assert!(!content.text().contains("key"), "{content}");
    assert!(content.text().contains("more bytes were left out"), "{content}");
}

#[tokio::test]
async fn commands_run_at_the_start_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::new(folder.path())
        .at_startup(["sh", "-c", "echo begun > log"])
        .at_shutdown(["false"])
        .at_shutdown(["sh", "-c", "echo ended >> log"]);
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(shell).build().unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert_eq!(log, "begun\nended\n");
}

#[tokio::test]
async fn a_start_that_fails_is_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::new(folder.path())
        .at_startup(["sh", "-c", "echo no such disk >&2; exit 4"])
        .at_startup(["touch", "never"])
        .at_shutdown(["touch", "ended"]);
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(shell).build().unwrap();
    let error = agent.startup().await.unwrap_err();
    assert!(error.to_string().contains("exit code 4; its last words: no such disk"), "{error}");
    agent.terminated().await;
    assert!(!folder.path().join("never").exists());
    assert!(folder.path().join("ended").exists());
}

#[tokio::test]
async fn what_is_written_at_the_start_and_at_the_end_is_redacted_too() {
    let folder = tempfile::tempdir().unwrap();
    let (bus, recorder) = Recorder::with_bus();
    let shell = Shell::new(folder.path())
        .redact("key-[0-9]+")
        .unwrap()
        .at_startup(["sh", "-c", "echo in key-1; echo in key-2 >&2"])
        .at_shutdown(["sh", "-c", "echo out key-3; echo last key-4 $0 >&2; exit 3", "key-5"])
        .at_shutdown(["no-such-program-key-6"])
        .shutdown_limit(Duration::from_secs(15));
    let agent = Agent::builder("a").model(Passthrough::new()).events(&bus).with_lifecycle(shell);
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    agent.shutdown().await;
    let lines: Vec<_> = recorder.events().iter().filter_map(|event| line_of(&event.kind)).collect();
    for line in ["in [redacted]", "out [redacted]", "last [redacted] [redacted]"] {
        assert!(lines.iter().any(|it| it == line), "{line}: {lines:?}");
    }
    let failures: Vec<_> = agent.failures().iter().map(ToString::to_string).collect();
    let said = failures.join("\n");
    assert!(said.contains("its last words: last [redacted]"), "{said}");
    assert!(said.contains("there is no program"), "{said}");
    assert!(!said.contains("key-") && !lines.concat().contains("key-"), "{said} {lines:?}");
}

fn line_of(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::Log { line, .. } => Some(line.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_start_that_fails_says_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::new(folder.path()).redact("key-[0-9]+").unwrap();
    let shell = shell.at_startup(["sh", "-c", "echo bad key-1 >&2; exit 4 # key-2"]);
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(shell).build().unwrap();
    let error = agent.startup().await.unwrap_err().to_string();
    assert!(error.contains("its last words: bad [redacted]"), "{error}");
    assert!(!error.contains("key-"), "{error}");
    agent.terminated().await;
}

#[tokio::test]
async fn an_end_that_hangs_is_bounded_and_the_others_have_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let shell = Shell::new(folder.path())
        .shutdown_limit(Duration::from_secs(1))
        .at_shutdown(["sleep", "60"])
        .at_shutdown(["touch", "ended"]);
    let agent =
        Agent::builder("a").model(Passthrough::new()).with_lifecycle(shell).build().unwrap();
    agent.startup().await.unwrap();
    let since = Instant::now();
    agent.shutdown().await;
    assert!(since.elapsed() < Duration::from_secs(10));
    assert!(folder.path().join("ended").exists());
    let failures: Vec<_> = agent.failures().iter().map(ToString::to_string).collect();
    assert!(
        failures.iter().any(|it| it.contains("`sleep 60` did not end in time")),
        "{failures:?}"
    );
}

#[tokio::test]
async fn several_calls_are_judged_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::empty().calls([
        ("shell", json!({ "command": "echo one" })),
        ("shell", json!({ "command": "touch made" })),
        ("shell", json!({})),
    ]);
    let shell = Shell::new(folder.path()).allow("echo .*").unwrap().otherwise(Otherwise::Deny);
    let agent =
        Agent::builder("a").model(model.text("done")).with_lifecycle(shell).build().unwrap();
    let report = agent.scoped(async |agent| agent.run("go").await).await.unwrap();
    let statuses: Vec<_> =
        tool_results(report.history().iter()).iter().map(|it| it.status).collect();
    assert_eq!(statuses, [ToolStatus::Ok, ToolStatus::Denied, ToolStatus::Error]);
    assert_eq!(report.outcome, Outcome::Ok);
    assert!(!folder.path().join("made").exists());
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let result = result_of(command("true"), free(Path::new("no/such/folder"))).await;
    assert_eq!(result.status, ToolStatus::Error);
    assert!(
        result.content.text().contains("its folder no/such/folder does not exist"),
        "{result:?}"
    );
}

#[test]
fn the_tool_is_not_made_again_after_a_crash_and_its_guard_denies() {
    let registration = Shell::new(".").name("sh").into_registration();
    assert!(registration.is_guard() && registration.is_innermost());
    let spec = registration.tools()[0].spec();
    assert_eq!((&*spec.name, spec.effect), ("sh", Effect::AtMostOnce));
}

#[test]
fn options_are_checked() {
    let bench = Bench::new();
    let make = |with| ready::find("shell").unwrap().make(&with, &bench);
    let _ = make(json!({
        "root": "work", "tool_name": "run", "allow": ["ls"], "deny": ["rm"], "otherwise": "deny",
        "limit": "5s", "startup_commands": [["true"]], "env": { "A": "b" }, "redact": ["x+"],
    }))
    .unwrap();
    assert!(bench.warnings().is_empty());
    let _ = make(json!({ "otherwise": "allow", "pass_env": ["API_TOKEN"] })).unwrap();
    assert_eq!(bench.warnings().len(), 2, "{:?}", bench.warnings());
    for (with, field) in [
        (json!({ "root": "../outside" }), "root"),
        (json!({ "tool_name": "two words" }), "tool_name"),
        (json!({ "allow": ["("] }), "allow[0]"),
        (json!({ "allow": ["a", "(?x) a # b"] }), "allow[1]"),
        (json!({ "deny": ["["] }), "deny[0]"),
        (json!({ "otherwise": "perhaps" }), "otherwise"),
        (json!({ "limit": "soon" }), "limit"),
        (json!({ "output_limit": 0 }), "output_limit"),
        (json!({ "startup_commands": [[]] }), "startup_commands[0]"),
        (json!({ "shutdown_limit": "1m" }), "shutdown_limit"),
        (json!({ "pass_env": ["A=B"] }), "pass_env[0]"),
        (json!({ "timeout": "1s" }), ""),
    ] {
        let refusal = refusal("shell", with.clone());
        assert!(refusal.field().starts_with(field), "{with}: {refusal}");
        assert!(field.is_empty() || !refusal.field().is_empty(), "{with}: {refusal}");
    }
}
