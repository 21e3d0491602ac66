//! Models that need no network.

use async_trait::async_trait;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// Repeats what it is told.
#[derive(Debug, Default)]
pub struct Passthrough;

impl Passthrough {
    /// A new one.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Model for Passthrough {
    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        Ok(ModelResponse::text(
            request
                .messages
                .last()
                .map(|m| m.text().to_owned())
                .unwrap_or_default(),
        ))
    }
}
