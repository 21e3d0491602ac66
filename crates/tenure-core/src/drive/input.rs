//! What enters a turn.

use serde::{Deserialize, Serialize};

/// What an agent is asked. `before_agent` hooks may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Input {
    /// The text, as the user's message will have it.
    pub text: String,
    /// What others said in a chat since the agent last took part, older than the text: messages of
    /// their own before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
}

impl Input {
    /// Input of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), earlier: Vec::new() }
    }

    /// The same input after what others said before it.
    #[must_use]
    pub fn after(mut self, earlier: Vec<String>) -> Self {
        self.earlier = earlier;
        self
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::text(text)
    }
}
