//! All at once.

use super::FanInRequest;
use super::llm::Llm;
use super::progress::{Move, Planner, Progress, Task};
use super::prompt;
use async_trait::async_trait;
use std::sync::Arc;
use tenure_core::model::{ModelError, ModelErrorKind};

#[derive(Debug)]
pub(super) struct Parallel {
    pub(super) fan_out: Vec<Arc<str>>,
    pub(super) fan_in: Option<Arc<str>>,
    pub(super) request: FanInRequest,
}

#[async_trait]
impl Planner for Parallel {
    fn kind(&self) -> &'static str {
        "parallel"
    }

    async fn next(&self, progress: &Progress<'_>, _llm: &mut Llm<'_>) -> Result<Move, ModelError> {
        let Some(round) = progress.rounds.first() else {
            let task = |agent| Task::new("branch", agent, progress.request);
            let tasks = self.fan_out.iter().map(task).collect();
            return Ok(Move::Ask { say: String::new(), tasks });
        };
        let branches = || self.fan_out.iter().zip(&round.done);
        let tagged = branches().map(|(agent, done)| prompt::response(agent, &done.shown()));
        let Some(fan_in) = &self.fan_in else {
            let failed: Vec<_> = branches()
                .filter(|(_, done)| !done.is_ok())
                .map(|(agent, done)| done.failure(&format!("agent `{agent}`")).to_string())
                .collect();
            if !failed.is_empty() {
                return Err(ModelError::new(ModelErrorKind::Other, failed.join("; ")));
            }
            return Ok(Move::Answer(prompt::joined(tagged)));
        };
        if let Some(done) = progress.rounds.get(1).and_then(|round| round.done.first()) {
            let answer = done.answer(&format!("agent `{fan_in}` (fan_in)"))?;
            return Ok(Move::Answer(answer.to_owned()));
        }
        let request = match self.request {
            FanInRequest::Included => Some(format!(
                "The following request was sent to the agents:\n\n{}",
                prompt::request(progress.request)
            )),
            FanInRequest::Left => None,
        };
        Ok(Move::ask(Task::new(
            "fan_in",
            fan_in,
            prompt::joined(request.into_iter().chain(tagged)),
        )))
    }
}
