//! A connection that is open, for whoever calls.

use super::calls::Calls;
use rmcp::model::{ClientRequest, ServerResult};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::{Peer, RoleClient};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a call that was cut off waits to hear why.
const REASON_PATIENCE: Duration = Duration::from_millis(300);

/// What the supervisor should look into.
#[derive(Default)]
pub(super) struct Changes {
    /// The lists have changed.
    pub(super) lists: Notify,
    /// A call could not be sent.
    pub(super) doubt: Notify,
}

/// An open connection.
pub(super) struct Link {
    pub(super) peer: Peer<RoleClient>,
    pub(super) calls: Arc<Calls>,
    pub(super) changes: Arc<Changes>,
    /// Cancelled when the connection is over.
    pub(super) over: CancellationToken,
    why: OnceLock<String>,
    /// Cancelled when it is known why.
    explained: CancellationToken,
}

impl Link {
    pub(super) fn new(
        peer: Peer<RoleClient>,
        calls: Arc<Calls>,
        changes: Arc<Changes>,
        over: CancellationToken,
    ) -> Self {
        let (why, explained) = (OnceLock::new(), CancellationToken::new());
        Self { peer, calls, changes, over, why, explained }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Says why the connection is over.
    pub(super) fn explain(&self, why: &str) {
        let _ = self.why.set(why.to_owned());
        self.explained.cancel();
    }

    /// Why the connection is over, which takes a moment to find out.
    pub(super) async fn reason(&self) -> String {
        let _ = tokio::time::timeout(REASON_PATIENCE, self.explained.cancelled()).await;
        self.why.get().cloned().unwrap_or_else(|| "the connection was closed".to_owned())
    }

    /// Sends a request.
    pub(super) async fn send(&self, request: ClientRequest) -> Result<Flight, ServiceError> {
        let options = PeerRequestOptions::no_options();
        Ok(Flight { handle: Some(self.peer.send_request_with_option(request, options).await?) })
    }
}

/// A request that was sent. If it is dropped before it is answered, the server hears that.
pub(super) struct Flight {
    handle: Option<RequestHandle<RoleClient>>,
}

impl Flight {
    /// The answer. Can be dropped and called again.
    pub(super) async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let answer = poll_fn(|cx| match &mut self.handle {
            Some(handle) => pin!(&mut handle.rx).poll(cx),
            None => Poll::Ready(Ok(Err(ServiceError::TransportClosed))),
        });
        let answer = answer.await.unwrap_or(Err(ServiceError::TransportClosed));
        self.handle = None;
        answer
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        let cancel = handle.cancel(Some("nobody waits for the answer any more".to_owned()));
        // To hand it over takes one poll, and nobody is here to wait for more.
        let cancel = pin!(tokio::task::coop::unconstrained(cancel));
        let _ = cancel.poll(&mut Context::from_waker(Waker::noop()));
    }
}
