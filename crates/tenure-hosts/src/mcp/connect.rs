//! How a connection is opened, and closed.

use super::calls::Calls;
use super::config::shown_url;
use super::handler::Handler;
use super::http::{self, cause};
use super::link::{Changes, Link};
use super::list::{self, NoList};
use super::lock;
use super::pipes::Pipes;
use super::server::Server;
use super::status::Lists;
use super::stdio::{AFTERMATH, Child};
use super::wire::Wire;
use super::{McpProtocol, McpTransport};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long the client of the protocol itself may take to let go of a process's pipes.
const LETTING_GO: Duration = Duration::from_millis(250);

/// A connection that is open. Dropping it kills the process.
pub(super) struct Connection {
    pub(super) link: Arc<Link>,
    pub(super) child: Option<Child>,
    service: RunningService<RoleClient, Handler>,
}

/// Why a connection could not be opened.
struct NoConnection {
    message: String,
    /// Another protocol that is worth a try.
    instead: Option<McpProtocol>,
}

impl From<String> for NoConnection {
    fn from(message: String) -> Self {
        Self { message, instead: None }
    }
}

/// Opens a connection, within the limit of the server.
pub(super) async fn connect(server: &Arc<Server>) -> Result<Connection, String> {
    let until = Instant::now() + server.config.start_limit;
    let known = *lock(&server.era);
    let protocol = match server.config.protocol {
        McpProtocol::Auto => known.unwrap_or(McpProtocol::Auto),
        fixed => fixed,
    };
    let opened = match open(server, protocol, until).await {
        Err(NoConnection { instead: Some(other), message }) => {
            tracing::debug!(
                target: "tenure::mcp",
                server = &**server.name(),
                "{message}; trying {other:?}"
            );
            open(server, other, until).await
        }
        opened => opened,
    };
    let found = opened.as_ref().ok().map(|connection| {
        let is_modern = connection.version().is_some_and(|it| !it.has_initialize());
        if is_modern { McpProtocol::Modern } else { McpProtocol::Legacy }
    });
    // What did not work is not taken for granted the next time.
    *lock(&server.era) = found;
    opened.map_err(|failed| format!("the tool server cannot be reached: {}", failed.message))
}

async fn open(
    server: &Arc<Server>,
    protocol: McpProtocol,
    until: Instant,
) -> Result<Connection, NoConnection> {
    match &server.config.transport {
        McpTransport::Stdio { command, env, dir } => {
            if let Some(check) = &server.config.check {
                check.run().await?;
            }
            let started = timeout_at(until, Child::start(server, command, env, dir)).await;
            let (child, output, input) =
                started.unwrap_or_else(|_| Err("it was not started in time".to_owned()))?;
            let pipes = Pipes::new(server.clone(), output, input);
            greet(server, pipes, protocol, until, Some(child)).await
        }
        McpTransport::Http { url, headers } => {
            let transport = http::transport(url, headers)
                .map_err(|why| format!("{}: {why}", shown_url(url)))?;
            greet(server, transport, protocol, until, None).await
        }
    }
}

/// Finds out what the server speaks.
async fn greet<T: Transport<RoleClient> + 'static>(
    server: &Arc<Server>,
    transport: T,
    protocol: McpProtocol,
    until: Instant,
    mut child: Option<Child>,
) -> Result<Connection, NoConnection> {
    let (calls, changes) = (Arc::new(Calls::default()), Arc::new(Changes::default()));
    let over = CancellationToken::new();
    let is_probing = protocol == McpProtocol::Auto;
    let wire = Wire::new(transport, calls.clone(), is_probing, over.clone().drop_guard());
    let late = wire.late();
    let handler =
        Handler { server: server.clone(), calls: calls.clone(), changes: changes.clone() };
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = match protocol {
        McpProtocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
        McpProtocol::Modern => ClientLifecycleMode::Discover { preferred_versions },
        McpProtocol::Legacy => ClientLifecycleMode::Initialize,
    };
    let mut greeting = Box::pin(handler.serve_with_lifecycle(wire, mode));
    let end = async {
        match &mut child {
            Some(child) => child.end().await,
            None => std::future::pending().await,
        }
    };
    // A process that has ended may have left its pipes to somebody who never answers.
    let greeted = tokio::select! {
        biased;
        greeted = timeout_at(until, &mut greeting) => greeted.ok(),
        _ = end => timeout(AFTERMATH, &mut greeting).await.ok(),
    };
    let problem = match greeted {
        Some(Ok(service)) => {
            let link = Arc::new(Link::new(service.peer().clone(), calls, changes, over));
            return Ok(Connection { link, child, service });
        }
        Some(Err(error)) => Some(error),
        None => None,
    };
    // The pipes are closed first, so that the process may end by itself and say why.
    drop(greeting);
    let instead =
        (protocol == McpProtocol::Auto).then(|| other_protocol(problem.as_ref(), &late)).flatten();
    let said = match &problem {
        Some(error) => describe(error),
        None => format!("it did not answer within {:?}", server.config.start_limit),
    };
    let message = match &mut child {
        Some(child) => {
            let ended = child.end_soon().await;
            let closed = matches!(problem, Some(ClientInitializeError::ConnectionClosed(_)));
            let said = match ended {
                Some(ended) if closed || problem.is_none() => ended,
                Some(ended) => format!("{said}; {ended}"),
                None => said,
            };
            format!("{said}{}", child.last_words().await)
        }
        None => said,
    };
    Err(NoConnection { message, instead })
}

