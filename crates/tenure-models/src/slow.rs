//! A model that takes its time.

use crate::Passthrough;
use async_trait::async_trait;
use std::time::Duration;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// Waits, then answers as another model does. By default it waits 3 s for a [`Passthrough`].
///
/// It waits on tokio's clock, so a test with a paused clock does not wait at all.
///
/// # Cancel safety
///
/// A call that is dropped while it waits has not reached the other model.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::model::Model;
/// use tenure_models::{Scripted, Slow};
///
/// let slow = Slow::of(Scripted::new(["at last"])).by(Duration::from_millis(50));
/// assert_eq!(slow.name(), "slow");
/// ```
#[derive(Debug)]
pub struct Slow<M = Passthrough> {
    inner: M,
    wait: Duration,
}

impl Slow {
    /// A [`Passthrough`] that takes 3 s.
    pub fn new() -> Self {
        Self::of(Passthrough::new())
    }
}

impl Default for Slow {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Model> Slow<M> {
    /// `inner`, 3 s later.
    pub fn of(inner: M) -> Self {
        Self { inner, wait: Duration::from_secs(3) }
    }

    /// Waits so long instead of 3 s.
    #[must_use]
    pub fn by(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

#[async_trait]
impl<M: Model> Model for Slow<M> {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        tokio::time::sleep(self.wait).await;
        self.inner.call(request, cx).await
    }

    fn name(&self) -> &str {
        "slow"
    }
}
