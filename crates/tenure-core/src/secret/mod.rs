//! Secrets: which values are known or look like one, and how they are kept out of every sink.
//!
//! There is one [`Redactor`] for a project. Every sink is handed the same one: the events of an
//! agent, what its hooks write and export, the store, and what is shown to people. What is sent to a
//! model or a tool is not its business.

mod armour;
mod name;
mod plan;
mod redactor;
mod shape;
#[cfg(test)]
mod tests;

pub use armour::ArmourBody;
pub use name::{is_secret_name, is_secret_variable, passwords, secret_parts};
pub use plan::PassScope;
pub use redactor::Redactor;
pub use shape::Shape;
