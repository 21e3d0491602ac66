//! What is to be done: tasks, and who plans them.

use async_trait::async_trait;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::context::ExecutionContext;

/// One part of what is to be done.
///
/// ```
/// use tenure_flow::contract::Task;
///
/// let read = Task::new("read", "Read the report");
/// let sum = Task::new("sum", "Summarise it").capability("summarise").after("read");
/// assert_eq!(&*sum.depends_on[0], &*read.id);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Task {
    /// What it is called in its plan.
    pub id: Arc<str>,
    /// What the agent is told.
    pub intent: String,
    /// The one agent that may do it, if only one may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// What whoever does it has to be able to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Arc<str>>,
    /// The tasks that come before it. Their results are told to its agent; if one of them fails it
    /// is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Arc<str>>,
}

impl Task {
    /// A task that any agent may do.
    pub fn new(id: impl Into<Arc<str>>, intent: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            intent: intent.into(),
            agent: None,
            capability: None,
            depends_on: Vec::new(),
        }
    }

    /// The same task for this agent only.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// The same task for agents that can do this.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<Arc<str>>) -> Self {
        self.capability = Some(capability.into());
        self
    }

    /// The same task after this one.
    #[must_use]
    pub fn after(mut self, task: impl Into<Arc<str>>) -> Self {
        self.depends_on.push(task.into());
        self
    }
}

/// Says what has to be done to reach a goal.
#[async_trait]
#[doc(alias = "PlannerAgent")]
pub trait Planner: Send + Sync + 'static {
    /// The tasks. They are done in this order, but none before those that it depends on. An error
    /// ends the orchestration as failed, and a panic too.
    async fn plan(&self, goal: &str, context: &ExecutionContext) -> Result<Vec<Task>, Error>;
}

/// Plans one task: the goal itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneTask;

#[async_trait]
impl Planner for OneTask {
    async fn plan(&self, goal: &str, _context: &ExecutionContext) -> Result<Vec<Task>, Error> {
        Ok(vec![Task::new("goal", goal)])
    }
}

/// A plan that is the same for every goal.
#[async_trait]
impl Planner for Vec<Task> {
    async fn plan(&self, _goal: &str, _context: &ExecutionContext) -> Result<Vec<Task>, Error> {
        Ok(self.clone())
    }
}

/// The tasks in the order in which they are done: that of the plan, except that each comes after
/// those that it depends on.
pub(crate) fn in_order(tasks: Vec<Task>) -> Result<Vec<Task>, Error> {
    check(&tasks)?;
    let mut ordered: Vec<Task> = Vec::with_capacity(tasks.len());
    let mut left = tasks;
    while !left.is_empty() {
        let is_done = |id: &Arc<str>| ordered.iter().any(|task| task.id == *id);
        let Some(at) = left.iter().position(|task| task.depends_on.iter().all(is_done)) else {
            let circle: Vec<_> = left.iter().map(|task| format!("`{}`", task.id)).collect();
            return Err(Error::orchestration(format!(
                "the plan cannot be done: the tasks {} wait for each other; take one of their \
                 dependencies out",
                circle.join(", ")
            )));
        };
        ordered.push(left.remove(at));
    }
    Ok(ordered)
}

fn check(tasks: &[Task]) -> Result<(), Error> {
    let mut problems = Vec::new();
    let mut ids = BTreeMap::new();
    for task in tasks {
        if task.id.is_empty() {
            problems.push("a task has no id".to_owned());
        }
        *ids.entry(&task.id).or_insert(0_usize) += 1;
    }
    for (id, _) in ids.iter().filter(|(_, count)| **count > 1) {
        problems.push(format!("several tasks are called `{id}`"));
    }
    for task in tasks {
        for unknown in task.depends_on.iter().filter(|id| !ids.contains_key(id)) {
            let id = &task.id;
            problems.push(format!("task `{id}` depends on `{unknown}`, which is not in the plan"));
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Error::orchestration(format!("the plan is wrong: {}", problems.join("; ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tasks: &[Task]) -> Vec<&str> {
        tasks.iter().map(|task| &*task.id).collect()
    }

    #[test]
    fn tasks_are_done_in_the_order_of_the_plan_but_after_what_they_depend_on() {
        let tasks = vec![
            Task::new("c", "").after("a").after("b"),
            Task::new("a", ""),
            Task::new("d", ""),
            Task::new("b", "").after("a"),
        ];
        assert_eq!(ids(&in_order(tasks).expect("an order")), ["a", "d", "b", "c"]);
    }

    #[test]
    fn everything_that_is_wrong_with_a_plan_is_told_at_once() {
        let tasks = vec![Task::new("a", ""), Task::new("a", ""), Task::new("b", "").after("z")];
        let error = in_order(tasks).expect_err("it is wrong").to_string();
        assert!(error.contains("several tasks are called `a`"), "{error}");
        assert!(error.contains("task `b` depends on `z`"), "{error}");
    }

    #[test]
    fn tasks_that_wait_for_each_other_are_named() {
        let tasks =
            vec![Task::new("a", ""), Task::new("b", "").after("c"), Task::new("c", "").after("b")];
        let error = in_order(tasks).expect_err("a circle").to_string();
        assert!(error.contains("`b`, `c` wait for each other"), "{error}");
    }
}
