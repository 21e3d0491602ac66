//! Agents that do as they are told, and what holds of every orchestration.

use std::sync::{Arc, Mutex};
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder, Blueprint};
use tenure_core::context::ExecutionContext;
use tenure_core::event::EventBus;
use tenure_core::hook::{HookError, before_agent, on_shutdown, on_start};
use tenure_core::model::{Model, ModelErrorKind};
use tenure_flow::contract::{
    Orchestration, OrchestrationReport, Orchestrator, OrchestratorBuilder, Stage, StageEvent,
    Stages, StepStatus, Task,
};
use tenure_models::{Failing, Passthrough};

/// Who was started and ended, in order: `+a`, `-a`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, line: String) {
        self.0.lock().expect("no test panics here").push(line);
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().expect("no test panics here").clone()
    }

    /// An agent that keeps the log when it is started and ended.
    pub(crate) fn agent(&self, name: &str, model: impl Model) -> AgentBuilder {
        let (starts, ends) = (self.clone(), self.clone());
        Agent::builder(name)
            .model(model)
            .with_lifecycle(on_start(move |cx| {
                let log = starts.clone();
                Box::pin(async move {
                    log.say(format!("+{}", cx.agent_name()));
                    Ok(())
                })
            }))
            .with_lifecycle(on_shutdown(move |cx, _| {
                let log = ends.clone();
                Box::pin(async move {
                    log.say(format!("-{}", cx.agent_name()));
                    Ok(())
                })
            }))
    }

    pub(crate) fn blueprint(&self, name: &str, model: impl Model) -> Blueprint {
        built(self.agent(name, model))
    }

    /// Everybody who was started was ended, and nobody else was.
    pub(crate) fn assert_ended(&self) {
        let lines = self.lines();
        let named = |sign: char| {
            let mut names: Vec<_> =
                lines.iter().filter_map(|line| line.strip_prefix(sign)).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(named('+'), named('-'), "{lines:?}");
    }

    /// The same, last to first.
    pub(crate) fn assert_ended_in_reverse(&self) {
        let lines = self.lines();
        let mut open = Vec::new();
        for line in &lines {
            match line.split_at(1) {
                ("+", name) => open.push(name),
                (_, name) => assert_eq!(open.pop(), Some(name), "{lines:?}"),
            }
        }
        assert!(open.is_empty(), "these did not end: {open:?} in {lines:?}");
    }
}

pub(crate) fn built(agent: AgentBuilder) -> Blueprint {
    agent.blueprint().expect("it can be built")
}

/// An agent that says what it was told.
pub(crate) fn echo(name: &str) -> Blueprint {
    built(Agent::builder(name).model(Passthrough::new()))
}

pub(crate) fn echo_on(name: &str, bus: &EventBus) -> Blueprint {
    built(Agent::builder(name).model(Passthrough::new()).events(bus))
}

/// A model that fails in a way that may pass.
pub(crate) fn overloaded() -> Failing {
    Failing::new(ModelErrorKind::Overloaded).saying("come back later")
}

/// A model that fails in a way that does not pass.
pub(crate) fn broken() -> Failing {
    Failing::new(ModelErrorKind::BadRequest).saying("not like that")
}

/// An agent whose guard says no, and counts how often it was asked.
pub(crate) fn refusing(name: &str, asked: &Log) -> Blueprint {
    let asked = asked.clone();
    built(Agent::builder(name).model(Passthrough::new()).with_lifecycle(before_agent(
        move |_, _| {
            let asked = asked.clone();
            Box::pin(async move {
                asked.say("asked".to_owned());
                Err(Error::denied("not in this house").into())
            })
        },
    )))
}

/// An agent whose startup fails.
pub(crate) fn stillborn(name: &str) -> Blueprint {
    let agent = Agent::builder(name).model(Passthrough::new());
    built(
        agent.with_lifecycle(on_start(|_| {
            Box::pin(async { Err(HookError::new("the disk is full")) })
        })),
    )
}

pub(crate) fn orchestrator(
    with: impl FnOnce(OrchestratorBuilder) -> OrchestratorBuilder,
) -> Orchestrator {
    with(Orchestrator::builder("test")).build().expect("an orchestrator")
}

pub(crate) fn context() -> ExecutionContext {
    ExecutionContext::new("trace-1").with_profile("strict")
}

/// Tasks `t1`, `t2` and so on, each for the agent of that place.
pub(crate) fn tasks_for(agents: &[&str]) -> Vec<Task> {
    let task = |(at, agent): (usize, &&str)| {
        Task::new(format!("t{}", at + 1), format!("do {}", at + 1)).agent(*agent)
    };
    agents.iter().enumerate().map(task).collect()
}

/// Runs it, and checks what holds of every orchestration.
pub(crate) async fn run(it: Orchestration) -> (Vec<StageEvent>, OrchestrationReport) {
    let mut stream = it.stream();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    let report = stream.finish().await;
    assert_sound(&events, &report);
    (events, report)
}

pub(crate) fn stages(events: &[StageEvent]) -> Vec<Stage> {
    events.iter().map(|event| event.stage).collect()
}

/// The stages, with those that repeat only once.
pub(crate) fn distinct_stages(events: &[StageEvent]) -> Vec<Stage> {
    let mut stages = stages(events);
    stages.dedup();
    stages
}

pub(crate) fn assert_sound(events: &[StageEvent], report: &OrchestrationReport) {
    let told = stages(events);
    let mut table = Stages::new();
    for stage in &told {
        table.enter(*stage).unwrap_or_else(|illegal| panic!("{illegal}: {told:?}"));
    }
    assert_eq!(told.iter().filter(|stage| stage.is_terminal()).count(), 1, "{told:?}");
    assert_eq!(told.last(), Some(&report.stage), "{told:?}");
    for event in events {
        assert_eq!(event.context.trace_id(), report.context.trace_id());
        assert_eq!(event.context.profile(), report.context.profile());
    }
    let count = |status| report.steps.iter().filter(|step| step.status == status).count() as u64;
    let metrics = report.metrics;
    assert_eq!(metrics.successful_steps, count(StepStatus::Completed));
    assert_eq!(metrics.failed_steps, count(StepStatus::Failed));
    assert_eq!(metrics.total_steps, metrics.successful_steps + metrics.failed_steps);
    assert_eq!(metrics.routing_decisions, report.routing.len() as u64);
    let attempts: u64 = report.steps.iter().map(|step| u64::from(step.attempts)).sum();
    let executed = |it: &&StageEvent| it.stage == Stage::Execute && it.data["status"] == "started";
    assert_eq!(attempts, events.iter().filter(executed).count() as u64);
    let is_all_done = report.steps.iter().all(|step| step.is_done());
    assert_eq!(report.is_success(), report.stage == Stage::Complete && is_all_done);
    assert_eq!(report.result.is_ok(), report.stage == Stage::Complete);
    assert_eq!(report.partial.is_none(), report.is_success());
    if let Some(partial) = &report.partial {
        let parts = partial.completed_steps.len()
            + partial.failed_steps.len()
            + partial.skipped_steps.len()
            + partial.pending_steps.len();
        assert_eq!(parts, partial.total_steps);
        assert_eq!(partial.total_steps, report.steps.len());
        assert_eq!(partial.step_results.len(), partial.completed_steps.len());
    }
    for step in &report.steps {
        let has_error = matches!(step.status, StepStatus::Failed | StepStatus::Skipped);
        assert_eq!(step.error.is_some(), has_error, "{step:?}");
    }
}
