//! A Python function as a lifecycle tool of a workflow.

use super::PythonHost;
use super::call::{Invocation, Rest, Said, Told};
use super::host::Entry;
use super::seats::Chair;
use crate::LifecycleCall;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tenure_core::hook::HookError;

/// A Python function as a lifecycle tool. See [`PythonHost::lifecycle_tool`].
///
/// The function takes nothing, `context_variables`, `ctx`, or both, by name. What it returns is its
/// result and decides nothing: as JSON, in the form that a tool's result has; what has none there is
/// told by its `repr`. What it changes in
/// `context_variables.data` is written when it returns, all of it or nothing. What it raises is an
/// error with a [traceback](super::PythonError).
pub struct PythonLifecycleTool {
    host: PythonHost,
    entry: Arc<Entry>,
    name: Arc<str>,
}

impl PythonLifecycleTool {
    pub(super) fn new(host: PythonHost, entry: Arc<Entry>) -> Self {
        let name = entry.function.name.clone();
        Self { host, entry, name }
    }

    /// The name that the log knows it by. By default it is the function's.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Calls the function and gives what it returned.
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped because the turn was cancelled is cancelled in the worker; if it is
    /// dropped for any other reason, the worker is killed.
    pub async fn call(&self, call: &LifecycleCall<'_>) -> Result<Value, HookError> {
        let invocation = Invocation {
            host: &self.host,
            entry: &self.entry,
            site: call.site,
            hook: &self.name,
            rest: Rest::Nothing,
            chair: Chair::default(),
        };
        match invocation.run(Told::Lifecycle(&call.at)).await? {
            Said::Decision(value) => Ok(value.unwrap_or_default()),
            Said::Text(text) => Ok(text.into()),
            Said::Given(_) => Ok(Value::Null),
        }
    }
}

impl fmt::Debug for PythonLifecycleTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonLifecycleTool")
            .field("name", &self.name)
            .field("file", &self.entry.function.file.path())
            .finish_non_exhaustive()
    }
}
