//! A worker or a thread that another one takes the place of.

use crate::python::support::{Lab, fault};
use std::time::Duration;
use tenure_core::hook::{FaultKind, Point, Policy, hook};
use tenure_core::{ExitReason, Outcome};
use tenure_hosts::Role;
use tenure_testkit::eventually;

const COUNTED: &str = r#"
import os, time, ctypes
here = os.path.dirname(__file__)
def note(text):
    with open(here + "/log", "a") as log: log.write(text + "\n")
def start(ctx):
    note("start %s" % ctx.reason)
    ctx.state["pool"] = object()
def turn(ctx):
    ctx.state["pool"]
    if ctx.input == "crash": os._exit(3)
    if ctx.input == "hang": time.sleep(1000)
    if ctx.input == "hold": ctypes.PyDLL(None).sleep(1000)
def after(ctx): note("after %s" % ctx.delivery_id)
def stop(ctx): note("stop %s" % ctx.started)
"#;

fn log(lab: &Lab) -> String {
    std::fs::read_to_string(lab.path().join("log")).unwrap_or_default()
}

#[tokio::test]
async fn a_living_instance_is_started_again_where_its_next_call_goes() {
    for (input, kind) in
        [("crash", FaultKind::Exited), ("hang", FaultKind::TimedOut), ("hold", FaultKind::TimedOut)]
    {
        let lab = Lab::new(COUNTED);
        let turn = hook(lab.hook("turn", Point::BeforeAgent)).limit(Duration::from_millis(500));
        let agent = lab
            .agent()
            .with_lifecycle(lab.hook("start", Point::OnStart))
            .with_lifecycle(turn)
            .with_lifecycle(lab.hook("stop", Point::OnShutdown));
        let agent = lab.started(agent).await;
        assert_eq!(fault(agent.run(input).await).0, kind, "{input}");
        agent.run("hello").await.expect("its objects are there");
        agent.shutdown().await;
        assert_eq!(log(&lab), "start None\nstart worker_replaced\nstop True\n", "{input}");
        let told = lab.recorder.announced("python.worker_replaced");
        assert_eq!(told.len(), 1, "{input}: {told:?}");
        lab.host.shutdown().await;
    }
}

/// Whoever reaps the process has not heard of its death when the next call is made.
#[tokio::test]
async fn a_call_to_a_worker_that_has_just_died_goes_to_the_next() {
    let lab = Lab::new(COUNTED);
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("it runs");
    lab.host.warm().await;
    for process in lab.host.processes() {
        let status = std::process::Command::new("kill").args(["-9", &process.to_string()]).status();
        assert!(status.expect("it is sent").success());
        let stat = || std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let threads =
            || std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
        while !(stat().contains(") Z ") || stat().is_empty()) || threads() > 1 {
            std::thread::yield_now();
        }
    }
    agent.run("hello").await.expect("the next worker takes it");
    assert_eq!(log(&lab), "start None\nstart worker_replaced\n");
}

