//! A command as a lifecycle tool of a workflow.

use super::exchange::Program;
use crate::reply::once;
use crate::{Environment, LifecycleCall, StartCheck};
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::Error;
use tenure_core::event::LogStream;
use tenure_core::hook::{FaultKind, HookError};

/// A command as a lifecycle tool: started for each call, with one JSON object on its standard input.
///
/// The object has `trigger`, `agent` (null at a chat's begin and end), `workflow_name`, `chat_id`,
/// `context_variables` without the live objects of Python, and what the trigger has: `input`, or
/// `outcome`, `error` and `output`.
///
/// What the command writes to its standard output is its result: nothing, JSON, or a text. If it is
/// a JSON object, `context_variables` in it are written to the chat, all of them or none, and the
/// result is its `result`, or else what is left of it. Any other exit code than 0 is a failure.
/// What it writes to its standard error, and a text, are lines of the log.
pub struct CommandLifecycleTool {
    program: Program,
    name: Arc<str>,
}

impl CommandLifecycleTool {
    /// The command `argv`. A program with a `/` in it is relative to `dir`, the folder in which it
    /// runs; any other is found on the `PATH`.
    pub fn new(argv: Vec<String>, dir: impl Into<PathBuf>, environment: Environment) -> Self {
        let program = argv.first().map_or("command", String::as_str);
        let name = Path::new(program).file_name().and_then(|name| name.to_str());
        Self {
            name: name.unwrap_or(program).into(),
            program: Program::new(argv, dir.into(), environment),
        }
    }

    /// The name that the log knows it by. By default it is the program's.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Asks `check` right before each start. Its error is a fault of the kind
    /// [`NotStarted`](FaultKind::NotStarted).
    #[must_use]
    pub fn checked_by(mut self, check: StartCheck) -> Self {
        self.program.check = Some(check);
        self
    }

    /// Runs the command and gives its result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the command with everything that it started.
    pub async fn call(&self, call: &LifecycleCall<'_>) -> Result<Value, HookError> {
        let told = told(call).to_string();
        let said = self.program.exchange(call.cx(), &self.name, told.as_bytes()).await?;
        let said = String::from_utf8(said).map_err(|_| bad("what it wrote is not UTF-8"))?;
        let said = said.trim();
        if said.is_empty() {
            return Ok(Value::Null);
        }
        match once::whole(said) {
            Ok(Value::Object(reply)) => reply_of(call, reply),
            Ok(result) => Ok(result),
            // An object that was meant is not taken for a text.
            Err(error) if said.starts_with('{') => {
                Err(bad(format!("what it wrote looks like JSON and is none: {error}")))
            }
            Err(_) => {
                for line in said.lines() {
                    call.cx().log(&self.name, LogStream::Stdout, line);
                }
                Ok(said.into())
            }
        }
    }
}

/// What the command gets to know.
fn told(call: &LifecycleCall<'_>) -> Value {
    let variables = call.variables().map(|variables| variables.all()).unwrap_or_default();
    let workflow = variables.get("workflow_name").cloned();
    let is_live = |value: &Value| value.get("$live").is_some();
    let variables: Map<_, _> = variables.into_iter().filter(|(_, value)| !is_live(value)).collect();
    let mut told = json!({
        "trigger": call.point().as_str(),
        "agent": call.agent(),
        "workflow_name": workflow,
        "chat_id": call.cx().chat_id(),
        "context_variables": variables,
    });
    if let Some(input) = call.input() {
        told["input"] = input.into();
    }
    if let Some(outcome) = call.outcome() {
        told["outcome"] = outcome.as_str().into();
        told["error"] = json!(call.error());
        told["output"] = json!(call.output());
    }
    told
}

fn reply_of(call: &LifecycleCall<'_>, mut reply: Map<String, Value>) -> Result<Value, HookError> {
    match reply.remove("context_variables") {
        None | Some(Value::Null) => {}
        Some(Value::Object(patch)) => match call.variables() {
            Some(variables) => variables.update(patch)?,
            None => return Err(Error::invalid("there is no chat that has variables").into()),
        },
        Some(other) => {
            return Err(bad(format!("its `context_variables` are {other}, and not an object")));
        }
    }
    if let Some(result) = reply.remove("result") {
        return Ok(result);
    }
    Ok(if reply.is_empty() { Value::Null } else { Value::Object(reply) })
}

fn bad(what: impl Into<String>) -> HookError {
    HookError::of_kind(FaultKind::BadReply, what.into())
}

impl fmt::Debug for CommandLifecycleTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLifecycleTool")
            .field("name", &self.name)
            .field("argv", &self.program.argv)
            .finish_non_exhaustive()
    }
}
