//! `save_trajectory`: what an agent did, in a file.

use async_trait::async_trait;
use serde_json::json;
use std::path::PathBuf;
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::{After, AgentLifecycle, HookError, Point, Points};

/// Writes each turn to `<dir>/<agent>-<run>.json` when it ends, however it ended.
pub(super) struct Trajectory {
    pub(super) dir: PathBuf,
}

#[async_trait]
impl AgentLifecycle for Trajectory {
    fn points(&self) -> Points {
        Point::AfterAgent.into()
    }

    fn name(&self) -> &str {
        "save-trajectory"
    }

    async fn after_agent(&self, cx: TurnCx<'_>, end: &mut TurnEnd<'_>) -> Result<After, HookError> {
        let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
        let file = format!("{}-{}.json", cx.agent_name().replace(odd, "_"), cx.run_id());
        let turn = json!({
            "agent": cx.agent_name(),
            "instance_id": cx.instance_id(),
            "run_id": cx.run_id(),
            "trace_id": cx.trace_id(),
            "outcome": end.outcome(),
            "error": end.error().map(ToString::to_string),
            "output": end.output(),
            "usage": end.usage(),
            "messages": end.history(),
        });
        let text = serde_json::to_string_pretty(&turn)?;
        let path = self.dir.join(file);
        let write = move || -> std::io::Result<()> {
            if let Some(dir) = path.parent() {
                std::fs::create_dir_all(dir)?;
            }
            std::fs::write(path, text)
        };
        tokio::task::spawn_blocking(write).await??;
        Ok(After::Done)
    }
}
