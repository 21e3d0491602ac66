//! Tool calls, made again.

use super::backoff::{Backoff, Jitter, OWN_TIME, checked_attempts, millis, outlasts};
use super::names::Names;
use crate::ready::{About, Makings, Options, Refusal, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::message::ToolStatus;
use tenure_core::tool::{Effect, ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool};
use tenure_macros::lifecycle;

/// Makes a tool call again that failed, if that does no harm: the tool says that it is idempotent or
/// takes a key, or whoever uses the hook says so.
///
/// A call that was denied is not made again, and neither is one that was cancelled. In a recorded run
/// no wait is waited twice.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::ToolRetry;
/// # use tenure_models::Passthrough;
///
/// let agent = Agent::builder("patient")
///     .model(Passthrough::new())
///     .with_lifecycle(ToolRetry::new().attempts(2).tools(["search*"]))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ToolRetry {
    attempts: u32,
    backoff: Backoff,
    tools: Names,
    even_if: Names,
    fails_turn: bool,
}

impl Default for ToolRetry {
    fn default() -> Self {
        Self {
            attempts: 3,
            backoff: Backoff::default(),
            tools: Names::default(),
            even_if: Names::default(),
            fails_turn: false,
        }
    }
}

impl ToolRetry {
    /// Three attempts, half a second apart at first, for every tool that may be called again.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often a call is made in all; at least once.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The longest wait before the second attempt.
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.backoff.initial = delay;
        self
    }

    /// The longest wait before any attempt.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.backoff.max = delay;
        self
    }

    /// By how much each wait is longer than the one before.
    pub fn factor(mut self, factor: f64) -> Self {
        self.backoff.factor = factor;
        self
    }

    /// How much of a wait is left to chance.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// The tools that it is for, by name; `*` stands for anything. Without it, all.
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.tools = Names::new(names);
        self
    }

    /// The tools that may be called again though they do not say so.
    pub fn even_if_not_idempotent<N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.even_if = Names::new(names);
        self
    }

    /// Fails the turn when every attempt has failed. Without it, the model reads the last failure.
    pub fn fails_turn(mut self) -> Self {
        self.fails_turn = true;
        self
    }

    /// Whether a second call of the tool does no harm.
    fn may_repeat(&self, cx: &ToolCx<'_>, name: &str) -> bool {
        let harmless = |effect| matches!(effect, Effect::Idempotent | Effect::Keyed);
        self.even_if.fit(name) || cx.tool().is_some_and(|tool| harmless(tool.effect))
    }
}

impl IntoRegistration for ToolRetry {
    fn into_registration(self) -> Registration {
        let waits = self.backoff.max.saturating_mul(self.attempts - 1);
        let registration = hook(Again(self)).named("tool_retry").kind("tool_retry");
        let registration = registration.limit(waits.saturating_add(OWN_TIME));
        let around = ["tool_errors", "approval", "audit", "call_limit"];
        let registration = around.into_iter().fold(registration, Registration::inside);
        let within = ["result_schema", "rate_limit", "concurrency", "timeout"];
        within.into_iter().fold(registration, Registration::outside)
    }
}

struct Again(ToolRetry);

#[lifecycle]
impl AgentLifecycle for Again {
    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let it = &self.0;
        if !it.tools.fit_or_all(request.name()) || !it.may_repeat(&cx, request.name()) {
            return Ok(next.call(request).await?);
        }
        // Hooks further in may change the arguments. Each attempt gets them as they came.
        let original = request.clone();
        for made in 1.. {
            let output = next.call(request).await?;
            if output.status != ToolStatus::Error {
                return Ok(output);
            }
            if made >= it.attempts || !self.wait(cx, made, &original, &output).await? {
                if it.fails_turn {
                    let (name, why) = (original.name(), output.content);
                    let message = format!("the tool `{name}` failed {made} times; at last: {why}");
                    return Err(HookError::new(message));
                }
                return Ok(output);
            }
            request.clone_from(&original);
        }
        unreachable!("there is a last attempt")
    }
}

impl Again {
    /// Waits, unless the turn would be over meanwhile. It is a step, so that a resumed run does not
    /// wait for attempts that it is served from the record.
    async fn wait(
        &self,
        cx: ToolCx<'_>,
        made: u32,
        request: &ToolRequest,
        output: &ToolOutput,
    ) -> Result<bool, Error> {
        let wait = async {
            let wait = self.0.backoff.delay(made - 1);
            if outlasts(wait, cx.deadline()) {
                return Ok(false);
            }
            cx.announce("tool_retry", || {
                json!({
                    "tool": request.name(),
                    "call": request.id(),
                    "attempt": made + 1,
                    "of": self.0.attempts,
                    "wait_ms": millis(wait),
                    "error": output.content,
                })
            });
            tokio::time::sleep(wait).await;
            Ok(true)
        };
        cx.step("wait", wait).await
    }
}

/// What happens when every attempt has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnFailure {
    /// The model reads the last failure, and goes on.
    #[default]
    Continue,
    /// The turn fails.
    Error,
}

/// What `tool_retry` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolRetryOptions {
    /// How often a call is made in all, the first time included.
    attempts: u32,
    /// The longest wait before the second attempt.
    initial_delay: Time,
    /// The longest wait before any attempt.
    max_delay: Time,
    /// By how much each wait is longer than the one before.
    factor: f64,
    /// How much of a wait is left to chance: all (`full`), half (`equal`) or nothing (`none`).
    jitter: Jitter,
    /// The tools that it is for, by name; `*` stands for anything. Without it, all.
    tools: Vec<String>,
    /// The tools that may be called again though they do not say that this does no harm.
    even_if_not_idempotent: Vec<String>,
    /// What happens when every attempt has failed.
    on_failure: OnFailure,
}

impl Default for ToolRetryOptions {
    fn default() -> Self {
        let ToolRetry { attempts, backoff, .. } = ToolRetry::default();
        Self {
            attempts,
            initial_delay: Time(backoff.initial),
            max_delay: Time(backoff.max),
            factor: backoff.factor,
            jitter: backoff.jitter,
            tools: Vec::new(),
            even_if_not_idempotent: Vec::new(),
            on_failure: OnFailure::Continue,
        }
    }
}

impl Options for ToolRetryOptions {
    const ABOUT: About = About {
        name: "tool_retry",
        summary: "Makes a failed tool call again, if the tool may be called twice.",
        covers: &["UC-5.1"],
        peers: &["ToolRetryMiddleware"],
        example: r#"{ "attempts": 2, "tools": ["search*"] }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        let backoff = Backoff {
            initial: self.initial_delay.0,
            max: self.max_delay.0,
            factor: self.factor,
            jitter: self.jitter,
        };
        let tools = Names::new(self.tools);
        let even_if = Names::new(&self.even_if_not_idempotent);
        let left_out = |name: &&String| !tools.fit_or_all(name) && !name.contains(['*', '?']);
        if let Some(name) = self.even_if_not_idempotent.iter().find(left_out) {
            let why = format!("`{name}` is not one of `tools`, so it is never called again");
            return Err(Refusal::new("even_if_not_idempotent", why));
        }
        let retry = ToolRetry {
            attempts: checked_attempts(self.attempts)?,
            backoff: backoff.checked()?,
            tools,
            even_if,
            fails_turn: self.on_failure == OnFailure::Error,
        };
        Ok(retry.into_registration())
    }
}
