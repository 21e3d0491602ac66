//! What is known of a Python function before it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A Python file as it was read and checked. The source that was checked is the source that runs:
/// a worker compiles this text and never opens the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PythonFile {
    path: PathBuf,
    source: Arc<str>,
}

impl PythonFile {
    /// A file. `path` is resolved: absolute, with its links followed.
    pub fn new(path: impl Into<PathBuf>, source: impl Into<Arc<str>>) -> Self {
        Self { path: path.into(), source: source.into() }
    }

    /// Where it is. Tracebacks and `__file__` show this, and a worker loads each path once.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text.
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }
}

/// How a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// `def`: it keeps the thread of its instance until it returns.
    Sync,
    /// `async def`: it runs on the event loop of its instance's thread.
    Async,
}

/// A function of a Python file, with what parsing its source found out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "HookFunction")]
pub struct PythonFunction {
    /// The file that defines it.
    pub file: Arc<PythonFile>,
    /// Its name at the top level of the file.
    pub name: Arc<str>,
    /// Whether it is `def` or `async def`.
    pub style: Style,
    /// The names of its parameters.
    pub takes: Vec<Arc<str>>,
    /// Whether it calls `ask`, `step` or `next`, and so may wait for an answer. A plain function that does has a
    /// thread of its own, so that what the instance calls in between can run.
    pub waits: bool,
}
