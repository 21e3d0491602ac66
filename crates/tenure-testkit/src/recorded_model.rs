//! A model that keeps what it is asked.

use async_trait::async_trait;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// A model that keeps every request and passes it on to another model.
///
/// Clones share what they keep, so one of them goes to the agent and the other stays with the test. A request is kept
/// before it is passed on, also if the model then fails, panics or is cancelled.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_models::Scripted;
/// use tenure_testkit::RecordedModel;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let model = RecordedModel::new(Scripted::new(["Hello."]));
/// let agent = Agent::builder("host").model(model.clone()).instruction("Be kind.").build()?;
/// agent.scoped(async |agent| agent.run("Who is there?").await).await?;
/// assert_eq!(model.requests().len(), 1);
/// assert_eq!(model.instructions(), ["Be kind."]);
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct RecordedModel {
    model: Arc<dyn Model>,
    name: Option<Arc<str>>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

impl RecordedModel {
    /// Keeps the requests to `model`, and has its name.
    pub fn new(model: impl Model) -> Self {
        Self { model: Arc::new(model), name: None, requests: Arc::default() }
    }

    /// Goes by another name than the model behind it.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns every request so far, oldest first.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the instruction of each request, empty for one without.
    pub fn instructions(&self) -> Vec<String> {
        let instruction =
            |request: &ModelRequest| request.instruction.as_deref().map(str::to_owned);
        self.requests().iter().map(|request| instruction(request).unwrap_or_default()).collect()
    }
}

#[async_trait]
impl Model for RecordedModel {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        self.model.call(request, cx).await
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.model.name())
    }
}

impl fmt::Debug for RecordedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedModel").field("name", &self.name()).finish_non_exhaustive()
    }
}
