//! A server that is a process of ours.

use super::lock;
use super::server::Server;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::event::LogStream;
use tenure_process::{Launch, Leftovers, Process};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long a pipe may stay open when the process itself has ended.
pub(super) const AFTERMATH: Duration = Duration::from_millis(100);
/// The longest line that is kept of what a server prints.
const MOST_LINE: usize = 16 << 10;
/// How many lines of its last words are kept, and how much of them an error shows.
const MOST_LINES: usize = 20;
const MOST_WORDS: usize = 600;

/// A process that runs, and what it says past the protocol.
pub(super) struct Child {
    process: Process,
    leftovers: Leftovers,
    words: Arc<Words>,
    /// Cancelled when the process has ended.
    ended: CancellationToken,
    server: Arc<Server>,
}

/// The last lines that a process wrote to its standard error.
#[derive(Default)]
struct Words {
    lines: Mutex<VecDeque<String>>,
    /// Cancelled when there will be no more.
    said: CancellationToken,
}

impl Child {
    /// Starts a process.
    pub(super) async fn start(
        server: &Arc<Server>,
        command: &[String],
        env: &BTreeMap<String, String>,
        dir: &Path,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let Some((program, args)) = command.split_first() else {
            return Err("it has no command".to_owned());
        };
        let mut variables = server.environment.variables();
        variables.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        let sandbox = server.environment.sandbox().cloned();
        let check = server.config.check.as_ref();
        variables.extend(check.and_then(|check| check.variable(sandbox.as_ref())));
        let launch = Launch { program: OsStr::new(program), args: &args, dir, variables, sandbox };
        let mut process = Process::spawn(launch, &server.tracker).await.map_err(|error| {
            let shown = dir.display();
            format!("`{program}` could not be started in `{shown}`: {error}")
        })?;
        let pipes = (process.stdin(), process.stdout(), process.stderr());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(format!("`{program}` has no pipes"));
        };
        let words = Arc::new(Words::default());
        let ended = CancellationToken::new();
        let listening = listen(server.clone(), words.clone(), ended.clone(), stderr);
        drop(server.tracker.spawn(listening));
        let leftovers = process.leftovers();
        let child = Self { process, leftovers, words, ended, server: server.clone() };
        Ok((child, stdout, stdin))
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits for the end of the process, and says how it ended. Can be called again.
    pub(super) async fn end(&mut self) -> String {
        match self.process.wait().await {
            Ok(ended) => format!("its process ended with {ended}"),
            Err(error) => format!("its process is lost: {error}"),
        }
    }

    /// How it ended, if it has or soon will.
    pub(super) async fn end_soon(&mut self) -> Option<String> {
        timeout(AFTERMATH, self.end()).await.ok()
    }

    /// The end of what it wrote to its standard error, for an error message.
    pub(super) async fn last_words(&self) -> String {
        let _ = timeout(AFTERMATH, self.words.said.cancelled()).await;
        let lines = lock(&self.words.lines);
        let text = lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let from = text.ceil_char_boundary(text.len().saturating_sub(MOST_WORDS));
        match text[from..].trim() {
            "" => String::new(),
            words => match self.server.environment.hint(words) {
                Some(hint) => format!("; its last words: {words}; {hint}"),
                None => format!("; its last words: {words}"),
            },
        }
    }

    /// Waits for the end of a process whose input is closed. It is asked to end when two thirds of
    /// the time are over, and killed at the end of it, with everything that it started.
    pub(super) async fn stop(mut self, since: Instant, limit: Duration) {
        let mut is_over = timeout_at(since + limit * 2 / 3, self.process.wait()).await.is_ok();
        if !is_over {
            self.process.terminate();
            is_over = timeout_at(since + limit, self.process.wait()).await.is_ok();
        }
        if !is_over {
            self.server.say("it did not end by itself and was killed");
        }
        self.process.kill();
        if !is_over {
            let _ = timeout(AFTERMATH, self.process.wait()).await;
        }
        self.sweep().await;
        self.ended.cancel();
    }

    /// Kills what the process left behind, and waits until all that was killed is gone.
    async fn sweep(&mut self) {
        let (leftovers, victims) = (self.leftovers.clone(), self.process.victims());
        let ending = self.server.tracker.spawn_blocking(move || leftovers.end(victims));
        if let Ok(false) = ending.await {
            self.server.say("something that it started was killed and is not gone yet");
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

/// Reads what a process writes to its standard error, until it and its children are done.
async fn listen(
    server: Arc<Server>,
    words: Arc<Words>,
    ended: CancellationToken,
    mut stderr: ChildStderr,
) {
    let _said = words.said.clone().drop_guard();
    let mut buffer = vec![0; 8 << 10];
    let mut line = Vec::new();
    let keep = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        tracing::debug!(target: "tenure::mcp", server = &**server.name(), "{text}");
        server.log(LogStream::Stderr, &text);
        let mut lines = lock(&words.lines);
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    };
    loop {
        let read = tokio::select! {
            biased;
            read = stderr.read(&mut buffer) => read,
            () = ended.cancelled() => {
                match timeout(AFTERMATH, stderr.read(&mut buffer)).await {
                    Ok(read) => read,
                    Err(_) => break,
                }
            }
        };
        let Ok(count @ 1..) = read else { break };
        for byte in &buffer[..count] {
            if *byte == b'\n' {
                keep(&mut line);
            } else if line.len() < MOST_LINE {
                line.push(*byte);
            }
        }
    }
    if !line.is_empty() {
        keep(&mut line);
    }
}
