//! What a tool says of itself.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What happens when a tool call is made again after a crash (G7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effect {
    /// Doing it twice is as good as once; it may be re-run.
    Idempotent,
    /// It takes an idempotency key, equal on every attempt; it may be re-run with it.
    Keyed,
    /// It must not be re-run: after a crash its outcome is unknown and goes to a person.
    #[default]
    AtMostOnce,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::Idempotent, Self::Keyed, Self::AtMostOnce];

    /// The effect's name as files spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idempotent => "idempotent",
            Self::Keyed => "keyed",
            Self::AtMostOnce => "at_most_once",
        }
    }
}

/// A tool's name, purpose, parameters and promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name that the model calls it by.
    pub name: Arc<str>,
    /// What it is for, as the model reads it.
    pub description: String,
    /// The JSON Schema of its arguments; an object.
    pub parameters: Value,
    /// Whether a repeated call is harmless.
    #[serde(default)]
    pub effect: Effect,
    /// The most time that a call may take. A call that takes longer ends as an error result.
    #[serde(default)]
    pub limit: Option<Duration>,
    /// The shared keys that it writes. Each of them needs a reducer.
    #[serde(default)]
    pub writes: Vec<String>,
}

impl ToolSpec {
    /// A tool without parameters.
    pub fn new(name: impl Into<Arc<str>>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: json!({ "type": "object", "properties": {} }),
            effect: Effect::default(),
            limit: None,
            writes: Vec::new(),
        }
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(mut self, schema: Value) -> Self {
        self.parameters = schema;
        self
    }

    /// Whether a repeated call is harmless.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// The most time that a call may take.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Declares a shared key that the tool writes.
    #[must_use]
    pub fn writes(mut self, key: impl Into<String>) -> Self {
        self.writes.push(key.into());
        self
    }
}
