//! One server, as everybody who needs it shares it.

use super::link::Link;
use super::lock;
use super::status::Lists;
use super::supervise::supervise;
use super::{McpProtocol, McpServer, McpState, McpStatus, McpUnmatched, McpView};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::context::{InstanceCx, Logger};
use tenure_core::event::LogStream;
use tenure_core::{BoxError, InstanceId};
use tenure_process::Environment;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

/// How long a call waits for a connection that is not there.
const CALL_PATIENCE: Duration = Duration::from_secs(5);
/// How long a start waits at most, however long the server may take: a hook has a limit of its own.
const START_PATIENCE: Duration = Duration::from_secs(25);
/// How long a start waits without a word.
const SILENCE: Duration = Duration::from_secs(2);
/// What a start may take beyond its limit: finding out why it failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// What a close may take beyond its limit: killing and reaping.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// A server that is connected for as long as somebody holds a [`Lease`] of it.
pub(super) struct Server {
    pub(super) config: McpServer,
    pub(super) environment: Environment,
    pub(super) tracker: TaskTracker,
    held: Mutex<Held>,
    leases: watch::Sender<usize>,
    current: watch::Sender<Current>,
    link: Mutex<Option<Arc<Link>>>,
    lists: Mutex<Lists>,
    version: AtomicU64,
    /// The patterns of which it has been said that they match nothing.
    complained: Mutex<Vec<McpUnmatched>>,
    /// The attempt of which it has been said that it is waited for.
    announced: Mutex<Option<u64>>,
    /// Somebody wants the connection now: whoever waits to try again stops waiting.
    pub(super) kick: Notify,
    /// The protocol that it was found to speak.
    pub(super) era: Mutex<Option<McpProtocol>>,
}

#[derive(Default)]
struct Held {
    /// Whether a supervisor runs.
    is_attended: bool,
    last_id: u64,
    holders: Vec<Holder>,
}

struct Holder {
    id: u64,
    family: InstanceId,
    logger: Logger,
    /// What it takes of the server.
    view: McpView,
}

/// How the connection is.
#[derive(Clone, Default)]
pub(super) struct Current {
    pub(super) state: McpState,
    /// How many attempts to open it have ended, one way or the other.
    ended: u64,
    pub(super) error: Option<String>,
    protocol: Option<String>,
    pid: Option<u32>,
    /// When it is tried again.
    retry_at: Option<Instant>,
    /// Whether it is open still, but not for long.
    is_closing: bool,
}

impl Current {
    fn is_open(&self) -> bool {
        self.state == McpState::Connected && !self.is_closing
    }
}

