//! Tool results and answers, held against a JSON Schema.

use super::ending;
use super::glob::Glob;
use crate::ready::{About, Makings, Options, ProjectPath, Refusal};
use crate::words::{compiled, own_key};
use jsonschema::Validator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use tenure_core::context::{ToolCx, TurnCx};
use tenure_core::hook::{
    AgentLifecycle, Flow, HookAction, HookError, IntoRegistration, JumpTarget, Point, Points,
    Policy, Registration, hook,
};
use tenure_core::message::{Message, ToolStatus};
use tenure_core::model::{ModelRequest, ModelResponse};
use tenure_core::tool::{ToolOutput, ToolRequest};
use tenure_core::{Error, NextTool};
use tenure_macros::lifecycle;

const KIND: &str = "result_schema";
/// The mark of a turn that is to end.
const ENDS: &str = "_result_schema_ends";
/// What was wrong with an answer, for the model that is asked once more.
const AGAIN: &str = "_result_schema_again";
/// How many defects are told.
const TOLD: usize = 5;
/// The largest schema that is read from a file.
const LARGEST: u64 = 1 << 20;

/// Tool results and final answers, held against a JSON Schema.
///
/// A result is read as JSON; one that is none is a text. Schemas are compiled when they are given,
/// and nothing is fetched for them: a reference to another document is refused.
///
/// ```
/// use serde_json::json;
/// use tenure_core::agent::Agent;
/// use tenure_hooks::guard::ResultSchema;
/// # use tenure_models::Passthrough;
///
/// let schema = ResultSchema::new()
///     .tool("weather", &json!({ "type": "object", "required": ["degrees"] }))?;
/// let agent = Agent::builder("exact")
///     .model(Passthrough::new())
///     .with_lifecycle(schema)
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct ResultSchema {
    tools: Vec<(Glob, Arc<Validator>)>,
    output: Option<Arc<Validator>>,
    on_mismatch: OnMismatch,
    again: bool,
}

/// What is done about a tool result that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMismatch {
    /// The model reads what is wrong, as an error of the tool.
    #[default]
    Error,
    /// The model reads what is wrong, as a refusal.
    Deny,
    /// The turn ends as denied.
    End,
}

impl ResultSchema {
    /// No schemas yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What this tool answers has to fit; or what those answer that the pattern names. An error says
    /// what is wrong with the schema.
    pub fn tool(mut self, name: &str, schema: &Value) -> Result<Self, Error> {
        let glob = Glob::of_names(name).map_err(Error::invalid)?;
        self.tools.push((glob, compiled(schema).map_err(Error::invalid)?));
        Ok(self)
    }

    /// What the model answers at the end has to fit: a response without tool calls.
    pub fn output(mut self, schema: &Value) -> Result<Self, Error> {
        self.output = Some(compiled(schema).map_err(Error::invalid)?);
        Ok(self)
    }

    /// What is done about a tool result that does not fit.
    pub fn on_mismatch(mut self, on_mismatch: OnMismatch) -> Self {
        self.on_mismatch = on_mismatch;
        self
    }

    /// Tells the model what is wrong with its answer and asks it once more, before the turn ends as
    /// denied. The first answer stays part of the conversation, and whoever reads along reads both.
    pub fn ask_again(mut self) -> Self {
        self.again = true;
        self
    }

    fn points(&self) -> Points {
        let mut points = Points::NONE;
        if !self.tools.is_empty() {
            points = points.with(Point::WrapToolCall);
        }
        if self.output.is_some() {
            points = points.with(Point::AfterModel);
        }
        if self.on_mismatch == OnMismatch::End || self.again {
            points = points.with(Point::BeforeModel);
        }
        points
    }
}

impl fmt::Debug for ResultSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|(glob, _)| glob.text()).collect();
        f.debug_struct("ResultSchema")
            .field("tools", &tools)
            .field("output", &self.output.is_some())
            .field("on_mismatch", &self.on_mismatch)
            .finish_non_exhaustive()
    }
}

impl IntoRegistration for ResultSchema {
    fn into_registration(self) -> Registration {
        let points = self.points();
        let registration = hook(Held(self))
            .named(KIND)
            .kind(KIND)
            .only(points)
            .inside("tool_retry")
            .outside("timeout");
        // What denies comes along to clones, but an answer is judged only where it is the agent's
        // own. A failure there ends the turn all the same.
        points.iter().fold(registration, |registration, point| match point {
            Point::AfterModel => registration.policy_at(point, Policy::Abort),
            point => registration.policy_at(point, Policy::Deny),
        })
    }
}

/// What is wrong with a text, as the schema sees it.
fn defects(validator: &Validator, text: &str) -> Option<String> {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    if validator.is_valid(&value) {
        return None;
    }
    let mut told: Vec<String> = Vec::new();
    let mut errors = validator.iter_errors(&value);
    for error in errors.by_ref().take(TOLD) {
        let at = error.instance_path().to_string();
        let at = if at.is_empty() { "the whole".to_owned() } else { format!("`{at}`") };
        // What it says may hold the value, which may be long.
        let said: String = error.to_string().chars().take(200).collect();
        told.push(format!("{at}: {said}"));
    }
    let more = errors.count();
    let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    Some(format!("{}{more}", told.join("; ")))
}

struct Held(ResultSchema);

