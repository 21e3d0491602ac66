//! What enters a turn.

use serde::{Deserialize, Serialize};

/// What an agent is asked. `before_agent` hooks may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Input {
    /// The text, as the user's message will have it.
    pub text: String,
}

impl Input {
    /// Input of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self { text }
    }
}

impl From<&String> for Input {
    fn from(text: &String) -> Self {
        Self::text(text)
    }
}
