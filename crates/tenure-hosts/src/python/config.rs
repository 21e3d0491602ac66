//! What a Python host needs to know.

use super::Interpreter;
use crate::Environment;
use std::path::PathBuf;

/// What a Python host needs to know to start a worker.
#[derive(Clone, Debug)]
pub struct PythonConfig {
    /// The interpreter.
    pub interpreter: Interpreter,
    /// The environment of its workers.
    pub environment: Environment,
    /// The folder that its workers start in: the project's.
    pub dir: PathBuf,
}
