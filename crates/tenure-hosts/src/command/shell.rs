//! A tool that runs shell commands.

use crate::Environment;
use crate::process::{Ended, Launch, Process};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::task::TaskTracker;

/// How long a command may take unless said otherwise.
const LIMIT: Duration = Duration::from_secs(120);
/// The most of each stream that the model gets to read.
const MOST: usize = 64 * 1024;
/// How long a pipe may stay open when the command itself has ended.
const AFTERMATH: Duration = Duration::from_millis(100);

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
        Self { dir: dir.into(), environment, limit: LIMIT, tracker: TaskTracker::new() }
    }

    /// The most time that a command may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

/// What is kept of a stream.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    dropped: usize,
}

impl Kept {
    async fn listen(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut piece = [0; 8192];
        // A pipe that breaks has nothing more to say.
        while let Ok(read @ 1..) = stream.read(&mut piece).await {
            let room = MOST.saturating_sub(self.bytes.len()).min(read);
            self.bytes.extend_from_slice(&piece[..room]);
            self.dropped += read - room;
        }
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n[{} more bytes were left out]", self.dropped));
        }
        text
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
        let environment = self.environment.clone().set(KEY, cx.idempotency_key());
        let launch = Launch {
            program: OsStr::new("sh"),
            args: &[OsStr::new("-c"), OsStr::new(command)],
            dir: &self.dir,
            variables: environment.variables(),
        };
        let mut process = Process::spawn(launch, &self.tracker)
            .map_err(|error| ToolError::new(format!("`sh` could not be started: {error}")))?;
        drop(process.stdin());
        let (mut out, mut err) = (Kept::default(), Kept::default());
        let ended = {
            let (stdout, stderr) = (process.stdout(), process.stderr());
            let mut pipes = std::pin::pin!(async {
                tokio::join!(out.listen(stdout), err.listen(stderr));
            });
            let mut is_open = true;
            let ended = loop {
                tokio::select! {
                    biased;
                    () = &mut pipes, if is_open => is_open = false,
                    ended = process.wait() => break ended,
                }
            };
            if is_open {
                // Something that it started may hold the pipes for ever.
                let _ = tokio::time::timeout(AFTERMATH, pipes).await;
            }
            ended
        };
        drop(process);
        let mut text = out.text();
        if !err.bytes.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&err.text());
        }
        match ended {
            Ok(Ended::Code(0)) => Ok(ToolOutput::text(text)),
            Ok(ended) => {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                Ok(ToolOutput::error(format!("{text}the command ended with {ended}")))
            }
            Err(error) => Err(ToolError::new(format!("its end could not be seen: {error}"))),
        }
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
