//! The limits of what comes before a Python function, as `[python]` of `tenure.toml` sets them.

use crate::support::*;
use std::time::{Duration, Instant};
use tenure_core::Outcome;
use tenure_core::hook::FaultKind;

/// Two calls at once: the first tool keeps the thread of the agent, and a hook of the second waits for it.
const BUSY: [(&str, &str); 3] = [
    (
        "busy.md",
        "---
name: busy
model: script:calls.yml
function_tools: ['hooks.py:slow', 'hooks.py:quick']
hooks:
  - { on: wrap_tool_call, run: 'hooks.py:watch', when: \"tool.name == 'quick'\" }
---
x
",
    ),
    ("calls.yml", "- calls: [{ call: slow, with: {} }, { call: quick, with: {} }]\n- done\n"),
    (
        "hooks.py",
        r#"
import time

def slow() -> str:
    "Keeps the thread."
    time.sleep(1.5)
    return "slow"

def quick() -> str:
    "Returns at once."
    return "quick"

async def watch(ctx, next):
    return await next()
"#,
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_not_free_within_the_queue_of_the_project_times_out_and_names_it() {
    let project = Project::new(BUSY);
    std::fs::write(project.path().join("tenure.toml"), "[python]\nqueue = \"200ms\"\n")
        .expect("written");
    let team = project.team();
    team.start().await.expect("it starts, however long Python takes to");
    let error = team.run(None, "go").await.expect_err("the hook is not called");
    let report = error.error().and_then(|error| error.report()).expect("a turn has a report");
    let failure = report.failures.first().expect("the hook failed");
    assert_eq!(failure.kind, FaultKind::TimedOut, "{}", failure.message);
    for part in ["`hooks.py:watch`", "200ms", "thread", "`[python] queue`"] {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    assert_eq!(error.outcome(), Outcome::TimedOut);
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_free_within_the_queue_is_waited_for() {
    let project = Project::new(BUSY);
    std::fs::write(project.path().join("tenure.toml"), "[python]\nqueue = \"1m\"\n")
        .expect("written");
    let team = project.team();
    team.start().await.expect("it starts");
    assert_eq!(team.run(None, "go").await.expect("it goes on").output, "done");
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_is_not_loaded_within_the_limit_of_the_project_times_out_and_names_it() {
    let hooks = "import time\ntime.sleep(30)\ndef start(ctx): pass\n";
    let card = "---\nname: a\nlifecycle_hooks: { on_start: 'hooks.py:start' }\n---\nx\n";
    let config = "[python]\nload = \"300ms\"\n";
    let project = Project::new([("tenure.toml", config), ("hooks.py", hooks), ("a.md", card)]);
    let team = project.team();
    let since = Instant::now();
    let error = team.start().await.expect_err("the module takes too long").to_string();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    for part in ["`hooks.py:start`", "300ms", "module", "`[python] load`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_ready_within_the_limit_of_the_project_is_named() {
    let config = "[python]\ninterpreter = \"python\"\nstart = \"300ms\"\n";
    let slow = "#!/bin/sh\nexec sleep 30\n";
    let card = "---\nname: a\nlifecycle_hooks: { on_start: 'log.py:start' }\n---\nx\n";
    let project = Project::new([("python", slow), ("tenure.toml", config), ("a.md", card)]);
    project.make_executable("python");
    let team = project.team();
    let since = Instant::now();
    let error = team.start().await.expect_err("it is never ready").to_string();
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    for part in ["not ready", "300ms", "`[python] start`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    team.shutdown().await;
}
