//! A model that goes wrong.

use super::{FaultPlan, Place};
use async_trait::async_trait;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

/// A model that goes wrong where its plan says so, and answers as another one does otherwise. A
/// failure is an error of the kind [`Transport`](ModelErrorKind::Transport).
///
/// See [`FaultPlan`].
#[derive(Debug)]
pub struct FaultyModel<M> {
    inner: M,
    plan: FaultPlan,
}

impl<M: Model> FaultyModel<M> {
    /// `inner`, which goes wrong by `plan`.
    pub fn new(inner: M, plan: &FaultPlan) -> Self {
        Self { inner, plan: plan.clone() }
    }
}

#[async_trait]
impl<M: Model> Model for FaultyModel<M> {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let failed = |message| ModelError::new(ModelErrorKind::Transport, message);
        self.plan.strike(Place::Model).await.map_err(failed)?;
        self.inner.call(request, cx).await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