#[lifecycle]
impl AgentLifecycle for Held {
    async fn before_model(
        &self,
        cx: TurnCx<'_>,
        request: &mut ModelRequest,
    ) -> Result<Flow, HookError> {
        if let Some(why) = ending::marked(cx, &own_key(&cx, KIND, ENDS))? {
            return Err(Error::denied(why).into());
        }
        // The state says that the model was asked once more for as long as the turn lasts.
        let again = own_key(&cx, KIND, AGAIN);
        match cx.state(&again) {
            Some(Value::String(why)) if cx.step_number() > 1 => {
                let correction = format!(
                    "Your answer does not have the form that was asked for: {why}. Answer again \
                     with JSON only, in that form."
                );
                request.messages.edit().push(Message::user(correction));
                cx.set_state(again, true)?;
            }
            Some(Value::Null) | None => {}
            Some(_) if cx.step_number() > 1 => {}
            Some(_) => cx.set_state(again, Value::Null)?,
        }
        Ok(Flow::Continue)
    }

    async fn after_model(
        &self,
        cx: TurnCx<'_>,
        response: &ModelResponse,
    ) -> Result<HookAction, HookError> {
        let Some(validator) = self.0.output.as_ref().filter(|_| response.calls.is_empty()) else {
            return Ok(HookAction::Continue);
        };
        let Some(why) = defects(validator, response.content.text()) else {
            return Ok(HookAction::Continue);
        };
        let again = own_key(&cx, KIND, AGAIN);
        if self.0.again && matches!(cx.state(&again), None | Some(Value::Null)) {
            cx.set_state(again, why)?;
            return Ok(HookAction::JumpTo(JumpTarget::Model));
        }
        Ok(HookAction::Reject(format!("the answer does not fit its schema: {why}")))
    }

    async fn wrap_tool_call(
        &self,
        cx: ToolCx<'_>,
        request: &mut ToolRequest,
        next: NextTool<'_>,
    ) -> Result<ToolOutput, HookError> {
        let output = next.call(request).await?;
        if output.status != ToolStatus::Ok {
            return Ok(output);
        }
        let name = request.name();
        let schemas = self.0.tools.iter().filter(|(glob, _)| glob.matches(name));
        let why = schemas
            .into_iter()
            .find_map(|(_, validator)| defects(validator, output.content.text()));
        let Some(why) = why else { return Ok(output) };
        let message = format!(
            "Tool '{name}' was called, but its result does not fit its schema and is withheld: {why}"
        );
        match self.0.on_mismatch {
            OnMismatch::Error => Ok(ToolOutput::error(message)),
            OnMismatch::Deny => Ok(ToolOutput::denied(message)),
            OnMismatch::End => {
                ending::mark(cx, &own_key(&cx, KIND, ENDS), &message)?;
                Ok(ToolOutput::denied(message))
            }
        }
    }
}

/// What `result_schema` takes by `with`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ResultSchemaOptions {
    /// The JSON Schema of what a tool answers, by its name or a pattern of names.
    tools: BTreeMap<String, SchemaOptions>,
    /// The JSON Schema of the final answer.
    output: Option<SchemaOptions>,
    /// What is done about a tool result that does not fit.
    on_mismatch: OnMismatchOptions,
    /// Whether the model is told what is wrong with its answer and asked once more, before the turn
    /// ends as denied.
    ask_again: bool,
}

/// A JSON Schema: itself, or the file that it is in.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum SchemaOptions {
    /// The schema itself.
    Schema(Value),
    /// A file with it, of at most 1 MiB.
    File(ProjectPath),
}

#[derive(Deserialize, Serialize, JsonSchema, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum OnMismatchOptions {
    /// The model reads what is wrong, as an error of the tool.
    #[default]
    Error,
    /// The model reads what is wrong, as a refusal.
    Deny,
    /// The turn ends as denied.
    End,
}

impl Options for ResultSchemaOptions {
    const ABOUT: About = About {
        name: "result_schema",
        summary: "Holds tool results and the final answer against a JSON Schema.",
        covers: &["UC-5.5"],
        peers: &[],
        example: r#"{ "tools": { "weather": { "schema": { "type": "object" } } } }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        if self.tools.is_empty() && self.output.is_none() {
            return Err(Refusal::new("", "give a schema: for `tools`, for the `output`, or both"));
        }
        if self.ask_again && self.output.is_none() {
            return Err(Refusal::new("ask_again", "it is about the answer, so it needs `output`"));
        }
        let mut held = ResultSchema::new().on_mismatch(match self.on_mismatch {
            OnMismatchOptions::Error => OnMismatch::Error,
            OnMismatchOptions::Deny => OnMismatch::Deny,
            OnMismatchOptions::End => OnMismatch::End,
        });
        for (tool, schema) in self.tools {
            let field = format!("tools.{tool}");
            let schema = schema.read(makings, &field)?;
            let added = held.tool(&tool, &schema);
            held = added.map_err(|error| Refusal::new(field, error.to_string()))?;
        }
        if let Some(schema) = self.output {
            let schema = schema.read(makings, "output")?;
            let added = held.output(&schema);
            held = added.map_err(|error| Refusal::new("output", error.to_string()))?;
        }
        held.again = self.ask_again;
        Ok(held.into_registration())
    }
}

impl SchemaOptions {
    fn read(self, makings: &dyn Makings, field: &str) -> Result<Value, Refusal> {
        match self {
            Self::Schema(schema) => Ok(schema),
            Self::File(path) => {
                let refused = |why| Refusal::new(format!("{field}.file"), why);
                let found = makings.path(&path.0).map_err(refused)?;
                read_schema(&found).map_err(|why| refused(format!("`{}`: {why}", path.0)))
            }
        }
    }
}

fn read_schema(path: &Path) -> Result<Value, String> {
    let failed = |error: std::io::Error| format!("it cannot be read: {error}");
    // A pipe or a device could be read for ever.
    let about = std::fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
}
