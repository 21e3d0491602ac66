//! Which agent answers in which form.

use super::schema::{Models, check, schema};
use super::{OutputsSpec, value};
use crate::variables::Problem;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tenure_core::agent::Request;
use tenure_core::chat::Chat;

/// The variable that holds what agents answered last: scratch, by agent.
pub const STRUCTURED_OUTPUTS: &str = "structured_outputs";

/// The structured outputs of a workflow, checked.
#[derive(Debug, Default)]
pub struct Outputs {
    by_agent: BTreeMap<String, Arc<Output>>,
}

/// The form of an agent's answers.
pub struct Output {
    models: Arc<Models>,
    model: String,
    schema: Arc<Value>,
}

impl Outputs {
    /// What a workflow declares. Everything that is wrong is said at once.
    pub fn new(spec: OutputsSpec) -> Result<Self, Vec<Problem>> {
        let problems = check(&spec);
        if !problems.is_empty() {
            return Err(problems);
        }
        let models = spec.models.into_iter().map(|model| (model.name.clone(), model));
        let models: Arc<Models> = Arc::new(models.collect());
        let mut by_agent = BTreeMap::new();
        for (agent, model) in spec.registry {
            if let Some(root) = model.as_ref().and_then(|model| models.get(model)) {
                let schema = Arc::new(schema(&models, root));
                let model = root.name.clone();
                by_agent.insert(agent, Arc::new(Output { models: models.clone(), model, schema }));
            }
        }
        Ok(Self { by_agent })
    }

    /// The form of an agent's answers; none if it answers in words.
    pub fn get(&self, agent: &str) -> Option<&Arc<Output>> {
        self.by_agent.get(agent)
    }

    /// Whether every agent answers in words.
    pub fn is_empty(&self) -> bool {
        self.by_agent.is_empty()
    }

    /// What an agent answered, as a value; none if it answers in words.
    pub fn value(&self, agent: &str, text: &str) -> Option<Value> {
        self.get(agent)?.read(text).ok()
    }

    /// Keeps what an agent answered, for hooks and tools: [`STRUCTURED_OUTPUTS`] of the chat, by
    /// agent. For whoever runs the chat, after every turn that ended well.
    pub fn keep(&self, chat: &Chat, agent: &str, text: &str) {
        let Some(value) = self.value(agent, text) else { return };
        let mut all = match chat.variable(STRUCTURED_OUTPUTS) {
            Some(Value::Object(all)) => all,
            _ => Map::new(),
        };
        all.insert(agent.to_owned(), value);
        chat.set_variables([(STRUCTURED_OUTPUTS.to_owned(), Value::Object(all))]);
    }
}

impl Output {
    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The JSON Schema of an answer.
    pub fn schema(&self) -> &Arc<Value> {
        &self.schema
    }

    /// Reads an answer: JSON, with or without a fence around it, as the model says. What may be left
    /// out has its default. The error is in words for the model.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = serde_json::from_str(unfenced(text))
            .map_err(|error| format!("it is no JSON: {error}"))?;
        value::complete(&self.models, &self.model, value)
    }

    /// Makes a request ask for this form: the model gets the schema, and an answer of another form is
    /// shown to it with what is wrong, up to twice; then the turn fails.
    pub fn ask<'a>(self: &Arc<Self>, request: Request<'a>) -> Request<'a> {
        let output = self.clone();
        request
            .output_schema(self.schema.clone())
            .check_output(move |text| output.read(text).map(drop))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.model).finish()
    }
}

/// The JSON in an answer: some models put a fence around it.
pub(crate) fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(fenced) = text.strip_prefix("```") else { return text };
    let fenced = fenced.strip_prefix("json").unwrap_or(fenced);
    fenced.strip_suffix("```").unwrap_or(fenced).trim()
}
