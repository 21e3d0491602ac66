//! Who shares a worker, for how long, and what is left of it.

use crate::python::support::Lab;
use serde_json::json;
use std::time::{Duration, Instant};
use tenure_core::hook::{Point, Policy, Registration, hook};
use tenure_hosts::{Environment, PythonHook, Role};
use tenure_testkit::{cases, eventually, is_alive};

const COUNTING: &str = r#"
import os
count = 0
def start(ctx):
    global count
    count += 1
def turn(ctx):
    ctx.state["count"] = count
    ctx.state["pid"] = os.getpid()
def stop(ctx):
    open(os.path.dirname(__file__) + "/" + ctx.instance_id, "w").write(str(count))
"#;

#[tokio::test]
async fn a_module_is_loaded_once_for_a_life_and_not_shared_with_another() {
    let lab = Lab::new(COUNTING);
    let agent = || {
        lab.agent()
            .with_lifecycle(lab.host.keeper())
            .with_lifecycle(lab.hook("start", Point::OnStart))
            .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
            .with_lifecycle(lab.hook("stop", Point::OnShutdown))
    };
    let first = lab.started(agent()).await;
    let second = lab.started(agent()).await;
    for agent in [&first, &second] {
        agent.run("hello").await.expect("it goes on");
        assert_eq!(agent.state_value("count"), Some(json!(1)));
    }
    assert_ne!(first.state_value("pid"), second.state_value("pid"));
    let pids = lab.host.processes();
    assert_eq!(pids.len(), 2);
    for agent in [&first, &second] {
        agent.shutdown().await;
        let left = std::fs::read_to_string(lab.path().join(agent.id().to_string()));
        assert_eq!(left.ok().as_deref(), Some("1"));
    }
    assert_eq!(lab.host.processes().len(), 0, "the keeper ended them");
    for pid in pids {
        eventually("the worker is gone", || !is_alive(&pid.to_string())).await;
    }
}

#[tokio::test]
async fn a_group_shares_a_worker_and_a_clone_that_of_its_family() {
    let lab = Lab::new(COUNTING);
    let agent = || {
        lab.agent()
            .with_lifecycle(lab.hook("start", Point::OnStart))
            .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
    };
    let (first, second) = (agent().build().expect("built"), agent().build().expect("built"));
    for agent in [&first, &second] {
        lab.host.join(agent.id(), "chat");
        agent.startup().await.expect("it starts");
    }
    let clone = first.spawn_detached_instance(None).await.expect("a clone");
    for agent in [&first, &second, &clone] {
        agent.run("hello").await.expect("it goes on");
        assert_eq!(agent.state_value("count"), Some(json!(3)));
    }
    assert_eq!(lab.host.processes().len(), 1);
    clone.shutdown().await;
    first.shutdown().await;
    second.shutdown().await;
    lab.host.shutdown().await;
}

