//! The end of a worker, with the life it served.

use super::PythonHost;
use async_trait::async_trait;
use std::fmt;
use tenure_core::ExitReason;
use tenure_core::context::InstanceCx;
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};

/// Ends the worker of a family when its root instance has shut down, and lets go of the objects of
/// clones and forks when they have. See [`PythonHost::keeper`].
pub struct WorkerKeeper {
    host: PythonHost,
}

impl WorkerKeeper {
    pub(super) fn new(host: PythonHost) -> Self {
        Self { host }
    }
}

#[async_trait]
impl AgentLifecycle for WorkerKeeper {
    fn points(&self) -> Points {
        Point::OnShutdown.into()
    }

    fn name(&self) -> &str {
        "python-workers"
    }

    async fn on_shutdown(&self, cx: InstanceCx<'_>, _reason: ExitReason) -> Result<(), HookError> {
        self.host.release(&cx).await;
        Ok(())
    }
}

impl fmt::Debug for WorkerKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerKeeper").finish_non_exhaustive()
    }
}
