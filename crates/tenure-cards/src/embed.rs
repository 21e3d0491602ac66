//! For crates that read other files which declare agents.
//!
//! A workflow's files are such: their agents are cards, their lifecycle tools are declared much as
//! hooks are, and what is wrong with them is said in the same words. A [`Reader`] takes typed values
//! out of a tree and reports what is wrong; a [`SpecScope`] finds what such a file wants to be run, a
//! Python function by parsing its file, a program by looking at it; a [`CardLoader`] makes cards of
//! entries and of files, and checks them together. Nothing is executed.

pub use crate::card::{Reader, found, list_words, present};
pub use crate::check::CardLoader;
pub use crate::hook::{SpecScope, read_hooks};
pub use crate::nearest::nearest;
pub use crate::python::{Origin, PythonFiles, Use};

/// Whether a hook of this name is ready-made, and need not be registered. So is one that this build lacks.
pub fn is_ready_made(name: &str) -> bool {
    tenure_hooks::ready::find(name).is_some() || tenure_hooks::ready::left_out(name).is_some()
}
