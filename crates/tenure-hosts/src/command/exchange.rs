//! One run of a command: what it is told, and what it says.

use crate::Environment;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tenure_core::context::Cx;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, HookError};
use tenure_process::{Command, Ended, Process, StartCheck};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio_util::task::TaskTracker;

/// The most that a command may say.
const MOST_OUTPUT: usize = 1024 * 1024;
/// The most of its standard error that is kept.
const MOST_LOG: usize = 256 * 1024;
/// The most characters of its last line that an error shows.
const MOST_WORDS: usize = 300;
/// How long a pipe may stay open when the command itself has ended.
const AFTERMATH: Duration = Duration::from_millis(100);

/// What is run.
pub(super) struct Program {
    pub(super) argv: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) environment: Environment,
    pub(super) tracker: TaskTracker,
    pub(super) check: Option<StartCheck>,
}

impl Program {
    pub(super) fn new(argv: Vec<String>, dir: PathBuf, environment: Environment) -> Self {
        Self { argv, dir, environment, tracker: TaskTracker::new(), check: None }
    }

    /// Runs the command once and returns what it wrote to its standard output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the command's process group at once.
    pub(super) async fn exchange(
        &self,
        cx: &Cx<'_>,
        hook: &str,
        call: &[u8],
    ) -> Result<Vec<u8>, HookError> {
        let mut process = self.start(cx, hook).await?;
        let (mut said, mut log) = (Vec::new(), Log::new(cx, hook));
        let ended = {
            let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
            let mut pipes = pin!(async {
                let (tell, log) = (tell(stdin, call), log.listen(stderr));
                tokio::try_join!(tell, listen(stdout, &mut said), log).map(|_| ())
            });
            let mut is_open = true;
            let ended = loop {
                tokio::select! {
                    biased;
                    closed = &mut pipes, if is_open => {
                        closed?;
                        is_open = false;
                    }
                    ended = process.wait() => break ended,
                }
            };
            // Something that it started may hold the pipes for ever.
            if is_open && let Ok(closed) = tokio::time::timeout(AFTERMATH, pipes).await {
                closed?;
            }
            ended
        };
        let last_words = log.end();
        drop(process);
        let words = || match &*last_words {
            "" => String::new(),
            words => match self.environment.hint(words) {
                Some(hint) => format!("; its last words: {words}; {hint}"),
                None => format!("; its last words: {words}"),
            },
        };
        match ended {
            Ok(Ended::Code(0)) => Ok(said),
            Ok(ended @ Ended::Code(_)) => Err(HookError::of_kind(
                FaultKind::Exited,
                format!("`{}` ended with {ended}{}", self.shown(), words()),
            )),
            Ok(ended @ Ended::Signal(_)) => Err(HookError::of_kind(
                FaultKind::Panicked,
                format!("`{}` was ended by {ended}{}", self.shown(), words()),
            )),
            Err(error) => Err(HookError::new(format!("its end could not be seen: {error}"))),
        }
    }

    async fn start(&self, cx: &Cx<'_>, hook: &str) -> Result<Process, HookError> {
        let not_started = |why| HookError::of_kind(FaultKind::NotStarted, why);
        let mut command = Command::new(self.argv.clone(), &self.dir, &self.environment)
            .checked_by(self.check.clone());
        for (key, value) in [
            ("TENURE_POINT", cx.hook_type().as_str()),
            ("TENURE_AGENT", cx.agent_name()),
            ("TENURE_HOOK", hook),
        ] {
            command = command.variable(key, value);
        }
        command.start(&self.tracker).await.map_err(not_started)
    }

    fn shown(&self) -> &str {
        let name = self.argv.first().map_or("", String::as_str);
        Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or(name)
    }
}

/// Tells the command what it is called for. One that does not want to know is free not to.
async fn tell(stdin: Option<ChildStdin>, call: &[u8]) -> Result<(), HookError> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(call).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

/// Takes what the command says.
async fn listen(
    stdout: Option<impl AsyncRead + Unpin>,
    said: &mut Vec<u8>,
) -> Result<(), HookError> {
    if let Some(stdout) = stdout {
        let _ = stdout.take(MOST_OUTPUT as u64 + 1).read_to_end(said).await;
    }
    if said.len() > MOST_OUTPUT {
        return Err(HookError::of_kind(
            FaultKind::BadReply,
            format!("it wrote more than {MOST_OUTPUT} bytes to its standard output"),
        ));
    }
    Ok(())
}

/// What a command writes to its standard error, line by line.
struct Log<'a> {
    cx: &'a Cx<'a>,
    hook: &'a str,
    /// The line that is being written.
    line: Vec<u8>,
    /// The last one that was, if there was anything in it.
    last: String,
    kept: usize,
}

impl<'a> Log<'a> {
    fn new(cx: &'a Cx<'a>, hook: &'a str) -> Self {
        Self { cx, hook, line: Vec::new(), last: String::new(), kept: 0 }
    }

    async fn listen(&mut self, stderr: Option<impl AsyncRead + Unpin>) -> Result<(), HookError> {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let mut piece = vec![0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut piece).await {
            self.take(&piece[..count]);
        }
        Ok(())
    }

    /// Takes a piece; what is beyond the cap is read and dropped, so that the command can go on.
    fn take(&mut self, piece: &[u8]) {
        if self.kept >= MOST_LOG {
            return;
        }
        let piece = &piece[..piece.len().min(MOST_LOG - self.kept)];
        self.kept += piece.len();
        let mut pieces = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = pieces.next() {
            self.line.extend_from_slice(part);
            if pieces.peek().is_some() {
                self.say();
            }
        }
        if self.kept >= MOST_LOG {
            if !self.line.is_empty() {
                self.say();
            }
            let note = format!("it wrote more than {MOST_LOG} bytes; the rest is not kept");
            self.cx.log(self.hook, LogStream::Host, &note);
        }
    }

    fn say(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end_matches('\r');
        self.cx.log(self.hook, LogStream::Stderr, line);
        if !line.trim().is_empty() {
            self.last = line.trim().chars().take(MOST_WORDS).collect();
        }
        self.line.clear();
    }

    /// Says what was not yet a whole line, and returns the last words.
    fn end(mut self) -> String {
        if !self.line.is_empty() {
            self.say();
        }
        self.last
    }
}
