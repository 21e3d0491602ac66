//! Metrics for Prometheus.

mod hook;
mod numbers;
mod options;
mod serve;

pub(super) use options::MetricsOptions;

use super::chats::Chats;
use super::pump::Pumps;
use super::saver::Saver;
use super::seen::{around, lock};
use hook::Count;
use numbers::Numbers;
use serve::Server;
use std::collections::HashSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::hook::{IntoRegistration, Registration, hook};
use tenure_core::{Error, InstanceId};

/// The name of this hook.
const KIND: &str = "metrics";
/// How many values each label has at most.
const MOST_NAMES: usize = 200;
/// How long an end waits for events that are still under way.
const DRAIN: Duration = Duration::from_secs(1);

/// Metrics for Prometheus: turns, model calls, retries, tokens, cost, tool calls, lifecycle tools, hooks
/// that failed, and questions that wait.
///
/// | metric | labels |
/// |---|---|
/// | `tenure_turns_total` | `agent`, `outcome` |
/// | `tenure_turn_duration_seconds` | `agent` |
/// | `tenure_turns_running` | `agent` |
/// | `tenure_model_calls_total` | `model`, `outcome` |
/// | `tenure_model_call_duration_seconds` | `model` |
/// | `tenure_model_retries_total` | `model`, `kind`: the failure |
/// | `tenure_tokens_total` | `model`, `kind`: input, output, cached, reasoning |
/// | `tenure_cost_usd_total` | `model` |
/// | `tenure_unpriced_model_calls_total` | `model` |
/// | `tenure_tool_calls_total` | `tool`, `status` |
/// | `tenure_tool_call_duration_seconds` | `tool` |
/// | `tenure_lifecycle_tool_calls_total` | `trigger`, `tool`, `status` |
/// | `tenure_lifecycle_tool_call_duration_seconds` | `trigger`, `tool` |
/// | `tenure_hook_failures_total` | `hook`, `point`, `outcome` |
/// | `tenure_asks_waiting` | |
///
/// A model call counts once, with all of its attempts, for the model that answered in the end. What
/// was made good further in is in `tenure_model_retries_total`: an attempt that failed, after which
/// `retry` made another one or `fallback` asked another model.
///
/// Retries, lifecycle tools, failures of hooks and questions are known from the agent's
/// [events](tenure_core::event): an agent without a bus does not count there. Of a workflow the tools and
/// hooks of the chat itself count too, once, if they have the bus of an agent that counts. A label has at
/// most 200 values; what comes after them is `other`. A clone counts as the agent that it is a clone of.
///
/// Clones of one `Metrics` count together.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::see::Metrics;
/// # use tenure_models::Passthrough;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let metrics = Metrics::new();
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(metrics.clone())
///     .build()?;
/// agent.scoped(async |agent| agent.run("hello").await).await?;
/// let text = metrics.render();
/// assert!(text.contains(r#"tenure_turns_total{agent="clerk",outcome="ok"} 1"#), "{text}");
/// # Ok::<_, tenure_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
#[must_use]
pub struct Metrics {
    center: Arc<Center>,
    listen: Option<SocketAddr>,
    file: Option<PathBuf>,
}

/// What several agents count into.
struct Center {
    numbers: Arc<Numbers>,
    listen: Option<SocketAddr>,
    saver: Option<Arc<Saver>>,
    /// The chats of the users.
    chats: Chats,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    users: HashSet<InstanceId>,
    pumps: Arc<Pumps>,
    server: Option<Server>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that are only there to be [rendered](Metrics::render).
    pub fn new() -> Self {
        Self::made(None, None, MOST_NAMES)
    }

    fn made(listen: Option<SocketAddr>, file: Option<PathBuf>, names: usize) -> Self {
        let numbers = Arc::new(Numbers::new(names));
        let rendered = numbers.clone();
        let saver = file.clone().map(|path| {
            // Another program reads it, as another user as a rule.
            Saver::new(path, 0o644, move || rendered.render().into_bytes())
        });
        let chats = Chats::default();
        let state = Mutex::default();
        let center = Arc::new(Center { numbers, listen, saver, chats, state });
        Self { center, listen, file }
    }

    /// Answers `GET /metrics` on this address while there are agents. What was counted before this
    /// is forgotten.
    pub fn listen(self, address: SocketAddr) -> Self {
        Self::made(Some(address), self.file, MOST_NAMES)
    }

    /// Writes them to this file at the end of each turn, as a whole. What was counted before this is
    /// forgotten.
    pub fn file(self, path: impl Into<PathBuf>) -> Self {
        Self::made(self.listen, Some(path.into()), MOST_NAMES)
    }

    /// The metrics, in the text form of Prometheus.
    pub fn render(&self) -> String {
        self.center.numbers.render()
    }

    /// Where they are served, while they are. A port that was chosen by the system is told here.
    pub fn address(&self) -> Option<SocketAddr> {
        lock(&self.center.state).server.as_ref().map(Server::address)
    }
}

impl Center {
    /// An instance starts. The first one opens the port.
    fn enter(&self, user: InstanceId) -> Result<Arc<Pumps>, Error> {
        let mut state = lock(&self.state);
        state.users.insert(user);
        if state.server.is_none()
            && let Some(address) = self.listen
        {
            let numbers = self.numbers.clone();
            let server = Server::open(address, move || numbers.render()).map_err(|error| {
                Error::invalid(format!("metrics cannot be served on {address}: {error}"))
            })?;
            state.server = Some(server);
        }
        Ok(state.pumps.clone())
    }

    /// An instance is over. The last one closes the port.
    async fn leave(&self, user: InstanceId) -> Result<(), Error> {
        let (server, pumps) = {
            let mut state = lock(&self.state);
            if !state.users.contains(&user) || state.users.len() > 1 {
                state.users.remove(&user);
                return Ok(());
            }
            (state.server.take(), std::mem::take(&mut state.pumps))
        };
        // Its last events still count.
        pumps.close(DRAIN).await;
        lock(&self.state).users.remove(&user);
        self.forget_the_gone();
        if let Some(server) = server {
            server.close().await;
        }
        match &self.saver {
            Some(saver) => saver.now().await.map_err(|error| {
                Error::invalid(format!("the file of the metrics cannot be written: {error}"))
            }),
            None => Ok(()),
        }
    }
}

impl Center {
    /// Nothing is heard any more of those who are gone.
    fn forget_the_gone(&self) {
        let users = lock(&self.state).users.clone();
        self.chats.keep(|instance| users.contains(&instance));
    }
}

impl IntoRegistration for Metrics {
    fn into_registration(self) -> Registration {
        let count = hook(Count(self.center)).named(KIND).kind(KIND);
        // A turn that goes on in another process is one that runs there.
        around(count).again_on_resume()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("listen", &self.listen)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
