//! The start of a worker.

use super::frame::{self, Heard};
use super::life::{End, Life, listen, reap};
use super::source::{BOOTSTRAP, PACKAGE, STAND_INS, WORKER};
use super::worker::{FAREWELL, Worker};
use super::{Interpreter, PythonConfig};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use tenure_process::{Launch, Process};
use tokio_util::task::TaskTracker;

/// How long a worker may take until it says that it is ready.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Starts a worker and waits until it is ready. The error says why it is not.
pub(super) async fn start(config: &PythonConfig, tracker: &TaskTracker) -> Result<Worker, String> {
    let python = config.interpreter.path();
    let args = ["-I", "-u", "-c", BOOTSTRAP].map(OsStr::new);
    let launch = Launch {
        program: python.as_os_str(),
        args: &args,
        dir: &config.dir,
        variables: config.environment.variables(),
    };
    let mut process = Process::spawn(launch, tracker)
        .map_err(|error| not_spawned(&config.interpreter, &config.dir, &error))?;
    let pipes = (process.stdin(), process.stdout(), process.stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err("the pipes of the Python process are missing".to_owned());
    };
    let pid = process.pid();
    let life = Life::new(process);
    tracker.spawn(reap(life.clone(), tracker.clone()));
    let listener = tracker.spawn(listen(life.clone(), stderr));
    let worker = Worker::new(life.clone(), pid, (stdin, stdout));
    match tokio::time::timeout(HANDSHAKE, is_ready(&worker)).await {
        Ok(true) => Ok(worker),
        Ok(false) => {
            worker.kill("it did not say that it was ready");
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
            worker.kill("it was not ready in time");
            Err(format!("{} was not ready within {HANDSHAKE:?}", python.display()))
        }
    }
}

/// Sends the source, and waits for the first frame.
async fn is_ready(worker: &Worker) -> bool {
    let mut boot = Vec::with_capacity(WORKER.len() + (32 << 10));
    let start = frame::open(&mut boot);
    boot.extend_from_slice(WORKER.as_bytes());
    frame::seal(&mut boot, start);
    let package: Vec<_> = PACKAGE.iter().chain(STAND_INS).collect();
    frame::push(&mut boot, &json!(package));
    // What does not read it has ended, and says so below.
    let _ = worker.send(&boot).await;
    matches!(worker.first().await, Some(Heard::Said(first)) if first.ready.is_some())
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
