//! The server that has a bit of everything, over pipes.

use crate::mcp::support::{Lab, bounded, call, everything, results};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure_core::CancelToken;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::{EventKind, LogStream};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::tool::{Effect, ToolSource};
use tenure_hosts::mcp::{McpSelection, McpState};
use tenure_testkit::{eventually, is_alive};

#[tokio::test]
async fn its_tools_are_listed_and_called() {
    let mut lab = Lab::new([everything()]);
    let since = Instant::now();
    let agent = lab.started().await;
    println!("connected and listed in {:?}", since.elapsed());
    let status = lab.status();
    assert_eq!((status.state, status.error), (McpState::Connected, None));
    assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
    // What it offers to those who answer questions is listed a moment later.
    eventually("every tool is listed", || {
        lab.tools().contains(&"everything__trigger-elicitation-request".to_owned())
    })
    .await;
    let tools = lab.tools();
    assert_eq!(lab.status().tools, tools.len());
    for name in ["echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"] {
        assert!(tools.contains(&format!("everything__{name}")), "{tools:?}");
    }
    let effect = |name: &str| {
        let tools = lab.view.tools();
        let tool = tools.iter().find(|tool| &*tool.spec().name == name).expect("the tool");
        tool.spec().effect
    };
    assert_eq!(effect("everything__get-sum"), Effect::Idempotent);
    assert_eq!(effect("everything__trigger-elicitation-request"), Effect::AtMostOnce);

    let echo = call(&agent, "everything__echo", json!({ "message": "tea" })).await;
    assert_eq!(echo, "Echo: tea");
    let sum = call(&agent, "everything__get-sum", json!({ "a": 2, "b": 40 })).await;
    assert_eq!(sum, "The sum of 2 and 40 is 42.");
    let image = call(&agent, "everything__get-tiny-image", json!({})).await;
    assert!(image.contains("[an image, image/png, "), "{image}");
    assert!(!image.contains("iVBOR"), "no binary: {image}");
    let structured = json!({ "location": "Chicago" });
    let structured = call(&agent, "everything__get-structured-content", structured).await;
    assert!(structured.contains("\"temperature\""), "{structured}");
    let wrong = call(&agent, "everything__get-sum", json!({ "a": "two" })).await;
    assert!(wrong.to_lowercase().contains("invalid"), "{wrong}");

    let times = 50;
    let since = Instant::now();
    for _ in 0..times {
        call(&agent, "everything__echo", json!({ "message": "tea" })).await;
    }
    println!("a turn with one call took {:?}", since.elapsed() / times);

    let pid = lab.status().pid.expect("a process").to_string();
    bounded("the shutdown", agent.shutdown()).await;
    assert!(!is_alive(&pid), "its process is gone");
    assert_eq!(lab.status().state, McpState::Idle);
    let logged = lab.logged();
    let said = |(stream, line): &(LogStream, String)| {
        *stream == LogStream::Stderr && line.starts_with("everything: ")
    };
    assert!(logged.iter().any(said), "its words are logged: {logged:?}");
}

