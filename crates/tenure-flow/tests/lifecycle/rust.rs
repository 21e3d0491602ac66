//! Tools that are written in Rust and registered by name, without Python.

use crate::lifecycle::support::{Lab, calls, first, limit, logged};
use serde_json::json;
use std::time::Duration;
use tenure_cards::build::HookCatalog;
use tenure_core::hook::{self, After, Flow};
use tenure_flow::ChatStatus;
use tenure_flow::lifecycle::{self, LifecycleTool, Run, Trigger};

fn tool(trigger: Trigger, name: &str) -> LifecycleTool {
    LifecycleTool::new(
        trigger,
        name,
        Run::Use { name: name.to_owned(), with: json!({}), places: Default::default() },
    )
}

fn lab(catalog: HookCatalog) -> Lab {
    let mut lab = Lab::new("");
    lab.catalog = catalog;
    lab
}

#[tokio::test]
async fn a_function_runs_at_every_trigger_and_its_result_is_announced() {
    let count = lifecycle::function("count", |call| {
        Box::pin(async move {
            let variables = call.variables().ok_or("there is no chat")?;
            let count = variables.get("count").and_then(|it| it.as_u64()).unwrap_or(0) + 1;
            variables.set("count", count)?;
            Ok(json!({ "count": count, "agent": call.agent() }))
        })
    });
    let mut lab = lab(HookCatalog::new().register("count", count));
    let tools = Trigger::ALL.map(|trigger| {
        let mut tool = tool(trigger, "count");
        tool.name = trigger.as_str().into();
        tool
    });
    let report = lab.flow(&tools).build().expect("a flow").run("hi").await;
    assert_eq!(report.variables["count"], 6, "{:?}", report.failures);
    let seen = lab.seen();
    let results: Vec<_> = seen.iter().filter(|it| it.name == "lifecycle.tool_result").collect();
    assert_eq!(results[1].data["result"], json!({ "count": 2, "agent": "a" }));
    assert_eq!(results[1].data["function"], "count");
    assert_eq!(results[1].data["file"], json!(null));
    assert_eq!(results[5].data["result"], json!({ "count": 6, "agent": null }));
}

