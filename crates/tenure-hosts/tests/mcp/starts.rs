//! Servers that do not start, or not well.

use crate::mcp::support::{Lab, Ours, bounded, call};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenure_core::event::LogStream;
use tenure_hosts::StartCheck;
use tenure_hosts::mcp::{McpServer, McpState, McpTransport};
use tenure_testkit::{eventually, is_alive};

#[tokio::test]
async fn a_server_that_hangs_does_not_keep_the_good_one_beside_it() {
    let (good, silent) = (Ours::new("plain"), Ours::new("silent"));
    let mut hanging = McpServer::new("silent", silent.transport());
    hanging.start_limit = Duration::from_secs(2);
    let lab = Lab::new([good.server(), hanging]);
    let since = Instant::now();
    let agent = lab.started().await;
    assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    let [ours, silenced] = &lab.servers.status()[..] else { panic!("two servers") };
    assert_eq!(ours.state, McpState::Connected);
    let error = silenced.error.as_deref().unwrap_or_default();
    assert!(error.contains("did not answer within 2s"), "{error}");
    assert!(error.contains("ready in mode silent"), "its last words: {error}");
    let since = Instant::now();
    bounded("the shutdown", agent.shutdown()).await;
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    for pid in silent.left("starts") {
        assert!(!is_alive(&pid), "{pid} is gone");
    }
}