#[tokio::test]
async fn live_objects_are_gone_after_a_crash() {
    let lab = Lab::new(
        r#"
import os
def turn(ctx):
    if ctx.input == "crash":
        os.abort()
    found = "pool" in ctx.state
    ctx.state["pool"] = object()
    return {"finish": str(found)}
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    for (text, found) in [("a", "False"), ("b", "True")] {
        assert_eq!(agent.run(text).await.expect("it finishes").output(), found);
    }
    agent.run("crash").await.expect_err("it crashes");
    assert_eq!(agent.run("c").await.expect("it finishes").output(), "False");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_live_object_that_was_lost_is_never_another_and_says_who_had_made_it() {
    let lab = Lab::new(
        r#"
import os
class Pool:
    pass
def turn(ctx):
    if ctx.input == "crash":
        os.abort()
    if ctx.input == "fill":
        ctx.state["pool"], ctx.state["plain"] = Pool(), 1
    elif ctx.input == "other":
        ctx.state["other"] = Pool()
    elif ctx.input == "default":
        return {"finish": str(ctx.state.get("pool", "no pool"))}
    elif ctx.input == "keys":
        return {"finish": " ".join(sorted(ctx.state))}
    elif ctx.input == "remove":
        del ctx.state["pool"]
    else:
        return {"finish": str(ctx.state.get("pool"))}
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("fill").await.expect("it goes on");
    agent.run("crash").await.expect_err("it crashes");
    agent.run("other").await.expect("it goes on");
    let lost = agent.run("take").await.expect_err("it is lost").to_string();
    for part in ["LostObject: `pool` is lost", "`hooks.py:turn`", "a Pool", "again_on_resume"] {
        assert!(lost.contains(part), "{lost}");
    }
    for (text, said) in [("default", "no pool"), ("keys", "other plain")] {
        assert_eq!(agent.run(text).await.expect("it finishes").output(), said);
    }
    assert_eq!(agent.state_value("pool").expect("it stands for it")["$live"], "Pool");
    agent.run("remove").await.expect("it goes on");
    assert_eq!(agent.run("take").await.expect("it is not there").output(), "None");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_hundred_coroutines_and_ten_sleeping_functions_run_side_by_side() {
    let lab = Lab::new(
        r#"
import asyncio, time
async def later(ctx):
    await asyncio.sleep(0.3)
def sleeps(ctx):
    time.sleep(0.3)
"#,
    );
    for (name, count) in [("later", 100), ("sleeps", 10)] {
        let mut agents = Vec::new();
        for _ in 0..count {
            let agent = lab.agent().with_lifecycle(lab.hook(name, Point::BeforeAgent));
            let agent = lab.started(agent).await;
            lab.host.join(agent.id(), "all");
            agents.push(agent);
        }
        agents[0].run("warm").await.expect("it goes on");
        let since = Instant::now();
        let runs = agents.iter().map(|agent| agent.run("hello"));
        for result in futures_util::future::join_all(runs).await {
            result.expect("it goes on");
        }
        let one_by_one = Duration::from_millis(300) * count;
        assert!(since.elapsed() < one_by_one / 2, "{name}: {:?}", since.elapsed());
        assert_eq!(lab.host.processes().len(), 1);
        for agent in agents {
            agent.shutdown().await;
        }
    }
}

#[tokio::test]
async fn tasks_that_a_hook_leaves_behind_run_on() {
    let lab = Lab::new(
        r#"
import asyncio
ticks = []
async def tick():
    while True:
        ticks.append(1)
        await asyncio.sleep(0.01)
async def start(ctx):
    ctx.state["task"] = asyncio.create_task(tick())
async def look(ctx):
    return {"finish": str(len(ticks))}
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let ticks = async || {
        let report = agent.run("hello").await.expect("it finishes");
        report.output().parse::<usize>().expect("a number")
    };
    let first = ticks().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(ticks().await >= first + 5);
    agent.shutdown().await;
}

#[tokio::test]
async fn killing_and_dropping_the_host_leaves_nothing() {
    let lab = Lab::new(COUNTING);
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    let pids = lab.host.processes();
    lab.host.kill();
    for pid in &pids {
        eventually("killed", || !is_alive(&pid.to_string())).await;
    }
    let error = agent.run("hello").await.expect_err("it is over");
    assert!(error.to_string().contains("shut down"), "{error}");
    agent.shutdown().await;

    let lab = Lab::new(COUNTING);
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    let pids = lab.host.processes();
    agent.shutdown().await;
    drop((agent, lab));
    for pid in &pids {
        eventually("dropped", || !is_alive(&pid.to_string())).await;
    }
}

#[tokio::test]
async fn a_hook_that_closes_its_inbox_costs_the_next_call_nothing() {
    let lab = Lab::new(
        r#"
import os
def closes(ctx):
    if ctx.input == "close":
        for fd in range(64, 70):
            try:
                target = os.readlink("/proc/self/fd/%d" % fd)
            except OSError:
                continue
            flags = open("/proc/self/fdinfo/%d" % fd).read().split("flags:")[1].split()[0]
            if target.startswith("pipe:") and int(flags, 8) & 3 == 0:
                os.close(fd)
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("closes", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it goes on");
    let _ = agent.run("close").await;
    agent.run("hello").await.expect("another worker took its place");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_call_right_after_a_crash_never_hangs_and_is_served_by_another_worker() {
    let lab = Lab::new(
        r#"
import os, signal, time
def turn(ctx):
    if ctx.input == "kill":
        os.kill(os.getpid(), signal.SIGKILL); time.sleep(1000)
    if ctx.input == "exit":
        os._exit(1)
    return {"finish": str(os.getpid())}
"#,
    );
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let run = async |text: &str| {
        let limit = Duration::from_secs(20);
        tokio::time::timeout(limit, agent.run(text)).await.expect("it does not hang")
    };
    let mut seen = std::collections::HashSet::new();
    for round in 0..cases(40, 200) {
        let report = run("hello").await.expect("another worker took its place");
        assert!(seen.insert(report.output().to_owned()), "{} is dead", report.output());
        run(if round % 2 == 0 { "kill" } else { "exit" }).await.expect_err("it crashes");
    }
    agent.shutdown().await;
    lab.host.shutdown().await;
}

#[tokio::test]
async fn two_hosts_do_not_disturb_each_other() {
    let (first_lab, second_lab) = (Lab::new(COUNTING), Lab::new(COUNTING));
    let mut agents = Vec::new();
    for lab in [&first_lab, &second_lab] {
        let agent = lab
            .agent()
            .with_lifecycle(lab.hook("start", Point::OnStart))
            .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
        let agent = agent.build().expect("built");
        // The name of a group means something to its own host only.
        lab.host.join(agent.id(), "group");
        agent.startup().await.expect("it starts");
        agents.push(agent);
    }
    let [first, second] = &agents[..] else { panic!("there are two") };
    for _ in 0..20 {
        let (one, two) = tokio::join!(first.run("hello"), second.run("hello"));
        one.expect("it goes on");
        two.expect("it goes on");
        for agent in [first, second] {
            assert_eq!(agent.state_value("count"), Some(json!(1)), "a module of its own");
        }
    }
    assert_ne!(first.state_value("pid"), second.state_value("pid"));
    let pid = second.state_value("pid");
    first_lab.host.kill();
    first.run("hello").await.expect_err("its host is closed");
    second.run("hello").await.expect("its host is not");
    assert_eq!(second.state_value("pid"), pid, "nobody replaced its worker");
    second_lab.host.shutdown().await;
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_hundred_clones_of_one_root_use_two_processes() {
    let lab = Lab::new(&format!("{COUNTING}def guard(ctx): return {{'allow': True}}\n"));
    let agent = lab
        .agent()
        .with_lifecycle(lab.host.keeper())
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
        .with_lifecycle(guarding(lab.hook("guard", Point::BeforeAgent).role(Role::Guard)));
    let root = lab.started(agent).await;
    let mut clones = Vec::new();
    for _ in 0..100 {
        clones.push(root.spawn_detached_instance(None).await.expect("a clone"));
    }
    for ran in futures_util::future::join_all(clones.iter().map(|clone| clone.run("hello"))).await {
        ran.expect("it goes on");
    }
    assert_eq!(lab.host.processes().len(), 2, "one worker, and one for guards");
    for clone in &clones {
        assert_eq!(clone.state_value("count"), Some(json!(101)), "they share its module");
        clone.shutdown().await;
    }
    root.shutdown().await;
    assert_eq!(lab.host.processes().len(), 0);
}

#[tokio::test]
async fn functions_of_equal_environments_share_a_process_of_their_own() {
    let lab = Lab::new(
        r#"
import os
count = 0
def note(ctx, name):
    global count
    count += 1
    ctx.state[name] = f"{os.environ.get('WHERE')} {count}"
    ctx.state[name + " pid"] = os.getpid()
def start(ctx): note(ctx, "start")
def usual(ctx): note(ctx, "usual")
def own(ctx): note(ctx, "own")
def guard(ctx):
    note(ctx, "guard")
    return {"allow": True}
def dies(ctx):
    if ctx.input == "die": os._exit(1)
"#,
    );
    let elsewhere = || Environment::new().set("WHERE", "elsewhere");
    let agent = lab
        .agent()
        .with_lifecycle(lab.host.keeper())
        .with_lifecycle(lab.hook("start", Point::OnStart).environment(elsewhere()))
        .with_lifecycle(lab.hook("usual", Point::BeforeAgent).environment(Environment::new()))
        .with_lifecycle(lab.hook("own", Point::BeforeAgent).environment(elsewhere()))
        .with_lifecycle(guarding(
            lab.hook("guard", Point::BeforeAgent).role(Role::Guard).environment(elsewhere()),
        ))
        .with_lifecycle(lab.hook("dies", Point::BeforeAgent).environment(elsewhere()));
    let agent = lab.started(agent).await;
    let state = |name: &str| agent.state_value(name).expect("it was set");
    agent.run("hello").await.expect("it goes on");
    for (name, found) in [
        ("start", "elsewhere 1"),
        ("usual", "None 1"),
        ("own", "elsewhere 2"),
        ("guard", "elsewhere 1"),
    ] {
        assert_eq!(state(name), found, "{name}");
    }
    assert_eq!(lab.host.processes().len(), 3);
    assert_eq!(state("start pid"), state("own pid"));
    // What happens to one of them happens to that one alone: it is replaced, and the instance started again there.
    let pids = ["usual pid", "own pid", "guard pid"].map(state);
    agent.run("die").await.expect_err("it dies");
    agent.run("hello").await.expect("another worker took its place");
    let now = ["usual pid", "own pid", "guard pid"].map(state);
    assert!(now[0] == pids[0] && now[1] != pids[1] && now[2] == pids[2], "{pids:?} {now:?}");
    assert_eq!((state("start"), state("start pid")), (json!("elsewhere 1"), now[1].clone()));
    agent.shutdown().await;
    assert_eq!(lab.host.processes().len(), 0, "the keeper ended them all");
}

fn guarding(guard: PythonHook) -> Registration {
    hook(guard).policy(Policy::Deny)
}
