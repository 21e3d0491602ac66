//! What a Python host needs to know.

use super::{Interpreter, PythonModules};
use crate::Environment;
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
}

/// The limits of what comes before a function: none of it counts against the limit of its hook or tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLimits {
    /// The limit of loading a module, with all that it imports. A worker that exceeds it is killed.
    pub load: Duration,
    /// The limit of waiting for the thread of the instance, and of starting the instance again in another
    /// worker.
    pub queue: Duration,
}

impl Default for PythonLimits {
    /// A minute for each.
    fn default() -> Self {
        Self { load: Duration::from_secs(60), queue: Duration::from_secs(60) }
    }
}
