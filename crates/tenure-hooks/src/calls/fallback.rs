//! Other models that answer when one fails.

use super::failure::{Failure, of_model};
use crate::ready::{About, Makings, ModelName, Options, Refusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use tenure_core::NextModel;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{Model, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_macros::lifecycle;

/// Has other models answer, in order, when a model fails: what the agent says does not depend on one
/// provider.
///
/// Every failure of a model counts but a request that the provider did not accept: the next would
/// hardly accept it either. Once some of the answer was read, its failure is final.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::model::ModelErrorKind;
/// use tenure_hooks::calls::Fallback;
/// # use tenure_models::{Failing, Passthrough};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("reliable")
///     .model(Failing::new(ModelErrorKind::Auth))
///     .with_lifecycle(Fallback::to(Passthrough::new()))
///     .build()?;
/// let report = agent.scoped(async |agent| agent.run("hello").await).await?;
/// assert_eq!(report.output(), "hello");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Fallback {
    models: Vec<Arc<dyn Model>>,
    on: Vec<ModelErrorKind>,
}

impl Fallback {
    /// Falls back to this model.
    pub fn to(model: impl Model) -> Self {
        Self { models: Vec::new(), on: Failure::kinds(&default_failures()) }.then(model)
    }

    /// And, if that fails too, to this one.
    pub fn then(mut self, model: impl Model) -> Self {
        self.models.push(Arc::new(model));
        self
    }

    /// The failures that it is for.
    pub fn on(mut self, kinds: impl IntoIterator<Item = ModelErrorKind>) -> Self {
        self.on = kinds.into_iter().collect();
        self
    }
}

/// What one provider does not accept, another will hardly.
fn default_failures() -> Vec<Failure> {
    Failure::which(|kind| kind != ModelErrorKind::BadRequest)
}

impl fmt::Debug for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.models.iter().map(|model| model.name()).collect();
        f.debug_struct("Fallback").field("models", &models).field("on", &self.on).finish()
    }
}

impl IntoRegistration for Fallback {
    fn into_registration(self) -> Registration {
        let registration = hook(Elsewhere(self)).named("fallback").kind("fallback").keeps_text();
        let registration = registration.inside("critic").inside("cache");
        // Each model is retried, broken and limited by itself.
        let within = ["refusal", "retry", "breaker", "rate_limit", "concurrency", "timeout"];
        within.into_iter().fold(registration, Registration::outside)
    }
}

struct Elsewhere(Fallback);

#[lifecycle]
impl AgentLifecycle for Elsewhere {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        // Hooks further in may change the request. Each model gets it as it came.
        let original = request.clone();
        let mut error = match next.call(request).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let mut asked = original.model().unwrap_or(cx.agent().model()).clone();
        for model in &self.0.models {
            let failure = of_model(&error).filter(|it| !it.is_fatal());
            let Some(failure) = failure.filter(|it| self.0.on.contains(&it.kind())) else { break };
            if cx.is_text_out() {
                break;
            }
            // It is a step, so that what was announced is not announced again by a resumed run.
            let announced = async {
                cx.announce("fallback", || {
                    json!({
                        "from": asked.name(),
                        "to": model.name(),
                        "kind": failure.kind(),
                        "error": failure.to_string(),
                    })
                });
                Ok(())
            };
            cx.step("to", announced).await?;
            request.clone_from(&original);
            request.use_model(model.clone());
            // The name of a model of the first one's means nothing to another.
            request.params.model = None;
            error = match next.call(request).await {
                Ok(response) => {
                    let announced = async {
                        cx.announce("fallback.answered", || json!({ "model": model.name() }));
                        Ok(())
                    };
                    cx.step("answered", announced).await?;
                    return Ok(response);
                }
                Err(error) => error,
            };
            asked = model.clone();
        }
        Err(error.into())
    }
}

/// What `fallback` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FallbackOptions {
    /// The models that answer when the agent's own fails, in order.
    models: Vec<ModelName>,
    /// The failures that it is for.
    on: Vec<Failure>,
}

impl Default for FallbackOptions {
    fn default() -> Self {
        Self { models: Vec::new(), on: default_failures() }
    }
}

impl Options for FallbackOptions {
    const ABOUT: About = About {
        name: "fallback",
        summary: "Has other models answer, in order, when a model fails.",
        covers: &["UC-3.2"],
        peers: &["ModelFallbackMiddleware"],
        example: r#"{ "models": ["passthrough"] }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.models.is_empty() {
            return Err(Refusal::new("models", "name at least one model to fall back to"));
        }
        if self.on.is_empty() {
            return Err(Refusal::new("on", "it is empty, so no other model is ever asked"));
        }
        let mut models = Vec::new();
        for (at, name) in self.models.iter().enumerate() {
            let field = format!("models[{at}]");
            if self.models[..at].contains(name) {
                return Err(Refusal::new(field, format!("`{}` is named twice", name.0)));
            }
            if makings.own_model() == Some(&name.0) {
                let what = format!("`{}` is the agent's own model, which has failed then", name.0);
                makings.warn(&field, what);
            }
            let model = makings.model(&name.0);
            models.push(model.map_err(|why| Refusal::new(field, why))?);
        }
        Ok(Fallback { models, on: Failure::kinds(&self.on) }.into_registration())
    }
}
