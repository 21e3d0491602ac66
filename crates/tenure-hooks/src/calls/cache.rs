//! Answers that are kept, so that the same question is asked once.

mod flight;
mod key;
mod options;

pub(super) use options::CacheOptions;

use flight::{Flights, Joined, Lead};
use futures_util::FutureExt;
use futures_util::future::poll_immediate;
use key::Keys;
use serde_json::json;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::cache::{Cache, MemoryCache};
use tenure_core::context::TurnCx;
use tenure_core::hook::{AgentLifecycle, HookError, IntoRegistration, Registration, hook};
use tenure_core::model::{ModelRequest, ModelResponse, StopReason};
use tenure_core::{Error, NextModel};
use tenure_macros::lifecycle;

/// How long an answer is kept, unless told otherwise.
const EXPIRES: Duration = Duration::from_secs(3600);
/// How long a cache may take, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait for somebody else's call of the same request, before it is made here too.
const WAIT: Duration = Duration::from_secs(60);
/// As many answers as are kept in the process, unless told otherwise.
const ENTRIES: usize = 1024;

/// Keeps the answers of a model, and gives them again to the same request: nothing is called, and
/// nothing is spent.
///
/// The same are requests that agree in the model, the instruction, the messages, the tools and every
/// parameter; only the ids of tool calls may differ. Only whole answers are kept: no error, nothing
/// that was refused or cut off, nothing that another model said in place of the one that was asked,
/// and no call of a tool unless [`tool_calls`](Self::tool_calls) says so.
/// Of several equal requests at the same time one is made, and the others wait for its answer.
///
/// A cache that fails or hangs is passed over: the call is made. A hit is announced as `cache.hit`,
/// and readers of a stream get it as one piece.
///
/// ```
/// use std::time::Duration;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::calls::ResponseCache;
/// # use tenure_models::Scripted;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("oracle")
///     .model(Scripted::new(["the only answer that there is"]))
///     .without_history()
///     .with_lifecycle(ResponseCache::new().expires(Duration::from_secs(600)))
///     .build()?;
/// agent.startup().await?;
/// let first = agent.run("why?").await?;
/// let second = agent.run("why?").await?;
/// assert_eq!(second.output(), first.output());
/// assert_eq!(second.usage.calls, 0);
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct ResponseCache {
    kept: Arc<Kept>,
    expires: Option<Duration>,
    patience: Duration,
    is_shared: bool,
    tool_calls: bool,
}

/// Where answers are, and which are on their way.
struct Kept {
    cache: Arc<dyn Cache>,
    flights: Flights,
    keys: Keys,
    /// How many there may be, in the process.
    entries: Option<usize>,
}

impl Kept {
    fn new(cache: Arc<dyn Cache>, entries: Option<usize>) -> Self {
        Self { cache, flights: Flights::default(), keys: Keys::default(), entries }
    }

    fn in_memory(entries: usize) -> Self {
        Self::new(Arc::new(MemoryCache::holding(entries)), Some(entries))
    }
}

impl ResponseCache {
    /// A cache in the process, of 1,024 answers that are kept for an hour. Clones share it.
    pub fn new() -> Self {
        Self::of(Kept::in_memory(ENTRIES))
    }

    /// Keeps answers in `cache`, a `StoreCache` for one, which outlives the process.
    pub fn kept_in(cache: impl Cache) -> Self {
        Self::of(Kept::new(Arc::new(cache), None))
    }

    fn of(kept: Kept) -> Self {
        Self {
            kept: Arc::new(kept),
            expires: Some(EXPIRES),
            patience: PATIENCE,
            is_shared: false,
            tool_calls: false,
        }
    }

    /// How long an answer is kept.
    pub fn expires(mut self, after: Duration) -> Self {
        self.expires = Some(after);
        self
    }

    /// Keeps answers until there is no room for them.
    pub fn never_expires(mut self) -> Self {
        self.expires = None;
        self
    }

    /// Gives the answers that one agent got to the same requests of others, too. The agents use
    /// clones of this.
    pub fn shared(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Keeps answers that call tools, too. They are called again with every hit.
    pub fn tool_calls(mut self) -> Self {
        self.tool_calls = true;
        self
    }

    /// How long the cache may take to look something up, or to keep it, before it is passed over.
    pub fn patience(mut self, most: Duration) -> Self {
        self.patience = most;
        self
    }

    /// Whether an answer is whole, and of a kind that is kept.
    fn keeps(&self, response: &ModelResponse) -> bool {
        let is_whole = matches!(response.stop, StopReason::EndTurn | StopReason::ToolUse);
        let says = !response.content.is_empty() || !response.calls.is_empty();
        is_whole && says && (self.tool_calls || response.calls.is_empty())
    }
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache")
            .field("entries", &self.kept.entries)
            .field("expires", &self.expires)
            .field("shared", &self.is_shared)
            .field("tool_calls", &self.tool_calls)
            .finish_non_exhaustive()
    }
}

