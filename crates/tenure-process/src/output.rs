//! The output of a short-lived process, for callers without a runtime.

use crate::command::MOST;
use crate::{Environment, Heard, Launch, Process};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// Runs a program with this environment, under its rules, and waits for its end. When the patience is over, and also
/// when it has ended, what it started is killed.
///
/// It may be called anywhere: a thread of its own waits.
pub fn output_within(
    program: &Path,
    args: &[&str],
    dir: &Path,
    environment: &Environment,
    patience: Duration,
) -> Result<Heard, String> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let launch = Launch {
        program: program.as_os_str(),
        args: &args,
        dir,
        variables: environment.variables(),
        sandbox: environment.sandbox().cloned(),
    };
    let wait = || -> Result<Heard, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let waited = async { tokio::time::timeout(patience, output(launch)).await };
        let late = |_| format!("it did not answer within {patience:?}");
        runtime.block_on(waited).unwrap_or_else(|elapsed| Err(late(elapsed)))
    };
    let waited = std::thread::scope(|scope| scope.spawn(wait).join());
    waited.unwrap_or_else(|_| Err("it could not be waited for".to_owned()))
}

async fn output(launch: Launch<'_>) -> Result<Heard, String> {
    let process = Process::spawn(launch, &TaskTracker::new()).map_err(|error| error.to_string())?;
    Heard::of(process, &[], MOST).await
}
