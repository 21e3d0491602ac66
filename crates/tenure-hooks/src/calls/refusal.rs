//! Answers that a provider withheld.

use super::names::Words;
use crate::ready::{self, About, Makings, Options};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;

/// Deals with an answer that the provider withheld: it becomes an error, which a fallback may deal
/// with, or an answer of one's own.
///
/// Of an answer that was read in part already, that part stays, and one's own answer follows.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_core::model::{ModelResponse, StopReason};
/// use tenure_hooks::calls::Refusal;
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut withheld = ModelResponse::text("");
/// withheld.stop = StopReason::Refused;
/// let agent = Agent::builder("polite")
///     .model(Scripted::new([withheld]))
///     .with_lifecycle(Refusal::new().answer("I cannot help with that."))
///     .build()?;
/// let report = agent.scoped(async |agent| agent.run("...").await).await?;
/// assert_eq!(report.output(), "I cannot help with that.");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Refusal {
    answer: Option<Words>,
}

impl Refusal {
    /// A withheld answer is an error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers with this text in its stead. `{{ model }}` and `{{ text }}` (what the model said
    /// before) are filled in.
    pub fn answer(mut self, text: impl Into<String>) -> Self {
        self.answer = Some(Words::new(text));
        self
    }
}

impl IntoRegistration for Refusal {
    fn into_registration(self) -> Registration {
        let registration = hook(Withheld(self)).named("refusal").kind("refusal").keeps_text();
        let registration = registration.inside("cache").inside("fallback");
        // A withheld answer is no failure of the provider's that may pass.
        registration.outside("retry").outside("breaker")
    }
}

struct Withheld(Refusal);

#[derive(Serialize)]
struct Said<'a> {
    model: &'a str,
    text: &'a str,
}

#[lifecycle]
impl AgentLifecycle for Withheld {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let mut response = next.call(request).await?;
        if response.stop != StopReason::Refused {
            return Ok(response);
        }
        let model = request.model().unwrap_or(cx.agent().model()).name();
        let Some(answer) = &self.0.answer else {
            let message = format!("the provider of `{model}` withheld the answer");
            return Err(Error::from(ModelError::new(ModelErrorKind::Other, message))
                .of_the_call()
                .into());
        };
        let answer = answer.fill(&Said { model, text: response.content.text() })?;
        // What was read cannot be taken back.
        let answer = match cx.is_text_out() {
            true => format!("{}\n\n{answer}", response.content.text()),
            false => answer,
        };
        response.content = answer.into();
        response.calls.clear();
        response.stop = StopReason::StandIn;
        Ok(response)
    }
}

/// What `refusal` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RefusalOptions {
    /// What is answered in place of a withheld answer, a template of `model` and `text` (what the
    /// model said before). Without it, a withheld answer is an error, which a fallback deals with.
    answer: Option<String>,
}

impl Options for RefusalOptions {
    const ABOUT: About = About {
        name: "refusal",
        summary: "Makes an error, or an answer of one's own, of an answer that the provider withheld.",
        covers: &[],
        peers: &["ModelRefusalMiddleware"],
        example: r#"{ "answer": "I cannot help with that." }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, ready::Refusal> {
        let answer = self.answer.map(|text| {
            Words::checked(text, &Said { model: "", text: "" })
                .map_err(|why| ready::Refusal::new("answer", why))
        });
        Ok(Refusal { answer: answer.transpose()? }.into_registration())
    }
}
