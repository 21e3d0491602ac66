//! What an orchestration did.

use super::{ErrorStrategy, OrchestrationError, OrchestratorMetrics, Stage, Task};
use crate::route::RoutingDecision;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Outcome;
use tenure_core::context::ExecutionContext;
use tenure_core::model::Usage;

/// One thing that an orchestration says while it runs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StageEvent {
    /// The stage that it is in.
    pub stage: Stage,
    /// What there is to say of it.
    pub data: Value,
    /// The context: of the task in `route` and `execute`, of the whole elsewhere. The trace and the
    /// profile are the same in all of them.
    pub context: Arc<ExecutionContext>,
}

/// How a task of the plan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepStatus {
    /// It was not begun.
    Pending,
    /// It was done.
    Completed,
    /// It had been done before, and its result was brought along.
    Kept,
    /// It was begun, and failed for good.
    Failed,
    /// It was not begun, because something that it depends on failed.
    Skipped,
}

/// What became of one task of the plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepReport {
    /// The task.
    pub task: Task,
    /// How it ended.
    pub status: StepStatus,
    /// Who did it, or tried last.
    pub agent: Option<Arc<str>>,
    /// Who was to do it first, if its fallback had to.
    pub fell_back_from: Option<Arc<str>>,
    /// How often it was tried.
    pub attempts: u32,
    /// What came out of it; empty if nothing did.
    pub output: String,
    /// Why it was not done.
    pub error: Option<OrchestrationError>,
    /// How long it took, waits between attempts included.
    pub duration: Duration,
}

impl StepReport {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task,
            status: StepStatus::Pending,
            agent: None,
            fell_back_from: None,
            attempts: 0,
            output: String::new(),
            error: None,
            duration: Duration::ZERO,
        }
    }

    /// Whether there is a result of it.
    pub fn is_done(&self) -> bool {
        matches!(self.status, StepStatus::Completed | StepStatus::Kept)
    }
}

/// Who was to do which task, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RoutedTask {
    /// The task.
    pub task: Arc<str>,
    /// How many decisions came before this one.
    pub cursor: u64,
    /// The decision.
    pub decision: RoutingDecision,
}

/// What could be done about an orchestration that did not do everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recovery {
    /// Do again what failed and what was not begun, and keep the rest: what failed may well succeed.
    RetryFailed,
    /// Do without what failed: it would fail again, and nothing waits for it.
    SkipFailed,
    /// A person has to look at it.
    Manual,
}

impl Recovery {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryFailed => "retry_failed",
            Self::SkipFailed => "skip_failed",
            Self::Manual => "manual",
        }
    }
}

/// What there is of a plan that was not done as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartialResult {
    /// The tasks that were done, in that order.
    pub completed_steps: Vec<Arc<str>>,
    /// The tasks that were begun and failed, and why.
    pub failed_steps: Vec<(Arc<str>, OrchestrationError)>,
    /// The tasks that were not begun because of those.
    pub skipped_steps: Vec<Arc<str>>,
    /// The tasks that were not begun because it was over before.
    pub pending_steps: Vec<Arc<str>>,
    /// What came out of each task that was done.
    pub step_results: BTreeMap<Arc<str>, String>,
    /// How many tasks the plan has.
    pub total_steps: usize,
    /// The task that failed first, if one did.
    pub failure_point: Option<Arc<str>>,
    /// What could be done about it.
    pub recovery: Recovery,
}

