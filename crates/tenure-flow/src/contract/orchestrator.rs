//! What an orchestrator is, shared by all of its orchestrations.

use super::routing::decide;
use super::worker::{Leases, candidates, known};
use super::{
    Candidate, ErrorStrategy, OneTask, Orchestration, OrchestrationError, Planner, Reaction, Stage,
    StepReport, Task, TaskRouter, Worker,
};
use crate::route::{RoundRobin, RoutingDecision};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentRegistry, Blueprint};
use tenure_core::context::ExecutionContext;
use tenure_core::event::EventBus;
use tenure_models::Silent;
use tokio_util::task::TaskTracker;

/// Reaches goals with agents: plans tasks, decides who does each, has them done, puts the results
/// together. It is a handle: clones are the same orchestrator.
///
/// Every orchestration goes through the [stages](Stage) in the order of their table and ends with
/// exactly one terminal stage, whatever fails, panics, hangs or is cancelled; after that stage the
/// agents that it started are shut down, in reverse order.
#[derive(Clone)]
#[doc(alias = "CoordinatorAgent")]
#[doc(alias = "OrchestratorProtocol")]
pub struct Orchestrator {
    pub(crate) inner: Arc<OrchestratorInner>,
}

type Aggregate = Arc<dyn Fn(&[StepReport]) -> Result<String, Error> + Send + Sync>;

pub(crate) struct OrchestratorInner {
    pub(crate) name: Arc<str>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) registry: Option<AgentRegistry>,
    pub(crate) planner: Arc<dyn Planner>,
    pub(crate) router: Arc<dyn TaskRouter>,
    pub(crate) aggregate: Option<Aggregate>,
    pub(crate) start: Start,
    pub(crate) task_limit: Option<Duration>,
    /// Announces the stages. It is never started and has no turn.
    pub(crate) host: Blueprint,
    pub(crate) leases: Arc<Leases>,
    /// Where orchestrations run.
    pub(crate) tracker: TaskTracker,
}

/// When agents that are not started are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "get_lifecycle")]
pub enum Start {
    /// All of them in the stage `initialize`. One that does not start fails the orchestration.
    #[default]
    AtOnce,
    /// Each before its first task. One that does not start fails that task, and the strategy says
    /// what that means.
    WhenNeeded,
}

impl Orchestrator {
    /// Starts building an orchestrator of this name.
    pub fn builder(name: impl Into<Arc<str>>) -> OrchestratorBuilder {
        OrchestratorBuilder::new(name.into())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Those who could do a task as of now: its own workers in the order in which they were given,
    /// then the agents of its registry by name.
    pub fn agents(&self) -> Vec<Candidate> {
        candidates(&known(&self.inner.workers, self.inner.registry.as_ref()))
    }

    /// An orchestration of this goal, to be given options and then run.
    pub fn orchestrate(
        &self,
        goal: impl Into<String>,
        context: impl Into<Arc<ExecutionContext>>,
    ) -> Orchestration {
        Orchestration::new(self.clone(), goal.into(), context.into())
    }

    /// Who does this task. Nothing is counted and nothing moves on: for the same task, context,
    /// agents and cursor the decision is the same.
    ///
    /// Its target is one of `agents`, its reason is more than ten characters long, and if another
    /// of them could do the task, that one is its fallback.
    #[doc(alias = "make_routing_decision")]
    pub async fn routing_decision(
        &self,
        task: &Task,
        context: &ExecutionContext,
        agents: &[Candidate],
        cursor: u64,
    ) -> Result<RoutingDecision, OrchestrationError> {
        let decision = decide(&*self.inner.router, task, context, agents, cursor).await;
        decision.map_err(|error| {
            OrchestrationError::new(Stage::Route, error.to_string(), context.clone())
                .because(error)
                .in_task(task.id.clone())
        })
    }

    /// What is done about this error of a step that was repeated so often already and has this
    /// fallback. The error comes back if the strategy is that the whole fails.
    ///
    /// An error without a cause, or of another stage than `execute`, has nothing that could be
    /// repeated: the whole fails for it, unless the strategy is to go on.
    pub fn handle_error(
        &self,
        error: OrchestrationError,
        strategy: ErrorStrategy,
        repeats: u32,
        fallback: Option<&Arc<str>>,
    ) -> Result<Reaction, OrchestrationError> {
        let reaction = match (&error.cause, error.stage) {
            _ if error.is_cancelled() => None,
            (Some(cause), Stage::Execute) => strategy.reaction(cause, repeats, fallback),
            _ if strategy == ErrorStrategy::Continue => Some(Reaction::GoOn),
            _ => None,
        };
        reaction.ok_or(error)
    }

    /// Waits until every orchestration is over, those that nobody waits for too.
    #[doc(alias = "teardown")]
    pub async fn settled(&self) {
        self.inner.tracker.close();
        self.inner.tracker.wait().await;
        self.inner.tracker.reopen();
    }
}

impl fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Orchestrator")
            .field("name", &self.name())
            .field("workers", &self.inner.workers)
            .finish_non_exhaustive()
    }
}

