//! The ways in which a function fails, told apart, and what is left of it.

use crate::python::support::{Lab, fault};
use std::time::{Duration, Instant};
use tenure_core::hook::{FaultKind, Point, hook};
use tenure_testkit::{eventually, is_alive};

#[tokio::test]
async fn each_way_to_fail_has_its_kind() {
    let lab = Lab::new(
        r#"
import os, signal, sys, ctypes, time
def raises(ctx): raise ValueError("that is wrong")
async def raises_later(ctx): raise KeyError("key")
def exits(ctx): sys.exit(3)
def exits_at_once(ctx): os._exit(3)
def crashes(ctx):
    # A signal to a process may reach another of its threads, and this one goes on meanwhile.
    os.kill(os.getpid(), signal.SIGSEGV); time.sleep(10)
def crashes_in_c(ctx): ctypes.string_at(0)
def nonsense(ctx): return 5
def unknown(ctx): return {"alow": True}
def not_json(ctx): return {"finish": object()}
def closes(ctx):
    os.closerange(3, 1000)
def kills_itself(ctx):
    os.kill(os.getpid(), signal.SIGKILL); time.sleep(10)
"#,
    );
    for (name, kind, said) in [
        ("raises", FaultKind::Failed, "ValueError: that is wrong"),
        ("raises_later", FaultKind::Failed, "KeyError: 'key'"),
        ("exits", FaultKind::Failed, "SystemExit: 3"),
        ("exits_at_once", FaultKind::Exited, "exit code 3"),
        ("crashes", FaultKind::Panicked, "SIGSEGV"),
        ("crashes_in_c", FaultKind::Panicked, "SIGSEGV"),
        ("nonsense", FaultKind::BadReply, "it returned int"),
        ("unknown", FaultKind::BadReply, "`alow` is unknown"),
        ("not_json", FaultKind::BadReply, "not JSON"),
        ("kills_itself", FaultKind::Panicked, "SIGKILL"),
        ("missing", FaultKind::Failed, "AttributeError"),
    ] {
        let agent = lab.agent().with_lifecycle(lab.hook(name, Point::BeforeAgent));
        let agent = lab.started(agent).await;
        let result = agent.run("hello").await;
        assert!(result.is_err(), "{name} does not fail");
        let (found, message) = fault(result);
        assert_eq!(found, kind, "{name}: {message}");
        assert!(message.contains(said), "{name}: {message}");
        agent.shutdown().await;
    }
    // Without its pipes a worker is as good as crashed; it does not hang.
    let agent = lab.agent().with_lifecycle(lab.hook("closes", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let (found, message) = fault(agent.run("hello").await);
    assert!(matches!(found, FaultKind::Panicked | FaultKind::Exited), "{found:?}: {message}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_traceback_is_logged() {
    let lab = Lab::new("def raises(ctx):\n    raise ValueError('wrong')\n");
    let agent = lab.agent().with_lifecycle(lab.hook("raises", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let _ = fault(agent.run("hello").await);
    let lines = lab.recorder.logged();
    assert!(lines.iter().any(|(_, _, line)| line.contains("hooks.py\", line 2")), "{lines:?}");
    assert!(!lines.iter().any(|(_, _, line)| line.contains("tenure worker")), "{lines:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_file_is_said_by_each_call() {
    for (source, said) in [
        ("import no_such_module\ndef f(ctx): pass\n", "No module named 'no_such_module'"),
        ("def f(ctx) pass\n", "SyntaxError"),
        ("1 / 0\ndef f(ctx): pass\n", "ZeroDivisionError"),
    ] {
        let lab = Lab::new(source);
        let agent = lab.agent().with_lifecycle(lab.hook("f", Point::BeforeAgent));
        let agent = lab.started(agent).await;
        for _ in 0..2 {
            let (kind, message) = fault(agent.run("hello").await);
            assert_eq!(kind, FaultKind::Failed);
            assert!(message.contains(said), "{message}");
        }
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_process_that_does_not_answer_is_killed_with_everything_that_it_started() {
    let lab = Lab::new(
        r#"
import ctypes, os, subprocess, time
def hangs(ctx):
    script = "trap '' TERM HUP INT; echo $$ > %s; exec sleep 1000"
    here = os.path.dirname(__file__)
    subprocess.Popen(["sh", "-c", script % (here + "/child")])
    subprocess.Popen(["sh", "-c", script % (here + "/daemon")], start_new_session=True)
    if os.fork() == 0:
        open(here + "/forked", "w").write(str(os.getpid()))
        time.sleep(1000)
    # A call of C that keeps the interpreter for itself.
    ctypes.PyDLL(None).sleep(1000)
"#,
    );
    let hangs = hook(lab.hook("hangs", Point::BeforeAgent)).limit(Duration::from_secs(2));
    let agent = lab.started(lab.agent().with_lifecycle(hangs)).await;
    lab.host.warm().await;
    let since = Instant::now();
    let (kind, _) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::TimedOut);
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    for name in ["child", "daemon", "forked"] {
        let pid = std::fs::read_to_string(lab.path().join(name)).expect("it was started");
        eventually(name, || !is_alive(&pid)).await;
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_crash_ends_what_else_ran_there_and_the_next_call_works() {
    let lab = Lab::new(
        r#"
import os, asyncio
alive = {"count": 0}
async def waits(ctx):
    if ctx.input == "wait":
        alive["count"] += 1
        await asyncio.sleep(1000)
async def crash(ctx):
    if ctx.input == "crash":
        while alive["count"] == 0:
            await asyncio.sleep(0.01)
        os.abort()
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("waits", Point::BeforeAgent))
        .with_lifecycle(lab.hook("crash", Point::BeforeAgent));
    let first = lab.started(agent).await;
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("waits", Point::BeforeAgent))
        .with_lifecycle(lab.hook("crash", Point::BeforeAgent));
    let second = lab.started(agent).await;
    lab.host.join(first.id(), "group");
    lab.host.join(second.id(), "group");
    let (one, two) = tokio::join!(first.run("wait"), second.run("crash"));
    for result in [one, two] {
        let (kind, message) = fault(result);
        assert_eq!(kind, FaultKind::Panicked, "{message}");
        assert!(message.contains("SIGABRT"), "{message}");
    }
    first.run("hello").await.expect("another worker took its place");
    second.run("hello").await.expect("another worker took its place");
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn a_limit_of_one_hook_costs_its_neighbours_nothing() {
    let lab = Lab::new(
        r#"
import asyncio, os, time
def slow(ctx): time.sleep(1000)
def spins(ctx):
    while True: pass
async def waits(ctx): await asyncio.sleep(4)
def sleeps(ctx): time.sleep(4)
def pid(ctx): ctx.state["pid"] = os.getpid()
"#,
    );
    let agent = async |name: &str| {
        let limited = hook(lab.hook(name, Point::BeforeAgent)).limit(Duration::from_secs(2));
        let own = match name {
            "slow" | "spins" => limited,
            name => hook(lab.hook(name, Point::BeforeAgent)),
        };
        let pid = lab.hook("pid", Point::AfterAgent);
        let agent = lab.agent().with_lifecycle(own).with_lifecycle(pid);
        let agent = lab.started(agent).await;
        lab.host.join(agent.id(), "group");
        agent
    };
    let names = ["slow", "spins", "waits", "sleeps"];
    let mut agents = Vec::new();
    for name in names {
        agents.push(agent(name).await);
    }
    lab.host.warm().await;
    let runs = agents.iter().map(|agent| agent.run("x"));
    let ended = futures_util::future::join_all(runs).await;
    for (name, ended) in names.into_iter().zip(ended) {
        match name {
            "slow" | "spins" => assert_eq!(fault(ended).0, FaultKind::TimedOut, "{name}"),
            name => drop(ended.unwrap_or_else(|error| panic!("{name}: {error}"))),
        }
    }
    let pids: Vec<_> = agents.iter().map(|agent| agent.state_value("pid")).collect();
    assert!(pids[0].is_some() && pids.iter().all(|pid| *pid == pids[0]), "one process: {pids:?}");
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_cancelled_turn_cancels_the_function_and_keeps_the_worker() {
    let lab = Lab::new(
        r#"
import asyncio, os
def pid(ctx):
    ctx.state["pid"] = os.getpid()
async def waits(ctx):
    if ctx.input != "wait":
        return
    here = os.path.dirname(__file__)
    open(here + "/begun", "w").close()
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        open(here + "/cancelled", "w").close()
        raise
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("pid", Point::BeforeAgent))
        .with_lifecycle(lab.hook("waits", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let cancel = async {
        eventually("it began", || lab.path().join("begun").exists()).await;
        agent.cancel();
    };
    let (result, ()) = tokio::join!(agent.run("wait"), cancel);
    assert!(result.expect_err("it was cancelled").is_cancelled());
    eventually("it was told", || lab.path().join("cancelled").exists()).await;
    let before = agent.state_value("pid");
    agent.run("hello").await.expect("the worker is there");
    assert_eq!(agent.state_value("pid"), before);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_hundred_megabytes_of_output_do_no_harm() {
    let lab = Lab::new(
        r#"
import os
def prints(ctx):
    line = "x" * 1000
    for _ in range(100_000):
        print(line)
    print("y" * 20_000_000)
    os.write(1, b"z" * 5_000_000)
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("prints", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    let size: usize = lab.recorder.logged().iter().map(|(_, _, line)| line.len()).sum();
    assert!((100_000..2_000_000).contains(&size), "{size}");
    agent.shutdown().await;
}
