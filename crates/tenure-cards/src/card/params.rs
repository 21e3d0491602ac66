//! What a card says about its model.

use super::Secret;
use serde_json::{Map, Value};

/// The fields about an agent's own model.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ModelFields {
    /// The model's name; none means the run's.
    pub model: Option<String>,
    /// Whether a turn sees the turns before it. Yes for agents, no for the other types.
    pub use_history: bool,
    /// Whether what the agent did is written to a file. Only without history.
    pub save_trajectory: bool,
    /// What steers the model.
    pub request_params: RequestParams,
    /// Whether the model may ask the person.
    pub human_input: bool,
    /// The key for the model's provider.
    pub api_key: Option<Secret>,
}

/// The field `request_params`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RequestParams {
    /// The most model calls that a turn may make (`max_iterations`); at least 1.
    pub max_steps: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The most tokens to write (`maxTokens` or `max_tokens`); at least 1.
    pub max_tokens: Option<u32>,
    /// Another model than the card's.
    pub model: Option<String>,
    /// Whether a turn sees the turns before it; beats the card's own field.
    pub use_history: Option<bool>,
    /// Whether the model may ask for several tools at once.
    pub parallel_tool_calls: Option<bool>,
    /// What a child returns to its parent: `postprocess`, `passthrough` or `selectable`.
    pub tool_result_mode: Option<String>,
    /// Everything else, as it goes to the model's provider.
    pub extra: Map<String, Value>,
}
