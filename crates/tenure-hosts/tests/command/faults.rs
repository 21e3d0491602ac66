//! The five ways to fail, told apart.

use crate::command::support::{Script, faults, logged};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use tenure_core::Outcome;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, Point, Policy, hook};
use tenure_hosts::{CommandHook, Environment, Role};
use tenure_testkit::HookHarness;

/// How a script at `before_agent` fails.
async fn fault(script: &Script) -> (FaultKind, String) {
    let registration = hook(script.hook(Point::BeforeAgent)).limit(Duration::from_secs(20));
    let run = HookHarness::new(registration).before_agent("hello").await;
    assert_eq!(run.requests.len(), 0, "the turn was aborted");
    faults(&run).pop().unwrap_or_else(|| panic!("it did not fail: {run:?}"))
}

async fn fault_of(argv: &[&str], dir: &std::path::Path) -> (FaultKind, String) {
    let argv = argv.iter().map(|&arg| arg.to_owned()).collect();
    let hook = CommandHook::new(argv, Point::BeforeAgent, dir, Environment::new());
    let run = HookHarness::new(hook).before_agent("hello").await;
    faults(&run).pop().unwrap_or_else(|| panic!("it did not fail: {run:?}"))
}

#[tokio::test]
async fn what_cannot_be_started_says_what_to_do() {
    let plain = Script::new("true");
    let path = plain.path();
    std::fs::write(path.join("data.txt"), "hello").expect("written");
    std::fs::create_dir(path.join("folder")).expect("made");
    for (argv, said) in [
        (&["./nowhere.sh"][..], "`./nowhere.sh` does not exist"),
        (&["./data.txt"], "chmod +x"),
        (&["./folder"], "is not a file; name the program to run"),
        (
            &["no-such-program-anywhere"],
            "there is no program `no-such-program-anywhere` on the PATH",
        ),
        (&["hook.sh"], "write `./hook.sh`"),
        (&[], "the command is empty; write the program to run"),
        (&["./hook.sh", "a\0b"], "could not be started"),
    ] {
        let (kind, message) = fault_of(argv, path).await;
        assert_eq!(kind, FaultKind::NotStarted, "{argv:?}: {message}");
        assert!(message.contains(said), "{argv:?}: {message}");
    }
    let (kind, message) = fault_of(&["true"], &path.join("gone")).await;
    assert_eq!(kind, FaultKind::NotStarted);
    assert!(message.contains("does not exist; create it"), "{message}");

    let script = Script::of("#!/no/such/interpreter -x\n");
    let (kind, message) = fault(&script).await;
    assert_eq!(kind, FaultKind::NotStarted);
    assert!(message.contains("`/no/such/interpreter -x`, does not exist"), "{message}");

    let script = Script::of("echo no shebang\n");
    let (kind, message) = fault(&script).await;
    assert_eq!(kind, FaultKind::NotStarted);
    assert!(message.contains("begins with `#!/bin/sh`"), "{message}");
}

#[tokio::test]
async fn a_bare_name_comes_from_the_path_that_the_command_sees() {
    let script = Script::new("touch ran");
    std::fs::create_dir(script.path().join("bin")).expect("made");
    let tool = script.path().join("bin").join("my-own-tool");
    std::fs::copy(script.path().join("hook.sh"), &tool).expect("copied");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).expect("set");
    let path = format!("{}:/usr/bin:/bin", script.path().join("bin").display());
    let hook = CommandHook::new(
        vec!["my-own-tool".to_owned()],
        Point::BeforeAgent,
        script.path(),
        Environment::new().set("PATH", path),
    );
    let run = HookHarness::new(hook).before_agent("hello").await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert!(script.left("ran").is_some());
}

#[tokio::test]
async fn a_signal_is_a_crash_and_a_code_is_an_exit() {
    let (kind, message) = fault(&Script::new("echo oh no >&2; kill -SEGV $$")).await;
    assert_eq!(kind, FaultKind::Panicked);
    assert_eq!(message, "`hook.sh` was ended by signal 11 (SIGSEGV); its last words: oh no");
    let (kind, message) = fault(&Script::new("echo '{\"allow\": true}'; exit 3")).await;
    assert_eq!(kind, FaultKind::Exited, "whatever it said");
    assert_eq!(message, "`hook.sh` ended with exit code 3");
}

