//! What is wrong with the variables that a workflow declares.

use std::fmt;

/// Something that is wrong with the variables that a workflow declares.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The variable, or the agent of an exposure.
    pub name: String,
    /// The field of its entry that is wrong, dotted: `source.computation`; none if it is all of it.
    pub field: Option<&'static str>,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Problem {
    pub(crate) fn new(
        name: &str,
        field: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let field = Some(field).filter(|field| !field.is_empty());
        Self { name: name.to_owned(), field, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, message, help, .. } = self;
        write!(f, "context variable `{name}`: {message}; {help}")
    }
}

impl std::error::Error for Problem {}
