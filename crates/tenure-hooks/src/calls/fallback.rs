//! Other models that answer when one fails.

use super::backoff::{OWN_TIME, later, millis, outlasts};
use super::failure::{Failure, of_model, shut_for};
use super::round;
use crate::ready::{About, Makings, ModelName, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;
use tokio::time::Instant;

/// The shortest wait for a breaker, so that nobody asks all the time.
const SHORTEST: Duration = Duration::from_millis(10);

/// Has other models answer, in order, when a model fails: what the agent says does not depend on one
/// provider.
///
/// Every failure of a model counts but a request that the provider did not accept: the next would
/// hardly accept it either. Once some of the answer was read, its failure is final.
///
/// A model whose [breaker](super::CircuitBreaker) is open is passed over at once. If none of the
/// others answers either, the first of these breakers is waited for that lets a call through, up to a
/// bound, and that model is asked after all: one that rests for a moment is better than no answer.
/// [Retries](super::Retry) of a model count on from where they were.
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
    max_wait: Duration,
}

impl Fallback {
    /// Falls back to this model.
    pub fn to(model: impl Model) -> Self {
        let on = Failure::kinds(&default_failures());
        Self { models: Vec::new(), on, max_wait: Duration::from_secs(5) }.then(model)
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

    /// The longest that a call waits in all for models that are not asked because their breaker is
    /// open, when no other one answers. Five seconds; none at all, if it is zero.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
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
        f.debug_struct("Fallback")
            .field("models", &models)
            .field("on", &self.on)
            .field("max_wait", &self.max_wait)
            .finish()
    }
}

impl IntoRegistration for Fallback {
    fn into_registration(self) -> Registration {
        let limit = self.max_wait.saturating_add(OWN_TIME);
        let registration = hook(Elsewhere(self)).named("fallback").kind("fallback").keeps_text();
        let registration = registration.limit(limit).inside("critic").inside("cache");
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
        let mut made = 0;
        match round::turn(cx, &mut made, next.call(request)).await {
            Ok(response) => Ok(response),
            Err(error) => self.others(cx, request, &original, next, (error, made)).await,
        }
    }
}

/// A model that could not be asked, because its breaker is open.
struct Shut<'m> {
    /// Its place: that of the agent's own is zero.
    place: usize,
    name: &'m str,
    /// How often it was asked before.
    made: u32,
    until: Instant,
}

impl Elsewhere {
    /// Asks the others in order, and then those that could not be asked.
    async fn others(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        original: &ModelRequest,
        next: NextModel<'_>,
        (mut error, mut made): (Error, u32),
    ) -> Result<ModelResponse, HookError> {
        let own = original.model().unwrap_or(cx.agent().model());
        let model = |place: usize| place.checked_sub(1).map_or(own, |at| &self.0.models[at]);
        let (mut place, mut last) = (0, 0);
        let (mut shut, mut until) = (Vec::new(), None);
        while let Some(failure) = self.concerns(cx, &error) {
            if let Some(left) = shut_for(failure) {
                let (name, until) = (model(place).name(), later(Instant::now(), left));
                shut.push(Shut { place, name, made, until });
            }
            if last < self.0.models.len() {
                last += 1;
                let (from, to) = (model(place).name(), model(last).name());
                // It is a step, so that what was announced is not announced again by a resumed run.
                let announced = async {
                    let (kind, error) = (failure.kind(), failure.to_string());
                    cx.announce(
                        "fallback",
                        || json!({ "from": from, "to": to, "kind": kind, "error": error }),
                    );
                    Ok(())
                };
                cx.step("to", announced).await?;
                (place, made) = (last, 0);
            } else {
                let Some(first) = self.wait(cx, &shut, &mut until).await? else { break };
                // A record may be of a time when others could be asked.
                let Some(at) = shut.iter().position(|it| it.place == first) else { break };
                Shut { place, made, .. } = shut.swap_remove(at);
            }
            request.clone_from(original);
            if place > 0 {
                request.use_model(model(place).clone());
                // The name of a model of the first one's means nothing to another.
                request.params.model = None;
            }
            error = match round::turn(cx, &mut made, next.call(request)).await {
                Ok(response) => {
                    let announced = async {
                        let name = model(place).name();
                        cx.announce("fallback.answered", || json!({ "model": name }));
                        Ok(())
                    };
                    if place > 0 {
                        cx.step("answered", announced).await?;
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
        }
        Err(error.into())
    }

    /// The failure, if another model may answer in its stead.
    fn concerns<'e>(&self, cx: TurnCx<'_>, error: &'e Error) -> Option<&'e ModelError> {
        let failure = of_model(error)?;
        let is_for = !failure.is_fatal() && self.0.on.contains(&failure.kind());
        (is_for && !cx.is_text_out()).then_some(failure)
    }

    /// Waits for the first of these that may be asked, and says its place; none, if that would take
    /// too long. It is a step, so that a resumed run does not wait again, and decides as it did.
    async fn wait(
        &self,
        cx: TurnCx<'_>,
        shut: &[Shut<'_>],
        until: &mut Option<Instant>,
    ) -> Result<Option<usize>, Error> {
        let Some(first) = shut.iter().min_by_key(|it| it.until) else { return Ok(None) };
        let wait = async {
            let now = Instant::now();
            let until = *until.get_or_insert_with(|| later(now, self.0.max_wait));
            let wait = first.until.saturating_duration_since(now).max(SHORTEST);
            if later(now, wait) > until || outlasts(wait, cx.deadline()) {
                return Ok(None);
            }
            cx.announce(
                "fallback.waits",
                || json!({ "model": first.name, "wait_ms": millis(wait) }),
            );
            tokio::time::sleep(wait).await;
            Ok(Some(first.place))
        };
        cx.step("wait", wait).await
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
    /// The longest that a call waits in all for models that are not asked because their `breaker` is
    /// open, when no other one answers.
    max_wait: Time,
}

impl Default for FallbackOptions {
    fn default() -> Self {
        let max_wait = Time(Duration::from_secs(5));
        Self { models: Vec::new(), on: default_failures(), max_wait }
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
        let (on, max_wait) = (Failure::kinds(&self.on), self.max_wait.0);
        Ok(Fallback { models, on, max_wait }.into_registration())
    }
}
