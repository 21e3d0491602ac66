//! Servers, and agents that use their tools.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::{EventBus, EventKind, LogStream, Received, Subscriber};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::tool::ToolSource;
use tenure_hosts::mcp::{McpSelection, McpServer, McpServers, McpStatus, McpTransport, McpView};
use tenure_hosts::{Environment, Interpreter};
use tenure_models::Passthrough;

/// A bound for whatever has to end by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A server of ours that behaves as `mode` says, and what it leaves in a folder.
pub(crate) struct Ours {
    pub(crate) dir: TempDir,
    mode: &'static str,
}

impl Ours {
    pub(crate) fn new(mode: &'static str) -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary folder"), mode }
    }

    pub(crate) fn transport(&self) -> McpTransport {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
        let dir = self.dir.path();
        let left = dir.to_str().expect("a plain path");
        // The real interpreter: a shim of it takes longer to start than what is tested.
        let python = Interpreter::find(dir).expect("there is a Python");
        let python = python.path().to_str().expect("a plain path");
        McpTransport::stdio([python, "-u", script, self.mode, left], dir)
    }

    /// The server, under the name `ours`.
    pub(crate) fn server(&self) -> McpServer {
        McpServer::new("ours", self.transport())
    }

    /// The lines that it left in a file of its folder.
    pub(crate) fn left(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The folder of what `npm ci` installed.
pub(crate) fn npm() -> PathBuf {
    let dir = match std::env::var_os("TENURE_NPM") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/npm"),
    };
    let dir = dir.join("node_modules/@modelcontextprotocol");
    assert!(dir.is_dir(), "{} is not there: run ./scripts/setup", dir.display());
    dir.canonicalize().expect("a folder")
}

/// The script of an installed server.
pub(crate) fn installed(package: &str) -> String {
    let script = npm().join(package).join("dist/index.js");
    assert!(script.is_file(), "{} is not there: run ./scripts/setup", script.display());
    script.to_str().expect("a plain path").to_owned()
}

/// The server of npm that has a bit of everything.
pub(crate) fn everything() -> McpServer {
    let script = installed("server-everything");
    McpServer::new("everything", McpTransport::stdio(["node", &script, "stdio"], npm()))
}

/// An agent with tools of servers. It calls what it is told to call.
pub(crate) struct Lab {
    pub(crate) servers: McpServers,
    pub(crate) view: McpView,
    pub(crate) bus: EventBus,
    events: Subscriber,
}

impl Lab {
    /// With everything that these servers have.
    pub(crate) fn new(servers: impl IntoIterator<Item = McpServer>) -> Self {
        let servers: Vec<_> = servers.into_iter().collect();
        let all = servers.iter().map(|server| McpSelection::all(server.name.clone())).collect();
        Self::with(servers, all)
    }

    pub(crate) fn with(servers: Vec<McpServer>, wanted: Vec<McpSelection>) -> Self {
        let servers = McpServers::new(servers, Environment::new());
        let view = servers.view(wanted);
        let bus = EventBus::new();
        let events = bus.subscribe(100_000);
        Self { servers, view, bus, events }
    }

    pub(crate) fn agent(&self) -> AgentBuilder {
        Agent::builder("agent")
            .model(Passthrough::new())
            .events(&self.bus)
            .with_lifecycle(self.view.keeper())
            .tool_source(self.view.clone())
    }

    pub(crate) async fn started(&self) -> Agent {
        self.start(self.agent()).await
    }

    pub(crate) async fn start(&self, agent: AgentBuilder) -> Agent {
        let agent = agent.build().expect("the agent is complete");
        bounded("the start", agent.startup()).await.expect("the agent starts");
        agent
    }

    pub(crate) fn status(&self) -> McpStatus {
        self.servers.status().remove(0)
    }

    /// The names of the tools that the agent has now.
    pub(crate) fn tools(&self) -> Vec<String> {
        self.view.tools().iter().map(|tool| tool.spec().name.to_string()).collect()
    }

    /// Everything that happened since the last look.
    pub(crate) fn happened(&mut self) -> Vec<EventKind> {
        let mut all = Vec::new();
        while let Some(received) = self.events.try_recv() {
            if let Received::Event(event) = received {
                all.push(event.kind.clone());
            }
        }
        all
    }

    /// The lines that were logged since the last look.
    pub(crate) fn logged(&mut self) -> Vec<(LogStream, String)> {
        let line = |kind| match kind {
            EventKind::Log { source, stream, line } => Some((stream, format!("{source}: {line}"))),
            _ => None,
        };
        self.happened().into_iter().filter_map(line).collect()
    }
}

/// What a tool of an agent answers.
pub(crate) async fn call(agent: &Agent, tool: &str, arguments: Value) -> String {
    let told = format!("***CALL_TOOL {tool} {arguments}");
    let report = bounded("the turn", agent.run(told)).await.expect("the model reads it");
    report.output().to_owned()
}

/// What the tools of an agent answered so far, and how each call ended.
pub(crate) fn results(agent: &Agent) -> Vec<(String, ToolStatus)> {
    let result = |message: &Message| match message {
        Message::Tool(result) => Some((result.content.text().to_owned(), result.status)),
        _ => None,
    };
    agent.history().iter().filter_map(result).collect()
}

/// Waits for something that has to end.
pub(crate) async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.unwrap_or_else(|_| panic!("{what} did not end"))
}