#[tokio::test]
async fn an_instance_that_cannot_be_started_again_ends_as_fatal_and_still_stops_once() {
    let lab = Lab::new(
        r#"
import os
here = os.path.dirname(__file__)
def start(ctx):
    if ctx.reason: raise ValueError("no second time")
def turn(ctx):
    if ctx.input == "crash": os._exit(3)
def stop(ctx):
    with open(here + "/log", "a") as log: log.write("stop\n")
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
        .with_lifecycle(lab.hook("stop", Point::OnShutdown));
    let agent = lab.started(agent).await;
    agent.run("crash").await.expect_err("it crashes");
    let error = agent.run("hello").await.expect_err("it cannot go on");
    assert!(error.is_fatal(), "{error}");
    assert!(error.to_string().contains("no second time"), "{error}");
    eventually("it ends", || agent.exit_reason() == Some(ExitReason::Fatal)).await;
    assert_eq!(log(&lab), "stop\n");
}

#[tokio::test]
async fn a_turn_that_is_cut_while_its_agent_is_started_again_does_not_end_the_agent() {
    let lab = Lab::new(
        r#"
import asyncio, os, time
here = os.path.dirname(__file__)
def note(text):
    with open(here + "/log", "a") as log: log.write(text + "\n")
def noted(text):
    return os.path.exists(here + "/log") and text in open(here + "/log").read()
# Each is slow once: the module where it is loaded again, then the start itself.
if noted("crash") and not noted("loads"):
    note("loads")
    for _ in range(4000): time.sleep(0.005)
async def start(ctx):
    if ctx.reason and not noted("starts"):
        note("starts")
        await asyncio.sleep(20)
def turn(ctx):
    if ctx.input == "crash":
        note("crash")
        os._exit(3)
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("crash").await.expect_err("it crashes");
    for slow in ["loads", "starts"] {
        let cancel = async {
            eventually("it is started again", || log(&lab).contains(slow)).await;
            agent.cancel();
        };
        let (cancelled, ()) = tokio::join!(agent.run("hello"), cancel);
        let error = cancelled.expect_err("it was cancelled");
        assert_eq!(error.outcome(), Outcome::Cancelled, "{slow}: {error}");
    }
    agent.run("hello").await.expect("it is started again in its own time");
    let limit = Duration::from_millis(150);
    agent.run("crash").await.expect_err("it crashes");
    std::fs::write(lab.path().join("log"), "crash\nloads\n").expect("written");
    let late = agent.request("hello").limit(limit).run().await;
    assert_eq!(late.expect_err("its time was up").outcome(), Outcome::TimedOut);
    agent.run("hello").await.expect("it is started again in its own time");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_worker_that_is_replaced_is_not_that_of_the_guards() {
    let lab = Lab::new(
        r#"
import os
def note(text):
    with open(os.path.dirname(__file__) + "/log", "a") as log: log.write(text + "\n")
def start(ctx): note("start %s" % ctx.reason)
def guard(ctx):
    note("guard %s" % ctx.reason)
    return {"allow": True}
def turn(ctx):
    if ctx.input == "crash": os._exit(3)
"#,
    );
    let guard = hook(lab.hook("guard", Point::OnStart).role(Role::Guard)).policy(Policy::Deny);
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(guard)
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("crash").await.expect_err("it crashes");
    agent.run("hello").await.expect("it is started again");
    assert_eq!(log(&lab), "start None\nguard None\nstart worker_replaced\n");
    agent.shutdown().await;
}

#[tokio::test]
async fn an_end_that_dies_with_a_process_it_did_not_kill_is_delivered_again_with_the_same_id() {
    let lab = Lab::new(
        r#"
import os, time, asyncio
here = os.path.dirname(__file__)
def turn(ctx):
    if ctx.input == "crash":
        while not os.path.exists(here + "/log"): time.sleep(0.01)
        os._exit(3)
async def after(ctx):
    if ctx.input == "crash": return
    is_first = not os.path.exists(here + "/log")
    with open(here + "/log", "a") as log: log.write(ctx.delivery_id + "\n")
    if is_first: await asyncio.sleep(1000)
"#,
    );
    let build = || {
        lab.agent()
            .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
            .with_lifecycle(lab.hook("after", Point::AfterAgent))
    };
    let first = lab.started(build()).await;
    let second = lab.started(build()).await;
    for agent in [&first, &second] {
        lab.host.join(agent.id(), "group");
    }
    let (well, crashed) = tokio::join!(first.run("hello"), second.run("crash"));
    let report = well.expect("its turn went well");
    assert_eq!(report.outcome, Outcome::Ok);
    assert!(report.failures.is_empty(), "{:?}", report.failures);
    crashed.expect_err("it crashed");
    let log = log(&lab);
    let ids: Vec<_> = log.lines().collect();
    let same = ids.iter().filter(|id| **id == ids[0]).count();
    assert_eq!(same, 2, "delivered again, as the same: {ids:?}");
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn the_ends_of_a_cancelled_turn_arrive_whatever_the_function_does() {
    for body in [
        "time.sleep(1000)",
        "ctypes.PyDLL(None).sleep(1000)",
        "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)",
        "\n    while True: pass",
    ] {
        for style in ["def", "async def"] {
            let source = format!(
                r#"
import os, time, ctypes, signal
here = os.path.dirname(__file__)
{style} turn(ctx):
    open(here + "/begun", "w").close()
    {body}
def after(ctx):
    with open(here + "/log", "a") as log: log.write("after %s\n" % ctx.outcome)
def stop(ctx):
    with open(here + "/log", "a") as log: log.write("stop %s\n" % ctx.started)
"#
            );
            let lab = Lab::new(&source);
            let agent = lab
                .agent()
                .with_lifecycle(lab.hook("turn", Point::BeforeAgent))
                .with_lifecycle(lab.hook("after", Point::AfterAgent))
                .with_lifecycle(lab.hook("stop", Point::OnShutdown));
            let agent = lab.started(agent).await;
            let cancel = async {
                eventually("it began", || lab.path().join("begun").exists()).await;
                agent.cancel();
            };
            let (result, ()) = tokio::join!(agent.run("hello"), cancel);
            let error = result.map(drop).expect_err(&format!("{style} {body} was cancelled"));
            assert!(error.is_cancelled(), "{style} {body}: {error}");
            agent.shutdown().await;
            assert_eq!(log(&lab), "after cancelled\nstop True\n", "{style} {body}");
            lab.host.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_start_whose_function_never_began_is_told_at_the_stop() {
    let lab = Lab::new(
        r#"
import os, time
here = os.path.dirname(__file__)
if not os.path.exists(here + "/seen"):
    open(here + "/seen", "w").close()
    time.sleep(1000)
def start(ctx): pass
def stop(ctx):
    with open(here + "/log", "a") as log: log.write("stop %s\n" % ctx.started)
"#,
    )
    .limited(Duration::from_millis(700));
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("stop", Point::OnShutdown))
        .build()
        .expect("the agent is complete");
    agent.startup().await.expect_err("its module does not load in time");
    assert!(
        agent.failures().iter().all(|it| &*it.point != "on_shutdown"),
        "{:?}",
        agent.failures()
    );
    assert_eq!(log(&lab), "stop False\n");
    lab.host.shutdown().await;
}

#[tokio::test]
async fn a_process_with_many_threads_that_never_came_back_is_replaced_when_it_is_idle() {
    let lab = Lab::new(
        "import os, time\ndef turn(ctx):\n    if ctx.input == 'hang': time.sleep(1000)\n    return {'finish': str(os.getpid())}\n",
    );
    let turn = hook(lab.hook("turn", Point::BeforeAgent)).limit(Duration::from_millis(50));
    let agent = lab.started(lab.agent().with_lifecycle(turn)).await;
    let pid = async || agent.run("hello").await.expect("it finishes").output().to_owned();
    let first = pid().await;
    let mut hung = 0;
    while pid().await == first {
        agent.run("hang").await.expect_err("it hangs");
        hung += 1;
        assert!(hung < 20, "it is never replaced");
    }
    assert!(hung > 2, "one such thread costs no process");
    agent.shutdown().await;
}

#[tokio::test]
async fn threads_that_come_back_after_all_cost_no_process() {
    let lab = Lab::new(
        "import os, time\ndef turn(ctx):\n    if ctx.input == 'late': time.sleep(2.5)\n    return {'finish': str(os.getpid())}\n",
    );
    let mut agents = Vec::new();
    for _ in 0..10 {
        let turn = hook(lab.hook("turn", Point::BeforeAgent)).limit(Duration::from_millis(100));
        let agent = lab.started(lab.agent().with_lifecycle(turn)).await;
        lab.host.join(agent.id(), "group");
        agents.push(agent);
    }
    let first = agents[0].run("hello").await.expect("it finishes").output().to_owned();
    for late in futures_util::future::join_all(agents.iter().map(|it| it.run("late"))).await {
        late.expect_err("it is late");
    }
    tokio::time::sleep(Duration::from_millis(3500)).await;
    for agent in &agents {
        assert_eq!(agent.run("hello").await.expect("it finishes").output(), first);
    }
    for agent in agents {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn starts_that_are_cut_and_never_return_count_as_threads_that_were_given_up() {
    let lab = Lab::new(
        r#"
import os, time
here = os.path.dirname(__file__)
def start(ctx):
    if ctx.reason: time.sleep(1000)
def turn(ctx):
    if ctx.input == "crash": os._exit(3)
"#,
    );
    let agent = lab
        .agent()
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    agent.run("crash").await.expect_err("it crashes");
    let mut seen = std::collections::HashSet::new();
    for tries in 0.. {
        let limit = Duration::from_millis(300);
        let late = agent.request("hello").limit(limit).run().await;
        assert_eq!(late.expect_err("its time was up").outcome(), Outcome::TimedOut);
        seen.extend(lab.host.processes());
        if seen.len() > 1 {
            assert!(tries > 2, "one such thread costs no process");
            break;
        }
        assert!(tries < 20, "it is never replaced");
    }
    lab.host.kill();
    agent.shutdown().await;
}
