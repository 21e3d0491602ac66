//! The model of an agent that is a workflow: it asks for one chat, and answers with what that said.

use super::tool::FlowTool;
use async_trait::async_trait;
use serde_json::json;
use tenure_core::context::ModelCx;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

pub(super) struct OneChat {
    tool: String,
}

impl OneChat {
    pub(super) fn new(tool: &FlowTool) -> Self {
        Self { tool: tool.name() }
    }
}

#[async_trait]
impl Model for OneChat {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        if let Some(Message::Tool(result)) = request.messages.last() {
            return Ok(ModelResponse::text(result.content.clone()));
        }
        // Everything that was said since it answered last.
        let mut heard: Vec<&str> = Vec::new();
        for message in request.messages.iter() {
            match message {
                Message::User { content } => heard.push(content.text()),
                Message::Assistant { .. } => heard.clear(),
                _ => {}
            }
        }
        if heard.is_empty() {
            return Err(ModelError::new(
                ModelErrorKind::BadRequest,
                "there is nothing to begin the workflow with",
            ));
        }
        let arguments = json!({ "message": heard.join("\n") }).to_string();
        Ok(ModelResponse::calls([ToolCall::new("", self.tool.as_str(), arguments)]))
    }

    fn name(&self) -> &str {
        "workflow"
    }
}
