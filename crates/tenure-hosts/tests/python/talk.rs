//! `next`, `ask` and `step`, from plain functions and from coroutines.

use crate::python::support::{Lab, fault};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::hook::{FaultKind, Point, Policy, hook};
use tenure_core::step::MemoryStepLog;
use tenure_core::tool::{FnTool, Tool, ToolOutput, ToolSpec};
use tenure_hosts::Role;

fn clock() -> impl Tool {
    FnTool::new(ToolSpec::new("clock", "tells the time"), |arguments: &Value| {
        Ok(ToolOutput::text(format!("noon {}", arguments["zone"].as_str().unwrap_or("?"))))
    })
}

const CALL: &str = r#"***CALL_TOOL clock {"zone": "UTC"}"#;

#[tokio::test]
async fn a_wrap_hands_on_changes_and_replaces_what_next_gives() {
    let lab = Lab::new(
        r#"
import asyncio
def handed_on(ctx):
    return ctx.next()
def changed(ctx, next):
    ctx.arguments["zone"] = ctx.arguments["zone"].lower()
    result = next()
    result.content += "!"
    return result
async def replaced(ctx):
    assert ctx.tool_name == "clock" and ctx.tool.name == "clock", ctx.tool_name
    return "midnight"
async def twice(ctx):
    first, second = await asyncio.gather(ctx.next({"zone": "a"}), ctx.next({"zone": "b"}))
    third = await ctx.next()
    return first.content + second.content + third.content
def denies(ctx):
    return {"deny": "not now"}
"#,
    );
    for (name, output) in [
        ("handed_on", "noon UTC"),
        ("changed", "noon utc!"),
        ("replaced", "midnight"),
        ("twice", "noon anoon bnoon UTC"),
    ] {
        let agent = lab.agent().tool(clock()).with_lifecycle(lab.hook(name, Point::WrapToolCall));
        let agent = lab.started(agent).await;
        let report = agent.run(CALL).await.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(report.output(), output, "{name}");
        agent.shutdown().await;
    }
    let agent = lab.agent().tool(clock()).with_lifecycle(lab.hook("denies", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let report = agent.run(CALL).await;
    let said = report.map_or_else(|error| error.to_string(), |report| report.output().to_owned());
    assert!(said.contains("not now") && !said.contains("noon"), "{said}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_wrap_of_the_model_may_try_again() {
    use tenure_core::model::ModelErrorKind;
    use tenure_models::Scripted;
    let source = |def: &str, wait: &str| {
        format!(
            r#"
import tenure
{def} retries(ctx, next):
    try:
        return {wait} next()
    except tenure.NextError as error:
        assert error.kind == "model", error.kind
    result = {wait} next({{"instruction": "again"}})
    result.text = result.text.upper()
    return result
{def} passes_on(ctx):
    return {wait} ctx.next()
"#
        )
    };
    for (def, wait) in [("def", ""), ("async def", "await")] {
        let lab = Lab::new(&source(def, wait));
        let model = || Scripted::empty().error(ModelErrorKind::Overloaded, "busy").text("fine");
        let agent =
            lab.agent().model(model()).with_lifecycle(lab.hook("retries", Point::WrapModelCall));
        let agent = lab.started(agent).await;
        assert_eq!(agent.run("hello").await.expect("the second works").output(), "FINE");
        agent.shutdown().await;

        let agent =
            lab.agent().model(model()).with_lifecycle(lab.hook("passes_on", Point::WrapModelCall));
        let agent = lab.started(agent).await;
        let error = agent.run("hello").await.expect_err("nobody recovers");
        let kind = error.model_error().map(|error| error.kind());
        assert_eq!(kind, Some(ModelErrorKind::Overloaded), "{error:?}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_wrap_that_returns_nothing_is_a_bad_reply() {
    let lab = Lab::new("def forgets(ctx):\n    ctx.next()\n");
    let hook = lab.hook("forgets", Point::WrapToolCall);
    let agent = lab.started(lab.agent().tool(clock()).with_lifecycle(hook)).await;
    let error = agent.run(CALL).await.expect_err("it forgot to return");
    assert!(error.to_string().contains("returned None"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_is_called_and_not_awaited_is_a_bad_reply() {
    let lab = Lab::new(
        r#"
import asyncio
async def asks(ctx):
    ctx.ask("may I?")
    return {"result": "as if it had been allowed"}
async def steps(ctx):
    ctx.step("one", lambda: 1)
    return await ctx.next()
async def returns_next(ctx, next):
    return next()
async def calls_next(ctx, next):
    next()
    return "made up"
async def in_a_task(ctx):
    asyncio.create_task(ctx.next({"zone": "later"}))
    return "made up"
async def stands_before(ctx):
    ctx.ask("may I?")
async def given_up(ctx):
    try:
        await asyncio.wait_for(ctx.step("long", asyncio.sleep(1000)), 0.01)
    except asyncio.TimeoutError:
        return await ctx.next()
async def together(ctx):
    first, second = [asyncio.create_task(ctx.next()) for _ in range(2)]
    return (await first).content + (await second).content
"#,
    );
    for (name, said) in [
        ("asks", "`ask` was called and not awaited; write `await ctx.ask(...)`"),
        ("steps", "`step` was called and not awaited; write `await ctx.step(...)`"),
        ("returns_next", "`next` was called and not awaited; write `return await next()`"),
        ("calls_next", "`next` was called and not awaited"),
        ("in_a_task", "`next` was called and not awaited"),
    ] {
        let hook = lab.hook(name, Point::WrapToolCall);
        let agent = lab.started(lab.agent().tool(clock()).with_lifecycle(hook)).await;
        let (kind, message) = fault(agent.run(CALL).await);
        assert_eq!(kind, FaultKind::BadReply, "{name}: {message}");
        assert!(message.contains(said), "{name}: {message}");
        agent.shutdown().await;
    }
    let hook = lab.hook("stands_before", Point::BeforeAgent);
    let agent = lab.started(lab.agent().with_lifecycle(hook)).await;
    let (kind, message) = fault(agent.run("hello").await);
    assert_eq!(kind, FaultKind::BadReply, "{message}");
    agent.shutdown().await;
    for (name, output) in [("given_up", "noon UTC"), ("together", "noon UTCnoon UTC")] {
        let hook = lab.hook(name, Point::WrapToolCall);
        let agent = lab.started(lab.agent().tool(clock()).with_lifecycle(hook)).await;
        assert_eq!(agent.run(CALL).await.expect("all was awaited").output(), output, "{name}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_question_that_is_not_awaited_holds_the_call_back() {
    let lab = Lab::new(
        r#"
async def forgets(ctx, next):
    ctx.ask("may I?")
    return await next()
async def insists(ctx, next):
    ctx.ask("may I?")
    try:
        return await next()
    except Exception:
        return await next()
"#,
    );
    for name in ["forgets", "insists"] {
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        let tool = FnTool::new(ToolSpec::new("clock", "tells the time"), move |_: &Value| {
            flag.store(true, Ordering::Relaxed);
            Ok(ToolOutput::text("noon"))
        });
        let guard = hook(lab.hook(name, Point::WrapToolCall).role(Role::Guard));
        let agent = lab.agent().tool(tool).with_lifecycle(guard.policy(Policy::Deny));
        let agent = lab.started(agent).await;
        let _ = agent.run(CALL).await;
        assert!(!ran.load(Ordering::Relaxed), "{name}");
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_guard_that_says_nothing_has_not_said_yes() {
    let lab = Lab::new(
        r#"
import tenure
def forgets(ctx): tenure.deny("no")
async def forgets_later(ctx): tenure.deny("no")
def forgets_both(ctx):
    ctx.input = "changed"
    tenure.deny("no")
def logs_only(ctx): return {"log": "hm"}
def allows(ctx): return tenure.allow()
async def allows_and_changes(ctx):
    ctx.input = "changed"
    return {"allow": True}
def leaves(ctx): pass
"#,
    );
    let guard = |name: &str, point: Point| {
        hook(lab.hook(name, point).role(Role::Guard)).policy(Policy::Deny)
    };
    let all = ["forgets", "forgets_later", "forgets_both", "logs_only"];
    for (name, point) in [("forgets", Point::BeforeModel), ("forgets", Point::AfterModel)]
        .into_iter()
        .chain(all.map(|name| (name, Point::BeforeAgent)))
    {
        let agent = lab.started(lab.agent().with_lifecycle(guard(name, point))).await;
        let error = agent.run("hello").await.expect_err("silence is no consent");
        assert!(error.is_denied(), "{name} at {point}: {error:?}");
        let said = error.to_string();
        let says = ["must return allow() or deny(reason)", "a guard must say that"];
        assert!(says.iter().any(|it| said.contains(it)), "{name} at {point}: {said}");
        agent.shutdown().await;
    }
    for (name, output) in [("allows", "hello"), ("allows_and_changes", "changed")] {
        let agent = lab.started(lab.agent().with_lifecycle(guard(name, Point::BeforeAgent))).await;
        assert_eq!(agent.run("hello").await.expect("it said yes").output(), output);
        agent.shutdown().await;
    }
    // At an end there is nothing to decide, and any other hook may say nothing.
    for (hook, output) in [
        (lab.hook("leaves", Point::AfterAgent).role(Role::Guard), "hello"),
        (lab.hook("leaves", Point::BeforeAgent), "hello"),
        (lab.hook("forgets_both", Point::BeforeAgent), "changed"),
    ] {
        let agent = lab.started(lab.agent().with_lifecycle(hook)).await;
        assert_eq!(agent.run("hello").await.expect("it goes on").output(), output);
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn a_person_is_asked() {
    let lab = Lab::new(
        r#"
def plain(ctx):
    answer = ctx.ask("go on?", action={"what": ctx.input})
    return {"finish": "%s %s %s" % (answer.decision, answer.value, answer.approved)}
async def later(ctx):
    answer = await ctx.ask({"prompt": "go on?", "action": {"what": ctx.input}, "expires": "30s"})
    return {"finish": "%s %s %s" % (answer.decision, answer.value, answer.approved)}
def wrong(ctx):
    ctx.ask({"promt": "?"})
"#,
    );
    for name in ["plain", "later"] {
        let agent = lab
            .agent()
            .on_ask(|ask: &PendingAsk| {
                Some(match ask.ask.action == Some(json!({ "what": "yes" })) {
                    true => Answer::Approve,
                    false => Answer::Reject("no".to_owned()),
                })
            })
            .with_lifecycle(lab.hook(name, Point::BeforeAgent));
        let agent = lab.started(agent).await;
        for (input, output) in [("yes", "approve None True"), ("no", "reject no False")] {
            assert_eq!(agent.run(input).await.expect("it finishes").output(), output, "{name}");
        }
        agent.shutdown().await;
    }
    let agent =
        lab.started(lab.agent().with_lifecycle(lab.hook("wrong", Point::BeforeAgent))).await;
    let error = agent.run("x").await.expect_err("it asked wrongly");
    assert!(error.to_string().contains("promt"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn asking_where_nobody_can_be_asked_is_an_error() {
    let lab = Lab::new("def start(ctx):\n    ctx.ask('may I?')\n");
    let agent = lab.agent().with_lifecycle(lab.hook("start", Point::OnStart)).build();
    let error = agent.expect("built").startup().await.expect_err("nobody can be asked");
    assert!(error.to_string().contains("on_start"), "{error}");
}

#[tokio::test]
async fn a_recorded_step_is_not_run_again() {
    let lab = Lab::new(
        r#"
import os
def count():
    path = os.path.dirname(__file__) + "/count"
    count = int(open(path).read()) + 1 if os.path.exists(path) else 1
    open(path, "w").write(str(count))
    return count
async def acount():
    return count()
async def wraps(ctx):
    first = await ctx.step("first", count)
    second = await ctx.step("second", acount())
    third = await ctx.step("third", lambda: acount())
    return {"result": "%d %d %d" % (first, second, third)}
def plain(ctx):
    return str(ctx.step("first", count))
def fails(ctx):
    try:
        ctx.step("first", lambda: 1 / 0)
    except ZeroDivisionError:
        return "caught"
"#,
    );
    let log = MemoryStepLog::new();
    let agent = lab.agent().tool(clock()).with_lifecycle(lab.hook("wraps", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let report = agent.request(CALL).steps(log.clone()).run().await.expect("it works");
    assert_eq!(report.output(), "1 2 3");
    agent.shutdown().await;

    for (name, output) in [("plain", "4"), ("fails", "caught")] {
        let hook = lab.hook(name, Point::WrapToolCall);
        let agent = lab.started(lab.agent().tool(clock()).with_lifecycle(hook)).await;
        let report = agent.request(CALL).steps(MemoryStepLog::new()).run().await.expect("it works");
        assert_eq!(report.output(), output);
        agent.shutdown().await;
    }

    // The same run again, with its record: the wrap runs, its steps do not.
    let agent = lab.agent().tool(clock()).with_lifecycle(lab.hook("wraps", Point::WrapToolCall));
    let agent = lab.started(agent).await;
    let report = agent.request(CALL).steps(log.resumed()).run().await.expect("it works");
    assert_eq!(report.output(), "1 2 3");
    agent.shutdown().await;
    assert_eq!(std::fs::read_to_string(lab.path().join("count")).expect("counted"), "4");
}

#[tokio::test]
async fn a_change_that_is_not_allowed_ends_the_hook_instead_of_its_next() {
    let lab = Lab::new(
        r#"
import os
def mark(name): open(os.path.dirname(__file__) + "/" + name, "w").close()
def plain(ctx):
    ctx.state["trace_id"] = "mine"
    try:
        return ctx.next()
    finally:
        mark("plain")
async def later(ctx):
    ctx.state["trace_id"] = "mine"
    try:
        return await ctx.next()
    finally:
        mark("later")
"#,
    );
    for name in ["plain", "later"] {
        let agent = lab.agent().with_lifecycle(lab.hook(name, Point::WrapModelCall));
        let agent = lab.started(agent).await;
        let (kind, message) = fault(agent.run("hello").await);
        assert_eq!(kind, FaultKind::Failed);
        assert!(message.contains("`trace_id`"), "{message}");
        assert!(lab.path().join(name).exists(), "{name} does not wait for an answer");
        agent.shutdown().await;
    }
}
