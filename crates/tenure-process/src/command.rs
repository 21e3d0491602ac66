//! A command that is run to its end.

use crate::{Ended, Environment, Kept, Launch, Process, StartCheck, program};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_sandbox::Confinement;
use tokio::io::AsyncWriteExt;
use tokio_util::task::TaskTracker;

/// The most of each stream that is kept unless said otherwise.
pub(crate) const MOST: usize = 64 * 1024;
/// How long a pipe may stay open when the command itself has ended.
const AFTERMATH: Duration = Duration::from_millis(100);
/// How often and how long a file is waited for that somebody is still writing.
const BUSY: (u32, Duration) = (40, Duration::from_millis(5));

/// A command: a program with its arguments, where it runs, and what it sees and is told.
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    argv: Vec<String>,
    dir: PathBuf,
    variables: Vec<(OsString, OsString)>,
    told: Vec<u8>,
    most: usize,
    check: Option<StartCheck>,
    sandbox: Option<Confinement>,
}

/// What a command wrote, and how it ended.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Its standard output.
    pub out: Kept,
    /// Its standard error.
    pub err: Kept,
    /// How it ended.
    pub ended: Ended,
}

impl Heard {
    /// All that it wrote: its standard output, then its standard error on a line of its own.
    pub fn text(&self) -> String {
        let mut text = self.out.text();
        if !self.err.is_empty() {
            end_line(&mut text);
            text.push_str(&self.err.text());
        }
        text
    }

    /// All that it wrote; the error of a command that failed says in its last line how.
    pub fn result(&self) -> Result<String, String> {
        let mut text = self.text();
        if self.ended.is_ok() {
            return Ok(text);
        }
        end_line(&mut text);
        text.push_str(&format!("the command ended with {}", self.ended));
        Err(text)
    }
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

impl Command {
    /// A program and its arguments, in a folder. The program is a path relative to the folder if it
    /// has a `/`, else it is looked for on the `PATH` that it sees itself; a relative folder there
    /// counts for nothing.
    pub fn new(argv: Vec<String>, dir: impl Into<PathBuf>, environment: &Environment) -> Self {
        let variables = environment.variables();
        let sandbox = environment.sandbox().cloned();
        Self {
            argv,
            dir: dir.into(),
            variables,
            told: Vec::new(),
            most: MOST,
            check: None,
            sandbox,
        }
    }

    /// What `sh -c` makes of a text.
    pub fn shell(
        text: impl Into<String>,
        dir: impl Into<PathBuf>,
        environment: &Environment,
    ) -> Self {
        Self::new(vec!["sh".to_owned(), "-c".to_owned(), text.into()], dir, environment)
    }

    /// Sets a variable. A NUL, which no variable can hold, is left out.
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.replace('\0', "").into()));
        self
    }

    /// What it finds on its standard input. Nothing, if this is not called.
    pub fn told(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.told = bytes.into();
        self
    }

    /// The most bytes of each of its two streams that are kept.
    pub fn keep(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Asks `check`, if there is one, right before it is started.
    pub fn checked_by(mut self, check: Option<StartCheck>) -> Self {
        self.check = check;
        self
    }

    /// The program's name, for errors.
    pub fn shown(&self) -> &str {
        let name = self.argv.first().map_or("", String::as_str);
        Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or(name)
    }

    /// Starts it, for whoever talks to it. A file that somebody is still writing is waited for, for
    /// a moment. The error says what to do.
    pub async fn start(&self, tracker: &TaskTracker) -> Result<Process, String> {
        let name = self.argv.first().map_or("", String::as_str);
        let path = program::resolve(name, &self.dir, &self.variables)?;
        let args: Vec<&OsStr> = self.argv.iter().skip(1).map(OsStr::new).collect();
        let mut tries = BUSY.0;
        loop {
            if let Some(check) = &self.check {
                check.run().await?;
            }
            let launch = Launch {
                program: path.as_os_str(),
                args: &args,
                dir: &self.dir,
                variables: self.variables.clone(),
                sandbox: self.sandbox.clone(),
            };
            match Process::spawn(launch, tracker) {
                Ok(process) => return Ok(process),
                Err(error) if program::is_busy(&error) && tries > 0 => {
                    tries -= 1;
                    tokio::time::sleep(BUSY.1).await;
                }
                Err(error) => return Err(program::not_started(&path, &error)),
            }
        }
    }

    /// Runs it to its end. When it has ended, what it left behind in its group is killed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the command's process group and everything that it started, at
    /// once.
    pub async fn run(&self, tracker: &TaskTracker) -> Result<Heard, String> {
        let process = self.start(tracker).await?;
        Heard::of(process, &self.told, self.most).await
    }
}

impl Heard {
    /// Tells a process something, waits for its end and kills what it left behind; keeps `most` of each stream.
    pub(crate) async fn of(mut process: Process, told: &[u8], most: usize) -> Result<Self, String> {
        let (mut out, mut err) = (Kept::at_most(most), Kept::at_most(most));
        let ended = {
            let (stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
            let tell = async {
                // One that does not want to know is free not to.
                if let Some(mut stdin) = stdin {
                    let _ = stdin.write_all(told).await;
                    let _ = stdin.shutdown().await;
                }
            };
            let mut pipes = std::pin::pin!(async {
                tokio::join!(tell, out.listen(stdout), err.listen(stderr));
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
        let ended = ended.map_err(|error| format!("its end could not be seen: {error}"))?;
        Ok(Self { out, err, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn shell(text: &str) -> Command {
        Command::shell(text, ".", &Environment::new())
    }

    #[tokio::test]
    async fn what_it_wrote_and_how_it_ended_are_told() {
        let tracker = TaskTracker::new();
        let heard = shell("echo out; echo err >&2; exit 3").run(&tracker).await.unwrap();
        assert_eq!(heard.ended, Ended::Code(3));
        let expected = "out\nerr\nthe command ended with exit code 3";
        assert_eq!(heard.result().unwrap_err(), expected);
    }

    #[tokio::test]
    async fn more_than_is_kept_is_read_and_counted() {
        let tracker = TaskTracker::new();
        let heard = shell("head -c 300000 /dev/zero").keep(10).run(&tracker).await.unwrap();
        assert_eq!(heard.out.bytes().len(), 10);
        assert!(heard.out.text().ends_with("[299990 more bytes were left out]"));
    }

    #[tokio::test]
    async fn one_that_is_told_more_than_it_reads_still_ends() {
        let tracker = TaskTracker::new();
        let heard = shell("exit 0").told(vec![b'x'; 1 << 20]).run(&tracker).await.unwrap();
        assert!(heard.ended.is_ok());
    }

    #[tokio::test]
    async fn whoever_stops_waiting_kills_it_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("alive");
        let text = format!("(sleep 1; touch {}) & sleep 30", file.display());
        let (tracker, since) = (TaskTracker::new(), Instant::now());
        let command = shell(&text);
        let cut = tokio::time::timeout(Duration::from_millis(100), command.run(&tracker)).await;
        assert!(cut.is_err());
        tracker.close();
        tracker.wait().await;
        assert!(since.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(1300)).await;
        assert!(!file.exists(), "its child lived on");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let argv = vec!["no-such-program".to_owned()];
        let command = Command::new(argv, ".", &Environment::new());
        let why = command.run(&TaskTracker::new()).await.unwrap_err();
        assert!(why.contains("there is no program `no-such-program` on the PATH"), "{why}");
    }
}