impl PartialResult {
    /// What there is of these steps, if that is not all. `error` is why the whole failed.
    pub(crate) fn of(steps: &[StepReport], error: Option<&OrchestrationError>) -> Option<Self> {
        if error.is_none() && steps.iter().all(StepReport::is_done) {
            return None;
        }
        let with = |status: StepStatus| {
            let found = steps.iter().filter(move |step| step.status == status);
            found.map(|step| step.task.id.clone()).collect::<Vec<_>>()
        };
        let done = steps.iter().filter(|step| step.is_done());
        let failed = steps.iter().filter(|step| step.status == StepStatus::Failed);
        let failed_steps: Vec<_> =
            failed.filter_map(|step| Some((step.task.id.clone(), step.error.clone()?))).collect();
        Some(Self {
            completed_steps: done.clone().map(|step| step.task.id.clone()).collect(),
            skipped_steps: with(StepStatus::Skipped),
            pending_steps: with(StepStatus::Pending),
            step_results: done.map(|it| (it.task.id.clone(), it.output.clone())).collect(),
            total_steps: steps.len(),
            failure_point: failed_steps.first().map(|(id, _)| id.clone()),
            recovery: recovery(steps, &failed_steps, error),
            failed_steps,
        })
    }

    /// The result as events tell it.
    pub(crate) fn to_json(&self) -> Value {
        let failed: Vec<_> = self.failed_steps.iter().map(|(id, _)| id).collect();
        json!({
            "completed_steps": self.completed_steps,
            "failed_steps": failed,
            "skipped_steps": self.skipped_steps,
            "pending_steps": self.pending_steps,
            "total_steps": self.total_steps,
            "failure_point": self.failure_point,
            "recovery": self.recovery,
        })
    }
}

fn recovery(
    steps: &[StepReport],
    failed: &[(Arc<str>, OrchestrationError)],
    error: Option<&OrchestrationError>,
) -> Recovery {
    // Not the fault of any step: what was interrupted can be taken up again, the rest is a person's.
    let is_passing = |error: &OrchestrationError| error.recoverable || error.is_cancelled();
    if let Some(error) = error.filter(|it| it.task.is_none() && !is_passing(it)) {
        let late = error.outcome == Outcome::TimedOut;
        return if late { Recovery::RetryFailed } else { Recovery::Manual };
    }
    if failed.iter().all(|(_, error)| is_passing(error)) {
        return Recovery::RetryFailed;
    }
    let is_denied = |error: &OrchestrationError| error.outcome == Outcome::Denied;
    let is_needed = |id: &Arc<str>| steps.iter().any(|step| step.task.depends_on.contains(id));
    let manual = failed.iter().any(|(id, error)| is_denied(error) || is_needed(id));
    match steps.iter().any(StepReport::is_done) && !manual {
        true => Recovery::SkipFailed,
        false => Recovery::Manual,
    }
}

/// What an orchestration did, and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrchestrationReport {
    /// What was to be reached.
    pub goal: String,
    /// The context that it was given.
    pub context: Arc<ExecutionContext>,
    /// What the failure of a step meant.
    pub strategy: ErrorStrategy,
    /// The last stage: `complete`, `failed` or `cancelled`.
    pub stage: Stage,
    /// What came out of it, or why nothing did. It is `Ok` if the stage is `complete`, also if steps
    /// failed and the strategy was to go on: [`OrchestrationReport::is_success`] tells.
    pub result: Result<String, OrchestrationError>,
    /// What became of each task, in the order in which they were to be done.
    pub steps: Vec<StepReport>,
    /// What there is, if not everything was done.
    pub partial: Option<PartialResult>,
    /// Who was to do what, and why.
    pub routing: Vec<RoutedTask>,
    /// The numbers.
    pub metrics: OrchestratorMetrics,
    /// What the turns cost that ended, well or not.
    pub usage: Usage,
    /// The cursor after the last decision, to go on from there.
    pub cursor: u64,
    /// How long it took, the agents' ends included.
    pub duration: Duration,
}

impl OrchestrationReport {
    /// Whether everything was done.
    pub fn is_success(&self) -> bool {
        self.stage == Stage::Complete && self.partial.is_none()
    }

    /// Why nothing came out of it.
    pub fn error(&self) -> Option<&OrchestrationError> {
        self.result.as_ref().err()
    }

    /// What came out of it; empty if nothing did.
    pub fn output(&self) -> &str {
        self.result.as_deref().unwrap_or_default()
    }

    /// What became of the task of this id.
    pub fn step(&self, task: &str) -> Option<&StepReport> {
        self.steps.iter().find(|step| &*step.task.id == task)
    }
}
