//! A type of one's own behind the agent whose life it has.

use super::{LifecycleConfig, ManagedAgent};
use crate::BoxFuture;
use crate::context::ModelCx;
use crate::hook::HookError;
use crate::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use crate::state::StateOwnership;
use crate::sync::Mutex;
use async_trait::async_trait;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What an agent asks of the type whose life it is.
pub(crate) trait Own: Send + Sync {
    fn do_startup<'a>(
        &'a self,
        config: &'a LifecycleConfig,
    ) -> BoxFuture<'a, Result<(), HookError>>;
    fn do_shutdown(&self, timeout: Duration) -> BoxFuture<'_, Result<(), HookError>>;
    fn process<'a>(&'a self, request: &'a str) -> BoxFuture<'a, Result<String, HookError>>;
    fn owner_of(&self, key: &str) -> StateOwnership;
}

impl<T: ManagedAgent> Own for T {
    fn do_startup<'a>(
        &'a self,
        config: &'a LifecycleConfig,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        ManagedAgent::do_startup(self, config)
    }

    fn do_shutdown(&self, timeout: Duration) -> BoxFuture<'_, Result<(), HookError>> {
        ManagedAgent::do_shutdown(self, timeout)
    }

    fn process<'a>(&'a self, request: &'a str) -> BoxFuture<'a, Result<String, HookError>> {
        ManagedAgent::process(self, request)
    }

    fn owner_of(&self, key: &str) -> StateOwnership {
        ManagedAgent::owner_of(self, key)
    }
}

/// Where the type is, once it is held in an [`Arc`]. Weak, because the type holds the agent.
#[derive(Clone, Default)]
pub(crate) struct OwnSlot(Arc<Mutex<Option<Weak<dyn Own>>>>);

impl OwnSlot {
    pub(super) fn set(&self, own: Weak<dyn Own>) {
        *self.0.lock() = Some(own);
    }

    fn get(&self) -> Option<Arc<dyn Own>> {
        self.0.lock().as_ref().and_then(Weak::upgrade)
    }

    /// Who owns `key`, if the type is there to be asked.
    pub(crate) fn owner_of(&self, key: &str) -> Option<StateOwnership> {
        self.get().map(|own| own.owner_of(key))
    }
}

impl fmt::Debug for OwnSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnSlot").field("is_there", &self.get().is_some()).finish()
    }
}

/// The type as the model of its agent: a request is processed, and the result is the answer.
pub(super) struct OwnModel(pub(super) OwnSlot);

#[async_trait]
impl Model for OwnModel {
    fn name(&self) -> &str {
        "own"
    }

    async fn call(
        &self,
        request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let Some(own) = self.0.get() else {
            return Err(ModelError::new(
                ModelErrorKind::Other,
                "the type that this agent is made of is not there any more, or is not held in an \
                 `Arc`; keep its `Arc` for as long as the agent is used",
            ));
        };
        let input = request.messages.last().map(|last| last.text().to_owned()).unwrap_or_default();
        match own.process(&input).await {
            Ok(answer) => Ok(ModelResponse::text(answer)),
            Err(error) => {
                let fatal = error.is_fatal();
                let failed = ModelError::new(ModelErrorKind::Other, error.to_string());
                Err(if fatal { failed.fatal() } else { failed })
            }
        }
    }
}