impl Server {
    pub(super) fn new(config: McpServer, environment: Environment, tracker: TaskTracker) -> Self {
        Self {
            config,
            environment,
            tracker,
            held: Mutex::default(),
            leases: watch::Sender::new(0),
            current: watch::Sender::new(Current::default()),
            link: Mutex::default(),
            lists: Mutex::default(),
            version: AtomicU64::new(0),
            complained: Mutex::default(),
            announced: Mutex::default(),
            kick: Notify::new(),
            era: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.config.name
    }

    pub(super) fn status(&self) -> McpStatus {
        let views = self.views();
        self.status_for(&views.iter().collect::<Vec<_>>())
    }

    /// How it is, with what these take of it.
    pub(super) fn status_for(&self, views: &[&McpView]) -> McpStatus {
        let Current { state, error, protocol, pid, retry_at, .. } = self.current.borrow().clone();
        let lists = self.lists();
        let is_taken = |tool: &str| views.iter().any(|view| view.takes(self, tool));
        McpStatus {
            name: self.name().clone(),
            state,
            tools: lists.tools.len(),
            taken: lists.tools.iter().filter(|tool| is_taken(&tool.name)).count(),
            prompts: lists.prompts.len(),
            unmatched: self.unmatched(views, &lists),
            retry_in: retry_at.map(|at| at.saturating_duration_since(Instant::now())),
            protocol,
            error,
            pid,
        }
    }

    /// What those see that need it.
    fn views(&self) -> Vec<McpView> {
        lock(&self.held).holders.iter().map(|holder| holder.view.clone()).collect()
    }

    /// The patterns of these that match nothing, each once.
    fn unmatched(&self, views: &[&McpView], lists: &Lists) -> Vec<McpUnmatched> {
        let mut found: Vec<McpUnmatched> = Vec::new();
        for unmatched in views.iter().flat_map(|view| view.unmatched(self, lists)) {
            if !found.contains(&unmatched) {
                found.push(unmatched);
            }
        }
        found
    }

    /// Says which patterns match nothing, of each once.
    fn complain(&self) {
        let (views, lists) = (self.views(), self.lists());
        let now = self.unmatched(&views.iter().collect::<Vec<_>>(), &lists);
        let known = std::mem::replace(&mut *lock(&self.complained), now.clone());
        let is_known = |it: &McpUnmatched| {
            known.iter().any(|old| old.offer == it.offer && old.pattern == it.pattern)
        };
        for unmatched in now.iter().filter(|it| !is_known(it)) {
            self.say(&unmatched.to_string());
        }
    }

    /// A number that is another one whenever the tools are others.
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The last good lists.
    pub(super) fn lists(&self) -> Lists {
        lock(&self.lists).clone()
    }

    pub(super) fn set_lists(&self, new: Lists) {
        let mut lists = lock(&self.lists);
        let changed = lists.tools != new.tools;
        *lists = new;
        drop(lists);
        if changed {
            self.version.fetch_add(1, Ordering::Release);
        }
        self.complain();
    }

    /// What goes wrong while the connection stands, or that all is well again.
    pub(super) fn set_error(&self, error: Option<String>) {
        let error = error.map(|error| self.config.transport.redacted(error));
        if let Some(error) = &error {
            self.say(error);
        }
        self.current.send_modify(|current| current.error = error);
    }

    pub(super) fn connecting(&self) {
        // What went wrong last stays known until it is put right.
        self.current.send_modify(|current| {
            current.state = McpState::Connecting;
            current.retry_at = None;
            current.is_closing = false;
        });
    }

    pub(super) fn connected(&self, link: Arc<Link>, protocol: String, pid: Option<u32>) {
        *lock(&self.link) = Some(link);
        self.current.send_modify(|current| {
            let ended = current.ended + 1;
            let (state, protocol) = (McpState::Connected, Some(protocol));
            *current = Current { state, ended, protocol, pid, ..Current::default() };
        });
    }

    /// The connection is about to be closed, since nobody needs it.
    pub(super) fn closing(&self) {
        *lock(&self.link) = None;
        self.current.send_modify(|current| current.is_closing = true);
    }

    /// The connection could not be opened, or was lost. It is tried again after `pause`.
    pub(super) fn failed(&self, error: String, pause: Duration) {
        *lock(&self.link) = None;
        let error = self.config.transport.redacted(error);
        let known = self.current.borrow().error.as_deref() == Some(&error);
        if known {
            tracing::debug!(target: "tenure::mcp", server = &**self.name(), "{error}");
        } else {
            let meanwhile = match self.lists().is_known {
                true => "calls of its tools wait for it and then fail",
                false => "until it is there, its tools are missing",
            };
            self.say(&format!("{error}; it is tried again, and {meanwhile}"));
        }
        self.current.send_modify(|current| {
            let (state, ended) = (McpState::Failed, current.ended + 1);
            let (error, retry_at) = (Some(error), Some(Instant::now() + pause));
            *current = Current { state, ended, error, retry_at, ..Current::default() };
        });
    }

    fn idle(&self) {
        *lock(&self.link) = None;
        self.current.send_modify(|current| {
            *current = Current { ended: current.ended, ..Current::default() };
        });
    }

    /// Says something of the server to everybody who needs it.
    pub(super) fn say(&self, line: &str) {
        tracing::warn!(target: "tenure::mcp", server = &**self.name(), "{line}");
        self.log(LogStream::Host, line);
    }

    /// Says that it is waited for, of each attempt once.
    fn announce(&self, limit: Duration) {
        let attempt = Some(self.current.borrow().ended);
        if std::mem::replace(&mut *lock(&self.announced), attempt) == attempt {
            return;
        }
        let line = format!("waiting for tool server `{}` (up to {limit:?})", self.name());
        tracing::info!(target: "tenure::mcp", server = &**self.name(), "{line}");
        self.log(LogStream::Host, &line);
    }

    /// Announces a line that the server printed, once for each family that needs it.
    pub(super) fn log(&self, stream: LogStream, line: &str) {
        let mut loggers: Vec<(InstanceId, Logger)> = Vec::new();
        for Holder { family, logger, .. } in &lock(&self.held).holders {
            if logger.is_alive() && loggers.iter().all(|(known, _)| known != family) {
                loggers.push((*family, logger.clone()));
            }
        }
        for (_, logger) in loggers {
            logger.log(self.name(), stream, line);
        }
    }

    /// Resolves when nobody needs the server any more.
    pub(super) async fn unwanted(&self) {
        let mut leases = self.leases.subscribe();
        // The sender is ours, so this cannot fail.
        let _ = leases.wait_for(|count| *count == 0).await;
    }

    /// Ends the supervisor, unless somebody needs the server again.
    pub(super) fn leave(&self) -> bool {
        let mut held = lock(&self.held);
        let may_leave = *self.leases.borrow() == 0;
        if may_leave {
            held.is_attended = false;
            lock(&self.complained).clear();
            self.idle();
        }
        may_leave
    }

    /// The supervisor was dropped: its runtime is gone.
    pub(super) fn deserted(&self) {
        lock(&self.held).is_attended = false;
        self.idle();
    }

    fn open_link(&self) -> Option<Arc<Link>> {
        lock(&self.link).as_ref().filter(|link| !link.is_closed()).cloned()
    }

    /// The connection, for whoever calls. If there is none, it is waited for, but not for long.
    pub(super) async fn link(&self) -> Result<Arc<Link>, String> {
        if let Some(link) = self.open_link() {
            return Ok(link);
        }
        let name = self.name();
        if *self.leases.borrow() == 0 {
            let why = "no agent that uses it is running";
            return Err(format!("the tool server `{name}` is not connected: {why}"));
        }
        self.kick.notify_one();
        let mut current = self.current.subscribe();
        let opened = async {
            loop {
                if let Some(link) = self.open_link() {
                    return link;
                }
                // The sender is ours, so this cannot fail.
                let _ = current.changed().await;
            }
        };
        timeout(CALL_PATIENCE, opened).await.map_err(|_| {
            let error = self.current.borrow().error.clone();
            let why =
                error.unwrap_or_else(|| format!("it did not answer within {CALL_PATIENCE:?}"));
            format!("the tool server `{name}` is not connected: {why}")
        })
    }
}

/// What keeps a server connected. Dropping it gives it back.
pub(super) struct Lease {
    server: Arc<Server>,
    id: u64,
    /// How many attempts had ended when it was taken.
    seen: u64,
}

impl Lease {
    /// Takes a lease. The first one begins to connect, and each tries again what has failed before.
    pub(super) fn take(server: &Arc<Server>, view: &McpView, cx: &InstanceCx<'_>) -> Self {
        let (family, logger, view) = (cx.family_id(), cx.logger(), view.clone());
        let mut held = lock(&server.held);
        held.last_id += 1;
        let id = held.last_id;
        held.holders.push(Holder { id, family, logger, view });
        server.leases.send_modify(|count| *count += 1);
        let seen = server.current.borrow().ended;
        if !held.is_attended {
            held.is_attended = true;
            drop(server.tracker.spawn(supervise(server.clone())));
        } else if server.current.borrow().state == McpState::Failed {
            server.kick.notify_one();
        }
        Self { server: server.clone(), id, seen }
    }

