//! What a server may ask of us.

#![expect(deprecated, reason = "servers of 2025 still log and ask for roots")]

use super::calls::Calls;
use super::link::Changes;
use super::server::Server;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability, Implementation,
    LoggingMessageNotificationParam, ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use std::sync::Arc;
use tenure_core::event::LogStream;
use tokio::sync::oneshot;

/// The longest line of a server's log that is handed on.
const MOST_LINE: usize = 16 << 10;

/// Answers a server. It may ask for input, in a call; models and folders it does not get.
pub(super) struct Handler {
    pub(super) server: Arc<Server>,
    pub(super) calls: Arc<Calls>,
    pub(super) changes: Arc<Changes>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let forms = FormElicitationCapability::new().with_schema_validation(true);
        let mut may = ClientCapabilities::default();
        may.elicitation = Some(
            ElicitationCapability::new().with_form(forms).with_url(UrlElicitationCapability::new()),
        );
        let us = Implementation::new("tenure", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(may, us).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let origin = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let (reply, replied) = oneshot::channel();
        self.calls.elicit(origin, request, reply);
        tokio::select! {
            answer = replied => {
                // The call is over, or there is none: nobody was asked.
                Ok(answer.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Decline)))
            }
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots are not offered", None))
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut line = match message.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        super::content::shorten(&mut line, MOST_LINE);
        for line in line.lines() {
            self.server.log(LogStream::Host, line);
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.lists.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.lists.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.lists.notify_one();
    }
}
