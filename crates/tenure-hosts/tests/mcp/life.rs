//! Connections and the lives of agents.

use crate::mcp::support::{Lab, Ours, bounded, call};
use async_trait::async_trait;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tenure_core::ExitReason;
use tenure_core::context::InstanceCx;
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};
use tenure_core::tool::ToolSource;
use tenure_hosts::mcp::{McpServers, McpState, McpView};
use tenure_testkit::{eventually, is_alive};

/// Writes down how the server is when an instance starts and ends.
struct Witness {
    servers: McpServers,
    view: McpView,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn note(&self, what: &str) {
        let (state, tools) = (self.servers.status()[0].state, self.view.tools().len());
        self.seen.lock().expect("nobody panicked").push(format!("{what}: {state}, {tools} tools"));
    }
}

#[async_trait]
impl AgentLifecycle for Witness {
    fn points(&self) -> Points {
        Points::from(Point::OnStart) | Point::OnShutdown.into()
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.note("on_start");
        Ok(())
    }

    async fn on_shutdown(&self, _cx: InstanceCx<'_>, _why: ExitReason) -> Result<(), HookError> {
        self.note("on_shutdown");
        Ok(())
    }
}

#[tokio::test]
async fn it_is_connected_before_on_start_and_closed_after_on_shutdown() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (servers, view) = (lab.servers.clone(), lab.view.clone());
    let witness = Witness { servers, view, seen: seen.clone() };
    assert_eq!(lab.status().state, McpState::Idle);
    let agent = lab.start(lab.agent().with_lifecycle(witness)).await;
    assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
    let pid = lab.status().pid.expect("a process").to_string();
    bounded("the shutdown", agent.shutdown()).await;
    let seen = seen.lock().expect("nobody panicked");
    assert_eq!(*seen, ["on_start: connected, 14 tools", "on_shutdown: connected, 14 tools"]);
    assert_eq!(lab.status().state, McpState::Idle, "closed when the shutdown is over");
    assert!(!is_alive(&pid));
    assert_eq!(ours.left("ends"), [pid], "it ended by itself: its input was closed");
}

#[tokio::test]
async fn twenty_clones_share_one_process() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let spawned = (0..20).map(|_| agent.spawn_detached_instance(None));
    let clones = bounded("the clones", futures_util::future::try_join_all(spawned)).await;
    let clones = clones.expect("they start");
    let calls = clones.iter().map(|clone| call(clone, "ours__pid", json!({})));
    let pids = futures_util::future::join_all(calls).await;
    let own = lab.status().pid.expect("a process").to_string();
    assert!(pids.iter().all(|pid| *pid == own), "{pids:?}");
    assert_eq!(ours.left("starts"), [own.as_str()]);
    agent.shutdown().await;
    assert_eq!(lab.status().state, McpState::Connected, "the clones need it");
    futures_util::future::join_all(clones.iter().map(|clone| clone.shutdown())).await;
    assert_eq!(lab.status().state, McpState::Idle);
    assert!(!is_alive(&own));
}

#[tokio::test]
async fn agents_that_start_at_once_share_one_attempt() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    let agents: Vec<_> = futures_util::future::join_all((0..10).map(|_| lab.started())).await;
    assert_eq!(ours.left("starts").len(), 1);
    assert_eq!(call(&agents[9], "ours__echo", json!({ "text": "tea" })).await, "tea");
    futures_util::future::join_all(agents.iter().map(|agent| agent.shutdown())).await;
    assert_eq!(lab.status().state, McpState::Idle);
}

#[tokio::test]
async fn a_second_life_opens_a_new_connection() {
    let ours = Ours::new("plain");
    let lab = Lab::new([ours.server()]);
    for life in 1..=3 {
        let agent = lab.started().await;
        assert_eq!(call(&agent, "ours__echo", json!({ "text": "tea" })).await, "tea");
        agent.shutdown().await;
        assert_eq!(ours.left("starts").len(), life);
        assert_eq!(lab.status().state, McpState::Idle);
    }
}

#[tokio::test]
async fn a_process_that_will_not_end_is_killed_with_what_it_started() {
    let ours = Ours::new("stubborn");
    let mut server = ours.server();
    server.stop_limit = Duration::from_millis(900);
    let lab = Lab::new([server]);
    let agent = lab.started().await;
    let pid = lab.status().pid.expect("a process").to_string();
    let grandchild = ours.left("grandchild").remove(0);
    assert!(is_alive(&pid) && is_alive(&grandchild));
    let since = Instant::now();
    bounded("the shutdown", agent.shutdown()).await;
    let took = since.elapsed();
    assert!(!is_alive(&pid), "it is gone");
    assert!(!is_alive(&grandchild), "so is what left its group");
    assert_eq!(ours.left("asked"), ["to end"], "it was asked first");
    assert!(took >= Duration::from_millis(850) && took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn a_server_that_dies_leaves_nothing_behind_either() {
    let ours = Ours::new("stubborn");
    let lab = Lab::new([ours.server()]);
    let agent = lab.started().await;
    let grandchild = ours.left("grandchild").remove(0);
    assert!(is_alive(&grandchild));
    call(&agent, "ours__die", json!({})).await;
    eventually("it is gone", || !is_alive(&grandchild)).await;
    bounded("the shutdown", agent.shutdown()).await;
    for pid in ours.left("grandchild") {
        assert!(!is_alive(&pid));
    }
}
