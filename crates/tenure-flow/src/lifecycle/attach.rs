//! From lifecycle tools to entries of chains.

use super::function::POINTS;
use super::platform::{ChatClock, Line};
use super::runner::Runner;
use super::work::Work;
use super::{LifecycleTool, Run, Trigger, USER};
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::build::{AttachHosts, Attached, AttachedEntry, HookCatalog};
use tenure_cards::diagnostic::{Code, Diagnostic};
use tenure_cards::hook::{Condition, Declared};
use tenure_cards::source::{Source, Span};
use tenure_cards::trust::CommandChecks;
use tenure_core::hook::{AgentLifecycle, Origin, Policy, Registration};
use tenure_hosts::{CommandLifecycleTool, Environment, PythonHost, Role};

/// What an end may take unless it says otherwise.
const END: Duration = Duration::from_secs(5);
/// What all ends of a scope may take together unless they ask for more.
const ENDS: Duration = Duration::from_secs(15);

/// What lifecycle tools are run by.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Hosts<'a> {
    /// Runs Python.
    pub python: &'a PythonHost,
    /// What commands get to see of our environment.
    pub environment: &'a Environment,
    /// Hooks and functions in Rust by name.
    pub catalog: &'a HookCatalog,
    /// Says of commands whether they may be started. None: all may.
    pub commands: Option<&'a CommandChecks>,
}

impl<'a> Hosts<'a> {
    /// These hosts.
    pub fn new(
        python: &'a PythonHost,
        environment: &'a Environment,
        catalog: &'a HookCatalog,
    ) -> Self {
        Self { python, environment, catalog, commands: None }
    }
}

impl<'a> From<&AttachHosts<'a>> for Hosts<'a> {
    fn from(hosts: &AttachHosts<'a>) -> Self {
        let commands = Some(hosts.commands);
        Self { commands, ..Self::new(hosts.python, hosts.environment, hosts.catalog) }
    }
}

/// What the agent gets that stands for a chat: the tools of the chat's own triggers.
///
/// The tools are in the order in which they run. At an end they are registered last to first, and
/// all ends before the begins: the chain calls ends last to first, and an end runs although a begin
/// has failed.
pub fn of_chat<'a>(tools: &[LifecycleTool], hosts: impl Into<Hosts<'a>>) -> Attached {
    attached(tools, hosts.into(), None)
}

/// What an agent gets that may speak: the tools of its turns.
pub fn of_agent<'a>(tools: &[LifecycleTool], agent: &str, hosts: impl Into<Hosts<'a>>) -> Attached {
    attached(tools, hosts.into(), Some(agent))
}

fn attached(tools: &[LifecycleTool], hosts: Hosts<'_>, agent: Option<&str>) -> Attached {
    let concerns = |tool: &&LifecycleTool| match agent {
        None => tool.trigger.is_of_chat(),
        Some(agent) => !tool.trigger.is_of_chat() && tool.concerns(agent),
    };
    let concerned: Vec<_> = tools.iter().filter(concerns).collect();
    let clock = ChatClock::of(&concerned);
    let ends = concerned.iter().rev().filter(|tool| tool.trigger.is_end());
    let begins = concerned.iter().filter(|tool| !tool.trigger.is_end());
    let mut made = Attached::new();
    for tool in ends.chain(begins) {
        match registration(tool, hosts, clock) {
            Ok(registration) => {
                made.python |= matches!(tool.run, Run::Python(_));
                let registration = match agent {
                    // The person is asked by a hook of the platform's, and these stand around it.
                    Some(USER) => registration.origin(Origin::Platform).order(-1),
                    _ => registration.origin(tool.origin),
                };
                let mut entry = AttachedEntry::new(tool.entry_name(), registration, tool.runs())
                    .when(tool.when.as_deref().map(str::to_owned))
                    .retries(tool.retries)
                    .description(tool.description.clone());
                if let Some(declared) = &tool.declared {
                    entry = entry.declared(&**declared);
                }
                if let Run::Command { dir, .. } = &tool.run {
                    entry = entry.writes(&tool.writes, dir);
                }
                made.entries.push(entry);
            }
            Err(problem) => made.problems.push(problem),
        }
    }
    made.ends = ends_together(&concerned);
    made
}

/// How much time the ends need together, if their declared limits ask for more than there is.
fn ends_together(tools: &[&LifecycleTool]) -> Option<Duration> {
    let ends = || tools.iter().filter(|tool| tool.trigger.is_end());
    let limit = |tool: &&&LifecycleTool| tool.timeout.map_or(END, |limit| limit.duration());
    let together: Duration = ends().map(|tool| limit(&tool)).sum();
    (together > ENDS && ends().any(|tool| tool.timeout.is_some())).then_some(together)
}

