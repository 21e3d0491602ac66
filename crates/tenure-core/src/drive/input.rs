//! What enters a turn.

use crate::content::Content;
use serde::{Deserialize, Serialize};

/// What an agent is asked. `before_agent` hooks may change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Input {
    /// What is asked, as the user's message will have it.
    #[serde(rename = "text")]
    pub content: Content,
    /// What others said in a chat since the agent last took part, older than the text: messages of
    /// their own before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Content>,
}

impl Input {
    /// Creates input that asks this.
    pub fn text(content: impl Into<Content>) -> Self {
        Self { content: content.into(), earlier: Vec::new() }
    }

    /// The same input after what others said before it.
    #[must_use]
    pub fn after(mut self, earlier: Vec<Content>) -> Self {
        self.earlier = earlier;
        self
    }
}

impl<C: Into<Content>> From<C> for Input {
    fn from(content: C) -> Self {
        Self::text(content)
    }
}
