//! What stands for a remote model in a build without the feature `providers`. There is none, which the
//! types say: nothing can be made of them.

use super::config::Timeouts;
use super::error::{ProviderError, ProviderErrorKind as Kind};
use super::host::Address;
use super::key::ApiKey;
use super::providers::{ModelTarget, Providers};
use async_trait::async_trait;
use std::convert::Infallible;
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelRequest, ModelResponse};

/// A model behind a provider's server, of which there is none in this build: it was made without the
/// feature `providers`.
#[derive(Clone, Debug)]
pub struct RemoteModel(Infallible);

impl RemoteModel {
    pub(super) fn new(_: Providers, route: Route) -> Self {
        match route.0 {}
    }

    /// Returns where the model is.
    pub fn target(&self) -> &ModelTarget {
        match self.0 {}
    }
}

#[async_trait]
impl Model for RemoteModel {
    async fn call(&self, _: &ModelRequest, _: ModelCx<'_>) -> Result<ModelResponse, ModelError> {
        match self.0 {}
    }

    fn name(&self) -> &str {
        match self.0 {}
    }
}

/// The way to a model.
pub(super) struct Route(Infallible);

impl Route {
    pub(super) fn new(_: ModelTarget, _: Option<ApiKey>, http: Client, _: Timeouts) -> Self {
        match http.0 {}
    }

    pub(super) fn without_key_because(self, _: Option<String>) -> Self {
        self
    }
}

/// An HTTP client.
pub(super) struct Client(Infallible);

/// The HTTP clients that models share.
#[derive(Default)]
pub(super) struct Clients {}

impl Clients {
    /// Refuses the model that `spec` names.
    pub(super) fn check(spec: &str) -> Result<(), ProviderError> {
        Err(not_built(spec))
    }

    pub(super) fn for_address(&self, address: &Address) -> Result<Client, ProviderError> {
        Err(not_built(&address.host))
    }
}

fn not_built(what: &str) -> ProviderError {
    ProviderError::new(
        Kind::NotBuilt,
        format!("`{what}` is over the network, and the feature `providers` is not built in"),
        "build with the feature `providers`",
    )
}
