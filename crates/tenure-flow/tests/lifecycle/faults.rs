//! A tool that fails, hangs, crashes, asks, or writes what it does not own, at each trigger.

use crate::lifecycle::support::{Lab, Seen, calls, first, limit, logged};
use serde_json::{Value, json};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::hook::Policy;
use tenure_core::{CancelToken, Outcome};
use tenure_flow::lifecycle::{LifecycleTool, Trigger};
use tenure_flow::{ChatReport, ChatStatus};
use tenure_models::Hanging;

const TOOLS: &str = r#"
import asyncio, os, signal, time

def deeper():
    raise KeyError("inner")

def fails(context_variables):
    context_variables.data["half"] = "written"
    try:
        deeper()
    except KeyError as error:
        raise ValueError("outer") from error

async def fails_later():
    await asyncio.sleep(0)
    raise RuntimeError("later")

def hangs():
    time.sleep(60)

async def hangs_later():
    await asyncio.sleep(60)

def exits():
    os._exit(3)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def asks(ctx, context_variables):
    context_variables.data["colour"] = ctx.ask("Which colour?").value
    return context_variables.data["colour"]

async def asks_later(ctx):
    return (await ctx.ask("Which colour?")).value

def writes(context_variables):
    context_variables.data["mine"] = 1
    context_variables.data["user_id"] = "somebody else"

def removes(context_variables):
    context_variables.data["mine"] = 1
    del context_variables.data["chat_id"]

def refuses():
    import tenure
    raise tenure.Denied("no")

def well(context_variables):
    context_variables.data["well"] = context_variables.data.get("well", 0) + 1
"#;

/// Runs a chat of a tool at a trigger, with one behind it that counts.
async fn chat(
    lab: &mut Lab,
    function: &str,
    trigger: Trigger,
    with: impl Fn(&mut LifecycleTool),
) -> Run {
    let mut tool = lab.tool(trigger, function);
    with(&mut tool);
    let flow = lab.flow(&[tool, lab.tool(trigger, "well")]).build().expect("a flow");
    let report = flow.run("hello").await;
    let seen = lab.seen();
    Run { report, seen }
}

struct Run {
    report: ChatReport,
    seen: Vec<Seen>,
}

impl Run {
    /// The chat went on, the tool behind ran, and every call has one end.
    fn went_on(&self, trigger: Trigger, function: &str, end: &str) {
        let Self { report, seen } = self;
        assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
        let times = if trigger.is_of_chat() { 1 } else { 2 };
        assert_eq!(report.variables["well"], times, "{function} at {trigger}");
        let once = [
            format!("call {trigger} {function}"),
            format!("{end} {trigger} {function}"),
            format!("call {trigger} well"),
            format!("result {trigger} well"),
        ];
        let expected: Vec<_> = once.iter().cycle().take(4 * times).cloned().collect();
        assert_eq!(calls(seen), expected, "{function} at {trigger}");
        let ends = seen.iter().filter(|it| it.name == "chat.ended").count();
        assert_eq!(ends, 1, "the chat ends once");
    }

    fn error(&self) -> &Value {
        first(&self.seen, "lifecycle.tool_error")
    }
}

#[tokio::test]
async fn a_tool_that_fails_is_reported_with_its_traceback_and_the_chat_goes_on() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        let run = chat(&mut lab, "fails", trigger, |_| {}).await;
        run.went_on(trigger, "fails", "error");
        let error = run.error();
        assert_eq!(error["status"], "error");
        assert_eq!(error["error"], "ValueError: outer");
        let traceback = error["traceback"].as_str().expect("a traceback");
        for part in
            ["in deeper", "KeyError: 'inner'", "direct cause", "in fails", "ValueError: outer"]
        {
            assert!(traceback.contains(part), "{part}: {traceback}");
        }
        assert!(!traceback.contains("tenure worker"), "{traceback}");
        assert!(logged(&run.seen, "KeyError: 'inner'") && logged(&run.seen, "fails failed:"));
        assert_eq!(run.report.variables.get("half"), None, "what it wrote is dropped");
        let run = chat(&mut lab, "fails_later", trigger, |_| {}).await;
        run.went_on(trigger, "fails_later", "error");
        assert_eq!(run.error()["error"], "RuntimeError: later");
    }
}

#[tokio::test]
async fn a_tool_that_hangs_is_cut_off_and_the_chat_goes_on() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        for function in ["hangs", "hangs_later"] {
            let run = chat(&mut lab, function, trigger, |tool| tool.timeout = limit(200)).await;
            run.went_on(trigger, function, "error");
            let error = run.error();
            assert_eq!(error["status"], "timed_out", "{error}");
            assert!(error["elapsed_ms"].as_f64().is_some_and(|it| it >= 199.0), "{error}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_crashes_its_worker_is_reported_and_the_chat_goes_on() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        for function in ["exits", "killed"] {
            let run = chat(&mut lab, function, trigger, |_| {}).await;
            run.went_on(trigger, function, "error");
            assert_eq!(run.error()["status"], "crashed", "{}", run.error());
        }
    }
}

#[tokio::test]
async fn a_tool_asks_a_person_and_its_time_stands_still_meanwhile() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        let run = chat(&mut lab, "asks", trigger, |_| {}).await;
        run.went_on(trigger, "asks", "result");
        assert_eq!(first(&run.seen, "lifecycle.tool_result")["result"], "blue");
        assert_eq!(run.report.variables["colour"], "blue");
        let run = chat(&mut lab, "asks_later", trigger, |_| {}).await;
        run.went_on(trigger, "asks_later", "result");
        // Whoever listens still knows the speaker: each turn has its own event.
        let speakers = run.seen.iter().filter(|it| it.name == "select_speaker").count();
        assert_eq!(speakers, 2, "{trigger}");
    }
}