/// Says what an orchestrator is. Nothing is checked until [`OrchestratorBuilder::build`].
#[must_use]
pub struct OrchestratorBuilder {
    name: Arc<str>,
    workers: Vec<Worker>,
    registry: Option<AgentRegistry>,
    planner: Arc<dyn Planner>,
    router: Arc<dyn TaskRouter>,
    aggregate: Option<Aggregate>,
    start: Start,
    task_limit: Option<Duration>,
    bus: Option<EventBus>,
}

impl OrchestratorBuilder {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            workers: Vec::new(),
            registry: None,
            planner: Arc::new(OneTask),
            router: Arc::new(RoundRobin),
            aggregate: None,
            start: Start::default(),
            task_limit: None,
            bus: None,
        }
    }

    /// Adds somebody who may be given tasks: an agent, a blueprint, or a [`Worker`] made of either.
    pub fn agent(mut self, worker: impl Into<Worker>) -> Self {
        self.workers.push(worker.into());
        self
    }

    /// Where more agents are found by name. An orchestration knows those that live when it begins.
    pub fn registry(mut self, registry: &AgentRegistry) -> Self {
        self.registry = Some(registry.clone());
        self
    }

    /// Who says what has to be done. By default the goal is the one task.
    pub fn planner(mut self, planner: impl Planner) -> Self {
        self.planner = Arc::new(planner);
        self
    }

    /// Who decides who does a task. By default it goes round.
    pub fn router(mut self, router: impl TaskRouter) -> Self {
        self.router = Arc::new(router);
        self
    }

    /// Puts the results together. By default they follow each other, with an empty line between.
    pub fn aggregate(
        mut self,
        aggregate: impl Fn(&[StepReport]) -> Result<String, Error> + Send + Sync + 'static,
    ) -> Self {
        self.aggregate = Some(Arc::new(aggregate));
        self
    }

    /// When agents that are not started are.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// The most time that each attempt at a task may take. None by default.
    pub fn task_limit(mut self, limit: Duration) -> Self {
        self.task_limit = Some(limit);
        self
    }

    /// Where the stages are announced. What the agents do goes where their blueprints say.
    pub fn events(mut self, bus: &EventBus) -> Self {
        self.bus = Some(bus.clone());
        self
    }

    /// Checks and builds the orchestrator. Without agents it can be built: who there is may only be
    /// known from the registry, later.
    pub fn build(self) -> Result<Orchestrator, Error> {
        let mut problems = Vec::new();
        let names: Vec<_> = candidates(&self.workers).into_iter().map(|it| it.name).collect();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                problems.push(format!("two of its agents are called `{name}`"));
            }
        }
        if self.task_limit.is_some_and(|limit| limit.is_zero()) {
            let problem = "the limit of its tasks is zero; give it more than zero, or leave it out";
            problems.push(problem.to_owned());
        }
        if !problems.is_empty() {
            let name = &self.name;
            return Err(Error::invalid(format!("orchestrator `{name}`: {}", problems.join("; "))));
        }
        let mut host = Agent::builder(format!("{}.orchestrator", self.name)).model(Silent::new());
        if let Some(bus) = &self.bus {
            host = host.events(bus);
        }
        Ok(Orchestrator {
            inner: Arc::new(OrchestratorInner {
                name: self.name,
                workers: self.workers,
                registry: self.registry,
                planner: self.planner,
                router: self.router,
                aggregate: self.aggregate,
                start: self.start,
                task_limit: self.task_limit,
                host: host.blueprint()?,
                leases: Arc::default(),
                tracker: TaskTracker::new(),
            }),
        })
    }
}

impl fmt::Debug for OrchestratorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrchestratorBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
