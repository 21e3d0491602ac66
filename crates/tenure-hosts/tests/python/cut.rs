//! Calls that are cut off: what has not begun does not begin any more, and nothing else is lost with it.

use crate::python::support::Lab;
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::ask::PendingAsk;
use tenure_core::chat::Chat;
use tenure_core::hook::{Point, hook};
use tenure_core::life::LifecycleConfig;
use tenure_core::model::ModelResponse;
use tenure_models::Scripted;
use tenure_testkit::eventually;
use tokio::time::{sleep, timeout};

const NOTES: &str = r#"
import asyncio, os, signal, time
here = os.path.dirname(__file__)
def note(text):
    with open(here + "/log", "a") as log: log.write(text + "\n")
"#;

fn lab(functions: &str) -> Lab {
    Lab::new(&format!("{NOTES}{functions}"))
}

/// Returns how often a line was noted.
fn noted(lab: &Lab, line: &str) -> usize {
    let log = std::fs::read_to_string(lab.path().join("log")).unwrap_or_default();
    log.lines().filter(|noted| *noted == line).count()
}

fn calling(tools: &[(&str, Value)]) -> Scripted {
    let calls = tools.iter().map(|(tool, arguments)| (*tool, arguments.clone()));
    Scripted::new(Vec::<ModelResponse>::new()).calls(calls).text("over")
}

