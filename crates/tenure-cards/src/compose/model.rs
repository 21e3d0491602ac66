//! The model of a composed agent.

use super::llm::Llm;
use super::progress::{Move, Planner, Progress};
use super::tool_name;
use async_trait::async_trait;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use tenure_core::context::ModelCx;
use tenure_core::message::ToolCall;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// Says whom to ask next, or answers. What it costs is what the models cost that it asks.
pub(super) struct Composed {
    planner: Box<dyn Planner>,
    llm: Option<Arc<dyn Model>>,
}

impl Composed {
    pub(super) fn new(planner: Box<dyn Planner>, llm: Option<Arc<dyn Model>>) -> Self {
        Self { planner, llm }
    }
}

#[async_trait]
impl Model for Composed {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let progress = Progress::read(&request.messages);
        let mut llm = Llm::new(self.llm.as_deref(), request, &progress, cx);
        let next = self.planner.next(&progress, &mut llm).await?;
        let usage = llm.usage();
        let response = match next {
            Move::Answer(text) => ModelResponse::text(text),
            Move::Ask { say, tasks } => {
                let round = progress.rounds.len() + 1;
                let calls = tasks.into_iter().enumerate().map(|(at, task)| {
                    ToolCall::new(
                        format!("{}:{round}.{}", task.role, at + 1),
                        tool_name(&task.agent),
                        json!({ "message": task.message }).to_string(),
                    )
                });
                ModelResponse { content: say.into(), ..ModelResponse::calls(calls) }
            }
        };
        Ok(response.with_usage(usage))
    }

    fn name(&self) -> &str {
        self.planner.kind()
    }
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composed").field("planner", &self.planner).finish_non_exhaustive()
    }
}
