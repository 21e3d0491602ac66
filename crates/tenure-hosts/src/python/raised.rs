//! What a Python function raised.

use std::fmt;

/// What a Python function raised, as `Type: message`, with where it did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PythonError {
    /// `Type: message`.
    pub message: String,
    /// The traceback, with those of the errors that led to it; the worker's own lines are left out.
    pub traceback: Option<String>,
}

impl fmt::Display for PythonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PythonError {}
