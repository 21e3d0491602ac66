//! The documents, the examples and the macros, as users meet them.

mod documents;
mod examples;
mod macros;
