//! The start of a worker.

use super::config::limit_text;
use super::control::{Control, hear};
use super::frame::{self, Heard, Inbox};
use super::life::{AFTERMATH, End, Life, listen, reap};
use super::source::{BOOTSTRAP, PACKAGE, STAND_INS, WORKER};
use super::worker::{FAREWELL, Worker};
use super::{Interpreter, PythonConfig};
use serde_json::json;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::Path;
use std::sync::Arc;
use tenure_process::{Launch, Process};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio_util::task::TaskTracker;

/// Starts a worker and waits until it is ready. The error says why it is not.
pub(super) async fn start(config: &PythonConfig, tracker: &TaskTracker) -> Result<Worker, String> {
    if let Some(check) = &config.start_check {
        check.run().await.map_err(|why| format!("Python is not started: {why}"))?;
    }
    let python = config.interpreter.path();
    // It writes no bytecode: what it leaves behind would be a change that the next check finds.
    let args = ["-I", "-B", "-u", "-c", BOOTSTRAP].map(OsStr::new);
    let launch = Launch {
        program: python.as_os_str(),
        args: &args,
        dir: &config.dir,
        variables: config.environment.variables(),
        sandbox: config.environment.sandbox().cloned(),
    };
    let (ours, theirs) = sockets().map_err(|error| format!("no socket could be made: {error}"))?;
    let limit = config.limits.start;
    let spawned = tokio::time::timeout(limit, Process::spawn_with(launch, Some(theirs), tracker));
    let spawned = spawned.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let mut process =
        spawned.map_err(|error| not_spawned(&config.interpreter, &config.dir, &error))?;
    // What it writes to its standard output goes to the other pipe.
    drop(process.stdout());
    let Some(stderr) = process.stderr() else {
        return Err("the pipes of the Python process are missing".to_owned());
    };
    let pid = process.pid();
    let life = Life::new(process);
    tracker.spawn(reap(life.clone(), tracker.clone()));
    let listener = tracker.spawn(listen(life.clone(), stderr));
    let (control, mut inbox) = Control::new(ours, &life, tracker);
    match tokio::time::timeout(limit, is_ready(config, &control, &mut inbox, &life)).await {
        Ok(true) => {
            let control = Arc::new(control);
            tracker.spawn(hear(inbox, life.clone(), control.clone(), config.modules.clone()));
            let worker = Worker::new(life, pid, control);
            worker.prepare_lane();
            Ok(worker)
        }
        Ok(false) => {
            kill(&life, "it did not say that it was ready");
            let _ = tokio::time::timeout(FAREWELL, life.gone()).await;
            let _ = tokio::time::timeout(FAREWELL, listener).await;
            let ended = match life.end() {
                Some(End::Exited(ended)) => format!(" ({ended})"),
                _ => String::new(),
            };
            let words = life.last_words();
            let words = if words.is_empty() { "it said nothing".to_owned() } else { words };
            Err(format!("{} ended before it was ready{ended}: {words}", python.display()))
        }
        Err(_) => {
            kill(&life, "it was not ready in time");
            let limit = limit_text("start", limit);
            Err(format!("{} was not ready within {limit}", python.display()))
        }
    }
}

/// Returns our end of a socket, which does not block, and that of the worker, which does.
fn sockets() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

/// Returns our ends of two pipes, which do not block, and those of the worker, which do: of each pair the one
/// to read from comes first.
pub(super) fn pipes() -> io::Result<((Receiver, Sender), [OwnedFd; 2])> {
    let (from, they_write) = io::pipe()?;
    let (they_read, to) = io::pipe()?;
    let ours = (Receiver::from_owned_fd(from.into())?, Sender::from_owned_fd(to.into())?);
    Ok((ours, [they_read.into(), they_write.into()]))
}

fn kill(life: &Life, why: &str) {
    life.kill(End::Killed { why: why.into(), by: None });
}

/// Sends the source, and waits for the first frame.
async fn is_ready(
    config: &PythonConfig,
    control: &Control,
    inbox: &mut Inbox<OwnedReadHalf>,
    life: &Life,
) -> bool {
    let mut boot = Vec::with_capacity(WORKER.len() + (32 << 10));
    let start = frame::open(&mut boot);
    boot.extend_from_slice(WORKER.as_bytes());
    frame::seal(&mut boot, start);
    let package: Vec<_> = PACKAGE.iter().chain(STAND_INS).collect();
    let project = config.modules.told(&config.dir);
    frame::push(&mut boot, &json!({ "package": package, "project": project }));
    // A process that does not read it has ended, and says so below.
    let _ = control.send(boot);
    let first = inbox.next().await;
    if !matches!(first, Ok(Some(_))) {
        // It has ended, or soon will; how is worth knowing.
        let _ = tokio::time::timeout(AFTERMATH, life.gone()).await;
    }
    matches!(first, Ok(Some(Heard::Said(first))) if first.ready.is_some())
}

fn not_spawned(interpreter: &Interpreter, dir: &Path, error: &std::io::Error) -> String {
    if !dir.is_dir() {
        return format!("the folder {} that Python would start in is not there", dir.display());
    }
    format!(
        "Python could not be started as {}: {error}; install it, or make a .venv in the project",
        interpreter.path().display()
    )
}
