//! A model that never answers.

use async_trait::async_trait;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// Never answers. For tests of limits, of cancelling and of shutting down in the middle of a turn.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_models::Hanging;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("stuck")
///     .model(Hanging::new())
///     .model_limit(Duration::from_millis(10))
///     .build()?;
/// agent.startup().await?;
/// assert!(agent.run("hello?").await.unwrap_err().is_timeout());
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Hanging;

impl Hanging {
    /// A model that never answers.
    pub fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Model for Hanging {
    async fn call(
        &self,
        _request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        std::future::pending().await
    }

    fn name(&self) -> &str {
        "hanging"
    }
}
