//! A folder with a file of functions, and chats that are hooked with them.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_cards::build::{Attached, HookCatalog};
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::event::{EventBus, EventKind, Received, Subscriber};
use tenure_core::hook::Limit;
use tenure_flow::lifecycle::{self, Hosts, LifecycleTool, Run, Trigger};
use tenure_flow::message_hook::{self, MessageHook};
use tenure_flow::route::RoundRobin;
use tenure_flow::{Flow, FlowBuilder};
use tenure_hosts::{
    Environment, Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHost, Style,
};
use tenure_models::{Passthrough, Silent};

pub(crate) struct Lab {
    pub(crate) dir: TempDir,
    pub(crate) python: PythonHost,
    pub(crate) environment: Environment,
    pub(crate) catalog: HookCatalog,
    pub(crate) bus: EventBus,
    file: Arc<PythonFile>,
    events: Subscriber,
}

/// An event that was announced under a name, or a line of the log.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Lab {
    /// A file of this text. The agents of all its chats share a worker, as those of one chat do.
    pub(crate) fn new(source: &str) -> Self {
        Self::at("tools.py", source)
    }

    pub(crate) fn at(path: &str, source: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
        let config = PythonConfig {
            interpreter,
            environment: Environment::new(),
            dir: dir.path().to_owned(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        };
        let bus = EventBus::new();
        let events = bus.subscribe(100_000);
        Self {
            file: Arc::new(PythonFile::new(dir.path().join(path), source)),
            dir,
            python: PythonHost::new(config),
            environment: Environment::new(),
            catalog: HookCatalog::new(),
            bus,
            events,
        }
    }

    /// What is known of a function, as reading its first line shows it.
    pub(crate) fn function(&self, name: &str) -> PythonFunction {
        let source = self.file.source();
        let is_it =
            |line: &&str| line.trim_start_matches("async ").starts_with(&format!("def {name}("));
        let line = source.lines().find(is_it).expect("there is such a function");
        let inner = line.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
        let names = inner.map_or("", |(inner, _)| inner).split(',').map(str::trim);
        PythonFunction {
            file: self.file.clone(),
            name: name.into(),
            style: if line.starts_with("async") { Style::Async } else { Style::Sync },
            takes: names.filter(|name| !name.is_empty()).map(Into::into).collect(),
            waits: source.contains("ask("),
        }
    }

    /// A tool that runs a function of the file.
    pub(crate) fn tool(&self, trigger: Trigger, function: &str) -> LifecycleTool {
        LifecycleTool::new(trigger, function, Run::Python(self.function(function)))
    }

    /// A chat of these tools and agents `a` and `b`, each of which says what it is told.
    pub(crate) fn flow(&self, tools: &[LifecycleTool]) -> FlowBuilder {
        let agent = |name: &str| Agent::builder(name).model(Passthrough::new());
        self.flow_of(tools, &[], [agent("a"), agent("b")])
    }

    pub(crate) fn flow_of(
        &self,
        tools: &[LifecycleTool],
        hooks: &[MessageHook],
        agents: impl IntoIterator<Item = AgentBuilder>,
    ) -> FlowBuilder {
        let hosts = Hosts::new(&self.python, &self.environment, &self.catalog);
        let host = Agent::builder("lab.workflow").model(Silent::new());
        let host = self.with(host, lifecycle::of_chat(tools, hosts));
        let mut flow = Flow::builder("lab").host(host).router(RoundRobin).max_turns(2);
        for agent in agents {
            let name = agent.config().name.clone();
            let mut attached = lifecycle::of_agent(tools, &name, hosts);
            attached.extend(message_hook::of_agent(hooks, &name, &self.python));
            flow = flow.agent(self.with(agent, attached));
        }
        let python = self.python.clone();
        flow.events(&self.bus).prepare(move |agent, _| python.join(agent.id(), "lab"))
    }

    fn with(&self, mut agent: AgentBuilder, attached: Attached) -> Blueprint {
        assert!(attached.problems.is_empty(), "{:?}", attached.problems);
        for entry in attached.entries {
            agent = agent.with_lifecycle(entry.registration);
        }
        if let Some(ends) = attached.ends {
            agent.config_mut().limits.ends = ends;
        }
        let answer = |_: &PendingAsk| Some(Answer::Respond("blue".to_owned()));
        agent.events(&self.bus).on_ask(answer).blueprint().expect("it can be built")
    }

    /// What was announced until now, with the lines of the log as `log`.
    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(received) = self.events.try_recv() {
            let Received::Event(event) = received else { panic!("events were lost") };
            match &event.kind {
                EventKind::Announced { name, data } => {
                    seen.push(Seen { name: (*name).to_owned(), data: data.clone() });
                }
                EventKind::Log { line, .. } => {
                    seen.push(Seen { name: "log".to_owned(), data: line.as_str().into() });
                }
                _ => seen.push(Seen { name: event.name().to_owned(), data: Value::Null }),
            }
        }
        seen
    }
}

/// The events of lifecycle tools, as `tool_call before_chat name status`.
pub(crate) fn calls(seen: &[Seen]) -> Vec<String> {
    let of_tool = |seen: &&Seen| seen.name.starts_with("lifecycle.");
    let text = |data: &Value, key: &str| data[key].as_str().unwrap_or("-").to_owned();
    seen.iter()
        .filter(of_tool)
        .map(|Seen { name, data }| {
            let name = name.trim_start_matches("lifecycle.tool_");
            format!("{name} {} {}", text(data, "trigger"), text(data, "tool"))
        })
        .collect()
}

/// The data of the first event of this name.
pub(crate) fn first<'a>(seen: &'a [Seen], name: &str) -> &'a Value {
    let found = seen.iter().find(|seen| seen.name == name);
    &found.unwrap_or_else(|| panic!("no {name} in {seen:#?}")).data
}

/// Whether a line of the log has this in it.
pub(crate) fn logged(seen: &[Seen], part: &str) -> bool {
    let has = |seen: &Seen| {
        seen.name == "log" && seen.data.as_str().is_some_and(|line| line.contains(part))
    };
    seen.iter().any(has)
}

pub(crate) fn limit(millis: u64) -> Option<Limit> {
    Some(Limit::new(Duration::from_millis(millis)).expect("it is more than zero"))
}
