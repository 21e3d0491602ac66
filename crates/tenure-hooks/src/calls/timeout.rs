//! A time limit on each model or tool call.

use crate::ready::{About, Makings, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::hook::{
    AgentLifecycle, HookError, IntoRegistration, Point, Points, Registration, hook,
};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{NextModel, NextTool};
use tenure_macros::lifecycle;

/// A time limit on each attempt of a call: what takes longer is given up, and fails as a time-out
/// that a retry or a fallback further out may deal with.
///
/// A model's limit is an error of the kind `timeout`; a tool's is an error result that the model gets
/// to read.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::Timeout;
/// # use tenure_models::Passthrough;
///
/// let agent = Agent::builder("quick")
///     .model(Passthrough::new())
///     .with_lifecycle(Timeout::new().model(Duration::from_secs(20)))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Timeout {
    model: Option<Duration>,
    tool: Option<Duration>,
}

impl Timeout {
    /// No limits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most time that a model call may take.
    pub fn model(mut self, limit: Duration) -> Self {
        self.model = Some(limit);
        self
    }

    /// The most time that a tool call may take.
    pub fn tool(mut self, limit: Duration) -> Self {
        self.tool = Some(limit);
        self
    }
}

impl IntoRegistration for Timeout {
    fn into_registration(self) -> Registration {
        // Each attempt has the time, so it stands within whatever makes attempts.
        let within = ["retry", "tool_retry", "fallback", "breaker", "cache"];
        let model = self.model.map(|_| Point::WrapModelCall);
        let tool = self.tool.map(|_| Point::WrapToolCall);
        let points: Points = model.into_iter().chain(tool).collect();
        let tools = self.tool;
        let registration = hook(Bounded(self)).named("timeout").kind("timeout").keeps_text();
        let mut registration = registration.only(points);
        // What is given up here would not be on record, and a person who is asked would be cut off.
        if let Some(limit) = tools {
            registration = registration.limits_tools(limit);
        }
        within.into_iter().fold(registration, Registration::inside)
    }
}

struct Bounded(Timeout);

#[lifecycle]
impl AgentLifecycle for Bounded {
    async fn wrap_model_call(
        &self,
        _cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        if let Some(limit) = self.0.model {
            request.limit(limit);
        }
        Ok(next.call(request).await?)
    }

    async fn wrap_tool_call(
        &self,
        _cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        // The agent holds its tools to the limit; here it is seen where it stands.
        Ok(next.call(request).await?)
    }
}

/// What `timeout` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct TimeoutOptions {
    /// The most time that a model call may take; without it, it may take any.
    model: Option<Time>,
    /// The most time that a tool call may take; without it, it may take any.
    tool: Option<Time>,
}

impl Options for TimeoutOptions {
    const ABOUT: About = About {
        name: "timeout",
        summary: "Gives up a model or tool call that takes too long.",
        covers: &["UC-3.1"],
        peers: &[],
        example: r#"{ "model": "20s", "tool": "10s" }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.model.is_none() && self.tool.is_none() {
            return Err(Refusal::new("", "give a limit: `model`, `tool`, or both"));
        }
        let limits =
            Timeout { model: self.model.map(|time| time.0), tool: self.tool.map(|time| time.0) };
        Ok(limits.into_registration())
    }
}
