//! Tools that come and go while an agent lives.

use crate::semantics::support::*;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tenure_core::agent::Agent;
use tenure_core::context::ToolCx;
use tenure_core::event::{EventBus, EventKind, LogStream};
use tenure_core::tool::{Tool, ToolSource};

/// A source whose tools are set by the test.
#[derive(Default)]
struct Shelf {
    version: AtomicU64,
    tools: Mutex<Vec<Arc<dyn Tool>>>,
    looks: AtomicU64,
}

impl Shelf {
    fn put(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        *self.tools.lock().expect("nobody panicked") = tools.into_iter().collect();
        self.version.fetch_add(1, Ordering::SeqCst);
    }
}

impl ToolSource for Shelf {
    fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.tools.lock().expect("nobody panicked").clone()
    }
}

fn says(name: &'static str, text: &'static str) -> Arc<dyn Tool> {
    Arc::new(tool(name, move |_: ToolCx<'_>, _| Box::pin(async move { Ok(text.into()) })))
}

#[tokio::test]
async fn tools_of_a_source_are_shown_called_and_gone_again() {
    let shelf = Arc::new(Shelf::default());
    let model = script([call(&["new"]), say("one"), call(&["new"]), say("two")]);
    let blueprint =
        Agent::builder("agent").model(model).tool_source(shelf.clone()).blueprint().unwrap();
    assert!(blueprint.current_tools().is_empty());
    shelf.put([says("new", "here")]);
    assert_eq!(&*blueprint.current_tools()[0].name, "new");
    let agent = blueprint.instance();
    agent.startup().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["here"]);
    shelf.put([]);
    let report = agent.run("go").await.unwrap();
    assert!(contents(report.history())[1].contains("there is no tool `new`"));
    assert!(shelf.looks.load(Ordering::SeqCst) <= 4, "it is only read when it changed");
}

#[tokio::test]
async fn a_call_goes_to_the_tool_that_the_model_was_shown() {
    let shelf = Arc::new(Shelf::default());
    let other = shelf.clone();
    // The first call of the batch takes the second one's tool away.
    let taker = tool("taker", move |_: ToolCx<'_>, _| {
        other.put([]);
        Box::pin(async move { Ok("taken".into()) })
    });
    shelf.put([says("shown", "still here")]);
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["taker", "shown"]), say("done")]))
            .tool(taker)
            .tool_source(shelf),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["taken", "still here"]);
}

#[tokio::test]
async fn an_agents_own_tool_is_not_replaced_by_one_from_elsewhere() {
    let shelf = Arc::new(Shelf::default());
    shelf.put([says("act", "foreign"), says("more", "first"), says("more", "second")]);
    let agent = started(
        Agent::builder("agent")
            .model(script([call(&["act", "more"]), say("done")]))
            .tool(tool("act", |_: ToolCx<'_>, _| Box::pin(async { Ok("own".into()) })))
            .tool_source(shelf),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["own", "first"]);
}

#[tokio::test]
async fn clones_have_the_tools_of_the_sources_too() {
    let shelf = Arc::new(Shelf::default());
    shelf.put([says("new", "here")]);
    let child = Agent::builder("child")
        .model(script([call(&["new"]), say("child done")]))
        .tool_source(shelf)
        .blueprint()
        .unwrap();
    let agent = started(
        Agent::builder("parent")
            .model(script([call_with("agent__child", r#"{"message":"go"}"#), say("done")]))
            .agent_tool(&child),
    )
    .await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(contents(report.history()), ["child done"]);
}

#[tokio::test]
async fn progress_and_lines_between_calls_are_announced() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(256);
    let agent = started(
        Agent::builder("agent").model(script([call(&["work"]), say("done")])).events(&bus).tool(
            tool("work", |cx: ToolCx<'_>, _| {
                let logger = cx.logger();
                Box::pin(async move {
                    cx.progress(1.0, Some(4.0), Some("reading"));
                    logger.log("server", LogStream::Stderr, "a line");
                    Ok(json!("ok").into())
                })
            }),
        ),
    )
    .await;
    agent.run("go").await.unwrap();
    agent.shutdown().await;
    let mut seen = Vec::new();
    for event in events(&mut subscriber) {
        match &event.kind {
            EventKind::ToolProgress { tool, done, total, message, .. } => {
                seen.push(format!("{tool} {done}/{total:?} {message:?}"));
            }
            EventKind::Log { source, line, .. } => seen.push(format!("{source}: {line}")),
            _ => {}
        }
    }
    assert_eq!(seen, [r#"work 1/Some(4.0) Some("reading")"#, "server: a line"]);
}
