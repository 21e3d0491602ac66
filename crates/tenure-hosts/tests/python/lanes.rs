//! The threads that functions run on: one for each instance, with one event loop.

use crate::python::support::{Lab, fault};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook::{FaultKind, Point, hook};
use tenure_core::model::ModelResponse;
use tenure_models::Scripted;
use tenure_testkit::cases;

/// Every function, plain or not, at every point, says where it runs.
const PLACES: &str = r#"
import asyncio, threading, sqlite3, contextvars
local = threading.local()
var = contextvars.ContextVar("var", default="unset")
def place(ctx, what):
    ctx.state[what] = threading.get_ident()
def start(ctx):
    place(ctx, "start")
    ctx.state["db"] = sqlite3.connect(":memory:")
    local.value = ctx.instance_id
    var.set("set")
async def start_later(ctx):
    place(ctx, "start_later")
    ctx.state["lock"] = asyncio.Lock()
    ctx.state["loop"] = id(asyncio.get_running_loop())
    await asyncio.sleep(0)
    var.set("set later")
def turn(ctx):
    place(ctx, "turn")
    ctx.state["db"].execute("select 1")
async def turn_later(ctx):
    place(ctx, "turn_later")
    async with ctx.state["lock"]:
        await asyncio.sleep(0)
    ctx.state["db"].execute("select 1")
    assert id(asyncio.get_running_loop()) == ctx.state["loop"]
def tool(ctx):
    place(ctx, "tool")
    ctx.state["db"].execute("select 1")
    return local.value + " " + var.get()
async def tool_later(ctx):
    place(ctx, "tool_later")
    ctx.state["db"].execute("select 1")
    return local.value + " " + var.get()
def stop(ctx):
    place(ctx, "stop")
    ctx.state["db"].close()
"#;

async fn placed(lab: &Lab) -> Agent {
    let mut agent = lab.agent().tool(lab.tool("tool")).tool(lab.tool("tool_later"));
    for (name, point) in [
        ("start", Point::OnStart),
        ("start_later", Point::OnStart),
        ("turn", Point::BeforeAgent),
        ("turn_later", Point::BeforeAgent),
        ("stop", Point::OnShutdown),
    ] {
        agent = agent.with_lifecycle(lab.hook(name, point));
    }
    lab.started(agent).await
}

#[tokio::test]
async fn every_function_of_an_instance_runs_on_one_thread_with_one_loop() {
    let lab = Lab::new(PLACES);
    let first = placed(&lab).await;
    let clone = first.spawn_detached_instance(None).await.expect("a clone");
    let mut threads = Vec::new();
    for agent in [&first, &clone] {
        for tool in ["tool", "tool_later"] {
            let said = agent.run(format!("***CALL_TOOL {tool} {{}}")).await.expect("it goes on");
            let wanted = format!("{} set later", agent.id());
            assert!(said.output().contains(&wanted), "{}: {wanted}", said.output());
        }
        let places = ["start", "start_later", "turn", "turn_later", "tool", "tool_later"];
        let found: Vec<Value> =
            places.iter().filter_map(|place| agent.state_value(place)).collect();
        assert_eq!(found.len(), places.len());
        assert!(found.iter().all(|place| *place == found[0]), "{found:?}");
        threads.push(found[0].clone());
    }
    assert_ne!(threads[0], threads[1], "each has its own");
    assert_eq!(lab.host.processes().len(), 1);
    clone.shutdown().await;
    first.shutdown().await;
    for agent in [&first, &clone] {
        assert!(agent.failures().is_empty(), "{:?}", agent.failures());
    }
}

