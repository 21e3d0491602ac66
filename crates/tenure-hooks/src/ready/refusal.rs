//! Why a hook cannot be made of its options.

use std::fmt;

/// Why a hook cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    field: String,
    message: String,
}

impl Refusal {
    /// Something is wrong with this field, as in `edits[0].keep`; with all of them, if it is empty.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    /// The field, as in `edits[0].keep`; empty if it is about the whole.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with it, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "`{field}`: {}", self.message),
        }
    }
}

impl std::error::Error for Refusal {}
