//! One step: who makes it is decided, it is made, and if it fails the strategy says what follows.

use super::run::{At, Run, unless};
use super::{OrchestrationError, Reaction, RoutedTask, Stage, StepStatus, Task};
use crate::route::RoutingDecision;
use serde_json::json;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::drive::{Input, TurnReport};
use tokio::time::{Instant, sleep};

/// A step that failed for good.
enum Failure {
    /// The rest is done without it.
    Alone(OrchestrationError),
    /// The whole fails with it.
    Whole(OrchestrationError),
}

impl Run {
    /// Makes a step. An error is the failure of the whole.
    pub(super) async fn step(&mut self, step: usize) -> Result<(), OrchestrationError> {
        let task = self.steps[step].task.clone();
        if self.steps[step].status == StepStatus::Kept || self.skips(step, &task) {
            return Ok(());
        }
        let context = self.context.child(&*task.intent).with_metadata("task", &*task.id);
        self.at = Some(At { step, context: Arc::new(context), began: Instant::now() });
        match self.route_and_execute(step, &task).await {
            Ok(report) => {
                self.step_done(report);
                Ok(())
            }
            Err(Failure::Alone(error)) => {
                self.step_failed(error);
                Ok(())
            }
            Err(Failure::Whole(error)) => {
                self.step_failed(error.clone());
                Err(error)
            }
        }
    }

    /// Whether something that it depends on was not done. Then it is not begun.
    fn skips(&mut self, step: usize, task: &Task) -> bool {
        let missing = |id: &&Arc<str>| {
            !self.steps.iter().any(|other| other.task.id == **id && other.is_done())
        };
        let Some(missing) = task.depends_on.iter().find(missing) else { return false };
        let id = &task.id;
        let error = self.error(format!(
            "task `{id}` was skipped: `{missing}`, which it depends on, was not done"
        ));
        self.steps[step].status = StepStatus::Skipped;
        self.steps[step].error = Some(error.in_task(id.clone()));
        true
    }

    async fn route_and_execute(&mut self, step: usize, task: &Task) -> Result<TurnReport, Failure> {
        let decision = match self.route(task).await {
            Ok(decision) => decision,
            Err(error) => {
                let handled = self.orchestrator.handle_error(error.clone(), self.strategy, 0, None);
                return Err(match handled {
                    Ok(_) => Failure::Alone(error),
                    Err(error) => Failure::Whole(error),
                });
            }
        };
        let mut agent: Arc<str> = decision.target.as_str().into();
        let mut fallback = decision.fallback.clone();
        let mut repeats = 0;
        loop {
            self.begin(Stage::Execute).map_err(Failure::Whole)?;
            self.steps[step].attempts += 1;
            self.steps[step].agent = Some(agent.clone());
            let told = |status: &str| {
                let (task, agent) = (task.id.clone(), agent.clone());
                json!({ "task": task, "agent": agent, "attempt": repeats + 1, "status": status })
            };
            self.tell(|_| told("started"));
            let error = match self.attempt(task, &agent).await {
                Ok(report) => {
                    self.tell(|_| {
                        let mut data = told("completed");
                        data["result"] = report.output().into();
                        data
                    });
                    return Ok(report);
                }
                Err(error) => error,
            };
            self.tell(|_| {
                let mut data = told("failed");
                data["error"] = error.to_string().into();
                data["outcome"] = error.outcome().as_str().into();
                data
            });
            if self.work.is_cancelled() {
                return Err(Failure::Whole(self.stop_error(Some(error))));
            }
            let error = self
                .error(format!("task `{}` failed at agent `{agent}`: {error}", task.id))
                .because(error);
            let strategy = self.strategy;
            let handled =
                self.orchestrator.handle_error(error.clone(), strategy, repeats, fallback.as_ref());
            match handled.map_err(Failure::Whole)? {
                Reaction::GoOn => return Err(Failure::Alone(error)),
                Reaction::FallBack(other) => {
                    fallback = None;
                    self.steps[step].fell_back_from = Some(agent);
                    agent = other;
                }
                Reaction::Repeat { after } => {
                    let waited = unless(&self.work, sleep(after)).await;
                    if waited.is_none() {
                        return Err(Failure::Whole(self.stop_error(error.cause)));
                    }
                    repeats += 1;
                    self.metrics.retries += 1;
                }
            }
        }
    }

    async fn route(&mut self, task: &Task) -> Result<RoutingDecision, OrchestrationError> {
        self.begin(Stage::Route)?;
        let context = self.at.as_ref().map_or(&self.context, |at| &at.context).clone();
        let (orchestrator, cursor) = (self.orchestrator.clone(), self.cursor);
        let agents = self.crew.candidates();
        let routed = orchestrator.routing_decision(task, &context, agents, cursor);
        let routed = unless(&self.work, routed).await;
        let decision = routed.ok_or_else(|| self.stop_error(None))??;
        self.cursor += 1;
        self.metrics.routing_decisions += 1;
        self.tell(|_| json!({ "task": task.id, "cursor": cursor, "decision": decision }));
        self.routing.push(RoutedTask { task: task.id.clone(), cursor, decision: decision.clone() });
        Ok(decision)
    }

    /// One attempt: the agent is started if it is not, and has its turn.
    async fn attempt(&mut self, task: &Task, name: &str) -> Result<TurnReport, Error> {
        let ready = unless(&self.work, self.crew.ready(name)).await;
        let agent = ready.ok_or_else(Error::cancelled)?.map_err(|error| {
            Error::orchestration(format!("it did not start: {error}")).because(error)
        })?;
        let results = |id: &Arc<str>| self.steps.iter().find(|step| step.task.id == *id);
        let earlier =
            task.depends_on.iter().filter_map(results).map(|it| it.output.as_str().into());
        let input = Input::text(&*task.intent).after(earlier.collect());
        let context = self.at.as_ref().map_or(&self.context, |at| &at.context).clone();
        let mut request = agent.request(input).context(context).cancel_on(&self.work);
        if let Some(limit) = self.orchestrator.inner.task_limit {
            request = request.limit(limit);
        }
        // A repetition remembers nothing of the turn that failed, if that is ours to say.
        let before = self.crew.is_alone_with(name).then(|| agent.history());
        // Somebody else may be talking to it: then a fork of it does the task.
        let result = request.handle().await;
        if let (Err(_), Some(history)) = (&result, before) {
            // An agent that shut down for it has no history to go back to.
            let _ = agent.set_history(history);
        }
        let report = match &result {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        };
        if let Some(report) = report {
            self.usage += report.usage;
        }
        result
    }

    fn step_done(&mut self, report: TurnReport) {
        let Some(at) = self.at.take() else { return };
        let step = &mut self.steps[at.step];
        step.status = StepStatus::Completed;
        step.output = report.output().to_owned();
        step.duration = at.began.elapsed();
        self.metrics.record_step(true, step.duration);
    }

    pub(super) fn step_failed(&mut self, error: OrchestrationError) {
        let Some(at) = self.at.take() else { return };
        let step = &mut self.steps[at.step];
        step.status = StepStatus::Failed;
        step.error = Some(error);
        step.duration = at.began.elapsed();
        self.metrics.record_step(false, step.duration);
    }
}
