//! The tool itself: one command, run to its end.

use super::Shell;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Effect, Tool, ToolError, ToolOutput, ToolSpec};
use tenure_process::Command;
use tokio_util::task::TaskTracker;

/// Where a command finds the key of its call.
const KEY: &str = "TENURE_IDEMPOTENCY_KEY";

pub(super) struct ShellTool {
    pub(super) shell: Arc<Shell>,
    pub(super) tracker: TaskTracker,
}

/// The command that a call is about.
pub(super) fn command_of(arguments: &Value) -> Option<&str> {
    arguments["command"].as_str().filter(|it| !it.trim().is_empty())
}

#[async_trait]
impl Tool for ShellTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.shell.name.as_str(), self.shell.description.as_str())
            .parameters(json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command, as a shell takes it" },
                },
                "required": ["command"],
                "additionalProperties": false,
            }))
            .effect(Effect::AtMostOnce)
            .limit(self.shell.limit)
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let Some(command) = command_of(arguments) else {
            return Err(ToolError::new("argument `command` must be a shell command"));
        };
        let shell = &*self.shell;
        let mut argv = shell.program.clone();
        argv.push(command.to_owned());
        let command = Command::new(argv, &shell.dir, &shell.environment.clone().for_model())
            .variable(KEY, &cx.idempotency_key())
            .keep(shell.most);
        let mut heard = command.run(&self.tracker).await.map_err(ToolError::new)?;
        if !shell.redact.is_empty() {
            heard.out.whole_lines();
            heard.err.whole_lines();
        }
        Ok(match heard.result() {
            Ok(text) => ToolOutput::text(redacted(shell, text)),
            Err(text) => ToolOutput::error(redacted(shell, text)),
        })
    }
}

/// The text without what must not be read.
pub(super) fn redacted(shell: &Shell, mut text: String) -> String {
    for regex in &shell.redact {
        let mut clean = String::with_capacity(text.len());
        let mut from = 0;
        for found in regex.find_iter(&text).filter(|found| !found.is_empty()) {
            clean.push_str(&text[from..found.start()]);
            clean.push_str("[redacted]");
            from = found.end();
        }
        clean.push_str(&text[from..]);
        text = clean;
    }
    text
}
