//! What is said in a chat.

use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The person.
    User,
    /// An agent of the chat.
    Agent(Arc<str>),
    /// Whoever runs the chat.
    System,
}

impl Speaker {
    /// The speaker's name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Agent(name) => name,
            Self::System => "system",
        }
    }
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Speaker {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Who said it.
    pub speaker: Speaker,
    /// What was said.
    pub text: Arc<str>,
    /// The turn in which it was said, counted from one; none of what came before the first.
    pub turn: usize,
    /// Whether people do not get to see it: the seed of a chat that its agents begin, agents whose
    /// words are not for the screen.
    pub hidden: bool,
}

impl ChatMessage {
    /// A message that people see.
    pub fn new(speaker: Speaker, text: impl Into<Arc<str>>, turn: usize) -> Self {
        Self { speaker, text: text.into(), turn, hidden: false }
    }

    /// As an agent gets to read it that did not say it.
    pub(crate) fn heard(&self) -> String {
        match &self.speaker {
            Speaker::Agent(name) => [name, ": ", &self.text].concat(),
            Speaker::User | Speaker::System => self.text.to_string(),
        }
    }
}
