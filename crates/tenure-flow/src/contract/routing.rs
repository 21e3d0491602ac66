//! Who does a task.

use super::Task;
use crate::route::{RoundRobin, RoutingDecision, Target};
use async_trait::async_trait;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::ExecutionContext;

/// A reason has to have more characters than this.
pub const SHORTEST_REASON: usize = 10;

/// Somebody who could do a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The agent's name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: Arc<str>,
    /// What it is able to do.
    pub capabilities: Vec<Arc<str>>,
}

impl Candidate {
    /// A candidate of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), description: "".into(), capabilities: Vec::new() }
    }

    /// The same, able to do this.
    #[must_use]
    pub fn can(mut self, capability: impl Into<Arc<str>>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Whether the task may be given to it.
    pub fn fits(&self, task: &Task) -> bool {
        task.agent.as_ref().is_none_or(|name| *name == self.name)
            && task.capability.as_ref().is_none_or(|it| self.capabilities.contains(it))
    }
}

/// What a router decides on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TaskCx<'a> {
    /// The task.
    pub task: &'a Task,
    /// The context of the task.
    pub context: &'a ExecutionContext,
    /// Those who may do it, in the order in which the orchestrator knows them. Never empty.
    pub agents: &'a [Candidate],
    /// How many decisions came before this one. Whatever changes from decision to decision follows
    /// from this number, so that the same question has the same answer.
    pub cursor: u64,
}

/// Decides who does a task. For the same task, context, agents and cursor it decides the same.
///
/// Whoever asks it checks the decision: the target is one of the agents, the reason is more than
/// ten characters long, and the fallback is another one of the agents. If there is another and the
/// router names none, the next one is taken.
#[async_trait]
pub trait TaskRouter: Send + Sync + 'static {
    /// Who does it. An error is one of the stage `route`.
    async fn route(&self, cx: TaskCx<'_>) -> Result<RoutingDecision, Error>;
}

/// The agent at the cursor, round and round.
#[async_trait]
impl TaskRouter for RoundRobin {
    async fn route(&self, cx: TaskCx<'_>) -> Result<RoutingDecision, Error> {
        let count = cx.agents.len() as u64;
        let at = (cx.cursor % count) as usize;
        let reason = format!("it is its turn, round robin: {} of {count}", at + 1);
        Ok(RoutingDecision::agent(cx.agents[at].name.clone(), reason))
    }
}

/// The first agent that fits: the one that the task names, the first that can do what it needs, or
/// the first of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstFit;

#[async_trait]
impl TaskRouter for FirstFit {
    async fn route(&self, cx: TaskCx<'_>) -> Result<RoutingDecision, Error> {
        let reason = match (&cx.task.agent, &cx.task.capability) {
            (Some(name), _) => format!("the task names the agent `{name}`"),
            (None, Some(capability)) => format!("it is the first that can `{capability}`"),
            (None, None) => "it is the first, and the task asks for nobody else".to_owned(),
        };
        Ok(RoutingDecision::agent(cx.agents[0].name.clone(), reason))
    }
}

/// Decides as a function says.
pub struct Manual<F>(F);

impl<F> Manual<F>
where
    F: Fn(TaskCx<'_>) -> Result<RoutingDecision, Error> + Send + Sync + 'static,
{
    /// Decides as `decide` says.
    pub fn new(decide: F) -> Self {
        Self(decide)
    }
}

impl<F> fmt::Debug for Manual<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Manual")
    }
}

#[async_trait]
impl<F> TaskRouter for Manual<F>
where
    F: Fn(TaskCx<'_>) -> Result<RoutingDecision, Error> + Send + Sync + 'static,
{
    async fn route(&self, cx: TaskCx<'_>) -> Result<RoutingDecision, Error> {
        (self.0)(cx)
    }
}

/// Asks a router, and checks what it says.
pub(crate) async fn decide(
    router: &dyn TaskRouter,
    task: &Task,
    context: &ExecutionContext,
    agents: &[Candidate],
    cursor: u64,
) -> Result<RoutingDecision, Error> {
    if agents.is_empty() {
        return Err(Error::orchestration(
            "no workers configured; give the orchestrator an agent, a blueprint, or a registry in \
             which an agent lives",
        ));
    }
    let fit: Vec<_> = agents.iter().filter(|it| it.fits(task)).cloned().collect();
    if fit.is_empty() {
        return Err(nobody_fits(task, agents));
    }
    let decision = router.route(TaskCx { task, context, agents: &fit, cursor }).await?;
    checked(task, &fit, decision)
}

fn names<'a>(agents: impl IntoIterator<Item = &'a Candidate>) -> String {
    let names: Vec<_> = agents.into_iter().map(|agent| format!("`{}`", agent.name)).collect();
    names.join(", ")
}

#[cold]
fn nobody_fits(task: &Task, agents: &[Candidate]) -> Error {
    let id = &task.id;
    let names = names(agents);
    Error::orchestration(match (&task.agent, &task.capability) {
        (Some(agent), None) => {
            format!(
                "task `{id}` is for agent `{agent}`, but there is no such agent; there are: {names}"
            )
        }
        (Some(agent), Some(can)) => format!(
            "task `{id}` is for agent `{agent}` if it can `{can}`, and no agent is that; there are: \
             {names}"
        ),
        (None, can) => {
            let can = can.as_deref().unwrap_or_default();
            format!("task `{id}` needs an agent that can `{can}`, but none of {names} can")
        }
    })
}

/// The decision, if it is one that can be carried out, with somebody who steps in if there is one.
fn checked(
    task: &Task,
    fit: &[Candidate],
    mut decision: RoutingDecision,
) -> Result<RoutingDecision, Error> {
    let id = &task.id;
    let place = |name: &str| fit.iter().position(|agent| &*agent.name == name);
    let target = match &decision.target {
        Target::Agent(name) => place(name),
        Target::User | Target::End => None,
    };
    let Some(target) = target else {
        return Err(Error::orchestration(format!(
            "task `{id}` was routed to `{}`, which is none of those who may do it: {}",
            decision.target,
            names(fit)
        )));
    };
    if decision.reason.trim().chars().count() <= SHORTEST_REASON {
        return Err(Error::orchestration(format!(
            "task `{id}` was routed to `{}` because of \"{}\"; a reason has to have more than \
             {SHORTEST_REASON} characters",
            decision.target, decision.reason
        )));
    }
    match &decision.fallback {
        Some(fallback) if place(fallback).is_none_or(|at| at == target) => {
            return Err(Error::orchestration(format!(
                "task `{id}` was routed to `{}` with the fallback `{fallback}`, which is not \
                 another one of those who may do it: {}",
                decision.target,
                names(fit)
            )));
        }
        None if fit.len() > 1 => {
            decision.fallback = Some(fit[(target + 1) % fit.len()].name.clone());
        }
        _ => {}
    }
    Ok(decision)
}