#[tokio::test]
async fn a_plain_wrap_waits_on_a_thread_of_its_own_and_what_it_wraps_runs_on_the_instances() {
    let lab = Lab::new(
        r#"
import threading
def start(ctx): ctx.state["start"] = threading.get_ident()
def outer(ctx):
    ctx.state["outer"] = threading.get_ident()
    return ctx.next()
def inner(ctx):
    ctx.state["inner"] = threading.get_ident()
    return ctx.next()
def tool(ctx):
    ctx.state["tool"] = threading.get_ident()
    return "done"
"#,
    );
    let agent = lab
        .agent()
        .tool(lab.tool("tool"))
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("outer", Point::WrapToolCall))
        .with_lifecycle(lab.hook("inner", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        agent.run("***CALL_TOOL tool {}").await.expect("it goes on");
        seen.push(["start", "outer", "inner", "tool"].map(|key| agent.state_value(key)));
    }
    let [start, outer, inner, tool] = &seen[0];
    assert_eq!(start, tool);
    assert!(outer != start && inner != start && outer != inner, "{seen:?}");
    assert!(seen.iter().all(|places| places == &seen[0]), "they are fixed: {seen:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_plain_wrap_sees_the_contextvars_of_its_instance() {
    let lab = Lab::new(
        r#"
import contextvars
tenant = contextvars.ContextVar("tenant", default="none")
def start(ctx): tenant.set("acme")
def wrap(ctx, next):
    return tenant.get() + " " + next().content
def tool(): return tenant.get()
"#,
    );
    let agent = lab
        .agent()
        .tool(lab.tool("tool"))
        .with_lifecycle(lab.hook("start", Point::OnStart))
        .with_lifecycle(lab.hook("wrap", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let said = agent.run("***CALL_TOOL tool {}").await.expect("it goes on");
    assert_eq!(said.output(), "acme acme");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_plain_function_that_turns_out_to_wait_does_not_hold_up_what_it_waits_for() {
    // Parsing the file does not show that this one waits.
    let lab = Lab::new(
        r#"
def wrap(ctx):
    return getattr(ctx, "ne" + "xt")()
def tool(): return "done"
"#,
    );
    let agent =
        lab.agent().tool(lab.tool("tool")).with_lifecycle(lab.hook("wrap", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let said = agent.run("***CALL_TOOL tool {}").await.expect("it goes on");
    assert!(said.output().contains("done"), "{}", said.output());
    agent.shutdown().await;
}

#[tokio::test]
async fn plain_functions_of_an_instance_run_one_after_the_other_and_waiting_is_not_their_time() {
    let lab = Lab::new(
        r#"
import time
running = 0
def tool():
    global running
    running += 1
    assert running == 1
    time.sleep(0.4)
    running -= 1
    return "done"
"#,
    );
    let calls =
        [("tool", json!({})), ("tool", json!({})), ("tool", json!({})), ("tool", json!({}))];
    let model = Scripted::new(Vec::<ModelResponse>::new()).calls(calls).text("over");
    let agent = lab.agent().model(model).tool(lab.tool("tool"));
    let agent = lab.started(agent.tool_limit(Duration::from_millis(1000))).await;
    agent.run("hello").await.expect("it goes on");
    let said = format!("{:?}", agent.history());
    assert_eq!(said.matches("done").count(), 4, "{said}");
    let queued = lab.recorder.announced("python.queued");
    assert!(queued.iter().any(|data| data["called"] == json!(true)), "{queued:?}");
    agent.shutdown().await;
}

#[tokio::test]
async fn the_start_of_python_and_the_import_of_a_module_are_not_the_functions_time() {
    let lab = Lab::new(
        r#"
import time
time.sleep(1)
def turn(ctx): pass
async def later(ctx): pass
"#,
    );
    let limited = |name| hook(lab.hook(name, Point::BeforeAgent)).limit(Duration::from_millis(500));
    let agent = lab.agent().with_lifecycle(limited("turn")).with_lifecycle(limited("later"));
    let agent = lab.started(agent).await;
    agent.run("hello").await.expect("its own time is next to nothing");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_module_that_never_loads_has_a_limit_of_its_own() {
    let lab = Lab::new("import time\ntime.sleep(1000)\ndef turn(ctx): pass\n")
        .limited(Duration::from_millis(700));
    let agent = lab.agent().with_lifecycle(lab.hook("turn", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let (kind, message) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::TimedOut, "{message}");
    assert!(message.contains("takes too long to load"), "{message}");
    agent.shutdown().await;
}

/// What a clone of the team does when it is told.
const TEAM: &str = r#"
import asyncio, contextvars, os, sqlite3, threading, time
log = open(os.path.dirname(__file__) + "/log", "a", buffering=1)
local = threading.local()
name = contextvars.ContextVar("name")
def start(ctx):
    log.write("start %s %s\n" % (ctx.instance_id, ctx.reason))
    local.id = ctx.instance_id
    ctx.state["db"] = sqlite3.connect(":memory:")
    ctx.state["db"].execute("create table t (x)")
async def start_later(ctx):
    ctx.state["lock"] = asyncio.Lock()
    ctx.state["pool"] = asyncio.Queue()
    ctx.state["pool"].put_nowait(ctx.instance_id)
    await asyncio.sleep(0)
    name.set(ctx.instance_id)
def look(ctx):
    assert local.id == ctx.instance_id == name.get()
    ctx.state["db"].execute("insert into t values (1)")
    if "hang" in ctx.input: time.sleep(1000)
    if "die" in ctx.input: os._exit(7)
async def look_later(ctx):
    assert local.id == ctx.instance_id == name.get()
    async with ctx.state["lock"]:
        got = await ctx.state["pool"].get()
        ctx.state["pool"].put_nowait(got)
        ctx.state["db"].execute("select * from t").fetchall()
    if "wait" in ctx.input: await asyncio.sleep(1000)
def stop(ctx):
    assert local.id == ctx.instance_id
    ctx.state["db"].execute("select * from t").fetchall()
    ctx.state["db"].close()
    log.write("stop %s\n" % ctx.instance_id)
"#;

#[tokio::test]
async fn a_team_in_which_one_hangs_one_dies_and_one_is_cancelled_keeps_its_objects_and_its_ends() {
    for round in 0..cases(4, 200) {
        let lab = Lab::new(TEAM);
        let mut agent = lab.agent();
        for (name, point) in [
            ("start", Point::OnStart),
            ("start_later", Point::OnStart),
            ("look", Point::BeforeAgent),
            ("look_later", Point::BeforeAgent),
            ("stop", Point::OnShutdown),
        ] {
            let limit = Duration::from_millis(if name == "look" { 400 } else { 20_000 });
            agent = agent.with_lifecycle(hook(lab.hook(name, point)).limit(limit));
        }
        let root = lab.started(agent).await;
        let mut clones = Vec::new();
        for _ in 0..6 {
            clones.push(root.spawn_detached_instance(None).await.expect("a clone"));
        }
        let work = ["hang", "die", "wait", "plain", "plain", "plain"];
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            clones[2].cancel();
        };
        let runs = clones.iter().zip(work).map(|(clone, input)| clone.run(input));
        let (first, ()) = tokio::join!(futures_util::future::join_all(runs), cancel);
        // Wherever it was, each is there again, with objects of its own.
        for (clone, input) in clones.iter().zip(work) {
            let again = clone.run("again").await;
            assert!(again.is_ok(), "round {round}, {input}: {again:?} after {first:?}");
        }
        let ids: Vec<_> = clones.iter().chain([&root]).map(|agent| agent.id()).collect();
        for agent in clones.iter().chain([&root]) {
            agent.shutdown().await;
            assert!(agent.failures().is_empty(), "round {round}: {:?}", agent.failures());
        }
        lab.host.shutdown().await;
        let log = std::fs::read_to_string(lab.path().join("log")).expect("they wrote");
        for id in ids {
            let starts = log.matches(&format!("start {id} None")).count();
            let stops = log.matches(&format!("stop {id}")).count();
            assert_eq!((starts, stops), (1, 1), "round {round}: {log}");
        }
    }
}
