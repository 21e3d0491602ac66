//! A model that always fails.

use async_trait::async_trait;
use std::time::Duration;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

/// Fails every call in the same way.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::model::ModelErrorKind;
/// use tenure_models::Failing;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = Failing::new(ModelErrorKind::Overloaded).saying("come back later");
/// let agent = Agent::builder("unlucky").model(model).build()?;
/// agent.startup().await?;
/// let error = agent.run("hello").await.unwrap_err();
/// assert_eq!(error.to_string(), "come back later");
/// assert!(error.is_retryable());
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Failing {
    kind: ModelErrorKind,
    message: String,
    retry_after: Option<Duration>,
    fatal: bool,
}

impl Failing {
    /// Fails with this kind of error.
    pub fn new(kind: ModelErrorKind) -> Self {
        Self { kind, message: "the model always fails".to_owned(), retry_after: None, fatal: false }
    }

    /// The message of the error.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Asks to come back after so long.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Fails in a way that the agent cannot survive.
    #[must_use]
    pub fn fatal(mut self) -> Self {
        self.fatal = true;
        self
    }

    fn error(&self) -> ModelError {
        let mut error = ModelError::new(self.kind, self.message.clone());
        if let Some(after) = self.retry_after {
            error = error.with_retry_after(after);
        }
        if self.fatal {
            error = error.fatal();
        }
        error
    }
}

#[async_trait]
impl Model for Failing {
    async fn call(
        &self,
        _request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        Err(self.error())
    }

    fn name(&self) -> &str {
        "failing"
    }
}
