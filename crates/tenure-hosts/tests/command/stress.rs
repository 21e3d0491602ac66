//! Many commands that hang at the same time, and nothing left of them.

use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::hook::{FaultKind, Point, hook};
use tenure_hosts::{CommandHook, Environment};
use tenure_models::Scripted;
use tenure_testkit::{cases, ran_alone};

/// Those alive whose environment has this.
fn marked(mark: &str) -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it == mark.as_bytes()))
        })
        .collect()
}

/// Our children, dead ones that nobody reaped included.
fn children() -> usize {
    let own = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).expect("our tasks");
    tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .map(|children| children.split_whitespace().count())
        .sum()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("our descriptors").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_hung_commands_leave_nothing_behind() {
    if ran_alone() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("hang.sh");
    // It ignores what can be ignored, and forks; one of its children leaves its session.
    let body = "#!/bin/sh\ntrap '' TERM INT HUP\nsleep 600 &\nsetsid sleep 600 &\n\
                echo x >> started; while :; do sleep 600; done\n";
    std::fs::write(&path, body).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    let mark = format!("STRESS_MARK={}", dir.path().display());

    let dir_path = dir.path();
    let hung = |limit| async move {
        let environment = Environment::new().set("STRESS_MARK", dir_path.display().to_string());
        let argv = vec!["./hang.sh".to_owned()];
        let command = CommandHook::new(argv, Point::BeforeAgent, dir_path, environment);
        let agent = Agent::builder("hung")
            .model(Scripted::new(["never"]))
            .with_lifecycle(hook(command).limit(Duration::from_secs(limit)))
            .build()
            .expect("it is built");
        agent.startup().await.expect("it starts");
        let error = agent.run("hello").await.expect_err("it hangs");
        agent.shutdown().await;
        error.report().map(|report| report.failures[0].kind)
    };
    // The first one opens what the runtime keeps for ever.
    assert_eq!(hung(1).await, Some(FaultKind::TimedOut));
    let before = descriptors();
    let commands = cases(60, 200);

    let ended = join_all((0..commands).map(|_| hung(4))).await;
    assert!(ended.iter().all(|kind| *kind == Some(FaultKind::TimedOut)), "{ended:?}");
    let started = std::fs::read_to_string(dir.path().join("started")).expect("some ran");
    assert!(started.lines().count() > commands / 4, "many of them got as far as to hang");

    let since = Instant::now();
    loop {
        let (alive, unreaped, open) = (marked(&mark), children(), descriptors());
        if alive.is_empty() && unreaped == 0 && open <= before {
            break;
        }
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "alive: {alive:?}, children: {unreaped}, descriptors: {open} of {before}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
