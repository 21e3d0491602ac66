//! A tool that runs shell commands.

use crate::Environment;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tenure_process::Command;
use tokio_util::task::TaskTracker;

/// How long a command may take unless said otherwise.
const LIMIT: Duration = Duration::from_secs(120);

/// Where a command finds the key of its call.
const KEY: &str = "TENURE_IDEMPOTENCY_KEY";

/// The tool `execute`: runs a command by `sh -c`, in a folder of its own choosing, and gives back
/// what it wrote.
///
/// The command sees the environment's allow-list, the [key](ToolCx::idempotency_key) of the call as
/// `TENURE_IDEMPOTENCY_KEY`, and nothing on its standard input. Of each of its
/// two streams at most 64 KiB are given back; what is beyond is read and dropped. A command that
/// ends with another code than 0 is an error that shows what it wrote. When its time is up, or the
/// turn is cancelled, it is killed with its process group and everything that it started.
pub struct ShellTool {
    dir: PathBuf,
    environment: Environment,
    limit: Duration,
    tracker: TaskTracker,
}

impl ShellTool {
    /// Runs commands in `dir`, for at most two minutes each.
    pub fn new(dir: impl Into<PathBuf>, environment: Environment) -> Self {
        let environment = environment.for_model();
        Self { dir: dir.into(), environment, limit: LIMIT, tracker: TaskTracker::new() }
    }

    /// The most time that a command may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

#[async_trait]
impl Tool for ShellTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new("execute", "Run a shell command and read what it writes")
            .parameters(json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command, as `sh` takes it" },
                },
                "required": ["command"],
                "additionalProperties": false,
            }))
            .limit(self.limit)
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let Some(command) = arguments["command"].as_str().filter(|it| !it.trim().is_empty()) else {
            return Err(ToolError::new("argument `command` must be a shell command"));
        };
        let command = Command::shell(command, &self.dir, &self.environment)
            .variable(KEY, &cx.idempotency_key());
        let heard = command.run(&self.tracker).await.map_err(ToolError::new)?;
        Ok(heard.result().map_or_else(ToolOutput::error, ToolOutput::text))
    }
}

impl fmt::Debug for ShellTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellTool")
            .field("dir", &self.dir)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
