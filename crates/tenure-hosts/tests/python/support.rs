//! A folder with a file of functions, and agents that are hooked with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::event::EventBus;
use tenure_core::hook::{FaultKind, Points};
use tenure_core::tool::ToolSpec;
use tenure_hosts::{
    Environment, Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHook, PythonHost,
    PythonLimits, PythonModules, PythonTool, Style,
};
use tenure_models::Passthrough;
use tenure_testkit::Recorder;

pub(crate) struct Lab {
    pub(crate) dir: TempDir,
    pub(crate) host: PythonHost,
    file: Arc<PythonFile>,
    bus: EventBus,
    pub(crate) recorder: Recorder,
}

impl Lab {
    /// A file of this text. It is never written: what runs is what was read.
    pub(crate) fn new(source: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
        Self::with(dir, interpreter, source)
    }

    pub(crate) fn with(dir: TempDir, interpreter: Interpreter, source: &str) -> Self {
        Self::with_modules(dir, interpreter, source, PythonModules::Any)
    }

    pub(crate) fn with_modules(
        dir: TempDir,
        interpreter: Interpreter,
        source: &str,
        modules: PythonModules,
    ) -> Self {
        Self::configured(dir, interpreter, source, PythonLimits::default(), modules)
    }

    fn configured(
        dir: TempDir,
        interpreter: Interpreter,
        source: &str,
        limits: PythonLimits,
        modules: PythonModules,
    ) -> Self {
        let config = PythonConfig {
            interpreter,
            environment: Environment::new(),
            dir: dir.path().to_owned(),
            limits,
            modules,
            start_check: None,
        };
        let file = Arc::new(PythonFile::new(dir.path().join("hooks.py"), source));
        let (bus, recorder) = Recorder::with_bus();
        Self { dir, host: PythonHost::new(config), file, bus, recorder }
    }

    /// The same with another limit of loading a module.
    pub(crate) fn limited(self, limit: Duration) -> Self {
        let Self { dir, file, .. } = self;
        let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
        let limits = PythonLimits { load: limit, ..PythonLimits::default() };
        Self::configured(dir, interpreter, file.source(), limits, PythonModules::Any)
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
        let body = source.split_once(line).map_or("", |(_, rest)| rest);
        let body = body.split("\ndef ").flat_map(|part| part.split("\nasync def ")).next();
        let body = body.unwrap_or_default();
        PythonFunction {
            file: self.file.clone(),
            name: name.into(),
            style: if line.starts_with("async") { Style::Async } else { Style::Sync },
            takes: names.map(plain).filter(|name| !name.is_empty()).map(Into::into).collect(),
            waits: ["ask(", "step(", "next("].iter().any(|word| body.contains(word)),
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
        self.agent_named("agent")
    }

    pub(crate) fn agent_named(&self, name: &str) -> AgentBuilder {
        Agent::builder(name).model(Passthrough::new()).events(&self.bus)
    }

    pub(crate) async fn started(&self, agent: AgentBuilder) -> Agent {
        let agent = agent.build().expect("the agent is complete");
        agent.startup().await.expect("the agent starts");
        agent
    }
}

/// How the one hook that failed failed.
pub(crate) fn fault(result: Result<impl std::fmt::Debug, Error>) -> (FaultKind, String) {
    let error = result.expect_err("the hook fails");
    let report = error.report().unwrap_or_else(|| panic!("{error:?} has a report"));
    let failure = report.failures.first().unwrap_or_else(|| panic!("{error:?} has a failure"));
    (failure.kind, failure.message.clone())
}
