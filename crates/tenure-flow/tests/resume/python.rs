//! Lifecycle tools in Python, in processes of their own that die with the one that runs the chat.

use crate::resume::mortal::{Death, Mortal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::build::{Attached, HookCatalog};
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::step::{MemoryStepLog, StepLog, Steps};
use tenure_flow::lifecycle::{self, Hosts, LifecycleTool, Run, Trigger};
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_hosts::{
    Environment, Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHost, Style,
};
use tenure_models::{Passthrough, Silent};
use tokio::runtime::{Builder, Runtime};

const TOOLS: &str = r#"
import os

def note(what):
    with open(os.path.join(os.path.dirname(__file__), "notes"), "a") as notes:
        notes.write(what + "\n")

class Connection:
    def __init__(self):
        self.uses = 0

def connects(context_variables):
    context_variables["connection"] = Connection()
    note("connects")

def greets(context_variables):
    note("greets")

def uses(context_variables):
    connection = context_variables["connection"]
    connection.uses += 1
    context_variables["uses"] = connection.uses
    note("uses")

def says_so(context_variables):
    note("says_so")

def closes(context_variables):
    note("closes")
"#;

/// What a process has that runs chats.
struct Process {
    python: PythonHost,
    file: Arc<PythonFile>,
}

impl Process {
    fn new(dir: &Path) -> Self {
        let config = PythonConfig {
            interpreter: Interpreter::find(dir).expect("there is a Python"),
            environment: Environment::new(),
            dir: dir.to_owned(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        };
        let file = Arc::new(PythonFile::new(dir.join("tools.py"), TOOLS));
        Self { python: PythonHost::new(config), file }
    }

    fn tool(&self, trigger: Trigger, name: &str) -> LifecycleTool {
        let function = PythonFunction {
            file: self.file.clone(),
            name: name.into(),
            style: Style::Sync,
            takes: vec!["context_variables".into()],
            waits: false,
        };
        LifecycleTool::new(trigger, name, Run::Python(function))
    }

    fn tools(&self, again: bool) -> Vec<LifecycleTool> {
        let mut connects = self.tool(Trigger::BeforeChat, "connects");
        connects.again_on_resume = again;
        vec![
            connects,
            self.tool(Trigger::BeforeChat, "greets"),
            self.tool(Trigger::BeforeAgent, "uses"),
            self.tool(Trigger::AfterAgent, "says_so"),
            self.tool(Trigger::AfterChat, "closes"),
        ]
    }

    async fn run(&self, again: bool, log: impl StepLog) -> ChatReport {
        let tools = self.tools(again);
        let (environment, catalog) = (Environment::new(), HookCatalog::new());
        let hosts = Hosts::new(&self.python, &environment, &catalog);
        let host = Agent::builder("lab.workflow").model(Silent::new());
        let mut flow = Flow::builder("lab")
            .host(with(host, lifecycle::of_chat(&tools, hosts)))
            .router(RoundRobin)
            .max_turns(2);
        for name in ["a", "b"] {
            let agent = Agent::builder(name).model(Passthrough::new());
            flow = flow.agent(with(agent, lifecycle::of_agent(&tools, name, hosts)));
        }
        let python = self.python.clone();
        let flow = flow.prepare(move |agent, _| python.join(agent.id(), "lab"));
        let flow = flow.build().expect("a flow");
        let steps = Steps::new(Arc::new(log));
        let report = flow.chat().id("c").message("hello").recorded(&steps).run();
        tokio::time::timeout(Duration::from_secs(60), report).await.expect("it ends")
    }
}

fn with(mut agent: AgentBuilder, attached: Attached) -> Blueprint {
    assert!(attached.problems.is_empty(), "{:?}", attached.problems);
    for entry in attached.entries {
        agent = agent.with_lifecycle(entry.registration);
    }
    agent.blueprint().expect("it is complete")
}

fn process() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// What the functions noted, in order.
fn notes(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Lets a process die after so many steps, and another go on.
fn die_and_go_on(dir: &Path, steps: usize, again: bool) -> (ChatReport, MemoryStepLog) {
    let log = MemoryStepLog::new();
    let first = process();
    first.block_on(async {
        let mortal = Mortal::new(log.clone(), steps, Death::Before);
        let process = Process::new(dir);
        tokio::select! {
            () = mortal.died() => {}
            report = process.run(again, mortal.clone()) => panic!("it ended: {:?}", report.error),
        }
    });
    first.shutdown_background();
    let second = log.resumed();
    let report = process().block_on(Process::new(dir).run(again, second.clone()));
    (report, second)
}

#[test]
fn python_tools_are_called_once_in_all_lives_and_what_they_made_is_made_again() {
    let whole = ["connects", "greets", "uses", "says_so", "uses", "says_so", "closes"];
    let steps = {
        let (dir, log) = (tempfile::tempdir().expect("a folder"), MemoryStepLog::new());
        let report = process().block_on(Process::new(dir.path()).run(true, log.clone()));
        assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
        assert_eq!(notes(dir.path()), whole);
        assert_eq!(report.variables["uses"], 2);
        log.keys().len()
    };
    for cut in [1, steps / 3, steps / 2, steps - 2] {
        let dir = tempfile::tempdir().expect("a folder");
        let (report, log) = die_and_go_on(dir.path(), cut, true);
        assert_eq!(report.status, ChatStatus::MaxTurns, "{cut}: {:?}", report.error);
        assert!(report.failures.is_empty(), "{cut}: {:?}", report.failures);
        let mut noted = notes(dir.path());
        // It is called in every life; nothing else is called twice.
        assert_eq!(noted.iter().filter(|it| *it == "connects").count(), 2, "{cut}: {noted:?}");
        noted.retain(|it| it != "connects");
        assert_eq!(noted, whole[1..], "{cut}");
        assert!(log.scopes().iter().all(|(_, end)| end.is_some()), "{cut}");
    }
}

#[test]
fn a_use_of_what_died_with_its_process_says_what_to_declare() {
    let dir = tempfile::tempdir().expect("a folder");
    let (report, _) = die_and_go_on(dir.path(), 2, false);
    let lost: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    assert_eq!(lost.len(), 2, "each turn uses it: {lost:?}");
    for failure in lost {
        for part in ["connection", "Connection", "connects", "again_on_resume"] {
            assert!(failure.contains(part), "`{part}` is not in: {failure}");
        }
    }
    let noted = notes(dir.path());
    assert_eq!(noted.iter().filter(|it| *it == "connects").count(), 1, "{noted:?}");
}
