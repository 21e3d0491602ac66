//! The name of another agent, and where it is written.

use crate::source::Span;
use std::fmt;
use std::sync::Arc;

/// Another agent that a card names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRef {
    /// The agent's name.
    pub name: Arc<str>,
    /// The field that names it.
    pub field: &'static str,
    /// Where in the card's file.
    pub span: Span,
}

impl fmt::Display for AgentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