/// Which protocol is worth a try when neither was agreed on.
fn other_protocol(
    problem: Option<&ClientInitializeError>,
    late: &AtomicBool,
) -> Option<McpProtocol> {
    if late.load(Ordering::Acquire) {
        // It does speak that of 2026, only it was slow to say so.
        return Some(McpProtocol::Modern);
    }
    match problem? {
        // Some servers end, or hang up, when the first thing they hear is not `initialize`.
        ClientInitializeError::ConnectionClosed(what) if what.contains("discover") => {
            Some(McpProtocol::Legacy)
        }
        error if error.is_authorization_required() => None,
        ClientInitializeError::TransportError { .. }
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::UncorrelatedErrorResponse { .. }
        | ClientInitializeError::ConflictInitResponseId(..) => Some(McpProtocol::Legacy),
        _ => None,
    }
}

/// Why a server could not be greeted.
fn describe(error: &ClientInitializeError) -> String {
    match error {
        error if error.is_authorization_required() => {
            "it wants authorization: give it a header `Authorization`".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => describe(fallback),
        ClientInitializeError::TransportError { error, .. } => cause(&*error.error),
        ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_) => {
            "it answered with something else than a greeting".to_owned()
        }
        other => other.to_string(),
    }
}

impl Connection {
    fn version(&self) -> Option<ProtocolVersion> {
        Some(self.link.peer.peer_info()?.protocol_version.clone())
    }

    /// The version of the protocol that was agreed on.
    pub(super) fn protocol(&self) -> String {
        self.version().map(|version| version.to_string()).unwrap_or_default()
    }

    /// Whether news come only to those who subscribe.
    pub(super) fn needs_subscription(&self) -> bool {
        self.version().is_some_and(|version| !version.has_initialize())
    }

    /// What the server offers. A list that fails is asked for a second time.
    pub(super) async fn list(&self, server: &Server) -> Result<Lists, NoList> {
        let list = || list::list(&self.link.peer, server);
        match list().await {
            Err(NoList { is_lost: false, .. }) => list().await,
            listed => listed,
        }
    }

    /// Waits for the end of the connection, and says why.
    pub(super) async fn end(&mut self) -> String {
        let Some(child) = &mut self.child else {
            self.link.over.cancelled().await;
            return "the connection was closed".to_owned();
        };
        let ended = tokio::select! {
            () = self.link.over.cancelled() => child.end_soon().await,
            // What it has already written is still read.
            ended = child.end() => {
                let _ = timeout(AFTERMATH, self.link.over.cancelled()).await;
                Some(ended)
            }
        };
        let how = ended.unwrap_or_else(|| "it closed its output".to_owned());
        format!("{how}{}", child.last_words().await)
    }

    /// Closes it. A process that does not end by itself within the limit is killed.
    pub(super) async fn close(mut self, limit: Duration) {
        let since = Instant::now();
        let patience = if self.child.is_some() { LETTING_GO.min(limit) } else { limit };
        let closed = self.service.close_with_timeout(patience).await;
        if let Err(error) = closed {
            tracing::debug!(target: "tenure::mcp", "a connection ended badly: {error}");
        }
        if let Some(child) = self.child.take() {
            child.stop(since, limit).await;
        }
    }
}

/// Whether an error of a request means that the connection is over.
pub(super) fn is_lost(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_))
}
