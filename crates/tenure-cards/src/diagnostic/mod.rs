//! What is wrong with files, said so that a person can put it right: stable codes, places, remedies,
//! and their rendering for terminals, programs and code-scanning tools.
//!
//! [`Code`] is the one table of what can be said; [`Report`] collects it from all files. Text of
//! cards that ends up in a message is escaped when it is rendered, so that a card cannot drive the
//! terminal of the person who checks it.

mod code;
mod escape;
mod json;
mod report;
mod sarif;
mod text;

pub use code::Code;
pub use escape::is_hidden;
pub use report::{Diagnostic, Report, Severity};
pub use text::Color;