#[tokio::test]
async fn its_progress_is_told_in_order() {
    let mut lab = Lab::new([everything()]);
    let agent = lab.started().await;
    let long = json!({ "duration": 0.4, "steps": 4 });
    let said = call(&agent, "everything__trigger-long-running-operation", long).await;
    assert!(said.starts_with("Long running operation completed"), "{said}");
    let told: Vec<_> = lab
        .happened()
        .into_iter()
        .filter_map(|kind| match kind {
            EventKind::ToolProgress { done, total, .. } => Some((done, total)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [1.0, 2.0, 3.0, 4.0].map(|done| (done, Some(4.0))));
    agent.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_turn_ends_the_call_and_the_server_serves_on() {
    let lab = Lab::new([everything()]);
    let agent = lab.started().await;
    let cancel = CancelToken::new();
    let long = r#"***CALL_TOOL everything__trigger-long-running-operation {"duration": 60}"#;
    let since = Instant::now();
    let turn = agent.request(long).cancel_on(&cancel).run();
    let (ended, ()) = tokio::join!(bounded("the turn", turn), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    });
    assert!(ended.expect_err("it was cancelled").is_cancelled());
    assert!(since.elapsed() < Duration::from_secs(5));
    let echo = call(&agent, "everything__echo", json!({ "message": "tea" })).await;
    assert_eq!(echo, "Echo: tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn killed_in_a_call_it_fails_the_call_and_is_back_for_the_next() {
    let lab = Lab::new([everything()]);
    let agent = lab.started().await;
    let first = lab.status().pid.expect("a process").to_string();
    let since = Instant::now();
    let long = call(
        &agent,
        "everything__trigger-long-running-operation",
        json!({ "duration": 60, "steps": 60 }),
    );
    let (said, ()) = tokio::join!(bounded("the call", long), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let killed = std::process::Command::new("kill").args(["-9", &first]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    });
    assert!(said.contains("went away during the call"), "{said}");
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let echo = call(&agent, "everything__echo", json!({ "message": "tea" })).await;
    assert_eq!(echo, "Echo: tea");
    assert_ne!(lab.status().pid.map(|pid| pid.to_string()), Some(first));
    agent.shutdown().await;
}

#[tokio::test]
async fn its_form_is_asked_of_a_person_and_the_answer_reaches_it() {
    let lab = Lab::new([everything()]);
    let asked: Arc<std::sync::Mutex<Vec<PendingAsk>>> = Arc::default();
    let heard = asked.clone();
    let asker = move |ask: &PendingAsk| {
        heard.lock().expect("nobody panicked").push(ask.clone());
        let form = json!({ "name": "Ada", "check": true, "integer": 7 });
        Some(Answer::Respond(form.to_string()))
    };
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    let name = "everything__trigger-elicitation-request";
    eventually("the tool is listed", || lab.tools().contains(&name.to_owned())).await;
    let said = call(&agent, name, json!({})).await;
    assert!(said.contains("User provided the requested information"), "{said}");
    assert!(said.contains("Ada") && said.contains('7'), "{said}");
    let asked = std::mem::take(&mut *asked.lock().expect("nobody panicked"));
    let [ask] = &asked[..] else { panic!("one question: {asked:?}") };
    assert!(ask.ask.prompt.contains("`everything` asks: Please provide inputs"), "{ask:?}");
    let schema = ask.ask.schema.as_ref().expect("a schema");
    assert_eq!(schema["properties"]["integer"]["maximum"], 100);
    assert_eq!(ask.tool.as_deref(), Some(name));
    agent.shutdown().await;
}

#[tokio::test]
async fn a_person_who_says_no_declines() {
    let lab = Lab::new([everything()]);
    let no = |_: &PendingAsk| Some(Answer::Reject("not today".into()));
    let agent = lab.start(lab.agent().on_ask(no)).await;
    let name = "everything__trigger-elicitation-request";
    eventually("the tool is listed", || lab.tools().contains(&name.to_owned())).await;
    let said = call(&agent, name, json!({})).await;
    assert!(said.contains("User declined"), "{said}");
    agent.shutdown().await;
}

#[tokio::test]
async fn filters_choose_tools_resources_and_prompts() {
    let wanted = McpSelection::all("everything")
        .tools(["get-*um", "echo"])
        .resources(["demo://resource/static/document/a*.md"])
        .prompts(["simple*"]);
    let lab = Lab::with(vec![everything()], vec![wanted]);
    let agent = lab.started().await;
    let mut tools = lab.tools();
    tools.sort();
    let expected = ["everything__echo", "everything__get-sum", "everything__read_resource"];
    assert_eq!(tools, expected);
    let read = async |uri: &str| {
        let told = format!(r#"***CALL_TOOL everything__read_resource {{"uri": "{uri}"}}"#);
        let report = bounded("the turn", agent.run(told)).await.expect("the model reads it");
        let (_, status) = results(&agent).pop().expect("a result");
        (report.output().to_owned(), status)
    };
    let (text, status) = read("demo://resource/static/document/architecture.md").await;
    assert!(text.contains("Everything Server"), "{text}");
    assert_eq!(status, ToolStatus::Ok);
    let (text, status) = read("demo://resource/static/document/startup.md").await;
    assert!(text.contains("may not be read"), "{text}");
    assert_eq!(status, ToolStatus::Denied);

    let resources: Vec<_> = lab.view.resources().into_iter().map(|it| it.uri).collect();
    assert_eq!(resources, ["demo://resource/static/document/architecture.md"]);
    let text = lab.view.read("everything", &resources[0]).await.expect("a text");
    assert!(text.contains("Everything Server"));
    let other = lab.view.read("everything", "demo://resource/static/document/startup.md").await;
    assert!(other.expect_err("not wanted").to_string().contains("may not use the resource"));

    let prompts: Vec<_> = lab.view.prompts().into_iter().map(|it| it.name).collect();
    assert_eq!(prompts, ["simple-prompt"]);
    let no = lab.view.prompt("everything", "args-prompt", Default::default()).await;
    assert!(no.expect_err("not wanted").to_string().contains("may not use the prompt"));
    agent.shutdown().await;
}

#[tokio::test]
async fn its_prompts_are_filled_in() {
    let lab = Lab::new([everything()]);
    let agent = lab.started().await;
    let prompts = lab.view.prompts();
    let args = prompts.iter().find(|it| it.name == "args-prompt").expect("the prompt");
    let required: Vec<_> = args.arguments.iter().map(|it| (&*it.name, it.required)).collect();
    assert_eq!(required, [("city", true), ("state", false)]);
    let filled = [("city".to_owned(), "Bern".to_owned())].into();
    let messages = lab.view.prompt("everything", "args-prompt", filled).await.expect("messages");
    let [Message::User { content }] = &messages[..] else { panic!("{messages:?}") };
    assert!(content.text().contains("Bern"), "{content}");
    let missing = lab.view.prompt("everything", "args-prompt", Default::default()).await;
    assert!(missing.is_err(), "a required argument is missing: {missing:?}");
    agent.shutdown().await;
    let gone = lab.view.prompt("everything", "simple-prompt", Default::default()).await;
    let gone = gone.expect_err("nobody holds it open").to_string();
    assert!(gone.contains("no agent that uses it is running"), "{gone}");
}
