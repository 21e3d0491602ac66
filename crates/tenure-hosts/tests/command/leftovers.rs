//! Nothing of a command stays behind, however its call ended.

use crate::command::support::{Script, faults};
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::hook::{FaultKind, Point, hook};
use tenure_models::Scripted;
use tenure_testkit::{HookHarness, eventually, is_alive};

/// The process ids that a script wrote into files of these names.
fn pids(script: &Script, files: &[&str]) -> Vec<String> {
    files.iter().map(|file| script.left(file).unwrap_or_else(|| panic!("no {file}"))).collect()
}

async fn all_gone(pids: &[String]) {
    eventually("all of them are gone", || !pids.iter().any(|pid| is_alive(pid))).await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipes_does_not_hold_the_call() {
    let script =
        Script::new("sleep 600 & echo $! > sleeper\necho '{\"input\": \"quick\"}'; exit 0");
    let since = Instant::now();
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    assert_eq!(run.input(), Some("quick"), "{run:?}");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    all_gone(&pids(&script, &["sleeper"])).await;
}

#[tokio::test]
async fn what_is_left_of_the_group_is_killed_after_a_good_end() {
    let script = Script::new("sleep 600 <&- >&- 2>&- & echo $! > sleeper; echo '{}'");
    let run = HookHarness::new(script.hook(Point::BeforeAgent)).before_agent("hello").await;
    assert_eq!(run.output(), "done");
    all_gone(&pids(&script, &["sleeper"])).await;
}

/// Ignores what can be ignored, has a child in its group, one in a session of its own, and one
/// that was orphaned into a session of its own and keeps nothing of its environment but our mark.
const CLINGING: &str = "trap '' TERM INT HUP\n\
     sh -c 'trap \"\" TERM; echo $$ > child; sleep 600' &\n\
     setsid sh -c 'trap \"\" TERM; echo $$ > session; sleep 600' &\n\
     sh -c 'setsid sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > orphan; sleep 600\" &'\n\
     env -i setsid sh -c 'echo $$ > bare; sleep 600' &\n\
     while ! [ -s child ] || ! [ -s session ] || ! [ -s orphan ] || ! [ -s bare ]; do\n\
       sleep 0.02\n\
     done\n\
     echo $$ > self; touch settled\n\
     while :; do sleep 600; done";

const CLUNG: [&str; 5] = ["self", "child", "session", "orphan", "bare"];

#[tokio::test]
async fn a_hung_command_is_killed_with_everything_it_started() {
    let script = Script::new(CLINGING);
    let registration = hook(script.hook(Point::BeforeAgent)).limit(Duration::from_secs(5));
    let run = HookHarness::new(registration).before_agent("hello").await;
    assert_eq!(faults(&run)[0].0, FaultKind::TimedOut, "{run:?}");
    all_gone(&pids(&script, &CLUNG)).await;
}

#[tokio::test]
async fn a_dropped_call_kills_its_command_at_once() {
    let script = Script::new(CLINGING);
    let agent = Agent::builder("dropped")
        .model(Scripted::new(["never"]))
        .with_lifecycle(script.hook(Point::BeforeAgent))
        .build()
        .expect("it is built");
    agent.startup().await.expect("it starts");
    {
        let turn = agent.run("hello");
        tokio::select! {
            _ = turn => panic!("it hangs"),
            () = eventually("it has settled", || script.left("settled").is_some()) => {}
        }
    }
    all_gone(&pids(&script, &CLUNG)).await;
    agent.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_turn_kills_its_command() {
    let script = Script::new(CLINGING);
    let agent = Agent::builder("cancelled")
        .model(Scripted::new(["never"]))
        .with_lifecycle(script.hook(Point::BeforeAgent))
        .build()
        .expect("it is built");
    agent.startup().await.expect("it starts");
    let settled = async {
        eventually("it has settled", || script.left("settled").is_some()).await;
        agent.cancel();
    };
    let (turn, ()) = tokio::join!(agent.run("hello"), settled);
    assert!(turn.is_err_and(|error| error.is_cancelled()));
    all_gone(&pids(&script, &CLUNG)).await;
    agent.shutdown().await;
}

#[test]
fn a_runtime_that_ends_leaves_nothing_behind() {
    // The more memory somebody has, the longer it takes to die: a kill alone is not enough.
    let script = Script::new(
        "exec python3 -c 'import os, time\n\
         much = b\"x\" * 200_000_000\n\
         open(\"self\", \"w\").write(str(os.getpid()))\n\
         open(\"settled\", \"w\").close()\n\
         time.sleep(600)'",
    );
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let agent = Agent::builder("left")
            .model(Scripted::new(["never"]))
            .with_lifecycle(script.hook(Point::BeforeAgent))
            .build()
            .expect("it is built");
        agent.startup().await.expect("it starts");
        tokio::select! {
            _ = agent.run("hello") => panic!("it hangs"),
            () = eventually("it has settled", || script.left("settled").is_some()) => {}
        }
    });
    drop(runtime);
    let pid = script.left("self").expect("it ran");
    assert!(!is_alive(&pid), "it was gone before the runtime ended");
}
