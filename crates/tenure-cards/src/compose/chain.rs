//! One after the other.

use super::ChainMemory;
use super::llm::Llm;
use super::progress::{Move, Planner, Progress, Task};
use super::prompt;
use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::model::ModelError;

#[derive(Debug)]
pub(super) struct Chain {
    pub(super) sequence: Vec<Arc<str>>,
    pub(super) memory: ChainMemory,
}

#[async_trait]
impl Planner for Chain {
    fn kind(&self) -> &'static str {
        "chain"
    }

    async fn next(&self, progress: &Progress<'_>, _llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        let length = self.sequence.len();
        let mut answers = Vec::with_capacity(length);
        for (at, (done, agent)) in progress.done().zip(&self.sequence).enumerate() {
            let who = format!("agent `{agent}` ({} of {length} in the chain)", at + 1);
            answers.push((agent, done.answer(&who)?));
        }
        let tagged = || answers.iter().map(|(agent, answer)| prompt::response(agent, answer));
        let Some(agent) = self.sequence.get(answers.len()) else {
            return Ok(Move::Answer(match self.memory {
                ChainMemory::Cumulative => prompt::joined(tagged()),
                ChainMemory::Last => {
                    answers.last().map_or_else(String::new, |(_, answer)| (*answer).to_owned())
                }
            }));
        };
        let message = match (self.memory, answers.last()) {
            (_, None) => progress.request.to_owned(),
            (ChainMemory::Last, Some((_, answer))) => (*answer).to_owned(),
            (ChainMemory::Cumulative, Some(_)) => {
                let request = prompt::request(progress.request);
                prompt::joined([request].into_iter().chain(tagged()))
            }
        };
        Ok(Move::ask(Task::new("link", agent, message)))
    }
}
