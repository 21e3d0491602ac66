//! An orchestration while it runs: one stage after the other.

use super::worker::{Crew, known};
use super::{ErrorStrategy, RoutedTask};
use super::{
    Orchestration, OrchestrationError, OrchestrationReport, Orchestrator, OrchestratorMetrics,
    PartialResult, Stage, StageEvent, Stages, Start, StepReport, StepStatus, task,
};
use crate::wait::unless_cancelled;
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::context::ExecutionContext;
use tenure_core::model::Usage;
use tenure_core::{CancelToken, Error, Outcome};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Why it is to stop before it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stopped {
    Cancelled,
    TimedOut(Duration),
}

/// An orchestration, as far as it has come.
pub(crate) struct Run {
    pub(super) orchestrator: Orchestrator,
    goal: String,
    pub(super) context: Arc<ExecutionContext>,
    pub(super) strategy: ErrorStrategy,
    kept: BTreeMap<Arc<str>, String>,
    /// Cancelled when it is to stop; what for is told by `stopped`.
    pub(super) work: CancelToken,
    stopped: Arc<OnceLock<Stopped>>,
    stages: Stages,
    current: watch::Sender<Option<Stage>>,
    events: Option<mpsc::UnboundedSender<StageEvent>>,
    /// Announces the stages.
    host: Agent,
    pub(super) crew: Crew,
    pub(super) steps: Vec<StepReport>,
    /// The step that is being made.
    pub(super) at: Option<At>,
    pub(super) routing: Vec<RoutedTask>,
    pub(super) metrics: OrchestratorMetrics,
    pub(super) usage: Usage,
    pub(super) cursor: u64,
    began: Instant,
    result: Option<Result<String, OrchestrationError>>,
}

/// A step that is being made.
#[derive(Clone)]
pub(super) struct At {
    pub(super) step: usize,
    pub(super) context: Arc<ExecutionContext>,
    pub(super) began: Instant,
}

impl Run {
    pub(crate) fn new(
        it: Orchestration,
        current: watch::Sender<Option<Stage>>,
        events: Option<mpsc::UnboundedSender<StageEvent>>,
    ) -> Self {
        let inner = &it.orchestrator.inner;
        let host = inner.host.instance();
        // It is new, so it has none; what it announces belongs to the trace.
        let _ = host.set_context((*it.context).clone());
        let workers = known(&inner.workers, inner.registry.as_ref());
        let crew = Crew::new(workers, inner.leases.clone(), it.context.clone());
        Self {
            orchestrator: it.orchestrator,
            goal: it.goal,
            context: it.context,
            strategy: it.strategy,
            kept: it.kept,
            work: CancelToken::new(),
            stopped: Arc::default(),
            stages: Stages::new(),
            current,
            events,
            host,
            crew,
            steps: Vec::new(),
            at: None,
            routing: Vec::new(),
            metrics: OrchestratorMetrics::default(),
            usage: Usage::default(),
            cursor: it.cursor,
            began: Instant::now(),
            result: None,
        }
    }

    /// What to cancel when it is to stop.
    pub(crate) fn work(&self) -> CancelToken {
        self.work.clone()
    }

    /// Where to say why.
    pub(crate) fn stopped_by(&self) -> Arc<OnceLock<Stopped>> {
        self.stopped.clone()
    }

    /// Everything up to the last stage. What others wrote may panic: that is a failure like others.
    pub(crate) async fn body(&mut self) -> Result<String, OrchestrationError> {
        match AssertUnwindSafe(self.all_stages()).catch_unwind().await {
            Ok(result) => result,
            Err(panic) => {
                let who = match self.stages.now() {
                    Some(Stage::Plan) => "planner",
                    Some(Stage::Route) => "router",
                    Some(Stage::Aggregate) => "aggregation",
                    _ => "orchestrator",
                };
                let error = self.error(format!("the {who} panicked: {}", message_of(&*panic)));
                Err(error.ending(Outcome::Panicked))
            }
        }
    }