/// The one entry of a tool. Outside in: its condition, its events, its repetitions, what it runs.
fn registration(
    tool: &LifecycleTool,
    hosts: Hosts<'_>,
    clock: ChatClock,
) -> Result<Registration, Diagnostic> {
    let name: Arc<str> = tool.entry_name().into();
    let work = |work: Work| Registration::shared(Arc::new(work));
    let registration = match &tool.run {
        Run::Python(function) => {
            let own = hosts.python.lifecycle_tool(function.clone()).named(name.clone());
            work(match (tool.origin, tool.trigger) {
                (Origin::Platform, Trigger::BeforeChat) => Work::Begins(own, clock),
                _ => Work::Python(own),
            })
        }
        Run::Command { argv, dir } => {
            let mut own = CommandLifecycleTool::new(argv.clone(), dir, hosts.environment.clone());
            if let Some(commands) = hosts.commands {
                own = own.checked_by(commands.check_argv(argv, dir, &tool.writes));
            }
            work(Work::Command(own.named(name.clone())))
        }
        Run::Platform => work(Work::Platform(Line::new(name.clone(), clock))),
        Run::Use { name, with, .. } => {
            let registered = hosts.catalog.hook(name, with);
            registered.map_err(|why| problem(tool, Code::UnknownUse, why))?
        }
    };
    let registration = registration.only(POINTS).only(tool.trigger.point());
    if registration.points().is_empty() {
        let why =
            format!("what is registered as `{}` does nothing at {}", tool.function, tool.trigger);
        return Err(problem(tool, Code::UnknownUse, why));
    }
    let role = if tool.policy == Some(Policy::Deny) { Role::Guard } else { Role::Other };
    let condition = match tool.when.as_deref().map(Condition::compile) {
        None => None,
        Some(Ok(condition)) => Some(condition),
        Some(Err(why)) => {
            let why = format!("the condition does not compile: {why}");
            return Err(problem(tool, Code::BadCondition, why));
        }
    };
    let mut registration = registration.named(name.clone()).map_hook(|mut inner| {
        if tool.retries > 0 {
            let mut repeated = Declared::new(inner, name.clone(), role).retries(tool.retries);
            if let Some(backoff) = tool.backoff {
                repeated = repeated.backoff(backoff);
            }
            inner = Arc::new(repeated);
        }
        let runner: Arc<dyn AgentLifecycle> =
            Arc::new(Runner { tool: Arc::new(tool.clone()), name: name.clone(), inner });
        match condition {
            Some(condition) => Arc::new(Declared::new(runner, name.clone(), role).when(condition)),
            None => runner,
        }
    });
    registration = match (tool.policy, tool.trigger) {
        (Some(policy), Trigger::BeforeChat | Trigger::BeforeAgent) => registration.policy(policy),
        // What fails does not stop a workflow, unless it says that it does.
        _ => registration.policy_at(tool.trigger.point(), Policy::Continue),
    };
    if tool.again_on_resume {
        registration = registration.again_on_resume();
    }
    Ok(match tool.timeout {
        Some(limit) => registration.limited(limit),
        None => registration,
    })
}