#[tokio::test(start_paused = true)]
async fn a_function_that_fails_panics_or_hangs_has_one_end_and_the_chat_goes_on() {
    let fails = lifecycle::function("fails", |_| Box::pin(async { Err("no".into()) }));
    let panics = lifecycle::function("panics", |_| Box::pin(async { panic!("oh") }));
    let hangs = lifecycle::function("hangs", |_| Box::pin(std::future::pending()));
    let catalog = HookCatalog::new();
    let catalog = catalog.register("fails", fails).register("panics", panics);
    let catalog = catalog.register("hangs", hangs);
    for trigger in Trigger::ALL {
        for (name, status) in [("fails", "error"), ("panics", "crashed"), ("hangs", "timed_out")] {
            let mut lab = lab(catalog.clone());
            let report = lab.flow(&[tool(trigger, name)]).build().expect("a flow").run("hi").await;
            assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
            let seen = lab.seen();
            let times = if trigger.is_of_chat() { 1 } else { 2 };
            let once = [format!("call {trigger} {name}"), format!("error {trigger} {name}")];
            let expected: Vec<_> = once.iter().cycle().take(2 * times).cloned().collect();
            assert_eq!(calls(&seen), expected);
            assert_eq!(first(&seen, "lifecycle.tool_error")["status"], status);
            assert_eq!(report.failures.len(), times, "{:?}", report.failures);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_30_s_at_a_begin_5_s_at_an_end_and_what_is_declared() {
    let hangs = lifecycle::function("hangs", |_| Box::pin(std::future::pending()));
    let catalog = HookCatalog::new().register("hangs", hangs);
    for (trigger, declared, expected) in [
        (Trigger::BeforeChat, None, 30_000.0),
        (Trigger::AfterChat, None, 5_000.0),
        (Trigger::BeforeChat, limit(90_000), 90_000.0),
        (Trigger::AfterChat, limit(40_000), 40_000.0),
        (Trigger::AfterAgent, limit(20_000), 20_000.0),
    ] {
        let mut lab = lab(catalog.clone());
        let mut tool = tool(trigger, "hangs");
        tool.timeout = declared;
        let flow = lab.flow(&[tool]).max_turns(1).build().expect("a flow");
        let ran = tokio::time::timeout(Duration::from_secs(600), flow.run("hi")).await;
        ran.expect("it ends by itself");
        let seen = lab.seen();
        let took = first(&seen, "lifecycle.tool_error")["elapsed_ms"].as_f64();
        let near = took.is_some_and(|took| (took - expected).abs() < 50.0);
        assert!(near, "{trigger} {declared:?}: {took:?}");
    }
}

#[tokio::test]
async fn a_hook_by_name_is_a_tool_too_and_decides_nothing() {
    let begins = hook::before_agent(|_, input| {
        input.content = "changed".into();
        Box::pin(async { Ok(Flow::Finish("over".into())) })
    });
    let ends = hook::after_agent(|_, end| {
        if let Some(output) = end.content_mut() {
            *output = "changed".into();
        }
        Box::pin(async { Ok(After::Done) })
    });
    let mut lab = lab(HookCatalog::new().register("begins", begins).register("ends", ends));
    let tools = [tool(Trigger::BeforeAgent, "begins"), tool(Trigger::AfterAgent, "ends")];
    let report = lab.flow(&tools).max_turns(1).build().expect("a flow").run("hi").await;
    assert_eq!(report.output, "hi");
    let seen = lab.seen();
    assert_eq!(calls(&seen).len(), 4);
    for part in ["it decided how to go on", "it changed the input", "it changed the output"] {
        assert!(logged(&seen, part), "{part}");
    }
}

#[tokio::test]
async fn what_is_registered_for_other_points_is_a_problem() {
    let ends = hook::after_agent(|_, _| Box::pin(async { Ok(After::Done) }));
    let lab = lab(HookCatalog::new().register("ends", ends));
    let hosts = lifecycle::Hosts::new(&lab.python, &lab.environment, &lab.catalog);
    let attached = lifecycle::of_chat(&[tool(Trigger::BeforeChat, "ends")], hosts);
    let problem = &attached.problems[0].message;
    assert!(problem.contains("does nothing at before_chat"), "{problem}");
}

#[tokio::test]
async fn a_refusal_of_a_tool_is_a_failure_of_its_own() {
    let denies = || {
        lifecycle::function("denies", |_| {
            Box::pin(async { Err(tenure_core::Error::denied("not today").into()) })
        })
    };
    let hooked = hook::before_agent(|_, _| {
        Box::pin(async { Err(hook::HookError::new(tenure_core::Error::denied("not today"))) })
    });
    for catalog in [
        HookCatalog::new().register("denies", denies()),
        HookCatalog::new().register("denies", hooked),
    ] {
        let lab = lab(catalog);
        let mut tool = tool(Trigger::BeforeAgent, "denies");
        tool.policy = Some(hook::Policy::Abort);
        let report = lab.flow(&[tool]).build().expect("a flow").run("hi").await;
        assert_eq!(report.status, ChatStatus::Failed);
        let error = report.error.expect("it failed");
        assert!(!error.is_denied(), "what it means is said by the policy alone: {error}");
        assert_eq!(error.outcome(), tenure_core::Outcome::Failed);
    }
}

#[tokio::test]
async fn nothing_of_a_chat_stays_with_the_host_of_its_functions() {
    let lab = Lab::new("def start():\n    pass\n");
    let (joined, left) = (lab.python.clone(), lab.python.clone());
    let flow = lab.flow(&[lab.tool(Trigger::BeforeChat, "start")]);
    let flow = flow.prepare(move |agent, chat| joined.join(agent.id(), chat));
    let flow = flow.farewell(move |chat| {
        let (python, chat) = (left.clone(), chat.to_owned());
        Box::pin(async move { python.leave(&chat).await })
    });
    let flow = flow.build().expect("a flow");
    for chat in ["one", "two"] {
        let report = flow.chat().id(chat).message("hi").run().await;
        assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    }
    assert_eq!((lab.python.groups(), lab.python.processes().len()), (0, 0));
}