    async fn all_stages(&mut self) -> Result<String, OrchestrationError> {
        self.initialize().await?;
        self.plan().await?;
        for step in 0..self.steps.len() {
            self.step(step).await?;
        }
        self.aggregate()
    }

    async fn initialize(&mut self) -> Result<(), OrchestrationError> {
        self.begin(Stage::Initialize)?;
        self.tell(|run| {
            let agents: Vec<_> = run.crew.candidates().iter().map(|it| it.name.clone()).collect();
            json!({
                "goal": run.goal,
                "workers": agents.len(),
                "agents": agents,
                "strategy": run.strategy.as_str(),
            })
        });
        if let Err(defects) = self.context.validate() {
            let defects: Vec<_> = defects.iter().map(ToString::to_string).collect();
            let defects = defects.join("; ");
            return Err(self.error(format!("the execution context is not valid: {defects}")));
        }
        if self.orchestrator.inner.start == Start::AtOnce {
            let own = self.orchestrator.inner.workers.len();
            for at in 0..own {
                let name = self.crew.candidates()[at].name.clone();
                let started = unless(&self.work, self.crew.ready(&name)).await;
                started.ok_or_else(|| self.stop_error(None))?.map_err(|error| {
                    self.error(format!("agent `{name}` did not start: {error}")).because(error)
                })?;
            }
        }
        Ok(())
    }

    async fn plan(&mut self) -> Result<(), OrchestrationError> {
        self.begin(Stage::Plan)?;
        let planner = self.orchestrator.inner.planner.clone();
        let planned = unless(&self.work, planner.plan(&self.goal, &self.context)).await;
        let tasks = planned.ok_or_else(|| self.stop_error(None))?.and_then(task::in_order);
        let tasks = tasks.map_err(|error| {
            self.error(format!("there is no plan for the goal: {error}")).because(error)
        })?;
        self.steps = tasks.into_iter().map(StepReport::new).collect();
        for step in &mut self.steps {
            if let Some(output) = self.kept.remove(&step.task.id) {
                step.status = StepStatus::Kept;
                step.output = output;
            }
        }
        self.tell(|run| {
            let tasks: Vec<_> = run.steps.iter().map(|step| &step.task).collect();
            let kept = run.steps.iter().filter(|it| it.is_done()).map(|it| &it.task.id);
            json!({ "steps": tasks.len(), "tasks": tasks, "kept": kept.collect::<Vec<_>>() })
        });
        Ok(())
    }

    fn aggregate(&mut self) -> Result<String, OrchestrationError> {
        let is_nothing_done = !self.steps.iter().any(StepReport::is_done);
        if is_nothing_done && let Some(error) = self.steps.iter().find_map(|it| it.error.clone()) {
            // To go on is no help if nothing is left to go on with.
            return Err(error);
        }
        self.begin(Stage::Aggregate)?;
        let output = match &self.orchestrator.inner.aggregate {
            Some(aggregate) => aggregate(&self.steps).map_err(|error| {
                self.error(format!("the results could not be put together: {error}")).because(error)
            })?,
            None => {
                let done = self.steps.iter().filter(|step| step.is_done());
                done.map(|step| &*step.output).collect::<Vec<_>>().join("\n\n")
            }
        };
        self.tell(|run| {
            let ids = |done: bool| {
                let steps = run.steps.iter().filter(move |step| step.is_done() == done);
                steps.map(|step| step.task.id.clone()).collect::<Vec<_>>()
            };
            json!({ "completed": ids(true), "missing": ids(false), "output": output })
        });
        Ok(output)
    }

