//! Which protocol is spoken, and with whom.

use crate::mcp::support::{Lab, Ours, call};
use serde_json::json;
use std::time::{Duration, Instant};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::LogStream;
use tenure_hosts::mcp::{McpProtocol, McpServer, McpState};
use tenure_testkit::eventually;

/// An agent that has called its server; what it heard, and what protocol was spoken.
async fn talked(server: McpServer) -> (Lab, String) {
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    let protocol = lab.status().protocol.expect("a protocol");
    agent.shutdown().await;
    (lab, protocol)
}

#[tokio::test]
async fn a_server_of_2026_is_found_out_and_spoken_to() {
    let ours = Ours::new("modern");
    let (_, protocol) = talked(ours.server()).await;
    assert_eq!((&*protocol, ours.left("eras")), ("2026-07-28", vec!["discover".to_owned()]));
}

#[tokio::test]
async fn a_server_of_2025_is_found_out_and_that_is_remembered() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    assert_eq!(lab.status().protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(ours.left("eras"), ["discover", "initialize"]);
    call(&agent, "ours__die", json!({})).await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    assert_eq!(ours.left("eras"), ["discover", "initialize", "initialize"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_protocol_that_is_declared_is_the_only_one_tried() {
    let ours = Ours::new("plain");
    let mut server = ours.server();
    server.protocol = McpProtocol::Legacy;
    talked(server).await;
    assert_eq!(ours.left("eras"), ["initialize"]);

    let ours = Ours::new("plain");
    let mut server = ours.server();
    server.protocol = McpProtocol::Modern;
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    let status = lab.status();
    assert_eq!(status.state, McpState::Failed);
    assert!(status.error.is_some_and(|error| error.contains("Method not found")));
    assert_eq!(ours.left("eras"), ["discover"]);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_the_question_for_its_protocol_is_greeted_soon() {
    let ours = Ours::new("mute");
    let since = Instant::now();
    let (_, protocol) = talked(ours.server()).await;
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    assert_eq!((&*protocol, ours.left("eras").len()), ("2025-11-25", 2));
}

#[tokio::test]
async fn a_server_that_ends_when_it_is_not_greeted_is_started_again_and_greeted() {
    let ours = Ours::new("touchy");
    let (_, protocol) = talked(ours.server()).await;
    assert_eq!(protocol, "2025-11-25");
    assert_eq!(ours.left("eras"), ["discover", "initialize"]);
    assert_eq!(ours.left("starts").len(), 2);
}

#[tokio::test]
async fn a_server_of_2026_that_is_slow_to_start_is_understood_in_the_end() {
    let ours = Ours::new("modern-slow");
    let (_, protocol) = talked(ours.server()).await;
    assert_eq!(protocol, "2026-07-28");
}

#[tokio::test]
async fn news_of_a_server_of_2026_are_subscribed_to() {
    let ours = Ours::new("modern");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    call(&agent, "ours__add_tool", json!({})).await;
    let added = "ours__added".to_owned();
    eventually("the new tool is listed", || lab.tools().contains(&added)).await;
    agent.shutdown().await;
}

#[tokio::test]
async fn a_server_of_2026_asks_for_input_and_gets_it_with_its_state() {
    let ours = Ours::new("modern");
    let lab = Lab::new([ours.server()]);
    let asker = |ask: &PendingAsk| {
        assert!(ask.ask.prompt.contains("`ours` asks: Who?"), "{ask:?}");
        Some(Answer::Respond(r#"{"name": "Ada"}"#.into()))
    };
    let agent = lab.start(lab.agent().on_ask(asker)).await;
    let said = call(&agent, "ours__ask", json!({ "question": "Who?" })).await;
    assert_eq!(said, "state-7 accept Ada");
    agent.shutdown().await;
}

#[tokio::test]
async fn what_is_no_message_is_logged_and_skipped() {
    let ours = Ours::new("garbage");
    let mut lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    assert_eq!(call(&agent, "ours__steps", json!({})).await, "done");
    assert_eq!(lab.status().state, McpState::Connected);
    assert_eq!(ours.left("starts").len(), 1);
    agent.shutdown().await;
    let logged = lab.logged();
    let stray = (LogStream::Stdout, "ours: Loading plugins...".to_owned());
    assert!(logged.contains(&stray), "{logged:?}");
}
