//! A process of its own for a reader: it may crash, and its time and memory are measured.

use crate::cost::{Cost, PEAK, cpu_time, memory};
use anyhow::{Context, Result, bail};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The address space, which counts what is reserved too: a thread with a large stack is.
const ADDRESSES: u64 = 2 << 30;
/// The time after which a reader that has not answered never will.
const PATIENCE: Duration = Duration::from_secs(20);

/// The end of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It was read, or refused, at this cost.
    Fine(Cost),
    /// It took too long, or too much.
    Costly(Cost),
    /// The reader's process ended; this is what it said last.
    Crashed(String),
    /// The reader did not come back.
    Hung,
}

/// A reader in a process of its own, which is started again when it has ended.
#[derive(Debug)]
pub struct Worker {
    program: PathBuf,
    target: String,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    answers: Receiver<Cost>,
}

impl Worker {
    /// A worker for this target; `program` is the program of this crate.
    pub fn new(program: &Path, target: &str) -> Self {
        Self { program: program.to_owned(), target: target.to_owned(), running: None }
    }

    /// Gives the reader one input.
    pub fn run(&mut self, input: &[u8]) -> Result<Verdict> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start()?,
        };
        let mut stdin = running.child.stdin.as_ref().context("it has an input")?;
        let length = u32::try_from(input.len())?.to_le_bytes();
        // If it cannot be written the reader has ended, which is told below.
        let _ = stdin
            .write_all(&length)
            .and_then(|()| stdin.write_all(input))
            .and_then(|()| stdin.flush());
        match running.answers.recv_timeout(PATIENCE) {
            Ok(cost) => {
                self.running = Some(running);
                let is_fine = cost.is_within_limits();
                // What a process has had it keeps, so the next one begins anew.
                if let Some(spent) = self.running.take_if(|_| !is_fine) {
                    spent.end();
                }
                Ok(if is_fine { Verdict::Fine(cost) } else { Verdict::Costly(cost) })
            }
            Err(RecvTimeoutError::Disconnected) => Ok(Verdict::Crashed(running.last_words())),
            Err(RecvTimeoutError::Timeout) => {
                running.end();
                Ok(Verdict::Hung)
            }
        }
    }

    fn start(&self) -> Result<Running> {
        let mut child = Command::new(&self.program)
            .args(["work", &self.target])
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("the reader cannot be started")?;
        let mut stdout = child.stdout.take().context("it has an output")?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut answer = [0; 16];
            while stdout.read_exact(&mut answer).is_ok() {
                let number = |at: usize| {
                    u64::from_le_bytes(answer[at..at + 8].try_into().unwrap_or_default())
                };
                let cost = Cost { cpu: Duration::from_micros(number(0)), memory: number(8) };
                if sender.send(cost).is_err() {
                    return;
                }
            }
        });
        Ok(Running { child, answers })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.end();
        }
    }
}

impl Running {
    fn end(mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn last_words(mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(4000).read_to_string(&mut said);
        }
        let ended = self.child.wait().map(|status| status.to_string()).unwrap_or_default();
        format!("{ended}: {}", said.trim())
    }
}

/// Reads inputs from standard input, gives each to the reader, and answers with its cost, until there are no more.
pub fn serve(target: &str) -> Result<()> {
    let Some(target) = crate::target(target) else { bail!("there is no reader `{target}`") };
    let limit = Rlimit { current: Some(ADDRESSES), maximum: Some(ADDRESSES) };
    setrlimit(Resource::As, limit).context("the memory cannot be limited")?;
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut length = [0; 4];
    while stdin.read_exact(&mut length).is_ok() {
        let mut input = vec![0; u32::from_le_bytes(length) as usize];
        stdin.read_exact(&mut input)?;
        let began = cpu_time();
        (target.run)(&input);
        let took = cpu_time().saturating_sub(began);
        stdout.write_all(&u64::try_from(took.as_micros())?.to_le_bytes())?;
        stdout.write_all(&memory(PEAK).to_le_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}