    /// The last stage.
    pub(crate) fn conclude(&mut self, result: Result<String, OrchestrationError>) {
        if let Err(error) = &result {
            // A step that a panic left behind.
            self.step_failed(error.clone());
        }
        self.at = None;
        let stage = match &result {
            Ok(_) => Stage::Complete,
            Err(error) => error.terminal(),
        };
        if let Err(illegal) = self.begin(stage) {
            // Every stage but the last may end; this says so if somebody changes the table.
            tracing::error!(orchestrator = self.orchestrator.name(), "{illegal}");
        }
        let partial = PartialResult::of(&self.steps, result.as_ref().err());
        self.tell(|run| {
            json!({
                "success": result.is_ok() && partial.is_none(),
                "output": result.as_ref().ok(),
                "error": result.as_ref().err().map(OrchestrationError::to_json),
                "partial": partial.as_ref().map(PartialResult::to_json),
                "strategy": run.strategy.as_str(),
                "metrics": run.metrics,
                "average_step_duration_ms": run.metrics.average_step_duration_ms(),
            })
        });
        self.result = Some(result);
    }

    /// Ends the agents that it started, in reverse order.
    pub(crate) async fn stop(&mut self) {
        self.crew.stop().await;
    }

    pub(crate) fn report(self) -> OrchestrationReport {
        let result = self.result.unwrap_or_else(|| {
            let message = "the orchestration was not concluded";
            Err(OrchestrationError::new(Stage::Failed, message, self.context.clone()))
        });
        OrchestrationReport {
            goal: self.goal,
            context: self.context,
            strategy: self.strategy,
            stage: self.stages.now().unwrap_or(Stage::Failed),
            partial: PartialResult::of(&self.steps, result.as_ref().err()),
            result,
            steps: self.steps,
            routing: self.routing,
            metrics: self.metrics,
            usage: self.usage,
            cursor: self.cursor,
            duration: self.began.elapsed(),
        }
    }

    /// Enters a stage, if the table allows it and nobody said to stop.
    pub(super) fn begin(&mut self, stage: Stage) -> Result<(), OrchestrationError> {
        let may_stop = !stage.is_terminal() && stage != Stage::Initialize;
        if may_stop && self.work.is_cancelled() {
            return Err(self.stop_error(None));
        }
        if let Err(illegal) = self.stages.enter(stage) {
            return Err(self.error(illegal.to_string()));
        }
        self.current.send_replace(Some(stage));
        Ok(())
    }

    /// Says something of the stage that it is in. It is put into words only if somebody listens.
    pub(super) fn tell(&self, data: impl FnOnce(&Self) -> Value) {
        let Some(stage) = self.stages.now() else { return };
        let Some(events) = &self.events else {
            self.host.announce(stage.event_name(), || data(self));
            return;
        };
        let data = data(self);
        self.host.announce(stage.event_name(), || data.clone());
        let context = self.at.as_ref().map_or(&self.context, |at| &at.context).clone();
        // Nobody may be there any more to hear of it.
        let _ = events.send(StageEvent { stage, data, context });
    }

    /// An error where it stands.
    pub(super) fn error(&self, message: impl Into<String>) -> OrchestrationError {
        let stage = self.stages.now().unwrap_or(Stage::Initialize);
        match &self.at {
            None => OrchestrationError::new(stage, message, self.context.clone()),
            Some(at) => OrchestrationError::new(stage, message, at.context.clone())
                .in_task(self.steps[at.step].task.id.clone()),
        }
    }

    /// Why it does not go on, with what that led to.
    #[cold]
    pub(super) fn stop_error(&self, cause: Option<Error>) -> OrchestrationError {
        let (message, outcome) = match self.stopped.get() {
            Some(Stopped::TimedOut(limit)) => {
                (format!("it did not end within {limit:?}"), Outcome::TimedOut)
            }
            Some(Stopped::Cancelled) | None => ("it was cancelled".to_owned(), Outcome::Cancelled),
        };
        let mut error = self.error(message);
        if let Some(cause) = cause {
            error = error.because(cause);
        }
        error.recoverable = outcome == Outcome::TimedOut;
        error.ending(outcome)
    }
}

/// What `work` gives, or `None` as soon as `token` is cancelled.
pub(super) async fn unless<T>(token: &CancelToken, work: impl Future<Output = T>) -> Option<T> {
    unless_cancelled(pin!(work), token, || false).await
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}
