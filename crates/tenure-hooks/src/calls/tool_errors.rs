//! What a tool's failure means.

use super::names::{Names, Words};
use crate::ready::{About, Makings, Options, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenure_core::NextTool;
use tenure_core::context::ToolCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::message::ToolStatus;
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_macros::lifecycle;

/// Says what the model reads when a tool fails, or has the turn fail with it.
///
/// A call that was denied is left as it is: what a guard says is not this hook's to change.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::ToolErrors;
/// # use tenure_models::Passthrough;
///
/// let says = ToolErrors::saying("{{ tool }} does not work now. Answer without it.");
/// let agent = Agent::builder("calm")
///     .model(Passthrough::new())
///     .with_lifecycle(says.tools(["search*"]))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ToolErrors {
    tools: Names,
    /// What the model reads; without it the turn fails.
    says: Option<Words>,
}

impl ToolErrors {
    /// The model reads this, in which `{{ tool }}`, `{{ error }}` and `{{ call }}` are filled in.
    pub fn saying(text: impl Into<String>) -> Self {
        Self { tools: Names::default(), says: Some(Words::new(text)) }
    }

    /// The turn fails.
    pub fn ending_the_turn() -> Self {
        Self { tools: Names::default(), says: None }
    }

    /// The tools that it is for, by name; `*` stands for anything. Without it, all.
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tools = Names::new(names);
        self
    }
}

impl IntoRegistration for ToolErrors {
    fn into_registration(self) -> Registration {
        let registration = hook(Failed(self)).named("tool_errors").kind("tool_errors");
        // It is about failures that nobody else has dealt with.
        let within = [
            "approval",
            "audit",
            "call_limit",
            "tool_retry",
            "result_schema",
            "rate_limit",
            "concurrency",
            "timeout",
        ];
        within.into_iter().fold(registration, Registration::outside)
    }
}

struct Failed(ToolErrors);

#[derive(Serialize)]
struct Said<'a> {
    tool: &'a str,
    call: &'a str,
    error: &'a str,
}

#[lifecycle]
impl AgentLifecycle for Failed {
    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let output = next.call(request).await?;
        let tool = request.name();
        if output.status != ToolStatus::Error || !self.0.tools.fit_or_all(tool) {
            return Ok(output);
        }
        let error = output.content.text();
        match &self.0.says {
            Some(says) => {
                Ok(ToolOutput::error(says.fill(&Said { tool, call: request.id(), error })?))
            }
            None => Err(HookError::new(format!("the tool `{tool}` failed: {error}"))),
        }
    }
}

/// What a failure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnError {
    /// The model reads `message`, and goes on.
    #[default]
    Message,
    /// The turn fails.
    End,
}

/// What `tool_errors` takes by `with`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolErrorsOptions {
    /// What the model reads when a tool fails, a template of `tool`, `error` and `call`.
    message: Option<String>,
    /// The tools that it is for, by name; `*` stands for anything. Without it, all.
    tools: Vec<String>,
    /// Whether the model reads `message` or the turn ends.
    on_error: OnError,
}

impl Options for ToolErrorsOptions {
    const ABOUT: About = About {
        name: "tool_errors",
        summary: "Says what the model reads when a tool fails, or ends the turn.",
        covers: &["UC-5.1"],
        peers: &["ToolErrorMiddleware"],
        example: r#"{ "message": "{{ tool }} failed ({{ error }}). Try something else." }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        let errors = match (self.on_error, self.message) {
            (OnError::End, None) => ToolErrors::ending_the_turn(),
            (OnError::End, Some(_)) => {
                return Err(Refusal::new("message", "nobody reads it with `on_error: end`"));
            }
            (OnError::Message, None) => {
                return Err(Refusal::new("message", "say what the model is to read"));
            }
            (OnError::Message, Some(text)) => {
                let words = Words::checked(text, &Said { tool: "", call: "", error: "" });
                let says = words.map_err(|why| Refusal::new("message", why))?;
                ToolErrors { tools: Names::default(), says: Some(says) }
            }
        };
        Ok(errors.tools(self.tools).into_registration())
    }
}
