//! At most so many calls in a time.

use super::backoff::OWN_TIME;
use super::failure::{limited, rounded};
use super::names::Names;
use super::pace::{Pace, Rate};
use super::scope::{Group, Per, Which, key_of_model, key_of_tool};
use crate::ready::{About, Makings, Options, Refusal, Shared, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{ModelErrorKind, ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextModel, NextTool};
use tenure_macros::lifecycle;
use tokio::time::Instant;

type Paces = Group<Rate, Pace>;

/// Makes at most so many calls in any time of a length; the others wait their turn, up to a bound.
///
/// A model call that would have to wait longer fails as rate limited, with the time that it would
/// take; a tool call gets an error result. What the agent is served from its record does not count.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::{Per, RateLimit};
/// # use tenure_models::Passthrough;
///
/// let agent = Agent::builder("modest")
///     .model(Passthrough::new())
///     .with_lifecycle(RateLimit::new(60, Duration::from_secs(60)).per(Per::Provider))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RateLimit {
    rate: Rate,
    max_wait: Duration,
    which: Which,
    shared: Option<(Shared, String)>,
}

impl RateLimit {
    /// So many model calls, at least one, in any time of this length.
    pub fn new(calls: usize, every: Duration) -> Self {
        Self {
            rate: Rate { calls: calls.max(1), every },
            max_wait: Duration::from_secs(30),
            which: Which::default(),
            shared: None,
        }
    }

    /// The longest that a call waits for its turn.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Which model calls count together.
    pub fn per(mut self, per: Per) -> Self {
        self.which.per = per;
        self
    }

    /// Limits these tools too, each by itself; `*` stands for anything.
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.which.tools = Names::new(names);
        self
    }

    /// Does not limit model calls.
    pub fn tools_only(mut self) -> Self {
        self.which.model = false;
        self
    }

    /// Counts together with every limit of this name there. What the first of them says counts.
    pub fn shared(mut self, among: &Shared, name: impl Into<String>) -> Self {
        self.shared = Some((among.clone(), name.into()));
        self
    }

    fn register(self, paces: Arc<Paces>) -> Registration {
        let (which, max_wait) = (self.which, self.max_wait);
        let registration = hook(Paced { paces, max_wait, which: which.clone() });
        let registration = registration.named("rate_limit").kind("rate_limit").keeps_text();
        let registration = registration.limit(max_wait.saturating_add(OWN_TIME));
        which.around(registration).outside("concurrency")
    }
}

impl IntoRegistration for RateLimit {
    fn into_registration(self) -> Registration {
        let paces = match &self.shared {
            Some((shared, name)) => Group::named("rate_limit", shared, name, &self.rate),
            None => Group::alone(self.rate.clone()),
        };
        self.register(paces)
    }
}

struct Paced {
    paces: Arc<Paces>,
    max_wait: Duration,
    which: Which,
}

impl Paced {
    /// Waits for a turn. If that would take too long: how long it would.
    async fn turn(&self, key: &str) -> Result<Option<Duration>, Error> {
        let pace = self.paces.parts.part(key, Pace::default);
        match pace.turn(&self.paces.settings, Instant::now(), self.max_wait) {
            Ok(turn) => {
                turn.wait().await;
                Ok(None)
            }
            Err(wait) => Ok(Some(wait)),
        }
    }

    fn says(&self) -> String {
        let Rate { calls, every } = &self.paces.settings;
        format!("no more than {calls} in {every:?} (rate_limit)")
    }
}

#[lifecycle]
impl AgentLifecycle for Paced {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let key = key_of_model(self.which.per, cx, request);
        // A step: a resumed run does not wait for what it is served from the record.
        if let Some(wait) = cx.step("turn", self.turn(&key)).await? {
            let message = format!("{}; the next is free in {:?}", self.says(), rounded(wait));
            return Err(limited(ModelErrorKind::RateLimited, message, Some(wait)).into());
        }
        Ok(next.call(request).await?)
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        if !self.which.tools.fit(request.name()) {
            return Ok(next.call(request).await?);
        }
        let key = key_of_tool(request.name());
        if let Some(wait) = cx.step("turn", self.turn(&key)).await? {
            let (says, wait) = (self.says(), rounded(wait));
            return Ok(ToolOutput::error(format!("{says}; call it again in {wait:?}")));
        }
        Ok(next.call(request).await?)
    }
}

/// What `rate_limit` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RateLimitOptions {
    /// So many calls.
    calls: usize,
    /// In any time of this length.
    every: Time,
    /// The longest that a call waits for its turn before it fails as rate limited.
    max_wait: Time,
    /// Which model calls count together: all of the `agent`'s, those to one `provider`, or those to
    /// one `model`.
    per: Per,
    /// Whether model calls are limited.
    model: bool,
    /// Tools that are limited too, each by itself; `*` stands for anything.
    tools: Vec<String>,
    /// Counts together with every limit of this name, of whichever agent.
    shared: Option<String>,
}

impl Default for RateLimitOptions {
    fn default() -> Self {
        Self {
            calls: 60,
            every: Time(Duration::from_secs(60)),
            max_wait: Time(Duration::from_secs(30)),
            per: Per::Agent,
            model: true,
            tools: Vec::new(),
            shared: None,
        }
    }
}

impl Options for RateLimitOptions {
    const ABOUT: About = About {
        name: "rate_limit",
        summary: "Makes at most so many calls in a time; the others wait their turn.",
        covers: &["UC-3.5"],
        peers: &[],
        example: r#"{ "calls": 60, "every": "1m", "per": "provider" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let which = Which::of_file(self.calls, self.model, self.tools, self.per)?;
        let rate = Rate { calls: self.calls, every: self.every.0 };
        let paces = match &self.shared {
            Some(name) => Group::of_file("rate_limit", makings, name, &rate),
            None => Group::alone(rate.clone()),
        };
        let limit = RateLimit { rate, max_wait: self.max_wait.0, which, shared: None };
        Ok(limit.register(paces))
    }
}
