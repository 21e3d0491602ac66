//! Message hooks: Python functions that read and change what agents are told and what they say.
//!
//! There are four, of the signatures that [`MessageHookType`] names. [`of_agent`] makes entries of
//! an agent's chain of those that concern it.

mod attach;
mod hook;

pub use attach::of_agent;
pub use hook::{MessageHook, MessageHookType};
