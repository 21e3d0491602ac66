//! What a Python host needs to know.

use super::{Interpreter, PythonModules};
use crate::{Environment, StartCheck};
use std::path::PathBuf;
use std::time::Duration;

/// What a Python host needs to know to start a worker.
#[derive(Clone, Debug)]
pub struct PythonConfig {
    /// The interpreter.
    pub interpreter: Interpreter,
    /// The environment of its workers.
    pub environment: Environment,
    /// The folder that its workers start in: the project's.
    pub dir: PathBuf,
    /// The limits of what is no function's own time.
    pub limits: PythonLimits,
    /// The files beneath `dir` that functions may import.
    pub modules: PythonModules,
    /// The check before each start of a worker: the interpreter and what it runs at its start are those that were
    /// checked. A worker that fails it is not started, and the calls that need it fail as `not_started`.
    pub start_check: Option<StartCheck>,
}

/// The limits of what comes before a function: none of it counts against the limit of its hook or tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLimits {
    /// The limit of starting a worker, from the process to its first word: 10 seconds. One that exceeds it is
    /// killed.
    pub start: Duration,
    /// The limit of loading a module, with all that it imports: a minute. A worker that exceeds it is killed.
    pub load: Duration,
    /// The limit of waiting for the thread of the instance, and of starting the instance again in another
    /// worker: a minute.
    pub queue: Duration,
}

impl Default for PythonLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(10),
            load: Duration::from_secs(60),
            queue: Duration::from_secs(60),
        }
    }
}

/// Writes a limit that was exceeded, with the setting that holds it.
pub(super) fn limit_text(setting: &str, limit: Duration) -> String {
    format!("{limit:?} (`[python] {setting}` of tenure.toml)")
}
