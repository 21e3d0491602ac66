//! Calls, and what may become of them.

use crate::mcp::support::{Lab, Ours, bounded, call, results};
use serde_json::json;
use std::time::{Duration, Instant};
use tenure_core::CancelToken;
use tenure_core::event::{EventKind, LogStream};
use tenure_core::message::ToolStatus;
use tenure_hosts::mcp::{McpState, McpTransport};
use tenure_testkit::{eventually, is_alive};

#[tokio::test]
async fn what_a_tool_answers_becomes_text() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    for (tool, arguments, expected) in [
        ("echo", json!({ "text": "tea" }), "tea"),
        ("structured", json!({}), r#"{"sum":3}"#),
        ("fail", json!({}), "there is no such city"),
    ] {
        assert_eq!(call(&agent, &format!("ours__{tool}"), arguments).await, expected);
        let (_, status) = results(&agent).pop().expect("a result");
        assert_eq!(status == ToolStatus::Error, tool == "fail", "{tool}: {status:?}");
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_call_carries_its_key() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let meta = || json!({ "meta": "tenure/idempotencyKey" });
    let first = call(&agent, "ours__echo", meta()).await;
    let second = call(&agent, "ours__echo", meta()).await;
    assert!(first.ends_with("//1/correlationId0"), "{first}");
    assert_ne!(first, second, "every call has its own");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_huge_result_is_cut_and_says_so() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let said = call(&agent, "ours__huge", json!({ "size": 20_000_000 })).await;
    assert!(said.len() < 1_100_000, "{}", said.len());
    assert!(said.ends_with("[cut: 1048576 of 20000000 bytes are shown]"));
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_message_beyond_all_measure_ends_the_connection_and_the_call() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let said = call(&agent, "ours__huge", json!({ "size": 70_000_000 })).await;
    assert!(said.contains("went away during the call"), "{said}");
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_at_its_limit() {
    let ours = Ours::new("plain");
    let mut server = ours.server();
    server.call_limit = Some(Duration::from_millis(300));
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    let since = Instant::now();
    let said = call(&agent, "ours__hang", json!({})).await;
    assert!(since.elapsed() < Duration::from_secs(5));
    assert!(said.contains("300ms"), "{said}");
    eventually("the server hears of it", || !ours.left("cancelled").is_empty()).await;
    assert_eq!(ours.left("cancelled"), ours.left("hanging"), "the call that hung");
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_server_hears_which_call_was_cancelled() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let cancel = CancelToken::new();
    let turn = agent.request("***CALL_TOOL ours__hang {}").cancel_on(&cancel).run();
    let (ended, ()) = tokio::join!(bounded("the turn", turn), async {
        eventually("the call hangs", || !ours.left("hanging").is_empty()).await;
        cancel.cancel();
    });
    assert!(ended.expect_err("it was cancelled").is_cancelled());
    eventually("the server hears of it", || !ours.left("cancelled").is_empty()).await;
    assert_eq!(ours.left("cancelled"), ours.left("hanging"));
    agent.shutdown().await;
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_in_order() {
    let ours = Ours::new("plain");
    let mut lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    for _ in 0..20 {
        assert_eq!(call(&agent, "ours__steps", json!({})).await, "done");
        let told: Vec<_> = lab
            .happened()
            .into_iter()
            .filter_map(|kind| match kind {
                EventKind::ToolProgress { done, message, .. } => {
                    Some(format!("{done} {}", message.unwrap_or_default()))
                }
                EventKind::ToolEnded { .. } => Some("ended".to_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(told, ["1 step 1", "2 step 2", "3 step 3", "ended"]);
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_it_at_once_and_comes_back() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let first = lab.status().pid.expect("a process");
    let since = Instant::now();
    let said = call(&agent, "ours__die", json!({})).await;
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    assert!(said.contains("went away during the call"), "{said}");
    assert!(said.contains("exit code 7") && said.contains("the disk is on fire"), "{said}");
    assert!(said.contains("is not known"), "{said}");
    assert!(!lab.tools().is_empty(), "the last good list is kept");
    // A call waits for the connection.
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    let second = lab.status().pid.expect("a process");
    assert_ne!(first, second);
    assert_eq!(lab.status().state, McpState::Connected);
    assert_eq!(ours.left("starts").len(), 2, "and what died was not called again");
    agent.shutdown().await;
    assert!(!is_alive(&second.to_string()));
}

#[tokio::test]
async fn a_server_that_is_killed_from_outside_comes_back_by_itself() {
    let ours = Ours::new("plain");
    let mut lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let first = lab.status().pid.expect("a process").to_string();
    let killed = std::process::Command::new("kill").args(["-9", &first]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    eventually("it is back", || {
        let status = lab.status();
        status.state == McpState::Connected && status.pid.is_some_and(|it| it.to_string() != first)
    })
    .await;
    let logged = lab.logged();
    let said = |(stream, line): &(LogStream, String)| {
        *stream == LogStream::Host && line.contains("SIGKILL")
    };
    assert!(logged.iter().any(said), "{logged:?}");
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_process_gets_what_is_declared_and_little_else() {
    let ours = Ours::new("plain");
    let mut server = ours.server();
    if let McpTransport::Stdio { env, .. } = &mut server.transport {
        env.insert("CITY".into(), "Bern".into());
    }
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    for (name, expected) in [("CITY", "Bern"), ("CARGO_MANIFEST_DIR", "<unset>")] {
        let said = call(&agent, "ours__variable", json!({ "name": name })).await;
        assert_eq!(said, expected, "{name}");
    }
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "we have it");
    agent.shutdown().await;
}