#[tokio::test]
async fn the_five_faults_are_told_apart_and_each_denies_for_a_guard() {
    for (body, kind) in [
        ("kill -KILL $$", FaultKind::Panicked),
        ("exit 1", FaultKind::Exited),
        ("sleep 600", FaultKind::TimedOut),
        ("echo nonsense", FaultKind::BadReply),
        ("", FaultKind::BadReply),
    ] {
        let script = Script::new(body);
        let guard = script.hook(Point::WrapToolCall).role(Role::Guard);
        let limit = if kind == FaultKind::TimedOut { 1 } else { 20 };
        let guard = hook(guard).policy(Policy::Deny).limit(Duration::from_secs(limit));
        let run = HookHarness::new(guard)
            .tool("rm", "gone")
            .wrap_tool_call("rm", serde_json::json!({}))
            .await;
        assert_eq!(faults(&run)[0].0, kind, "{body}");
        assert!(run.tool_calls.is_empty(), "{body}: a guard never fails open");
    }
    let argv = vec!["./gone.sh".to_owned()];
    let dir = std::env::temp_dir();
    let guard = CommandHook::new(argv, Point::BeforeAgent, dir, Environment::new());
    let guard = hook(guard.role(Role::Guard)).policy(Policy::Deny);
    let run = HookHarness::new(guard).before_agent("hello").await;
    assert_eq!(faults(&run)[0].0, FaultKind::NotStarted);
    assert_eq!(run.outcome(), Outcome::Denied);
}

#[tokio::test]
async fn a_bad_reply_shows_what_was_found() {
    for (body, said) in [
        ("echo hello", "the reply is no JSON (expected value at line 1 column 1): \"hello\\n\""),
        (
            "echo '{\"allow\": true} really'",
            "something behind the JSON object of the reply: \"really\\n\"",
        ),
        ("echo '{}'; echo '{}'", "something behind the JSON object of the reply: \"{}\\n\""),
        ("echo '{\"allow\": true'", "the reply is no JSON (EOF while parsing"),
        ("printf '{\"deny\": \"\\377\"}'", "the reply is not UTF-8 (at byte 10)"),
        ("echo '[]'", "the reply is a list of 0; expected a JSON object"),
        (
            "echo '{\"reject\": \"x\"}'",
            "the key `reject` is unknown; a reply at before_agent may have",
        ),
        ("printf '\\000\\000'", "the reply is no JSON"),
    ] {
        let (kind, message) = fault(&Script::new(body)).await;
        assert_eq!(kind, FaultKind::BadReply, "{body}: {message}");
        assert!(message.contains(said), "{body}: {message}");
    }
}

#[tokio::test]
async fn too_much_output_is_a_bad_reply_and_ends_the_command() {
    let since = Instant::now();
    let (kind, message) =
        fault(&Script::new("trap '' PIPE; echo $$ > pid; yes yes; sleep 600")).await;
    assert_eq!(kind, FaultKind::BadReply);
    assert!(message.contains("more than 1048576 bytes"), "{message}");
    assert!(since.elapsed() < Duration::from_secs(10), "it was not waited for");

    let script =
        Script::new("printf '{\"log\": \"'; head -c 1000000 /dev/zero | tr '\\0' x; printf '\"}'");
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    assert_eq!(run.output(), "done", "a megabyte is fine: {run:?}");
}

#[tokio::test]
async fn a_flood_of_errors_is_cut_and_does_no_harm() {
    let script = Script::new("head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 999 >&2");
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    assert_eq!(run.output(), "done");
    let lines = logged(&run);
    let kept: usize =
        lines.iter().filter(|it| it.0 == LogStream::Stderr).map(|it| it.1.len() + 1).sum();
    assert!((200_000..=262_145).contains(&kept), "{kept}");
    let (stream, note) = lines.last().expect("lines");
    assert_eq!(*stream, LogStream::Host);
    assert_eq!(note, "it wrote more than 262144 bytes; the rest is not kept");
}

#[tokio::test]
async fn one_that_does_not_read_its_call_does_no_harm() {
    let long = "x".repeat(3_000_000);
    for body in [
        "exit 0",
        "exec 0<&-; echo '{\"allow\": true}'",
        "sleep 0.2; echo '{}'",
        "head -c 10 > /dev/null",
    ] {
        let script = Script::new(body);
        let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent(&long).await;
        assert_eq!(run.output(), "done", "{body}: {run:?}");
    }
    let script = Script::new("wc -c > count");
    HookHarness::new(script.hook(Point::BeforeAgent)).before_agent(&long).await;
    let count: usize = script.left("count").expect("left").trim().parse().expect("a number");
    assert!(count > 3_000_000, "it gets all of it");
}

#[tokio::test]
async fn one_that_closed_its_output_is_waited_for() {
    let script =
        Script::new("echo '{\"input\": \"x\"}'; exec 1>&- 2>&- 0<&-; sleep 0.3; touch ran");
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    assert_eq!(run.input(), Some("x"));
    assert!(script.left("ran").is_some(), "it was waited for");
}