#[tokio::test]
async fn a_server_that_dies_at_its_start_says_why_and_is_tried_again() {
    let ours = Ours::new("dead");
    let mut lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let status = lab.status();
    assert_eq!(status.state, McpState::Failed);
    let error = status.error.expect("an error");
    assert!(error.contains("exit code 3"), "{error}");
    assert!(error.contains("cannot reach the database"), "{error}");
    let tried = ours.left("starts").len();
    eventually("it is tried again", || ours.left("starts").len() > tried).await;
    let logged = lab.logged();
    let said = |stream: LogStream, words: &str| {
        logged.iter().any(|(found, line)| *found == stream && line.contains(words))
    };
    assert!(said(LogStream::Stderr, "ours: cannot reach the database"), "{logged:?}");
    assert!(said(LogStream::Host, "ours: the tool server cannot be reached"), "{logged:?}");
    assert!(said(
        LogStream::Host,
        "it is tried again, and until it is there, its tools are missing"
    ));
    bounded("the shutdown", agent.shutdown()).await;
    let tried = ours.left("starts").len();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(ours.left("starts").len(), tried, "nobody needs it any more");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let transport = McpTransport::stdio(["no-such-program", "--serve"], "/");
    let lab = Lab::new([McpServer::new("ours", transport)]);
    let agent = lab.started().await;
    let error = lab.status().error.expect("an error");
    assert!(error.contains("`no-such-program` could not be started"), "{error}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_later_start_tries_again_what_failed_before() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let good = Ours::new("plain");
    let McpTransport::Stdio { command, .. } = good.transport() else { panic!("a process") };
    // There is no such program as yet.
    let program = dir.path().join("serve");
    let path = program.to_str().expect("a plain path");
    let lab = Lab::new([McpServer::new("ours", McpTransport::stdio([path], "/"))]);
    let first = lab.started().await;
    assert_eq!(lab.status().state, McpState::Failed);
    let script = format!("#!/bin/sh\nexec '{}'\n", command.join("' '"));
    std::fs::write(&program, script).expect("the program is written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("it can be run");
    // The pause before the next try has grown by now; whoever starts does not wait for it.
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let second = lab.started().await;
    assert_eq!(lab.status().state, McpState::Connected);
    assert_eq!(call(&second, "ours__echo", json!({ "text": "tea" })).await, "tea");
    assert_eq!(call(&first, "ours__echo", json!({ "text": "tea" })).await, "tea", "for all");
    first.shutdown().await;
    assert_eq!(lab.status().state, McpState::Connected, "the other one needs it");
    second.shutdown().await;
    assert_eq!(lab.status().state, McpState::Idle);
}

#[tokio::test]
async fn a_call_of_a_server_that_is_away_says_why_after_a_short_wait() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    // It cannot come back: its folder is gone.
    let dir = ours.dir.path().to_owned();
    drop(ours);
    assert!(!dir.exists());
    call(&agent, "ours__die", json!({})).await;
    let since = Instant::now();
    let said = call(&agent, "ours__echo", json!({ "text": "tea" })).await;
    assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
    assert!(said.contains("`ours` is not connected"), "{said}");
    assert!(said.contains("could not be started"), "{said}");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_start_that_is_dropped_leaves_no_process() {
    let ours = Ours::new("silent");
    let lab = Lab::new([ours.server()]);
    let agent = lab.agent().build().expect("the agent is complete");
    let dropped = tokio::time::timeout(Duration::from_millis(500), agent.startup()).await;
    assert!(dropped.is_err(), "it hangs");
    bounded("the shutdown", agent.shutdown()).await;
    drop(agent);
    eventually("nobody holds it", || lab.status().state == McpState::Idle).await;
    let pids = ours.left("starts");
    assert!(!pids.is_empty());
    eventually("its process is gone", || !pids.iter().any(|pid| is_alive(pid))).await;
}

#[tokio::test]
async fn an_agent_that_is_dropped_without_a_shutdown_leaves_no_process() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let pid = lab.status().pid.expect("a process").to_string();
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    drop(agent);
    eventually("its process is gone", || !is_alive(&pid)).await;
    eventually("nobody holds it", || lab.status().state == McpState::Idle).await;
}

#[tokio::test]
async fn a_start_that_waits_says_for_whom_and_the_status_says_when_it_is_tried_again() {
    let (good, silent) = (Ours::new("plain"), Ours::new("silent"));
    let mut hanging = McpServer::new("silent", silent.transport());
    hanging.start_limit = Duration::from_secs(3);
    let mut lab = Lab::new([good.server(), hanging]);
    let agent = lab.started().await;
    let waiting: Vec<_> =
        lab.logged().into_iter().filter(|(_, line)| line.contains("waiting")).collect();
    let expected = "silent: waiting for tool server `silent` (up to 3s)".to_owned();
    assert_eq!(waiting, [(LogStream::Host, expected)]);
    let [ours, silenced] = &lab.servers.status()[..] else { panic!("two servers") };
    assert_eq!((ours.state, ours.retry_in), (McpState::Connected, None));
    assert_eq!(silenced.state, McpState::Failed);
    let pause = silenced.retry_in.expect("it is tried again");
    assert!(pause <= Duration::from_secs(1), "{pause:?}");
    eventually("it is tried again", || {
        let silenced = lab.servers.status().remove(1);
        silenced.state == McpState::Connecting && silenced.retry_in.is_none()
    })
    .await;
    bounded("the shutdown", agent.shutdown()).await;
}

#[tokio::test]
async fn a_server_that_dies_once_it_is_connected_is_not_started_all_the_time() {
    let ours = Ours::new("brief");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let starts = ours.left("starts").len();
    // At once, and then after half a second, one second and two.
    assert!((3..=5).contains(&starts), "{starts} starts");
    bounded("the shutdown", agent.shutdown()).await;
}

#[tokio::test]
async fn a_process_is_checked_before_each_start_and_not_started_if_that_fails() {
    let ours = Ours::new("plain");
    let may_start = Arc::new(AtomicBool::new(true));
    let may = may_start.clone();
    let server =
        ours.server().checked_by(StartCheck::new(move || match may.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("`server.py` changed".to_owned()),
        }));
    assert!(!format!("{server:?}").is_empty());
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    may_start.store(false, Ordering::Relaxed);
    call(&agent, "ours__die", json!({})).await;
    let said = call(&agent, "ours__echo", json!({ "text": "tea" })).await;
    assert!(said.contains("`server.py` changed"), "{said}");
    assert_eq!(lab.status().state, McpState::Failed);
    assert_eq!(ours.left("starts").len(), 1, "it was tried again, and nothing was run");
    agent.shutdown().await;
}
