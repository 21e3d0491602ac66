//! Hooks that shape what a model gets to read: instructions, messages and tools.

mod cheaper_model;
mod clear;
mod dedupe;
mod prompt;
mod select_tools;
mod todo;
pub(crate) mod tokens;
mod window;

pub use cheaper_model::{CheaperModel, ModelRule};
pub use clear::ClearToolResults;
pub use dedupe::Dedupe;
pub use prompt::{DynamicPrompt, PromptPlace};
pub use select_tools::{NoChoice, Often, SelectTools};
pub use todo::{Todo, TodoList, TodoStatus};
pub use tokens::Encoding;
pub use window::ContextWindow;

use crate::ready::Ready;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    Ready::of::<prompt::PromptOptions>(),
    Ready::of::<todo::TodoOptions>(),
    Ready::of::<dedupe::DedupeOptions>(),
    Ready::of::<clear::ClearOptions>(),
    Ready::of::<select_tools::SelectToolsOptions>(),
    Ready::of::<window::WindowOptions>(),
    Ready::of::<cheaper_model::CheaperModelOptions>(),
];
