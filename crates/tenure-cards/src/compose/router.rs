//! A model chooses.

use super::evaluator::shortened;
use super::json;
use super::llm::Llm;
use super::progress::{Move, Planner, Progress, Task};
use super::prompt;
use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::model::ModelError;

#[derive(Debug)]
pub(super) struct Router {
    pub(super) agents: Vec<Arc<str>>,
    pub(super) choices: String,
}

const RULES: &str = "You route requests. Choose the one agent that is best suited to answer the \
                     request. Answer with one JSON object and nothing else: {\"agent\": \"name\", \
                     \"confidence\": \"high\" or \"medium\" or \"low\", \"reasoning\": \"why\"}";

#[async_trait]
impl Planner for Router {
    fn kind(&self) -> &'static str {
        "router"
    }

    async fn next(&self, progress: &Progress<'_>, llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        if let Some(round) = progress.rounds.first()
            && let Some(done) = round.done.first()
        {
            let chosen = match &*self.agents {
                [only] => only.clone(),
                _ => self.chosen(round.said).unwrap_or_else(|_| "?".into()),
            };
            let answer = done.answer(&format!("agent `{chosen}`, chosen by the router,"))?;
            return Ok(Move::Answer(answer.to_owned()));
        }
        let (agent, say) = match &*self.agents {
            // There is nothing to choose.
            [only] => (only.clone(), String::new()),
            _ => {
                let asked = format!(
                    "The agents:\n\n{}\n{}",
                    self.choices,
                    prompt::request(progress.request)
                );
                llm.ask(RULES, asked, |said| self.chosen(said)).await?
            }
        };
        let tasks = vec![Task::new("routed", &agent, progress.request)];
        Ok(Move::Ask { say, tasks })
    }
}

impl Router {
    /// The agent that the model chose: in JSON, or by its name alone.
    fn chosen(&self, said: &str) -> Result<Arc<str>, String> {
        let object = json::object_in(said);
        let name = match &object {
            Some(object) => json::text(object, "agent").trim(),
            None => said.trim().trim_matches(['`', '"', '\'', '.']),
        };
        match self.agents.iter().find(|agent| ***agent == *name) {
            Some(agent) => Ok(agent.clone()),
            None => Err(match object {
                Some(_) => format!(
                    "chose the agent `{}`, which does not exist; there are {}",
                    shortened(name),
                    prompt::names(&self.agents)
                ),
                None => format!(
                    "did not choose one of {} in JSON; it said: {}",
                    prompt::names(&self.agents),
                    shortened(said)
                ),
            }),
        }
    }
}