    /// Waits until the server is connected, or an attempt to connect has failed, or time is up.
    pub(super) fn ready(&self) -> impl Future<Output = ()> + Send + 'static {
        let (server, seen) = (self.server.clone(), self.seen);
        async move {
            let mut current = server.current.subscribe();
            let known = async {
                // The sender is ours, so this cannot fail.
                let _ = current.wait_for(|now| now.is_open() || now.ended > seen).await;
            };
            let mut known = std::pin::pin!(known);
            let limit = server.config.start_limit;
            let patience = (limit + AFTER_FAILURE).min(START_PATIENCE);
            if timeout(SILENCE.min(patience), &mut known).await.is_err() {
                server.announce(limit.min(START_PATIENCE));
                if timeout(patience.saturating_sub(SILENCE), known).await.is_err() {
                    server.say("it is still starting; its tools come later");
                    return;
                }
            }
            // Whoever comes to a connection that is open already has filters of its own.
            server.complain();
        }
    }

    /// Gives it back. The last one waits until the connection is closed.
    pub(super) async fn give_back(self) -> Result<(), BoxError> {
        let server = self.server.clone();
        // Before anything is waited for: whoever has no time left polls this once.
        drop(self);
        let mut current = server.current.subscribe();
        let mut leases = server.leases.subscribe();
        let closed = async {
            tokio::select! {
                _ = current.wait_for(|now| now.state == McpState::Idle) => {}
                _ = leases.wait_for(|count| *count > 0) => {}
            }
        };
        let limit = server.config.stop_limit + AFTER_KILL;
        timeout(limit, closed).await.map_err(|_| {
            format!("the tool server `{}` did not end within {limit:?}", server.name()).into()
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut held = lock(&self.server.held);
        held.holders.retain(|holder| holder.id != self.id);
        self.server.leases.send_modify(|count| *count -= 1);
    }
}