fn problem(tool: &LifecycleTool, code: Code, why: String) -> Diagnostic {
    let message = format!("the lifecycle tool `{}`: {why}", tool.name);
    match &tool.place {
        Some((source, span)) => Diagnostic::new(code, source, *span, message),
        None => {
            let source = Arc::new(Source::new("lifecycle_tools", ""));
            Diagnostic::new(code, &source, Span::at(0), message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flow;
    use crate::lifecycle::{self, platform_defaults};
    use crate::people::AskPerson;
    use crate::route::RoundRobin;
    use serde_json::json;
    use std::sync::Mutex;
    use tenure_cards::hook::Places;
    use tenure_core::agent::Agent;
    use tenure_core::ask::{Answer, PendingAsk};
    use tenure_core::hook::hook;
    use tenure_hosts::{Interpreter, PythonConfig, PythonFile, PythonFunction, Style};
    use tenure_models::{Passthrough, Silent};

    /// Whichever of the platform's two is the project's own: the line at the end says how long the
    /// chat took, and without that line no moment is kept.
    #[tokio::test]
    async fn the_begin_of_a_chat_is_kept_if_the_line_at_its_end_asks_for_it() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let python = PythonHost::new(PythonConfig {
            interpreter: Interpreter::find(dir.path()).expect("there is a Python"),
            environment: Environment::new(),
            dir: dir.path().to_owned(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        });
        let text = "import time\ndef log_workflow_start():\n    time.sleep(0.3)\n\
                    def log_workflow_completion():\n    pass\n";
        let file = Arc::new(PythonFile::new(dir.path().join("own.py"), text));
        let own = |name: &str| PythonFunction {
            file: file.clone(),
            name: name.into(),
            style: Style::Sync,
            takes: Vec::new(),
            waits: false,
        };
        let (environment, catalog) = (Environment::new(), HookCatalog::new());
        for replaced in [None, Some("log_workflow_start"), Some("log_workflow_completion")] {
            let tools = platform_defaults(|name| (replaced == Some(name)).then(|| own(name)));
            let hosts = Hosts::new(&python, &environment, &catalog);
            let mut host = Agent::builder("lab.workflow").model(Silent::new());
            for entry in of_chat(&tools, hosts).entries {
                host = host.with_lifecycle(entry.registration);
            }
            let kept: Arc<Mutex<Vec<usize>>> = Arc::default();
            let seen = kept.clone();
            let spy = tenure_core::hook::after_chat(move |cx, _| {
                seen.lock().expect("nobody panicked").push(cx.state_values().len());
                Box::pin(async { Ok(()) })
            });
            let host = host.with_lifecycle(spy);
            let bus = tenure_core::event::EventBus::new();
            let mut events = bus.subscribe(1000);
            let agent = Agent::builder("a").model(Passthrough::new());
            let flow = Flow::builder("lab")
                .host(host.events(&bus).blueprint().expect("it is complete"))
                .agent(agent.blueprint().expect("it is complete"))
                .router(RoundRobin)
                .max_turns(1)
                .events(&bus)
                .build();
            flow.expect("it is complete").run("hello").await;
            let is_asked = replaced != Some("log_workflow_completion");
            let kept = kept.lock().expect("nobody panicked").clone();
            assert_eq!(kept, [usize::from(is_asked)], "{replaced:?}");
            let mut durations = Vec::new();
            while let Some(tenure_core::event::Received::Event(event)) = events.try_recv() {
                if let tenure_core::event::EventKind::Log { line, .. } = &event.kind
                    && let Some((_, after)) = line.split_once("duration=")
                    && let Some((seconds, _)) = after.split_once('s')
                {
                    durations.push(seconds.parse::<f64>().expect("it is a number"));
                }
            }
            assert_eq!(durations.len(), usize::from(is_asked), "{replaced:?}");
            if replaced == Some("log_workflow_start") {
                assert!(durations[0] >= 0.3, "{durations:?}");
            }
        }
    }

    #[tokio::test]
    async fn tools_that_name_the_person_run_around_the_question() {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let tell = {
            let told = told.clone();
            lifecycle::function("tell", move |call| {
                let output = call.output().unwrap_or_default();
                told.lock().expect("nobody panicked").push(format!("{} {output}", call.point()));
                Box::pin(async { Ok(json!(null)) })
            })
        };
        let catalog = HookCatalog::new().register("tell", tell);
        let tool = |trigger: Trigger| {
            let (name, places) = ("tell".to_owned(), Places::default());
            let run = Run::Use { name, with: json!({}), places };
            let mut tool = LifecycleTool::new(trigger, trigger.as_str(), run);
            tool.agent = Some(USER.into());
            tool
        };
        let dir = tempfile::tempdir().expect("a temporary folder");
        let python = PythonHost::new(PythonConfig {
            interpreter: Interpreter::find(dir.path()).expect("there is a Python"),
            environment: Environment::new(),
            dir: dir.path().to_owned(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        });
        let environment = Environment::new();
        let hosts = Hosts::new(&python, &environment, &catalog);
        let tools = [tool(Trigger::BeforeAgent), tool(Trigger::AfterAgent)];
        let asks = hook(AskPerson).origin(Origin::Platform);
        let mut user = Agent::builder(USER).model(Silent::new()).with_lifecycle(asks);
        for entry in of_agent(&tools, USER, hosts).entries {
            user = user.with_lifecycle(entry.registration);
        }
        let asked = told.clone();
        let user = user.on_ask(move |_: &PendingAsk| {
            asked.lock().expect("nobody panicked").push("asked".to_owned());
            Some(Answer::Respond("yes".to_owned()))
        });
        let user = user.build().expect("it is complete");
        let report = user.scoped(async |user| user.run("Shall we?").await).await;
        assert_eq!(report.expect("it is answered").output(), "yes");
        let told = told.lock().expect("nobody panicked");
        assert_eq!(*told, ["before_agent ", "asked", "after_agent yes"]);
    }
}
