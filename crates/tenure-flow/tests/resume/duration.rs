//! The time that the platform's line at the end of a workflow names, over all lives of its run.

use crate::resume::mortal::Desk;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_cards::build::HookCatalog;
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind, Received};
use tenure_core::step::{StepLog, Steps, WhenWaiting};
use tenure_flow::lifecycle::{self, Hosts, platform_defaults};
use tenure_flow::route::handoff::{HandoffRule, Source};
use tenure_flow::route::{Pattern, Routing, Target};
use tenure_flow::{ChatStatus, Flow};
use tenure_hosts::{Environment, Interpreter, PythonConfig, PythonHost};
use tenure_models::{Passthrough, Silent};

/// Between two lives of the run.
const AWAY: Duration = Duration::from_millis(300);

/// The agent speaks, then the person, then the agent again.
fn flow(bus: &EventBus) -> Flow {
    let here = std::env::current_dir().expect("there is one");
    let python = PythonHost::new(PythonConfig {
        interpreter: Interpreter::find(&here).expect("there is a Python"),
        environment: Environment::new(),
        dir: here,
        limits: Default::default(),
        modules: Default::default(),
        start_check: None,
    });
    let environment = Environment::new();
    let catalog = HookCatalog::new();
    let hosts = Hosts::new(&python, &environment, &catalog);
    let mut host = Agent::builder("talk.workflow").model(Silent::new()).events(bus);
    for entry in lifecycle::of_chat(&platform_defaults(|_| None), hosts).entries {
        host = host.with_lifecycle(entry.registration);
    }
    let echo = |name: &str| {
        Agent::builder(name).model(Passthrough::new()).blueprint().expect("it is complete")
    };
    let routing = Routing::new(Pattern::Default).handoffs([
        HandoffRule::after(Source::Agent("first".into()), Target::User),
        HandoffRule::after(Source::User, Target::Agent("second".into())),
        HandoffRule::after(Source::Agent("second".into()), Target::End),
    ]);
    Flow::builder("talk")
        .host(host.blueprint().expect("it is complete"))
        .agent(echo("first"))
        .agent(echo("second"))
        .user(true)
        .initial_agent("first")
        .router(routing.router().expect("a router"))
        .events(bus)
        .build()
        .expect("a flow")
}

/// One life of the chat: how it ended, its lines, and the results of its lifecycle tools.
async fn life(log: impl StepLog) -> (ChatStatus, Vec<String>, Vec<Value>) {
    let bus = EventBus::new();
    let mut events = bus.watch(10_000);
    let steps = Steps::new(Arc::new(log));
    let chat = flow(&bus).chat().id("c").message("start").recorded(&steps);
    let chat = chat.when_waiting(WhenWaiting::Park).run();
    let report = tokio::time::timeout(Duration::from_secs(30), chat).await.expect("it ends");
    let mut lines = Vec::new();
    let mut results = Vec::new();
    while let Some(Received::Event(event)) = events.try_recv() {
        match &event.kind {
            EventKind::Log { line, .. } => lines.push(line.clone()),
            EventKind::Announced { name: "lifecycle.tool_result", data } => {
                results.push(data["result"].clone());
            }
            _ => {}
        }
    }
    (report.status, lines, results)
}

#[tokio::test]
async fn the_duration_of_a_resumed_chat_counts_from_its_first_begin() {
    let began = Instant::now();
    let mut desk = Desk::new();
    for _ in 0..2 {
        let (status, lines, _) = life(desk.clone()).await;
        assert_eq!(status, ChatStatus::Paused);
        assert!(lines.iter().all(|line| !line.contains("duration")), "it is not over: {lines:?}");
        std::thread::sleep(AWAY);
        desk = desk.resumed();
    }
    desk.answer("start", "go on");
    let (status, lines, results) = life(desk).await;
    assert_eq!(status, ChatStatus::Completed);
    let [line] = &*lines else { panic!("one line, of the end: {lines:?}") };
    let after = line.split_once("duration=").map(|(_, after)| after);
    let seconds = after.and_then(|after| after.split_once('s')).map(|(seconds, _)| seconds);
    let seconds: f64 =
        seconds.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{line}"));
    let all = began.elapsed().as_secs_f64();
    assert!(seconds >= 2.0 * AWAY.as_secs_f64() && seconds <= all + 0.01, "{line}: {all}");
    let [result] = &*results else { panic!("one result: {results:?}") };
    assert_eq!(result["duration_s"].as_f64(), Some(seconds), "{result}");
}
