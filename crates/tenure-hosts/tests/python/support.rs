//! A folder with a file of functions, and agents that are hooked with them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::{EventBus, EventKind, LogStream, Subscriber};
use tenure_core::hook::{FaultKind, Points};
use tenure_core::tool::ToolSpec;
use tenure_hosts::{
    Environment, Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHook, PythonHost,
    PythonTool, Style,
};
use tenure_models::Passthrough;

pub(crate) struct Lab {
    pub(crate) dir: TempDir,
    pub(crate) host: PythonHost,
    file: Arc<PythonFile>,
    bus: EventBus,
    events: Subscriber,
}

impl Lab {
    /// A file of this text. It is never written: what runs is what was read.
    pub(crate) fn new(source: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
        Self::with(dir, interpreter, source)
    }

    pub(crate) fn with(dir: TempDir, interpreter: Interpreter, source: &str) -> Self {
        let config = PythonConfig {
            interpreter,
            environment: Environment::new(),
            dir: dir.path().to_owned(),
        };
        let file = Arc::new(PythonFile::new(dir.path().join("hooks.py"), source));
        let bus = EventBus::new();
        let events = bus.subscribe(100_000);
        Self { dir, host: PythonHost::new(config), file, bus, events }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// What is known of a function, as reading its first line shows it.
    pub(crate) fn function(&self, name: &str) -> PythonFunction {
        let source = self.file.source();
        let line = source
            .lines()
            .find(|line| line.trim_start_matches("async ").starts_with(&format!("def {name}(")))
            .unwrap_or("def missing(ctx):");
        let inner = line.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        let names = inner.map_or("", |(inner, _)| inner).split(',');
        let plain = |name: &str| name.split([':', '=']).next().unwrap_or(name).trim().to_owned();
        PythonFunction {
            file: self.file.clone(),
            name: name.into(),
            style: if line.starts_with("async") { Style::Async } else { Style::Sync },
            takes: names.map(plain).filter(|name| !name.is_empty()).map(Into::into).collect(),
            waits: ["ask(", "step(", "next("].iter().any(|word| source.contains(word)),
        }
    }

    pub(crate) fn hook(&self, name: &str, points: impl Into<Points>) -> PythonHook {
        self.host.hook(self.function(name), points)
    }

    pub(crate) fn tool(&self, name: &str) -> PythonTool {
        self.host.tool(self.function(name), ToolSpec::new(name, "a tool"))
    }

    /// An agent that says what it is told, and calls the tools that it is told to call.
    pub(crate) fn agent(&self) -> AgentBuilder {
        Agent::builder("agent").model(Passthrough::new()).events(&self.bus)
    }

    pub(crate) async fn started(&self, agent: AgentBuilder) -> Agent {
        let agent = agent.build().expect("the agent is complete");
        agent.startup().await.expect("the agent starts");
        agent
    }

    /// The lines that were logged until now, with the hook's name.
    pub(crate) fn logged(&mut self) -> Vec<(String, LogStream, String)> {
        let mut lines = Vec::new();
        while let Some(received) = self.events.try_recv() {
            if let tenure_core::event::Received::Event(event) = received
                && let EventKind::Log { source, stream, line } = &event.kind
            {
                lines.push((source.to_string(), *stream, line.clone()));
            }
        }
        lines
    }
}

/// How the one hook that failed failed.
pub(crate) fn fault(result: Result<impl std::fmt::Debug, Error>) -> (FaultKind, String) {
    let error = result.expect_err("the hook fails");
    let report = error.report().unwrap_or_else(|| panic!("{error:?} has a report"));
    let failure = report.failures.first().unwrap_or_else(|| panic!("{error:?} has a failure"));
    (failure.kind, failure.message.clone())
}

/// Whether a process with this id exists and has not ended.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    // Without an id, that is the machine's.
    !pid.trim().is_empty()
        && stat.is_ok_and(|stat| {
            let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
            !matches!(state, Some('Z' | 'X'))
        })
}

/// Waits until `done`, but not for ever.
pub(crate) async fn eventually(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(20), "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
