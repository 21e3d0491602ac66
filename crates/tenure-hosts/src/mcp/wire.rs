//! What goes over a connection, looked at on its way.
//!
//! Progress is taken off here, in the order in which it came, and so before the answer that it
//! belongs to. And a server that does not answer the question whether it speaks the protocol of
//! 2026 gets an answer made for it here, so that the older one is tried soon.

use super::calls::{CallTag, Calls};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions, GetMeta};
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::Transport;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::DropGuard;

/// How long a server may take to say whether it speaks the protocol of 2026.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// The longest message of a server. One that is longer ends the connection, since whoever waits for
/// it would wait in vain.
pub(super) const MOST_MESSAGE: usize = 64 << 20;

/// How far the question for the protocol has come.
enum Probe {
    Off,
    Asked(RequestId, Instant),
    /// Nobody waits for its answer any more.
    GivenUp(RequestId),
}

/// A transport that is looked at.
pub(super) struct Wire<T> {
    inner: T,
    calls: Arc<Calls>,
    /// Whether the question for the protocol may be given up.
    is_probing: bool,
    probe: Probe,
    /// Whether a server said too late that it speaks the protocol of 2026.
    late: Arc<AtomicBool>,
    /// Says that the connection is over when this is dropped.
    _over: DropGuard,
}

impl<T> Wire<T> {
    pub(super) fn new(inner: T, calls: Arc<Calls>, is_probing: bool, over: DropGuard) -> Self {
        let late = Arc::default();
        Self { inner, calls, is_probing, probe: Probe::Off, late, _over: over }
    }

    /// Tells whether a server said too late that it speaks the protocol of 2026.
    pub(super) fn late(&self) -> Arc<AtomicBool> {
        self.late.clone()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Wire<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(message) = &item {
            let request = &message.request;
            if let Some(tag) = request.extensions().get::<CallTag>() {
                self.calls.sent(*tag, &message.id, request.get_meta().get_progress_token());
            } else if self.is_probing && matches!(request, ClientRequest::DiscoverRequest(_)) {
                self.probe = Probe::Asked(message.id.clone(), Instant::now() + PROBE_LIMIT);
            }
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = match &self.probe {
                Probe::Asked(id, until) => match timeout_at(*until, self.inner.receive()).await {
                    Ok(message) => message?,
                    Err(_) => {
                        let id = id.clone();
                        self.probe = Probe::GivenUp(id.clone());
                        let silent = ErrorData::invalid_request("no answer in time", None);
                        return Some(JsonRpcMessage::error(silent, Some(id)));
                    }
                },
                _ => self.inner.receive().await?,
            };
            let answered = match &message {
                JsonRpcMessage::Notification(notification) => {
                    if let ServerNotification::ProgressNotification(progress) =
                        &notification.notification
                    {
                        self.calls.progress(progress.params.clone());
                        continue;
                    }
                    None
                }
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) => None,
            };
            match &self.probe {
                Probe::GivenUp(id) if answered == Some(id) => {
                    let is_modern = matches!(message, JsonRpcMessage::Response(_));
                    self.late.store(is_modern, Ordering::Release);
                    self.probe = Probe::Off;
                    continue;
                }
                Probe::Asked(id, _) if answered == Some(id) => self.probe = Probe::Off,
                _ => {}
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
