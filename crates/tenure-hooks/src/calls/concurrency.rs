//! At most so many calls at once.
//!
//! The permits are those of tokio's semaphore, as in tower's `ConcurrencyLimit`. That layer itself
//! waits for one without a bound, while it is made ready, which no layer of tower's can bound; it has
//! one pool for all calls; and it would wait again for a call that is served from the record.

use super::backoff::OWN_TIME;
use super::failure::limited;
use super::names::Names;
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
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

type Pools = Group<usize, Semaphore>;

/// Makes at most so many calls at once; the others wait for a place, up to a bound.
///
/// A model call that finds no place in time fails as overloaded; a tool call gets an error result. A
/// place is free again however its call ends.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::Concurrency;
/// use tenure_hooks::ready::Shared;
/// # use tenure_models::Passthrough;
///
/// let all = Shared::new();
/// let agent = Agent::builder("modest")
///     .model(Passthrough::new())
///     .with_lifecycle(Concurrency::new(4).shared(&all, "gpu"))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Concurrency {
    calls: usize,
    max_wait: Duration,
    which: Which,
    shared: Option<(Shared, String)>,
}

impl Concurrency {
    /// So many model calls at once; at least one.
    pub fn new(calls: usize) -> Self {
        Self {
            calls: calls.clamp(1, Semaphore::MAX_PERMITS),
            max_wait: Duration::from_secs(30),
            which: Which::default(),
            shared: None,
        }
    }

    /// The longest that a call waits for a place.
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

    /// Has its places together with every limit of this name there. What the first of them says
    /// counts.
    pub fn shared(mut self, among: &Shared, name: impl Into<String>) -> Self {
        self.shared = Some((among.clone(), name.into()));
        self
    }

    fn register(self, pools: Arc<Pools>) -> Registration {
        let (which, max_wait) = (self.which, self.max_wait);
        let registration = hook(Placed { pools, max_wait, which: which.clone() });
        let registration = registration.named("concurrency").kind("concurrency").keeps_text();
        let registration = registration.limit(max_wait.saturating_add(OWN_TIME));
        which.around(registration).inside("rate_limit")
    }
}

impl IntoRegistration for Concurrency {
    fn into_registration(self) -> Registration {
        let pools = match &self.shared {
            Some((shared, name)) => Group::named("concurrency", shared, name, &self.calls),
            None => Group::alone(self.calls),
        };
        self.register(pools)
    }
}

struct Placed {
    pools: Arc<Pools>,
    max_wait: Duration,
    which: Which,
}

impl Placed {
    /// Waits for a place, and puts it into `place`. Whether there was one in time.
    async fn take(
        &self,
        key: &str,
        place: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<bool, Error> {
        let calls = self.pools.settings;
        let pool = self.pools.parts.part(key, || Semaphore::new(calls));
        *place = match pool.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            // Nobody closes the pool.
            Err(_) => {
                let wait = tokio::time::timeout(self.max_wait, pool.acquire_owned());
                wait.await.ok().and_then(Result::ok)
            }
        };
        Ok(place.is_some())
    }

    fn says(&self) -> String {
        let (calls, wait) = (self.pools.settings, self.max_wait);
        format!("no more than {calls} at once, and none has ended within {wait:?} (concurrency)")
    }
}

#[lifecycle]
impl AgentLifecycle for Placed {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let key = key_of_model(self.which.per, cx, request);
        let mut place = None;
        // A step: a resumed run does not wait for what it is served from the record.
        if !cx.step("place", self.take(&key, &mut place)).await? {
            return Err(limited(ModelErrorKind::Overloaded, self.says(), None).into());
        }
        let result = next.call(request).await;
        drop(place);
        Ok(result?)
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
        let mut place = None;
        if !cx.step("place", self.take(&key, &mut place)).await? {
            return Ok(ToolOutput::error(self.says()));
        }
        let result = next.call(request).await;
        drop(place);
        Ok(result?)
    }
}

/// What `concurrency` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConcurrencyOptions {
    /// So many calls at once.
    calls: usize,
    /// The longest that a call waits for a place before it fails as overloaded.
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

impl Default for ConcurrencyOptions {
    fn default() -> Self {
        Self {
            calls: 8,
            max_wait: Time(Duration::from_secs(30)),
            per: Per::Agent,
            model: true,
            tools: Vec::new(),
            shared: None,
        }
    }
}

impl Options for ConcurrencyOptions {
    const ABOUT: About = About {
        name: "concurrency",
        summary: "Makes at most so many calls at once; the others wait for a place.",
        covers: &["UC-3.5"],
        peers: &[],
        example: r#"{ "calls": 4, "per": "model" }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let which = Which::of_file(self.calls, self.model, self.tools, self.per)?;
        let pools = match &self.shared {
            Some(name) => Group::of_file("concurrency", makings, name, &self.calls),
            None => Group::alone(self.calls),
        };
        let limit = Concurrency { which, ..Concurrency::new(self.calls) };
        Ok(limit.max_wait(self.max_wait.0).register(pools))
    }
}