impl IntoRegistration for ResponseCache {
    fn into_registration(self) -> Registration {
        // What is kept is what came of all attempts, and what a critic sees is an answer as any other.
        let around =
            ["fallback", "refusal", "retry", "breaker", "rate_limit", "concurrency", "timeout"];
        let limit = WAIT + 2 * self.patience + Duration::from_secs(30);
        let registration = hook(Caching(self))
            .named("cache")
            .kind("cache")
            .keeps_text()
            .inside("critic")
            .limit(limit);
        around.into_iter().fold(registration, Registration::outside)
    }
}

struct Caching(ResponseCache);

#[lifecycle]
impl AgentLifecycle for Caching {
    async fn wrap_model_call(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelResponse, HookError> {
        let key = self.key(cx, request);
        let mut lead = None;
        // One step, with the wait for somebody else's call in it: a resumed run has the same answer
        // or the same miss, whatever the cache has by then.
        let found = cx.step("lookup", async { Ok(self.find(cx, &key, &mut lead).await) }).await?;
        if let Some(mut response) = found {
            let saved = std::mem::take(&mut response.usage);
            cx.announce("cache.hit", || json!({ "cached": true, "key": key, "saved": saved }));
            return Ok(response);
        }
        let asked = request.model().cloned();
        let result = next.call(request).await;
        // What another model said in its stead is no answer of the one that was asked.
        let is_its = match (&asked, request.model()) {
            (Some(asked), Some(answered)) => Arc::ptr_eq(asked, answered),
            (asked, answered) => asked.is_none() && answered.is_none(),
        };
        let kept = result.as_ref().ok().filter(|response| is_its && self.0.keeps(response));
        if let Some(lead) = &lead {
            lead.tell(kept.cloned());
        }
        if let Some(response) = kept {
            // Also a step: what a run got long ago is not kept as new when it is resumed.
            cx.step("keep", async { Ok(self.keep(cx, &key, response).await) }).await?;
        }
        // Until here others find the answer with this call, and from here on in the cache.
        drop(lead);
        Ok(result?)
    }
}

impl Caching {
    fn key(&self, cx: TurnCx<'_>, request: &ModelRequest) -> String {
        let scope = (!self.0.is_shared).then(|| &*cx.config().name);
        let model = request.model().unwrap_or_else(|| cx.agent().model());
        self.0.kept.keys.of(scope, model.name(), request)
    }

    /// The answer to a request that was made before, or that somebody is making. If there is none,
    /// it is made here; `lead` is for whoever waits for it then.
    async fn find<'a>(
        &'a self,
        cx: TurnCx<'_>,
        key: &str,
        lead: &mut Option<Lead<'a>>,
    ) -> Option<ModelResponse> {
        let flights = &self.0.kept.flights;
        let ended = flights.ended();
        if let Some(found) = self.look_up(cx, key).await {
            return Some(found);
        }
        match flights.join(key) {
            Joined::Leads(leads) => {
                // Somebody may have kept the answer since the look.
                if flights.ended() != ended
                    && let Some(found) = self.look_up(cx, key).await
                {
                    leads.tell(Some(found.clone()));
                    return Some(found);
                }
                *lead = Some(leads);
                None
            }
            // One that fails, is given up or takes too long is no answer: then it is made here.
            Joined::Waits(answer) => tokio::time::timeout(WAIT, answer).await.ok().flatten(),
        }
    }

    async fn look_up(&self, cx: TurnCx<'_>, key: &str) -> Option<ModelResponse> {
        let found = self.bounded(cx, "read", self.0.kept.cache.get(key)).await??;
        // A list would be read as an answer, too.
        let read = found.is_object().then(|| serde_json::from_value(found));
        match read {
            // Others may keep what is not wanted here: a call of a tool.
            Some(Ok(response)) => Some(response).filter(|response| self.0.keeps(response)),
            Some(Err(error)) => {
                failed(cx, "read", &format!("what is kept is no answer: {error}"));
                None
            }
            None => {
                failed(cx, "read", "what is kept is no answer");
                None
            }
        }
    }

    /// Keeps an answer. Whether that worked.
    async fn keep(&self, cx: TurnCx<'_>, key: &str, response: &ModelResponse) -> bool {
        let Ok(value) = serde_json::to_value(response) else { return false };
        let put = self.0.kept.cache.put(key, value, self.0.expires);
        self.bounded(cx, "written", put).await.is_some()
    }

    /// What a cache does, unless it fails, panics or takes too long.
    async fn bounded<T>(
        &self,
        cx: TurnCx<'_>,
        what: &str,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Option<T> {
        let patience = self.0.patience;
        let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
        // One in the process is done at once, and needs no timer.
        let done = match poll_immediate(&mut work).await {
            Some(done) => Ok(done),
            None => tokio::time::timeout(patience, work).await,
        };
        let why = match done {
            Ok(Ok(Ok(done))) => return Some(done),
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) => "it panicked".to_owned(),
            Err(_) => format!("it took longer than {patience:?}"),
        };
        failed(cx, what, &why);
        None
    }
}

/// Says that the cache was passed over.
fn failed(cx: TurnCx<'_>, what: &str, why: &str) {
    tracing::warn!(agent = cx.agent_name(), "the cache could not be {what}: {why}");
    cx.announce("cache.failed", || json!({ "what": what, "why": why }));
}