const MILLIS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn g1_the_end_of_a_turn_whose_time_is_up_is_delivered() {
    for tool in ["waits", "sleeps", "computes"] {
        let lab = lab(r#"
async def waits(): await asyncio.sleep(100)
def sleeps(): time.sleep(1.5)
def computes():
    while True: time.sleep(0.005)
async def after(ctx): note(str(ctx.outcome))
"#);
        let agent = lab
            .agent()
            .model(calling(&[(tool, json!({}))]))
            .tool(lab.tool(tool))
            .turn_limit(400 * MILLIS)
            .with_lifecycle(lab.hook("after", Point::AfterAgent));
        let agent = lab.started(agent).await;
        let error = agent.run("go").await.expect_err("it takes too long");
        assert_eq!(error.outcome(), Outcome::TimedOut, "{tool}: {error}");
        let report = error.report().expect("a report");
        assert!(report.failures.is_empty(), "{tool}: {:?}", report.failures);
        assert_eq!(noted(&lab, "timed_out"), 1, "{tool}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn g7_a_call_behind_a_thread_that_is_given_up_runs_once() {
    let lab = lab(r#"
def blocks(): time.sleep(2.5)
async def pays():
    note("paid")
    return "paid"
async def first(): return "first"
"#);
    let model = Scripted::new(Vec::<ModelResponse>::new())
        .calls([("first", json!({})), ("pays", json!({}))])
        .calls([("blocks", json!({})), ("pays", json!({}))])
        .text("over");
    let tools = ["blocks", "pays", "first"].map(|name| lab.tool(name));
    let agent = tools.into_iter().fold(lab.agent().model(model), |agent, tool| agent.tool(tool));
    let agent = lab.started(agent.tool_limit(300 * MILLIS)).await;
    agent.run("go").await.expect("a tool that fails is a result");
    sleep(2000 * MILLIS).await;
    assert_eq!(noted(&lab, "paid"), 2);
    agent.shutdown().await;
}

#[tokio::test]
async fn g7_a_call_that_is_cut_before_it_began_never_begins() {
    // Small ones lie in the pipe, large ones are still on their way when they are cut.
    for size in [10, 60_000] {
        let lab = lab(r#"
def busy():
    note("busy")
    for _ in range(200): time.sleep(0.005)
async def store(text: str): note("stored")
def start(ctx): note("start")
async def after(ctx): note("after")
"#);
        let store = ("store", json!({ "text": "x".repeat(size) }));
        let model = Scripted::new(Vec::<ModelResponse>::new())
            .calls([("busy", json!({})), store.clone(), store.clone(), store])
            .text("over");
        let agent = lab
            .agent()
            .model(model)
            .tool(lab.tool("busy"))
            .tool(lab.tool("store"))
            .turn_limit(500 * MILLIS)
            .with_lifecycle(lab.hook("start", Point::OnStart))
            .with_lifecycle(lab.hook("after", Point::AfterAgent));
        let agent = lab.started(agent).await;
        let workers = lab.host.processes();
        agent.run("go").await.expect_err("it takes too long");
        sleep(1500 * MILLIS).await;
        assert_eq!(noted(&lab, "busy"), 1, "{size}");
        assert_eq!(noted(&lab, "stored"), 0, "{size}");
        assert_eq!(noted(&lab, "after"), 1, "{size}");
        assert_eq!(noted(&lab, "start"), 1, "{size}: a thread that heeds a cancel is not given up");
        assert_eq!(lab.host.processes(), workers, "{size}: and its process goes on");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_that_waits_behind_a_hanging_one_costs_no_process() {
    let lab = lab(r#"
def hangs(): time.sleep(3)
async def waits(): note("ran")
async def hello(): return "hello"
"#);
    let busy = lab
        .agent_named("busy")
        .model(calling(&[("hangs", json!({})), ("waits", json!({}))]))
        .tool(lab.tool("hangs"))
        .tool(lab.tool("waits"))
        .turn_limit(300 * MILLIS);
    let other = lab.agent_named("other").model(calling(&[("hello", json!({}))]));
    let busy = lab.started(busy).await;
    let other = lab.started(other.tool(lab.tool("hello"))).await;
    for agent in [&busy, &other] {
        lab.host.join(agent.id(), "group");
    }
    other.run("go").await.expect("it runs");
    let workers = lab.host.processes();
    busy.run("go").await.expect_err("it takes too long");
    sleep(2500 * MILLIS).await;
    assert_eq!(lab.host.processes(), workers);
    assert_eq!(noted(&lab, "ran"), 0);
    busy.shutdown().await;
    other.shutdown().await;
}

#[tokio::test]
async fn variables_are_free_again_whenever_a_function_that_has_them_is_cut() {
    let lab = lab(r#"
def slow(context_variables):
    for _ in range(100000): time.sleep(0.0005)
def stuck(context_variables):
    time.sleep(20)
def count(context_variables):
    context_variables["count"] = context_variables.get("count", 0) + 1
"#);
    for round in 0..6 {
        let mut agents = Vec::new();
        // One heeds its cancel, the thread of the other is given up.
        let tool = if round == 5 { "stuck" } else { "slow" };
        for _ in 0..3 {
            let agent = lab
                .agent()
                .model(calling(&[(tool, json!({}))]))
                .tool(lab.tool(tool))
                .turn_limit(200 * MILLIS);
            agents.push(lab.started(agent).await);
        }
        let counts = lab.agent().model(calling(&[("count", json!({}))])).tool(lab.tool("count"));
        let counts = lab.started(counts).await;
        let all: Vec<Agent> = agents.iter().chain([&counts]).cloned().collect();
        for agent in &all {
            lab.host.join(agent.id(), format!("group {round}"));
        }
        let chat = Chat::new(format!("chat {round}"), all.clone());
        let run = chat.run(async |chat| {
            let runs = agents.iter().map(|agent| agent.request("go").in_chat(chat).run());
            for ended in futures_util::future::join_all(runs).await {
                ended.expect_err("it takes too long");
            }
            counts.request("go").in_chat(chat).run().await?;
            Ok(chat.variable("count"))
        });
        let ended = timeout(8000 * MILLIS, run).await.expect("the variables are free");
        assert_eq!(ended.value.flatten(), Some(json!(1)), "round {round}: {:?}", ended.end);
        for agent in all {
            agent.shutdown().await;
        }
    }
}

#[tokio::test]
async fn g4_a_worker_that_is_stopped_while_much_is_sent_to_it_holds_nothing_up() {
    let large = format!("LARGE = '{}'\n", "x".repeat(600_000));
    let lab = lab(&format!(
        "{large}def stops(): os.kill(os.getpid(), signal.SIGSTOP)\nasync def other(): pass\n"
    ));
    let agent = lab
        .agent()
        .model(calling(&[("stops", json!({})), ("other", json!({}))]))
        .tool(lab.tool("stops"))
        .tool(lab.tool("other"))
        .turn_limit(500 * MILLIS);
    let agent = lab.started(agent).await;
    let ended = timeout(10_000 * MILLIS, agent.run("go")).await.expect("the turn ends");
    ended.expect_err("it was stopped");
    timeout(10_000 * MILLIS, agent.shutdown()).await.expect("the agent ends");
    timeout(5000 * MILLIS, lab.host.shutdown()).await.expect("the host ends");
}

#[tokio::test]
async fn an_end_that_takes_its_process_down_is_not_delivered_again() {
    let lab = lab(r#"
async def dies(ctx):
    note("dies")
    os._exit(1)
async def neighbour(ctx):
    note("begun")
    await asyncio.sleep(1)
"#);
    let dies = lab.started(lab.agent().with_lifecycle(lab.hook("dies", Point::AfterAgent))).await;
    let near = lab.agent_named("near").with_lifecycle(lab.hook("neighbour", Point::BeforeAgent));
    let near = lab.started(near).await;
    for agent in [&dies, &near] {
        lab.host.join(agent.id(), "group");
    }
    let ends = async {
        eventually("the neighbour runs", || noted(&lab, "begun") == 1).await;
        dies.run("go").await
    };
    let (ended, beside) = tokio::join!(ends, near.run("go"));
    let failures = ended.expect("an end fails no turn").failures;
    assert!(failures[0].message.contains("dies"), "it says who: {failures:?}");
    let error = beside.expect_err("it went down with its process");
    assert!(error.to_string().contains("dies"), "it says who: {error}");
    assert_eq!(noted(&lab, "dies"), 1);
    dies.shutdown().await;
    near.shutdown().await;
}

#[tokio::test]
async fn an_end_whose_process_is_killed_is_delivered_again_unless_it_was_alone() {
    let lab = lab(r#"
async def end(ctx):
    note("end " + ctx.agent_name)
    if noted(ctx.agent_name) > 1: return
    if ctx.agent_name == "alone": os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(20)
def kills(ctx):
    while not noted("beside"): time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
def noted(what):
    with open(here + "/log") as log: return log.read().count("end " + what)
"#);
    let ends = |name| lab.agent_named(name).with_lifecycle(lab.hook("end", Point::AfterAgent));
    let alone = lab.started(ends("alone")).await;
    let failures = alone.run("go").await.expect("an end fails no turn").failures;
    assert!(failures[0].message.contains("signal 9"), "{failures:?}");
    assert_eq!(noted(&lab, "end alone"), 1, "it may be the one that kills");
    let beside = lab.started(ends("beside")).await;
    let kills = lab.agent().with_lifecycle(lab.hook("kills", Point::BeforeAgent));
    let kills = lab.started(kills).await;
    for agent in [&beside, &kills] {
        lab.host.join(agent.id(), "group");
    }
    let (ended, killed) = tokio::join!(beside.run("go"), kills.run("go"));
    killed.expect_err("it killed itself");
    let failures = ended.expect("an end fails no turn").failures;
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!(noted(&lab, "end beside"), 2);
    for agent in [alone, beside, kills] {
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_start_that_succeeds_at_its_second_try_has_begun() {
    let lab = lab(r#"
def start(ctx):
    first = not os.path.exists(here + "/log")
    note("start")
    if first: raise ValueError("not yet")
def stop(ctx): note(f"stop {ctx.started}")
"#);
    let agent = lab
        .agent()
        .lifecycle(LifecycleConfig::default().retries(2))
        .with_lifecycle(hook(lab.hook("start", Point::OnStart)))
        .with_lifecycle(lab.hook("stop", Point::OnShutdown));
    let agent = lab.started(agent).await;
    agent.shutdown().await;
    // One for the roll-back of the first try, and one for the end.
    assert_eq!((noted(&lab, "stop True"), noted(&lab, "stop False")), (2, 0));
}

#[tokio::test]
async fn a_thread_that_outlives_its_call_can_ask_for_nothing_and_holds_nothing_up() {
    let lab = lab(r#"
import threading
said = []
def leave(ctx):
    def later(what, *told):
        try: what(*told)
        except RuntimeError as error: said.append(str(error))
    # One waits for an answer when the function returns, one asks only then.
    threading.Timer(0, later, [getattr(ctx, "ask"), "Tea?"]).start()
    threading.Timer(0.2, later, [ctx.memory.get, "tea"]).start()
    time.sleep(0.1)
def busy(): time.sleep(0.3)
def after(): return " + ".join(said)
"#);
    let agent = lab.agent().on_ask(|_: &PendingAsk| None).tool_limit(3000 * MILLIS);
    let tools = ["leave", "busy", "after"].map(|name| lab.tool(name));
    let agent = lab.started(tools.into_iter().fold(agent, |agent, tool| agent.tool(tool))).await;
    for tool in ["leave", "busy"] {
        agent.run(format!("***CALL_TOOL {tool} {{}}")).await.expect("it returns");
    }
    let said = agent.run("***CALL_TOOL after {}").await.expect("it returns");
    assert_eq!(said.output().matches("the call is over").count(), 2, "{}", said.output());
    agent.shutdown().await;
}

#[tokio::test]
async fn g4_an_end_that_has_not_begun_has_the_time_of_the_ends_and_no_more() {
    // It waits for its module, or for the thread of its instance. Neither is its own time.
    for waits in ["loads", "queues"] {
        let lab = lab(r#"
if os.path.exists(here + "/loads"): time.sleep(20)
async def hangs(ctx): time.sleep(20)
async def after(ctx): note("after")
"#);
        let mut agent = lab.agent().with_lifecycle(lab.hook("after", Point::AfterAgent));
        match waits {
            "loads" => std::fs::write(lab.path().join("loads"), "").expect("written"),
            _ => {
                let hangs = hook(lab.hook("hangs", Point::AfterAgent)).limit(10_000 * MILLIS);
                agent = agent.with_lifecycle(hangs);
            }
        }
        agent.config_mut().limits.ends = 600 * MILLIS;
        let agent = lab.started(agent).await;
        let run = timeout(8000 * MILLIS, agent.run("go")).await;
        let failures = run.expect("the ends are bounded").expect("an end fails no turn").failures;
        assert!(!failures.is_empty(), "{waits}");
        assert_eq!(noted(&lab, "after"), 0, "{waits}");
        lab.host.kill();
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_call_waits_until_the_one_before_it_has_heeded_its_cancel() {
    let lab = lab(r#"
async def slow(ctx):
    try: await asyncio.sleep(100)
    finally:
        await asyncio.sleep(0.4)
        note("cleaned")
async def after(ctx): note("after")
"#);
    let agent = lab
        .agent()
        .with_lifecycle(hook(lab.hook("slow", Point::BeforeAgent)).limit(200 * MILLIS))
        .with_lifecycle(lab.hook("after", Point::AfterAgent));
    let agent = lab.started(agent).await;
    agent.run("go").await.expect_err("it takes too long");
    let log = std::fs::read_to_string(lab.path().join("log")).unwrap_or_default();
    assert_eq!(log, "cleaned\nafter\n");
    agent.shutdown().await;
}

#[tokio::test]
async fn g7_a_call_that_began_unheard_on_a_thread_that_is_given_up_is_not_made_again() {
    // What the thread says of the begin of `pays` is held up until long after the thread was given up.
    let lab = lab(r#"
import __main__ as worker
def slow_to_tell(self, frame, write=worker.Pipe.write):
    if b"began" in frame and os.path.exists(here + "/log"): time.sleep(3)
    return write(self, frame)
worker.Pipe.write = slow_to_tell
async def waits(seconds): await asyncio.sleep(seconds)
async def pays():
    note("paid")
    return "paid"
"#);
    let model = Scripted::new(Vec::<ModelResponse>::new())
        .calls([("waits", json!({ "seconds": 0 }))])
        .calls([("pays", json!({}))])
        .calls([("waits", json!({ "seconds": 100 })), ("pays", json!({}))])
        .text("over");
    let tools = ["waits", "pays"].map(|name| lab.tool(name));
    let agent = tools.into_iter().fold(lab.agent().model(model), |agent, tool| agent.tool(tool));
    let agent = lab.started(agent.tool_limit(300 * MILLIS)).await;
    agent.run("go").await.expect("a tool that fails is a result");
    sleep(3000 * MILLIS).await;
    assert_eq!(noted(&lab, "paid"), 1, "in the step before: what became of the other is not known");
    agent.shutdown().await;
}
