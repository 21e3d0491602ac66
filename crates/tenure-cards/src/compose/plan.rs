//! Plans: steps of tasks, as a model writes them.

use super::json;
use super::prompt;
use serde_json::Value;
use std::sync::Arc;

/// The most steps that a plan may have.
pub(super) const MAX_STEPS: usize = 32;
/// The most tasks that a step may have.
pub(super) const MAX_TASKS: usize = 32;

/// What a model means to have done.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) is_complete: bool,
}

/// Tasks that are done at the same time.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    pub(super) description: String,
    pub(super) tasks: Vec<PlannedTask>,
}

/// What one member has to do.
#[derive(Debug, PartialEq)]
pub(super) struct PlannedTask {
    pub(super) description: String,
    pub(super) agent: Arc<str>,
}

impl Plan {
    /// Reads a plan. `{"steps": [...]}`, or one step alone; every task names one of `agents`.
    pub(super) fn read(said: &str, agents: &[Arc<str>]) -> Result<Self, String> {
        let Some(object) = json::object_in(said) else {
            let said = super::evaluator::shortened(said);
            return Err(format!("did not write a plan in JSON; it said: {said}"));
        };
        let steps: Vec<_> = match (&object["steps"], &object["tasks"]) {
            (Value::Array(steps), _) => steps.iter().collect(),
            (_, Value::Array(_)) => vec![&object],
            _ => Vec::new(),
        };
        if steps.len() > MAX_STEPS {
            let count = steps.len();
            return Err(format!("wrote a plan of {count} steps; at most {MAX_STEPS} are possible"));
        }
        let steps: Vec<_> =
            steps.into_iter().map(|step| Step::read(step, agents)).collect::<Result<_, _>>()?;
        let steps: Vec<_> = steps.into_iter().filter(|step| !step.tasks.is_empty()).collect();
        let is_complete = object["is_complete"].as_bool().unwrap_or(false);
        if steps.is_empty() && !is_complete {
            return Err("wrote a plan without a task that is not complete either".to_owned());
        }
        Ok(Self { steps, is_complete })
    }
}

impl Step {
    fn read(step: &Value, agents: &[Arc<str>]) -> Result<Self, String> {
        let no_tasks = Vec::new();
        let tasks = step["tasks"].as_array().unwrap_or(&no_tasks);
        if tasks.len() > MAX_TASKS {
            let count = tasks.len();
            return Err(format!("wrote a step of {count} tasks; at most {MAX_TASKS} are possible"));
        }
        let tasks = tasks.iter().map(|task| {
            let name = json::text(task, "agent").trim();
            let agent = agents.iter().find(|agent| ***agent == *name).cloned();
            let agent = agent.ok_or_else(|| {
                format!(
                    "gave a task to the agent `{name}`, which does not exist; there are {}",
                    prompt::names(agents)
                )
            })?;
            Ok(PlannedTask { description: json::text(task, "description").to_owned(), agent })
        });
        Ok(Self {
            description: json::text(step, "description").to_owned(),
            tasks: tasks.collect::<Result<_, String>>()?,
        })
    }
}
