//! Connections that live as long as an instance.

use super::McpView;
use super::server::Lease;
use async_trait::async_trait;
use futures_util::future::join_all;
use std::fmt;
use tenure_core::BoxError;
use tenure_core::context::InstanceCx;
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};

/// Holds the connections of a view open while an instance lives. See [`McpView::keeper`].
///
/// They are opened all at once, each within its limit, and given back among the resources of the
/// instance: after the last `on_shutdown`. A server that cannot be reached does not fail the start;
/// that is logged, and it is tried again in the background.
pub struct McpKeeper {
    view: McpView,
}

impl McpKeeper {
    pub(super) fn new(view: McpView) -> Self {
        Self { view }
    }
}

#[async_trait]
impl AgentLifecycle for McpKeeper {
    fn points(&self) -> Points {
        Point::OnStart.into()
    }

    fn name(&self) -> &str {
        "mcp-servers"
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        let servers = self.view.servers();
        if servers.is_empty() {
            return Ok(());
        }
        let leases: Vec<Lease> =
            servers.iter().map(|server| Lease::take(server, &self.view, &cx)).collect();
        let ready: Vec<_> = leases.iter().map(Lease::ready).collect();
        // Registered before anything is waited for: a start that is dropped gives them back too.
        let names: Vec<_> = servers.iter().map(|server| &**server.name()).collect();
        cx.resources().register(
            format!("tool servers: {}", names.join(", ")),
            move || async move {
                let given = join_all(leases.into_iter().map(Lease::give_back)).await;
                given.into_iter().collect::<Result<(), BoxError>>()
            },
        );
        join_all(ready).await;
        Ok(())
    }
}

impl fmt::Debug for McpKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpKeeper").field("view", &self.view).finish()
    }
}
