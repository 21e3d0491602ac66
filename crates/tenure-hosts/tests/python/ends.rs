//! What is left when a worker, or the program around it, has ended.

use crate::python::support::Lab;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use tenure_core::hook::Point;
use tenure_testkit::{eventually, is_alive, ran_alone};

/// The processes that this one has started and that have not ended.
fn children() -> HashSet<u32> {
    let own = std::process::id().to_string();
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.next() == Some(&own)
    };
    let all = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    all.filter_map(|it| it.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

#[tokio::test]
async fn what_left_the_workers_group_ends_with_the_host() {
    let lab = Lab::new(
        r#"
import os, subprocess
def leaves(ctx):
    sleeps = "echo $$ > %s/%s; exec sleep 1000"
    here = os.path.dirname(__file__)
    daemon = sleeps % (here, "daemon")
    subprocess.Popen(["sh", "-c", daemon], start_new_session=True)
    orphan = "sh -c '%s' &" % (sleeps % (here, "orphan"))
    subprocess.Popen(["sh", "-c", orphan], start_new_session=True)
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("leaves", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    let pid = |name: &str| std::fs::read_to_string(lab.path().join(name)).unwrap_or_default();
    let names = ["daemon", "orphan"];
    eventually("they run", || names.iter().all(|name| is_alive(&pid(name)))).await;
    agent.shutdown().await;
    lab.host.shutdown().await;
    for name in names {
        eventually(name, || !is_alive(&pid(name))).await;
    }
}

#[tokio::test]
async fn the_worker_after_a_crash_is_the_spare_that_stood_by() {
    if ran_alone() {
        return;
    }
    let lab = Lab::new(
        r#"
import os
def turn(ctx):
    if ctx.input == "crash":
        os.abort()
    return {"finish": str(os.getpid())}
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let pid = async || {
        let report = agent.run("hello").await.expect("it finishes");
        report.output().parse::<u32>().expect("a number")
    };
    let first = pid().await;
    for _ in 0..3 {
        let last = pid().await;
        eventually("a spare stands by", || children().len() == 2).await;
        let before = children();
        agent.run("crash").await.expect_err("it crashes");
        let next = pid().await;
        assert!(next != last && before.contains(&next), "{next} is not the spare of {before:?}");
    }
    assert_ne!(first, pid().await);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_hook_that_returns_in_a_fork_too_answers_once() {
    if ran_alone() {
        return;
    }
    let lab = Lab::new(
        r#"
import os
def plain(ctx):
    os.fork()
    return {"finish": str(os.getpid())}
async def later(ctx):
    os.fork()
    print("said")
    return {"finish": str(os.getpid())}
"#,
    );
    for name in ["plain", "later"] {
        let agent = lab.agent().with_lifecycle(lab.hook(name, Point::BeforeAgent));
        let agent = lab.started(agent).await;
        for _ in 0..10 {
            let report = agent.run("hello").await.expect("it finishes");
            let own = lab.host.processes();
            assert!(own.iter().any(|pid| pid.to_string() == report.output()), "{name}: {own:?}");
        }
        agent.shutdown().await;
    }
    lab.host.shutdown().await;
    eventually("nothing is left", || children().is_empty()).await;
}

/// Where the program below, which is this one once more, is told to leave its ids.
const PLACE: &str = "TENURE_TEST_PLACE";

#[tokio::test]
#[ignore = "it is run by the next one, and killed"]
async fn a_program_whose_hook_hangs() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let lab = Lab::new(&format!(
        r#"
import os, time
def leave(name):
    with open({place:?} + "/" + name + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename({place:?} + "/" + name + ".new", {place:?} + "/" + name)
async def hangs(ctx):
    if os.fork() == 0:
        leave("forked")
        time.sleep(1000)
    leave("worker")
    while True:
        pass
"#
    ));
    let agent = lab.agent().with_lifecycle(lab.hook("hangs", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let _ = agent.run("hello").await;
}

#[tokio::test]
async fn a_program_that_is_killed_leaves_no_worker() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let own = std::env::current_exe().expect("this program");
    let mut program = Command::new(own)
        .args(["--exact", "python::ends::a_program_whose_hook_hangs", "--ignored"])
        .env(PLACE, place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = |name: &str| {
        let file: &Path = &place.path().join(name);
        std::fs::read_to_string(file).unwrap_or_default()
    };
    let names = ["worker", "forked"];
    eventually("the hook hangs", || names.iter().all(|name| is_alive(&pid(name)))).await;
    program.kill().expect("it is killed");
    program.wait().expect("it is gone");
    for name in names {
        eventually(name, || !is_alive(&pid(name))).await;
    }
}