#[tokio::test]
async fn a_tool_that_writes_what_it_does_not_own_writes_nothing() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        for (function, key) in [("writes", "user_id"), ("removes", "chat_id")] {
            let run = chat(&mut lab, function, trigger, |_| {}).await;
            run.went_on(trigger, function, "error");
            let error = run.error();
            assert_eq!(error["status"], "error");
            assert!(error["error"].as_str().is_some_and(|it| it.contains(key)), "{error}");
            assert_eq!(run.report.variables.get("mine"), None, "{trigger}");
            assert_ne!(run.report.variables["user_id"], "somebody else");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_a_failure_unless_the_policy_makes_it_one() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        let run = chat(&mut lab, "refuses", trigger, |_| {}).await;
        run.went_on(trigger, "refuses", "error");
        assert_eq!(run.error()["error"], "Denied: no");
    }
}

#[tokio::test]
async fn a_tool_stops_the_chat_if_it_says_so() {
    let mut lab = Lab::new(TOOLS);
    for (policy, status) in [(Policy::Abort, "failed"), (Policy::Deny, "denied")] {
        for trigger in [Trigger::BeforeChat, Trigger::BeforeAgent] {
            let run = chat(&mut lab, "fails", trigger, |tool| tool.policy = Some(policy)).await;
            assert_eq!(run.report.status, ChatStatus::Failed);
            assert_eq!(run.report.outcome.as_str(), status, "{:?}", run.report.error);
            let expected = [format!("call {trigger} fails"), format!("error {trigger} fails")];
            assert_eq!(calls(&run.seen), expected);
        }
    }
}

#[tokio::test]
async fn an_end_runs_although_a_begin_failed_and_a_chat_was_stopped() {
    for (begin, end) in
        [(Trigger::BeforeChat, Trigger::AfterChat), (Trigger::BeforeAgent, Trigger::AfterAgent)]
    {
        let mut lab = Lab::new(TOOLS);
        let mut fails = lab.tool(begin, "fails");
        fails.policy = Some(Policy::Abort);
        let flow = lab.flow(&[fails, lab.tool(end, "well")]).build().expect("a flow");
        let report = flow.run("hello").await;
        assert_eq!(report.status, ChatStatus::Failed);
        assert_eq!(report.variables["well"], 1, "{end}");
        let seen = lab.seen();
        assert_eq!(calls(&seen).len(), 4, "{:?}", calls(&seen));
    }
}

#[tokio::test]
async fn a_turn_that_a_tool_denies_has_its_ends_once_and_the_chat_is_denied() {
    let mut lab = Lab::new(TOOLS);
    let mut fails = lab.tool(Trigger::BeforeAgent, "fails");
    fails.policy = Some(Policy::Deny);
    let ends = [Trigger::AfterAgent, Trigger::AfterChat].map(|trigger| lab.tool(trigger, "well"));
    let [after_agent, after_chat] = ends;
    let flow = lab.flow(&[fails, after_agent, after_chat]).build().expect("a flow");
    let report = flow.run("hello").await;
    assert_eq!((report.status, report.outcome), (ChatStatus::Failed, Outcome::Denied));
    assert_eq!((report.turns, report.turn_summaries[0].outcome), (1, Outcome::Denied));
    assert_eq!(report.messages.len(), 1, "nobody said anything");
    let seen = lab.seen();
    assert_eq!(
        calls(&seen),
        [
            "call before_agent fails",
            "error before_agent fails",
            "call after_agent well",
            "result after_agent well",
            "call after_chat well",
            "result after_chat well",
        ]
    );
}

#[tokio::test]
async fn a_tool_that_is_cancelled_has_one_end_and_after_chat_runs_once() {
    let mut lab = Lab::new(TOOLS);
    let tools =
        [lab.tool(Trigger::BeforeAgent, "hangs_later"), lab.tool(Trigger::AfterChat, "well")];
    let flow = lab.flow(&tools).build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        token.cancel();
    };
    let chat = flow.chat().message("go").cancel_on(&token);
    let (report, ()) = tokio::join!(chat.run(), cancel);
    assert_eq!(report.status, ChatStatus::Cancelled, "{:?}", report.error);
    let seen = lab.seen();
    assert_eq!(
        calls(&seen),
        [
            "call before_agent hangs_later",
            "error before_agent hangs_later",
            "call after_chat well",
            "result after_chat well",
        ]
    );
    assert_eq!(first(&seen, "lifecycle.tool_error")["status"], "cancelled");
}

#[tokio::test]
async fn after_chat_runs_once_when_the_chat_is_cancelled_or_fails() {
    let mut lab = Lab::new(TOOLS);
    let tools = [lab.tool(Trigger::AfterChat, "well")];
    let hangs = Agent::builder("hangs").model(Hanging::new());
    let flow = lab.flow_of(&tools, &[], [hangs]).build().expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        token.cancel();
    };
    let chat = flow.chat().message("go").cancel_on(&token);
    let (report, ()) = tokio::join!(chat.run(), cancel);
    assert_eq!(report.status, ChatStatus::Cancelled);
    assert_eq!(report.variables["well"], json!(1));
    let seen = lab.seen();
    let at = |name: &str| seen.iter().position(|it| it.name == name).expect("it was announced");
    assert!(at("lifecycle.tool_result") < at("orchestrator.cancelled"), "before the agents stop");
}
