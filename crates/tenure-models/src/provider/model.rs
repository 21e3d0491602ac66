//! A model behind a provider's server.

use super::answer::Draft;
use super::config::{Timeouts, Wire};
use super::fault::Blame;
use super::key::ApiKey;
use super::providers::{ModelTarget, Providers};
use super::{anthropic, gemini, ollama, openai};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tenure_core::context::ModelCx;
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_http::reqwest::Client;

/// A model behind a provider's server. Cheap to clone.
///
/// Made by [`Providers::model`]. It streams if somebody reads along, and answers in one piece
/// otherwise. A request that names another model in its parameters gets that one: of the same
/// provider, or of any other whose key is there.
///
/// # Guarantees
///
/// - An answer that was cut off is an error, and yields no tool call.
/// - Each tool call has an id of its own, and a JSON object as its arguments.
/// - No key is shown in an error, an event or by `Debug`, and none is sent to another host.
///
/// # Cancel safety
///
/// Dropping the future of a call closes its connection.
#[derive(Clone)]
pub struct RemoteModel {
    providers: Providers,
    route: Arc<Route>,
    /// The other models that requests have named so far.
    others: Arc<Mutex<BTreeMap<Arc<str>, Arc<Route>>>>,
}

/// More models than that under one name are a mistake in a loop.
const MOST_OTHERS: usize = 64;

/// Everything that a call needs to know about where it goes.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) target: ModelTarget,
    pub(super) key: Option<ApiKey>,
    /// Why there is no key, if there is none.
    keyless: Option<String>,
    pub(super) http: Client,
    pub(super) timeouts: Timeouts,
    name: String,
}

impl Route {
    pub(super) fn new(
        target: ModelTarget,
        key: Option<ApiKey>,
        http: Client,
        mut timeouts: Timeouts,
    ) -> Self {
        timeouts.idle = target.options.idle.unwrap_or(timeouts.idle);
        let name = format!("{}.{}", target.provider, target.model);
        Self { target, key, keyless: None, http, timeouts, name }
    }

    /// The same route, which says why it has no key.
    pub(super) fn without_key_because(mut self, why: Option<String>) -> Self {
        self.keyless = why;
        self
    }

    pub(super) fn blame(&self) -> Blame<'_> {
        let (key, keyless) = (self.key.as_ref(), self.keyless.as_deref());
        Blame { name: &self.name, key, keyless, target: &self.target }
    }
}

/// One call: where it goes, what is asked, and who reads along.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) route: &'a Route,
    pub(super) request: &'a ModelRequest,
    pub(super) cx: ModelCx<'a>,
    pub(super) streaming: bool,
}

impl Call<'_> {
    /// The sampling temperature: what the request says comes before what the model string says.
    pub(super) fn temperature(&self) -> Option<f64> {
        // Through its shortest text, so that 0.1 stays 0.1.
        let asked = self.request.params.temperature;
        let asked = asked.and_then(|temperature| temperature.to_string().parse().ok());
        asked.or(self.route.target.options.temperature)
    }

    /// The most tokens to write.
    pub(super) fn max_tokens(&self) -> Option<u32> {
        self.request.params.max_tokens.or(self.route.target.options.max_tokens)
    }
}

impl RemoteModel {
    pub(super) fn new(providers: Providers, route: Route) -> Self {
        Self { providers, route: Arc::new(route), others: Arc::default() }
    }

    /// Where the model is.
    pub fn target(&self) -> &ModelTarget {
        &self.route.target
    }

    /// The route to the model that a request names.
    fn route_to(&self, spec: &Arc<str>) -> Result<Arc<Route>, ModelError> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = others.get(spec) {
            return Ok(route.clone());
        }
        let own = &self.route.target;
        let route = match self.providers.resolve(spec) {
            // With the key that this model came with, which may not be the environment's.
            Ok(target) if target.provider == own.provider && target.base_url == own.base_url => {
                let (key, http) = (self.route.key.clone(), self.route.http.clone());
                Route::new(target, key, http, self.providers.timeouts())
                    .without_key_because(self.route.keyless.clone())
            }
            Ok(_) => self
                .providers
                .route(spec)
                .map_err(|error| ModelError::new(ModelErrorKind::BadRequest, error.to_string()))?,
            Err(_) => {
                let mut target = own.clone();
                target.model = spec.to_string();
                target.price = self.providers.price(&target.provider, spec);
                let (key, http) = (self.route.key.clone(), self.route.http.clone());
                Route::new(target, key, http, self.providers.timeouts())
                    .without_key_because(self.route.keyless.clone())
            }
        };
        if others.len() >= MOST_OTHERS {
            others.clear();
        }
        let route = Arc::new(route);
        others.insert(spec.clone(), route.clone());
        Ok(route)
    }
}

#[async_trait]
impl Model for RemoteModel {
    async fn call(
        &self,
        request: &ModelRequest,
        cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        let route = match &request.params.model {
            Some(spec) => self.route_to(spec)?,
            None => self.route.clone(),
        };
        let mut said = request.messages.iter().flat_map(|message| message.content().media());
        if let Some(media) = said.next() {
            let what =
                format!("the request has a part that is no text, which is not sent: {media}");
            return Err(route.blame().error(ModelErrorKind::BadRequest, &what));
        }
        let call = Call { route: &route, request, cx, streaming: cx.is_streaming() };
        let draft: Draft = match route.target.wire {
            Wire::OpenAi => openai::call(call).await?,
            Wire::Anthropic => anthropic::call(call).await?,
            Wire::Gemini => gemini::call(call).await?,
            Wire::Ollama => ollama::call(call).await?,
        };
        draft.finish(call)
    }

    fn name(&self) -> &str {
        &self.route.name
    }
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteModel").field("target", &self.route.target).finish_non_exhaustive()
    }
}
