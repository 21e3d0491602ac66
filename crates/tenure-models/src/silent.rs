//! A model that costs nothing.

use crate::{Passthrough, words};
use async_trait::async_trait;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// Answers as [`Passthrough`] does, and reports no usage at all: neither words nor calls.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::model::Usage;
/// use tenure_models::Silent;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("free").model(Silent::new()).build()?;
/// agent.startup().await?;
/// assert_eq!(agent.run("hello").await?.usage, Usage::default());
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Silent {
    inner: Passthrough,
}

impl Silent {
    /// A model that costs nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl Model for Silent {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let response = self.inner.answer(request)?;
        words::say(cx, response.content.text());
        Ok(response)
    }

    fn name(&self) -> &str {
        "silent"
    }
}
