//! A Python function as a tool.

use super::call::{Arguments, Invocation, Rest, Said, Told};
use super::host::Entry;
use super::seats::Chair;
use super::{PythonHost, arguments};
use crate::Environment;
use async_trait::async_trait;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tenure_core::context::ToolCx;
use tenure_core::tool::{Tool, ToolError, ToolOutput, ToolSpec};

/// A Python function as a tool. See [`PythonHost::tool`].
///
/// The arguments are given by name, as what their annotations say: a date, a dataclass, a set. If they
/// are not what the schema says, or cannot become what an annotation says, the function is not called,
/// and the model reads what is wrong with them. A parameter named `ctx` gets a context as
/// hooks have it, and one named `context_variables` the chat's variables, with the live objects that
/// others left there; what it changes in them is seen by whoever comes next. A text that it returns
/// is the result, anything else is told as JSON, in the form in which it would be given. What it raises becomes an
/// error result, `Type: message`. A call that is cancelled, or takes longer than the tool's limit,
/// ends as a hook's does.
pub struct PythonTool {
    host: PythonHost,
    entry: Arc<Entry>,
    spec: ToolSpec,
    chair: Chair,
}

impl PythonTool {
    pub(super) fn new(host: PythonHost, entry: Arc<Entry>, spec: ToolSpec) -> Self {
        Self { host, entry, spec, chair: Chair::default() }
    }

    /// Has the function run in another environment than the host's. It shares a worker with functions whose environment
    /// is the same, and no live object with any other.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.chair.environment = self.host.environment_id(environment);
        self
    }
}

#[async_trait]
impl Tool for PythonTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, cx: ToolCx<'_>, arguments: &Value) -> Result<ToolOutput, ToolError> {
        let text = &cx.batch()[cx.index()].arguments;
        let checked = arguments::checked(&self.spec.parameters, arguments, text);
        let json = checked.map_err(ToolError::new)?;
        let arguments = match &json {
            Some(json) => Arguments::Json(json),
            None => Arguments::Value(arguments),
        };
        let is_context = |name: &Arc<str>| matches!(&**name, "ctx" | "context_variables");
        let takes_context = self.entry.function.takes.iter().any(is_context);
        let told =
            if takes_context { Told::ToolInContext(arguments) } else { Told::Tool(arguments) };
        let invocation = Invocation {
            host: &self.host,
            entry: &self.entry,
            site: cx.into(),
            hook: &self.spec.name,
            rest: Rest::Nothing,
            chair: self.chair,
        };
        let said = invocation.run(told).await;
        match said.map_err(|error| ToolError::new(error.to_string()))? {
            Said::Text(text) => Ok(ToolOutput::text(text)),
            _ => Err(ToolError::new("the function gave no result")),
        }
    }
}

impl fmt::Debug for PythonTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonTool")
            .field("name", &self.spec.name)
            .field("file", &self.entry.function.file.path())
            .finish_non_exhaustive()
    }
}
