//! `save_trajectory`: what an agent did, in a file.

use async_trait::async_trait;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};
use tenure_core::context::TurnCx;
use tenure_core::drive::TurnEnd;
use tenure_core::hook::{After, AgentLifecycle, HookError, Point, Points};

/// Where trajectories are kept in a project.
const FOLDER: [&str; 2] = [".tenure", "trajectories"];

/// Writes each turn to `.tenure/trajectories/<agent>-<run>.json` in the project when it ends, however
/// it ended, with the project's secrets taken out. Nothing is written outside of the project.
pub(super) struct Trajectory {
    /// The project's folder, absolute and resolved.
    pub(super) root: PathBuf,
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
        let mut turn = json!({
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
        cx.redactor().redact_json(&mut turn);
        let text = serde_json::to_string_pretty(&turn)?;
        let root = self.root.clone();
        let write = move || std::fs::write(folder(&root)?.join(file), text);
        tokio::task::spawn_blocking(write).await??;
        Ok(After::Done)
    }
}

/// The folder for trajectories, made if it is not there. A link that leads out of the project is
/// refused before anything is made behind it.
fn folder(root: &Path) -> io::Result<PathBuf> {
    let mut dir = root.to_owned();
    for part in FOLDER {
        dir.push(part);
        match std::fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        dir = dir.canonicalize()?;
        if !dir.starts_with(root) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "the trajectory is not saved: `{part}` is a link that leads out of the \
                     project, to {}; put a folder in its place",
                    dir.display()
                ),
            ));
        }
    }
    Ok(dir)
}
