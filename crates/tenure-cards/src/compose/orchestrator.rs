//! A model plans, members work, and the model makes one answer of it.

use super::llm::Llm;
use super::plan::{Plan, Step};
use super::progress::{Move, Planner, Progress, Round, Task};
use super::prompt;
use async_trait::async_trait;
use std::num::NonZeroUsize;
use std::sync::Arc;
use tenure_core::model::ModelError;

/// How far a plan looks ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanType {
    /// All steps at once.
    #[default]
    Full,
    /// The next step alone.
    Iterative,
}

/// How many plans there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iterations {
    /// As many as it takes; only the turn's own limit of steps ends it.
    UntilComplete,
    /// So many. Then the answer is made of what there is.
    AtMost(NonZeroUsize),
}

#[derive(Debug)]
pub(super) struct Orchestrator {
    pub(super) agents: Vec<Arc<str>>,
    pub(super) choices: String,
    pub(super) plan_type: PlanType,
    pub(super) iterations: Iterations,
}

const FULL: &str = "You plan work for a team of agents. Break the objective into steps; the tasks \
                    of one step are done at the same time, and a step may use what the steps \
                    before it found. If the results so far meet the objective, say that it is \
                    complete. Answer with one JSON object and nothing else: {\"steps\": \
                    [{\"description\": \"...\", \"tasks\": [{\"description\": \"...\", \"agent\": \
                    \"name\"}]}], \"is_complete\": true or false}";

const ITERATIVE: &str = "You plan work for a team of agents, one step at a time. Say what the next \
                         step is; its tasks are done at the same time. If the results so far meet \
                         the objective, say that it is complete. Answer with one JSON object and \
                         nothing else: {\"description\": \"...\", \"tasks\": [{\"description\": \
                         \"...\", \"agent\": \"name\"}], \"is_complete\": true or false}";

const SYNTHESIS: &str = "You make one answer of what a team of agents found. Meet the objective \
                         with the results; say plainly what could not be done.";

/// A plan that was made in this turn, and the rounds that acted on it.
struct Acted<'a> {
    plan: Plan,
    rounds: Vec<&'a Round<'a>>,
}

#[async_trait]
impl Planner for Orchestrator {
    fn kind(&self) -> &'static str {
        match self.iterations {
            Iterations::UntilComplete => "iterative_planner",
            Iterations::AtMost(_) => "orchestrator",
        }
    }

    async fn next(&self, progress: &Progress<'_>, llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        let acted = self.acted(progress);
        let results = results(&acted);
        let mut complete = false;
        if let Some(Acted { plan, rounds }) = acted.last() {
            if let Some(step) = plan.steps.get(rounds.len()) {
                return Ok(tasks(progress.request, step, &results, String::new()));
            }
            complete = plan.is_complete;
        }
        let left = match self.iterations {
            Iterations::UntilComplete => true,
            Iterations::AtMost(plans) => acted.len() < plans.get(),
        };
        if !complete && left {
            let rules = match self.plan_type {
                PlanType::Full => FULL,
                PlanType::Iterative => ITERATIVE,
            };
            let asked = prompt::joined([
                format!("The agents:\n\n{}", self.choices),
                format!("The objective:\n\n{}", prompt::request(progress.request)),
                so_far(&results),
            ]);
            let read = |said: &str| Plan::read(said, &self.agents);
            let (plan, said) = llm.ask(rules, asked, read).await?;
            if let Some(step) = plan.steps.first() {
                return Ok(tasks(progress.request, step, &results, said));
            }
        }
        let asked = prompt::joined([
            format!("The objective:\n\n{}", prompt::request(progress.request)),
            so_far(&results),
        ]);
        llm.answer(SYNTHESIS, asked).await.map(Move::Answer)
    }
}

impl Orchestrator {
    /// The plans of this turn. A round that says nothing goes on with the plan before it.
    fn acted<'a>(&self, progress: &'a Progress<'a>) -> Vec<Acted<'a>> {
        let mut acted: Vec<Acted<'a>> = Vec::new();
        for round in &progress.rounds {
            match Plan::read(round.said, &self.agents) {
                Ok(mut plan) => {
                    if self.plan_type == PlanType::Iterative {
                        plan.steps.truncate(1);
                    }
                    acted.push(Acted { plan, rounds: vec![round] });
                }
                Err(_) => {
                    if let Some(last) = acted.last_mut() {
                        last.rounds.push(round);
                    }
                }
            }
        }
        acted
    }
}

/// What was found, step by step, as agents and the model read it.
fn results(acted: &[Acted<'_>]) -> Vec<String> {
    let steps = acted.iter().flat_map(|acted| acted.plan.steps.iter().zip(&acted.rounds));
    steps
        .enumerate()
        .map(|(at, (step, round))| {
            let answers = step.tasks.iter().zip(&round.done).map(|(task, done)| {
                let answer = prompt::response(&task.agent, &done.shown());
                format!("Task: {}\n{answer}", task.description)
            });
            format!("Step {}: {}\n{}", at + 1, step.description, prompt::joined(answers))
        })
        .collect()
}

fn so_far(results: &[String]) -> String {
    if results.is_empty() {
        return "Nothing has been done yet.".to_owned();
    }
    format!("What has been done so far:\n\n{}", results.join("\n\n"))
}

fn tasks(objective: &str, step: &Step, results: &[String], say: String) -> Move {
    let tasks = step.tasks.iter().map(|task| {
        let message = prompt::joined([
            format!("The objective of the whole:\n\n{}", prompt::request(objective)),
            so_far(results),
            format!("Your task: {}", task.description),
        ]);
        Task::new("task", &task.agent, message)
    });
    Move::Ask { say, tasks: tasks.collect() }
}
