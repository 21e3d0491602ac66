//! What several tests need.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tenure_core::context::ModelCx;
use tenure_core::message::{Message, ToolCall};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::tool::{Effect, FnTool, Tool, ToolSpec};

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("nobody panics under this lock").push(note.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics under this lock").clone()
    }
}

/// A tool that notes its arguments, and answers.
pub(crate) fn tool(name: &str, notes: &Notes, answer: &'static str) -> impl Tool + use<> {
    let (notes, own) = (notes.clone(), name.to_owned());
    let parameters = json!({
        "type": "object",
        "properties": { "to": { "type": "string" }, "amount": { "type": "integer" } },
    });
    let spec = ToolSpec::new(name, "Does something").parameters(parameters);
    FnTool::new(spec.effect(Effect::Idempotent), move |arguments: &Value| {
        notes.add(format!("{own} {arguments}"));
        Ok(answer.into())
    })
}

/// Says pieces, one after the other, giving way between them; then perhaps fails.
pub(crate) struct Streaming {
    turns: Mutex<Vec<(Vec<&'static str>, bool)>>,
}

impl Streaming {
    /// Each turn is what is said, and whether it is said to the end.
    pub(crate) fn new(turns: impl IntoIterator<Item = (Vec<&'static str>, bool)>) -> Self {
        let mut turns: Vec<_> = turns.into_iter().collect();
        turns.reverse();
        Self { turns: Mutex::new(turns) }
    }
}

#[async_trait]
impl Model for Streaming {
    async fn call(&self, _: &ModelRequest, cx: ModelCx<'_>) -> Result<ModelResponse, ModelError> {
        let next = self.turns.lock().expect("nobody panics under this lock").pop();
        let (pieces, ends) = next.expect("the test has an answer for every call");
        for piece in &pieces {
            cx.delta(piece);
            tokio::task::yield_now().await;
        }
        match ends {
            true => Ok(ModelResponse::text(pieces.concat())),
            false => Err(ModelError::new(ModelErrorKind::Transport, "the line is dead")),
        }
    }
}

/// Answers by how often the model has answered in the conversation, as in any process.
pub(crate) struct ByTurn(pub(crate) Vec<ModelResponse>);

#[async_trait]
impl Model for ByTurn {
    async fn call(
        &self,
        request: &ModelRequest,
        _: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let said = request.messages.iter().filter(|it| matches!(it, Message::Assistant { .. }));
        Ok(self.0[said.count()].clone())
    }
}

/// A response that calls these tools; the ids are `c0`, `c1`.
pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> ModelResponse {
    let calls = calls.into_iter().enumerate();
    ModelResponse::calls(
        calls.map(|(at, (tool, with))| ToolCall::new(format!("c{at}"), tool, with.to_string())),
    )
}
